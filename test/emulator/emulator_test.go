//go:build emulator

// Package emulator runs the built functions under the Lambda runtime interface emulator, against a real S3 server and a real
// DynamoDB implementation.
package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/dynamo/dynamotest"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/metrics"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/s3store"
)

func need(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	require.NotEmpty(t, value, "%s is not set: run this through make test or test/run", name)
	return value
}

// upload puts a golden table into a folder of its own in the bucket, 30 days old, and returns its store and URI.
func upload(t *testing.T, name string) (*s3store.Store, string) {
	t.Helper()
	return uploadTo(t, "emulator/"+uuid.NewString(), name)
}

func uploadTo(t *testing.T, folderName, name string) (*s3store.Store, string) {
	t.Helper()
	bucket, prefix := need(t, "LANCEKEEPER_TEST_BUCKET"), folderName+"/"+name+".lance"
	store, err := s3store.Open(t.Context(), bucket, prefix, s3store.Options{})
	require.NoError(t, err)
	golden := lancetest.Load(t, name, time.Now, time.Hour)
	for _, key := range golden.Keys() {
		data, _, err := golden.Get(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, store.Put(t.Context(), key, data))
	}
	old := time.Now().Add(-30 * 24 * time.Hour)
	folder := filepath.Join(need(t, "LANCEKEEPER_TEST_S3_DIR"), bucket, filepath.FromSlash(prefix))
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	}))
	return store, "s3://" + bucket + "/" + prefix
}

// newTable makes the table of lock and ledger.
func newTable(t *testing.T) (string, *ledger.Dynamo) {
	t.Helper()
	client, name := dynamotest.NewTable(t)
	return name, ledger.NewDynamo(client, name)
}

// function is a built function under the emulator.
type function struct {
	t        *testing.T
	url      string
	emulator int // its process
	mu       sync.Mutex
	log      bytes.Buffer // what the function printed
}

func (f *function) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(p)
}

// lines are the whole lines printed so far.
func (f *function) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := strings.Split(f.log.String(), "\n")
	return lines[:len(lines)-1]
}

func (f *function) count(part string) int {
	n := 0
	for _, line := range f.lines() {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// settle waits until the emulator has said that an invocation is over, and then until nothing more is printed: what the function
// prints comes here by way of the emulator, which does not wait with the answer for it.
func (f *function) settle(before int) {
	end := time.Now().Add(10 * time.Second)
	for last := -1; time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		n := len(f.lines())
		if n == last && f.count("REPORT RequestId: ") > before {
			return
		}
		last = n
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close() //nolint:errcheck // nothing was sent
	return l.Addr().String()
}

// start runs a function with the given settings and timeout.
func start(t *testing.T, name string, timeout int, environment ...string) *function {
	t.Helper()
	f := &function{t: t}
	binary := filepath.Join(need(t, "LANCEKEEPER_TEST_BIN"), name)
	api, runtime := freePort(t), freePort(t)
	command := exec.Command(need(t, "LANCEKEEPER_TEST_RIE"), "--runtime-interface-emulator-address", api, "--runtime-api-address", runtime, binary) //nolint:gosec // test tools
	command.Env = append(os.Environ(), append([]string{
		"AWS_LAMBDA_FUNCTION_NAME=" + name, fmt.Sprintf("AWS_LAMBDA_FUNCTION_TIMEOUT=%d", timeout), "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
	}, environment...)...)
	command.Stdout, command.Stderr = f, f
	require.NoError(t, command.Start())
	f.emulator = command.Process.Pid
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(strings.Join(f.lines(), "\n"))
		}
	})
	f.url = "http://" + api + "/2015-03-31/functions/function/invocations"
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", api)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	return f
}

// failure is what a function answers when it returned an error.
type failure struct {
	ErrorMessage string `json:"errorMessage"`
	ErrorType    string `json:"errorType"`
}

// invoke sends an event and returns the answer.
func (f *function) invoke(event string) []byte {
	f.t.Helper()
	defer f.settle(f.count("REPORT RequestId: "))
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, strings.NewReader(event))
	require.NoError(f.t, err)
	response, err := (&http.Client{Transport: &http.Transport{Proxy: nil}}).Do(request)
	require.NoError(f.t, err)
	defer response.Body.Close() //nolint:errcheck // read whole
	body, err := io.ReadAll(response.Body)
	require.NoError(f.t, err)
	return body
}

// document invokes the maintain function, which must succeed.
func (f *function) document(event string) maintain.Document {
	f.t.Helper()
	body := f.invoke(event)
	var doc maintain.Document
	require.NoError(f.t, json.Unmarshal(body, &doc), string(body))
	require.NotEmpty(f.t, doc.Results, string(body))
	return doc
}

// failed invokes a function that must fail.
func (f *function) failed(event string) failure {
	f.t.Helper()
	body := f.invoke(event)
	var answer failure
	require.NoError(f.t, json.Unmarshal(body, &answer), string(body))
	require.NotEmpty(f.t, answer.ErrorMessage, string(body))
	return answer
}

// foreignLine is what the function does not print itself: the emulator does, as Lambda does around its output; the runtime's client an
// error; the SDK a warning.
var foreignLine = regexp.MustCompile(`^(\d{2} \w{3} \d{4} [0-9:,]+ \[|START RequestId: |END RequestId: |REPORT RequestId: |(SDK )?\d{4}/\d{2}/\d{2} |$)`)

// documents are the embedded metric documents printed so far, in order. Every line of the function's own must be JSON.
func (f *function) documents() []map[string]any {
	f.t.Helper()
	var out []map[string]any
	for _, line := range f.lines() {
		if foreignLine.MatchString(line) {
			continue
		}
		var document map[string]any
		require.NoError(f.t, json.Unmarshal([]byte(line), &document), line)
		if document["_aws"] != nil {
			checkMetrics(f.t, document)
			out = append(out, document)
		}
	}
	return out
}

// metrics are the metric documents by dataset, the newest of each.
func (f *function) metrics() map[string]map[string]any {
	f.t.Helper()
	out := map[string]map[string]any{}
	for _, document := range f.documents() {
		name, _ := document["Dataset"].(string)
		out[name] = document
	}
	return out
}

// processes is how many times the emulator started the function's process.
func (f *function) processes() int {
	return f.count("INIT START")
}

// checkMetrics verifies a document against the rules of the embedded metric format.
func checkMetrics(t *testing.T, document map[string]any) {
	t.Helper()
	header, err := json.Marshal(document["_aws"])
	require.NoError(t, err)
	var h struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	}
	require.NoError(t, json.Unmarshal(header, &h))
	require.WithinDuration(t, time.Now(), time.UnixMilli(h.Timestamp), time.Hour)
	require.Len(t, h.CloudWatchMetrics, 1)
	m := h.CloudWatchMetrics[0]
	require.Equal(t, "Lancekeeper", m.Namespace)
	require.ElementsMatch(t, [][]string{{"Dataset"}, {}}, m.Dimensions)
	require.NotEmpty(t, m.Metrics)
	require.LessOrEqual(t, len(m.Metrics), 100)
	units := map[string]metrics.Unit{}
	for _, d := range metrics.Definitions() {
		units[d.Name] = d.Unit
	}
	for _, metric := range m.Metrics {
		require.Contains(t, units, metric.Name)
		require.Equal(t, string(units[metric.Name]), metric.Unit, metric.Name)
		require.IsType(t, float64(0), document[metric.Name], metric.Name)
	}
	require.Len(t, document, len(m.Metrics)+2, "every number is declared")
}

func event(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "infra", "events", name+".json"))
	require.NoError(t, err)
	return string(data)
}

func versions(t *testing.T, store objstore.Store) int {
	t.Helper()
	l, err := dataset.List(t.Context(), store)
	require.NoError(t, err)
	return len(l.Versions)
}

// TestScheduledEvent: the dataset becomes small with the same rows; the metrics are valid; a second event in the same process finds
// nothing to do.
func TestScheduledEvent(t *testing.T) {
	t.Parallel()
	store, uri := upload(t, "upserts-2.2")
	rows := lancetest.Latest(t, store)
	table, book := newTable(t)
	f := start(t, "maintain", 60, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table)
	doc := f.document(event(t, "scheduled"))
	require.Equal(t, maintain.OK, doc.Outcome, "%+v", doc.Results[0])
	require.Equal(t, 1, doc.Results[0].After.Fragments)
	require.Positive(t, doc.Results[0].Pruning.VersionsRemoved)
	require.Equal(t, "1h", doc.Results[0].Policy["grace"].Value)
	require.Equal(t, rows, lancetest.Latest(t, store))
	lancetest.Whole(t, store)
	m := f.metrics()[uri]
	require.EqualValues(t, 0, m["UnreclaimedVersions"])
	require.EqualValues(t, 0, m["MaintenanceFailures"])
	require.EqualValues(t, 0, m["ConsecutiveFailures"])
	require.EqualValues(t, doc.Results[0].Pruning.VersionsRemoved, m["VersionsRemoved"])
	require.EqualValues(t, 1, m["FragmentsAfter"])
	require.Len(t, f.documents(), 1)
	e, found, err := book.Load(t.Context(), uri)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, doc.Results[0].After.Version, e.LastSuccess.Version)

	again := f.document(event(t, "scheduler"))
	require.Equal(t, maintain.OK, again.Outcome)
	require.Equal(t, doc.Results[0].After.Version, again.Results[0].After.Version, "an idle pass commits nothing")
	require.Zero(t, again.Results[0].Pruning.VersionsRemoved)
	require.Len(t, f.documents(), 2)
	require.EqualValues(t, 0, f.metrics()[uri]["VersionsRemoved"])
	require.Equal(t, 1, f.processes(), "the process was warm")
}

// TestManualEvents: a dry run changes nothing, and a backlog is drained.
func TestManualEvents(t *testing.T) {
	t.Parallel()
	store, uri := upload(t, "updates")
	table, book := newTable(t)
	f := start(t, "maintain", 60, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table)
	before := versions(t, store)
	doc := f.document(event(t, "dry-run"))
	require.True(t, doc.DryRun)
	require.NotEmpty(t, doc.Results[0].Pruning.Plan.Versions)
	require.NotEmpty(t, doc.Results[0].Compaction.Plan)
	require.Equal(t, before, versions(t, store))
	_, found, err := book.Load(t.Context(), uri)
	require.NoError(t, err)
	require.False(t, found, "a dry run leaves no trace in the table")
	doc = f.document(`{"until": "drained", "grace": "0s", "allowShortGrace": true}`)
	require.True(t, doc.Drained)
	require.Equal(t, 1, versions(t, store))
}

// TestBadEventIsRefused: by name, counted, and with nothing done.
func TestBadEventIsRefused(t *testing.T) {
	t.Parallel()
	store, uri := upload(t, "emptied")
	before := versions(t, store)
	table, _ := newTable(t)
	f := start(t, "maintain", 60, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table)
	answer := f.failed(`{"graze": "2h"}`)
	require.Contains(t, answer.ErrorMessage, "graze")
	require.Contains(t, answer.ErrorMessage, "grace", "the nearest known name")
	require.Equal(t, before, versions(t, store))
	all := f.metrics()
	require.Len(t, all, 1)
	for _, m := range all {
		require.EqualValues(t, 1, m["MaintenanceFailures"])
	}
}

// TestOneFailingDatasetDoesNotStopTheNext: the invocation fails, after everything is done and recorded.
func TestOneFailingDatasetDoesNotStopTheNext(t *testing.T) {
	t.Parallel()
	broken, brokenURI := upload(t, "upserts-2.1")
	newest, _, err := dataset.Latest(t.Context(), broken)
	require.NoError(t, err)
	require.NoError(t, broken.Put(t.Context(), newest.Key, []byte("cut")))
	good, goodURI := upload(t, "emptied")
	table, book := newTable(t)
	f := start(t, "maintain", 60, "LANCEKEEPER_DATASETS="+brokenURI+","+goodURI, "LANCEKEEPER_TABLE="+table)
	for failures := 1; failures <= 2; failures++ {
		answer := f.failed(event(t, "scheduled"))
		require.Contains(t, answer.ErrorMessage, brokenURI)
		require.NotContains(t, answer.ErrorMessage, goodURI)
		all := f.metrics()
		require.EqualValues(t, 1, all[brokenURI]["MaintenanceFailures"])
		require.EqualValues(t, failures, all[brokenURI]["ConsecutiveFailures"])
		require.GreaterOrEqual(t, all[brokenURI]["UnreclaimedVersions"], float64(newest.Number-1), "before any success, the whole backlog")
		require.EqualValues(t, 0, all[goodURI]["MaintenanceFailures"])
		require.EqualValues(t, 0, all[goodURI]["UnreclaimedVersions"])
	}
	require.LessOrEqual(t, versions(t, good), 2)
	e, _, err := book.Load(t.Context(), brokenURI)
	require.NoError(t, err)
	require.Equal(t, 2, e.Failures)
	require.Nil(t, e.LastSuccess)
}

// TestReport measures and emits the gauges, and writes nothing.
func TestReport(t *testing.T) {
	t.Parallel()
	store, uri := upload(t, "tags")
	var before []objstore.Object
	for o, err := range store.List(t.Context(), "", "") {
		require.NoError(t, err)
		before = append(before, o)
	}
	table, book := newTable(t)
	f := start(t, "report", 60, "LANCEKEEPER_DATASETS="+uri, "LANCEKEEPER_TABLE="+table)
	var answer struct {
		Reports []struct {
			Dataset             string
			Manifests           int
			UnreclaimedVersions uint64
		}
	}
	body := f.invoke(event(t, "scheduler"))
	require.NoError(t, json.Unmarshal(body, &answer), string(body))
	require.Len(t, answer.Reports, 1)
	require.Equal(t, versions(t, store), answer.Reports[0].Manifests)
	require.EqualValues(t, versions(t, store), answer.Reports[0].UnreclaimedVersions, "the whole backlog")
	m := f.metrics()[uri]
	require.EqualValues(t, versions(t, store), m["UnreclaimedVersions"])
	require.NotContains(t, m, "MaintenanceFailures")
	var after []objstore.Object
	for o, err := range store.List(t.Context(), "", "") {
		require.NoError(t, err)
		after = append(after, o)
	}
	require.Equal(t, before, after)
	_, found, err := book.Load(t.Context(), uri)
	require.NoError(t, err)
	require.False(t, found)
}
