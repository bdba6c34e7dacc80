package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/config"
	"lancekeeper/internal/lock"
	"lancekeeper/internal/maintain"
)

// handle calls the handler with an environment, and returns also the lines that it printed: each is JSON.
func handle(t *testing.T, event string, environ ...string) (*maintain.Document, []map[string]any, error) {
	t.Helper()
	return handleIn(t.Context(), t, event, environ...)
}

func handleIn(ctx context.Context, t *testing.T, event string, environ ...string) (*maintain.Document, []map[string]any, error) {
	t.Helper()
	var out bytes.Buffer
	doc, err := handler{stdout: &out, environ: environ}.handle(ctx, json.RawMessage(event))
	return doc, jsonLines(t, out.String()), err
}

func jsonLines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(text) {
		var document map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &document), line)
		lines = append(lines, document)
	}
	return lines
}

// metricsOf are the metric documents among lines, by dataset; there is one at most of each.
func metricsOf(t *testing.T, lines []map[string]any) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, line := range lines {
		if name, ok := line["Dataset"].(string); ok && line["_aws"] != nil {
			require.NotContains(t, out, name)
			out[name] = line
		}
	}
	return out
}

func TestHandler(t *testing.T) {
	t.Parallel()
	folder := golden(t, "upserts-2.1", old)
	environ := []string{"LANCEKEEPER_DATASETS=" + folder, "LANCEKEEPER_STATE=" + t.TempDir(), "LANCEKEEPER_KEEP=3"}
	doc, lines, err := handle(t, `{"keep": 2}`, environ...)
	require.NoError(t, err)
	require.Equal(t, maintain.OK, doc.Outcome)
	require.Equal(t, maintain.PolicySetting{Value: "2", Source: "event"}, doc.Results[0].Policy["keep"])
	require.Equal(t, 1, doc.Results[0].After.Fragments)
	m := metricsOf(t, lines)[folder]
	require.EqualValues(t, 0, m["UnreclaimedVersions"])
	require.EqualValues(t, 0, m["MaintenanceFailures"])

	doc, lines, err = handle(t, "", environ...)
	require.NoError(t, err)
	require.Equal(t, maintain.PolicySetting{Value: "3", Source: "environment"}, doc.Results[0].Policy["keep"], "an event's setting is for its run only")
	require.EqualValues(t, 0, metricsOf(t, lines)[folder]["VersionsRemoved"])
}

func TestHandlerRefusesSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ event, environ, says string }{
		"key":             {event: `{"graze": "2h"}`, environ: "LANCEKEEPER_DATASETS=/t.lance", says: "did you mean grace"},
		"value":           {event: `{"keep": 0}`, environ: "LANCEKEEPER_DATASETS=/t.lance", says: "keep"},
		"environment":     {event: `{}`, environ: "LANCEKEEPER_DATASET=/t.lance", says: "LANCEKEEPER_DATASETS"},
		"no dataset":      {event: `{}`, environ: "LANCEKEEPER_KEEP=2", says: "dataset"},
		"not from events": {event: `{"table": "t"}`, environ: "LANCEKEEPER_DATASETS=/t.lance", says: "LANCEKEEPER_TABLE"},
		"no object":       {event: `"x"`, environ: "LANCEKEEPER_DATASETS=/t.lance", says: "JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := filepath.Join(t.TempDir(), "state")
			doc, lines, err := handle(t, c.event, c.environ, "LANCEKEEPER_STATE="+state)
			require.Nil(t, doc)
			var setting *config.Error
			require.ErrorAs(t, err, &setting)
			require.ErrorContains(t, err, c.says)
			all := metricsOf(t, lines)
			require.Len(t, all, 1, "an invocation that could not begin does not look like none")
			for _, m := range all {
				require.EqualValues(t, 1, m["MaintenanceFailures"])
				require.NotContains(t, m, "UnreclaimedVersions")
			}
			require.NoDirExists(t, state)
		})
	}
}

// TestHandlerFailsAtTheEnd: the error names what failed; the document is in the answer and in the log; the other dataset is done.
func TestHandlerFailsAtTheEnd(t *testing.T) {
	t.Parallel()
	broken, good := golden(t, "upserts-2.0", old), golden(t, "updates", old)
	newest, err := filepath.Glob(filepath.Join(broken, "_versions", "*.manifest"))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(newest[0], 20))
	environ := []string{"LANCEKEEPER_DATASETS=" + broken + "\n" + good, "LANCEKEEPER_STATE=" + t.TempDir()}
	for failures := 1; failures <= 2; failures++ {
		doc, lines, err := handle(t, "{}", environ...)
		var failed *FailedError
		require.ErrorAs(t, err, &failed)
		require.Len(t, failed.Failed, 1)
		require.Contains(t, failed.Failed[0], broken)
		require.Equal(t, maintain.Failed, doc.Outcome)
		require.Equal(t, maintain.OK, doc.Results[1].Outcome)
		require.Equal(t, "corrupt", doc.Results[0].Error.Class)
		m := metricsOf(t, lines)
		require.EqualValues(t, 1, m[broken]["MaintenanceFailures"])
		require.EqualValues(t, failures, m[broken]["ConsecutiveFailures"])
		require.EqualValues(t, len(newest), m[broken]["UnreclaimedVersions"], "before any success, the whole backlog")
		require.EqualValues(t, 0, m[good]["MaintenanceFailures"])
		require.EqualValues(t, 0, m[good]["UnreclaimedVersions"])
		last := lines[len(lines)-1]
		require.Equal(t, "ERROR", last["level"])
		require.Equal(t, "failed", last["document"].(map[string]any)["outcome"])
	}
}

func TestHandlerSkips(t *testing.T) {
	t.Parallel()
	folder, state := golden(t, "emptied", old), t.TempDir()
	hold(t, folder, state)
	doc, lines, err := handle(t, "{}", "LANCEKEEPER_DATASETS="+folder, "LANCEKEEPER_STATE="+state)
	require.NoError(t, err)
	require.Equal(t, maintain.Skipped, doc.Outcome)
	m := metricsOf(t, lines)[folder]
	require.EqualValues(t, 1, m["LockContended"])
	require.NotContains(t, m, "MaintenanceFailures")
}

// hold takes the lock on a dataset for the length of the test.
func hold(t *testing.T, folder, state string) {
	t.Helper()
	key, err := config.DatasetKey(folder)
	require.NoError(t, err)
	locker := lock.NewFile(lock.FileOptions{Dir: filepath.Join(state, "locks"), Owner: "somebody", Now: time.Now})
	lease, err := locker.Acquire(t.Context(), key, time.Time{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Release(t.Context()) })
}

// TestHandlerHasADeadline: with no time left the pass is partial, without touching anything; an event can shorten the time, not lengthen it.
func TestHandlerHasADeadline(t *testing.T) {
	t.Parallel()
	folder := golden(t, "updates", old)
	before := tree(t, folder)
	environ := []string{"LANCEKEEPER_DATASETS=" + folder, "LANCEKEEPER_STATE=" + t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	for _, event := range []string{"{}", `{"timeoutSeconds": 3600}`} {
		doc, lines, err := handleIn(ctx, t, event, environ...)
		require.NoError(t, err)
		require.Equal(t, maintain.Partial, doc.Outcome)
		require.EqualValues(t, 0, metricsOf(t, lines)[folder]["MaintenanceFailures"])
	}
	doc, _, err := handle(t, `{"timeoutSeconds": 1}`, environ...)
	require.NoError(t, err)
	require.Equal(t, maintain.Partial, doc.Outcome)
	require.Equal(t, before, tree(t, folder))
}

func TestHandlerDryRun(t *testing.T) {
	t.Parallel()
	folder, state := golden(t, "updates", old), filepath.Join(t.TempDir(), "state")
	before := tree(t, folder)
	doc, lines, err := handle(t, `{"dryRun": true}`, "LANCEKEEPER_DATASETS="+folder, "LANCEKEEPER_STATE="+state)
	require.NoError(t, err)
	require.True(t, doc.DryRun)
	require.NotEmpty(t, doc.Results[0].Pruning.Plan.Files)
	require.Equal(t, before, tree(t, folder))
	require.NoDirExists(t, state)
	require.Empty(t, metricsOf(t, lines), "nothing was done")
}
