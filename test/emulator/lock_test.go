//go:build emulator

package emulator

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/dynamo/dynamotest"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/lock"
	"lancekeeper/internal/maintain"
)

// TestLockHeld: a dataset at which another works is skipped, which is neither success nor failure; nothing is touched.
func TestLockHeld(t *testing.T) {
	t.Parallel()
	store, uri := upload(t, "updates")
	before := versions(t, store)
	client, table := dynamotest.NewTable(t)
	lease, err := lock.NewDynamo(client, lock.DynamoOptions{Table: table, Owner: "somebody", Now: time.Now}).Acquire(t.Context(), uri, time.Now().Add(time.Minute))
	require.NoError(t, err)
	f := start(t, "maintain", 60, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table)
	doc := f.document(event(t, "scheduled"))
	require.Equal(t, maintain.Skipped, doc.Outcome)
	require.Contains(t, doc.Results[0].Reason, "somebody")
	require.Equal(t, before, versions(t, store))
	m := f.metrics()[uri]
	require.EqualValues(t, 1, m["LockContended"])
	require.NotContains(t, m, "MaintenanceFailures")
	require.NotContains(t, m, "ConsecutiveFailures")
	require.NotContains(t, m, "UnreclaimedVersions", "the holder measures")

	require.NoError(t, lease.Release(t.Context()))
	require.Equal(t, maintain.OK, f.document(event(t, "scheduled")).Outcome)
	m = f.metrics()[uri]
	require.EqualValues(t, 0, m["LockContended"])
	require.EqualValues(t, 0, m["MaintenanceFailures"])
}

// TestEventDeliveredTwice, to two instances, while the first is at work: the other does nothing and does not fail.
func TestEventDeliveredTwice(t *testing.T) {
	t.Parallel()
	store, uri := upload(t, "upserts-2.0")
	rows := lancetest.Latest(t, store)
	table, book := newTable(t)
	g := newGate(t, isWrite)
	first := start(t, "maintain", 60, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table, "AWS_ENDPOINT_URL_S3="+g.url)
	second := start(t, "maintain", 60, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table)
	answers, scheduled := make(chan []byte, 1), event(t, "scheduled")
	go func() { answers <- first.invoke(scheduled) }()
	require.Eventually(t, func() bool { return g.hung.Load() > 0 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, maintain.Skipped, second.document(scheduled).Outcome)
	require.EqualValues(t, 1, second.metrics()[uri]["LockContended"])
	g.open()
	var doc maintain.Document
	body := <-answers
	require.NoError(t, json.Unmarshal(body, &doc), string(body))
	require.Equal(t, maintain.OK, doc.Outcome, string(body))
	require.Positive(t, doc.Results[0].Pruning.VersionsRemoved)
	e, _, err := book.Load(t.Context(), uri)
	require.NoError(t, err)
	require.NotNil(t, e.LastSuccess)
	require.Zero(t, e.Failures)
	require.Equal(t, rows, lancetest.Latest(t, store))
	lancetest.Whole(t, store)
}

// TestRoot: every dataset of a database folder, each with its own result and metrics.
func TestRoot(t *testing.T) {
	t.Parallel()
	folder := "emulator/" + uuid.NewString()
	names := []string{"emptied", "updates", "tags"}
	for _, name := range names {
		uploadTo(t, folder, name)
	}
	root := "s3://" + need(t, "LANCEKEEPER_TEST_BUCKET") + "/" + folder
	table, _ := newTable(t)
	f := start(t, "maintain", 60, "LANCEKEEPER_DATASETS="+root+"/", "LANCEKEEPER_TABLE="+table)
	doc := f.document(event(t, "scheduler"))
	require.Equal(t, maintain.OK, doc.Outcome, "%+v", doc.Results)
	require.Len(t, doc.Results, len(names))
	require.Len(t, f.documents(), len(names))
	for _, name := range names {
		require.EqualValues(t, 0, f.metrics()[root+"/"+name+".lance"]["UnreclaimedVersions"], name)
	}
}

// TestKilled: the process is killed while it writes. The answer is an error; until its lease has expired others keep away; then the
// next pass counts the death and does the work.
func TestKilled(t *testing.T) {
	t.Parallel()
	store, uri := upload(t, "updates")
	rows := lancetest.Latest(t, store)
	client, table := dynamotest.NewTable(t)
	g := newGate(t, isWrite)
	f := start(t, "maintain", 20, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table, "AWS_ENDPOINT_URL_S3="+g.url)
	answers, scheduled := make(chan []byte, 1), event(t, "scheduled")
	go func() { answers <- f.invoke(scheduled) }()
	require.Eventually(t, func() bool { return g.hung.Load() > 0 }, 15*time.Second, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(f.child(), syscall.SIGKILL))
	require.Contains(t, string(<-answers), "errorMessage")
	g.open()
	require.Equal(t, rows, lancetest.Latest(t, store))
	lancetest.Whole(t, store)

	second := start(t, "maintain", 20, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table)
	require.Equal(t, maintain.Skipped, second.document(event(t, "scheduled")).Outcome)
	second.eventually(maintain.OK)
	require.Equal(t, rows, lancetest.Latest(t, store))
	lancetest.Whole(t, store)
	e, _, err := ledger.NewDynamo(client, table).Load(t.Context(), uri)
	require.NoError(t, err)
	require.NotNil(t, e.LastSuccess)
	require.Equal(t, 1, e.Failures, "the death counts")
}

// child is the process of the function.
func (f *function) child() int {
	f.t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(f.t, err)
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(f.emulator) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(f.t, err)
			return pid
		}
	}
	require.Fail(f.t, "the function has no process")
	return 0
}
