package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// handle calls the handler with an environment, and returns also the lines that it printed: each is JSON.
func handle(t *testing.T, event string, environ ...string) (*answer, []map[string]any, error) {
	t.Helper()
	return handleIn(t.Context(), t, event, environ...)
}

func handleIn(ctx context.Context, t *testing.T, event string, environ ...string) (*answer, []map[string]any, error) {
	t.Helper()
	var out bytes.Buffer
	a, err := handler{stdout: &out, environ: environ}.handle(ctx, json.RawMessage(event))
	var lines []map[string]any
	for line := range strings.Lines(out.String()) {
		var document map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &document), line)
		lines = append(lines, document)
	}
	return a, lines, err
}

func gauges(lines []map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, line := range lines {
		if name, ok := line["Dataset"].(string); ok && line["_aws"] != nil {
			out[name] = line
		}
	}
	return out
}

// TestGauges: from what is measured and from the ledger; no counter of a pass.
func TestGauges(t *testing.T) {
	t.Parallel()
	folder, state := golden(t, "tags"), t.TempDir()
	_, before, err := handle(t, "{}", "LANCEKEEPER_DATASETS="+folder, "LANCEKEEPER_STATE="+state)
	require.NoError(t, err)
	backlog := gauges(before)[folder]
	require.EqualValues(t, backlog["ManifestsOnStorage"], backlog["UnreclaimedVersions"])
	require.NotContains(t, backlog, "SecondsSinceSuccess", "no pass has seen it")

	latest := uint64(backlog["DatasetVersion"].(float64))
	remember(t, state, folder, latest-3, latest-3)
	a, lines, err := handle(t, "", "LANCEKEEPER_DATASETS="+folder, "LANCEKEEPER_STATE="+state)
	require.NoError(t, err)
	require.EqualValues(t, 3, *a.Reports[0].UnreclaimedVersions)
	m := gauges(lines)[folder]
	require.EqualValues(t, 3, m["UnreclaimedVersions"])
	require.InDelta(t, 7200, m["SecondsSinceSuccess"], 60)
	for _, counter := range []string{"MaintenanceFailures", "VersionsRemoved", "LockContended"} {
		require.NotContains(t, m, counter)
	}
}

// TestDamagedDatasets: they fail the invocation after all gauges that are known have left; those of the others are complete.
func TestDamagedDatasets(t *testing.T) {
	t.Parallel()
	good, broken := golden(t, "updates"), golden(t, "upserts-2.0")
	damaged := cut(t, broken)
	gone := "/nowhere/gone.lance"
	_, lines, err := handle(t, "{}", "LANCEKEEPER_DATASETS="+gone+","+broken+","+good, "LANCEKEEPER_STATE="+t.TempDir())
	require.ErrorContains(t, err, damaged)
	require.ErrorContains(t, err, gone)
	m := gauges(lines)
	require.Len(t, m, 2)
	require.NotContains(t, m, gone, "what was not measured is left out")
	require.Positive(t, m[good]["UnreclaimedVersions"])
	require.Positive(t, m[broken]["UnreclaimedVersions"], "the names of the versions can be listed")
}

// TestGone: of a dataset that is not there any more the last known backlog still leaves.
func TestGone(t *testing.T) {
	t.Parallel()
	state, folder := t.TempDir(), golden(t, "updates")
	remember(t, state, folder, 5, 9)
	require.NoError(t, os.RemoveAll(folder))
	_, lines, err := handle(t, "{}", "LANCEKEEPER_DATASETS="+folder, "LANCEKEEPER_STATE="+state)
	require.Error(t, err)
	require.EqualValues(t, 4, gauges(lines)[folder]["UnreclaimedVersions"])
	require.InDelta(t, 7200, gauges(lines)[folder]["SecondsSinceSuccess"], 60)
}

func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ event, environ, says string }{
		"event":       {event: `{"graze": "2h"}`, environ: "LANCEKEEPER_DATASETS=/t.lance", says: "grace"},
		"environment": {event: `{}`, environ: "LANCEKEEPER_DATASET=/t.lance", says: "LANCEKEEPER_DATASETS"},
		"no dataset":  {event: `{}`, environ: "LANCEKEEPER_KEEP=2", says: "dataset"},
		"no object":   {event: `[]`, environ: "LANCEKEEPER_DATASETS=/t.lance", says: "JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, lines, err := handle(t, c.event, c.environ, "LANCEKEEPER_STATE="+t.TempDir())
			require.ErrorContains(t, err, c.says)
			require.Len(t, lines, 1, "the log says why")
			require.Equal(t, "ERROR", lines[0]["level"])
		})
	}
}

// TestEndsInTime: with a margin before the function's deadline, in which the gauges leave.
func TestEndsInTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, margin time.Duration }{{5 * time.Second, time.Second}, {time.Minute, 6 * time.Second}} {
		ctx, cancel := context.WithTimeout(t.Context(), c.given)
		bounded, stop := inTime(ctx)
		deadline, _ := ctx.Deadline()
		earlier, ok := bounded.Deadline()
		require.True(t, ok)
		require.InDelta(t, c.margin.Seconds(), deadline.Sub(earlier).Seconds(), 0.2)
		stop()
		cancel()
	}
	bounded, stop := inTime(t.Context())
	defer stop()
	_, ok := bounded.Deadline()
	require.False(t, ok)
}

// TestNoTimeLeft: every dataset is named, and nothing that was not measured is emitted.
func TestNoTimeLeft(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	one, two := golden(t, "updates"), golden(t, "tags")
	_, lines, err := handleIn(ctx, t, "{}", "LANCEKEEPER_DATASETS="+one+","+two, "LANCEKEEPER_STATE="+t.TempDir())
	require.ErrorContains(t, err, one)
	require.ErrorContains(t, err, two)
	require.Empty(t, gauges(lines))
}
