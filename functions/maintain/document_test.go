package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// example is the result document that users were promised: names may be added, none may go or change its kind.
const example = `{"outcome":"ok","drained":true,"results":[{
  "dataset":"s3://b/t.lance","outcome":"ok","reason":"","error":null,
  "before":{"version":9999,"manifests":9999,"fragments":200,"rows":200,"deletedRows":0,"files":25000,"bytes":187221577},
  "after": {"version":10000,"manifests":1,"fragments":1,"rows":200,"deletedRows":0,"files":4,"bytes":20480},
  "compaction":{"tasks":1,"fragmentsRemoved":200,"fragmentsAdded":1,"rowsDropped":0,"bytesRead":1,"bytesWritten":1,"conflicts":0,"skipped":[{"fragment":7,"reason":"…"}]},
  "pruning":{"versionsRemoved":9999,"filesRemoved":{"manifest":9999,"data":5000,"deletion":0,"transaction":9999,"index":0,"other":0},"bytesReclaimed":1,"failedDeletes":0,
             "kept":[{"version":12,"reason":"tag v1"}],"left":[{"path":"videos/","files":3,"bytes":9,"reason":"not a folder of the format"}]},
  "remaining":{"versions":0,"bytes":0},"drained":true,
  "unreclaimedVersions":0,"consecutiveFailures":0,"durationMs":812,
  "requests":{"list":3,"get":210,"put":4,"delete":31},
  "policy":{"grace":{"value":"1h","source":"default"}},"findings":[{"kind":"…","detail":"…"}]}]}`

// keeps verifies that got has every member of want, of the same kind. Of lists the first elements are compared, where both have one.
func keeps(t *testing.T, path string, want, got any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		require.IsType(t, want, got, path)
		if strings.HasSuffix(path, ".filesRemoved") { // all kinds and no other, also those of which nothing was removed
			require.ElementsMatch(t, slices.Collect(maps.Keys(w)), slices.Collect(maps.Keys(got.(map[string]any))))
		}
		for name, member := range w {
			require.Contains(t, got, name, path)
			keeps(t, path+"."+name, member, got.(map[string]any)[name])
		}
	case []any:
		require.IsType(t, want, got, path)
		if g := got.([]any); len(w) > 0 && len(g) > 0 {
			keeps(t, path+"[]", w[0], g[0])
		}
	case nil: // an error or none
	default:
		require.IsType(t, want, got, path)
	}
}

// TestDocumentKeepsItsNames, whatever the outcome and however little was done.
func TestDocumentKeepsItsNames(t *testing.T) {
	t.Parallel()
	var promised map[string]any
	require.NoError(t, json.Unmarshal([]byte(example), &promised))
	foreign := golden(t, "tags", old)
	require.NoError(t, os.MkdirAll(filepath.Join(foreign, "videos"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "videos", "a.mp4"), []byte("film"), 0o600))
	for name, args := range map[string][]string{
		"ok":           {foreign},
		"unsupported":  {golden(t, "legacy", old)},
		"nothing done": {"--no-compact", "--grace", "60d", golden(t, "updates", old)},
		"kept":         {"--grace", "60d", golden(t, "updates", old)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(t, t.TempDir(), append([]string{"--json"}, args...)...)
			require.Zero(t, code, stderr)
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(stdout), &got))
			if name != "ok" { // not everything is measured then
				result := promised["results"].([]any)[0].(map[string]any)
				got := got["results"].([]any)[0].(map[string]any)
				removed := got["pruning"].(map[string]any)["filesRemoved"]
				keeps(t, ".filesRemoved", result["pruning"].(map[string]any)["filesRemoved"], removed)
				for member := range result {
					if member != "remaining" && member != "pruning" {
						require.Contains(t, got, member)
					}
				}
				return
			}
			keeps(t, "", promised, got)
			result := got["results"].([]any)[0].(map[string]any)
			require.Nil(t, result["error"])
			require.NotEmpty(t, result["pruning"].(map[string]any)["left"])
		})
	}
}

// TestSeveralDatasets: one that is damaged fails the run and nothing else; each has one result, in order.
func TestSeveralDatasets(t *testing.T) {
	t.Parallel()
	first, broken, last := golden(t, "emptied", old), golden(t, "upserts-2.1", old), golden(t, "updates", old)
	newest, err := filepath.Glob(filepath.Join(broken, "_versions", "*.manifest"))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(newest[0], 20))
	before := tree(t, broken)
	code, stdout, stderr := run(t, t.TempDir(), "--json", "--emf", "--log-level", "error", first, broken, first, last)
	require.Equal(t, 1, code)
	var doc struct {
		Outcome string
		Drained bool
		Results []struct {
			Dataset, Outcome, Reason string
			Error                    *struct{ Class, Message, Object string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.Equal(t, "failed", doc.Outcome)
	require.False(t, doc.Drained)
	require.Len(t, doc.Results, 3)
	for i, want := range []struct{ dataset, outcome string }{{first, "ok"}, {broken, "failed"}, {last, "ok"}} {
		require.Equal(t, want.dataset, doc.Results[i].Dataset)
		require.Equal(t, want.outcome, doc.Results[i].Outcome)
		require.Equal(t, want.outcome == "failed", doc.Results[i].Error != nil)
	}
	require.Equal(t, "corrupt", doc.Results[1].Error.Class)
	require.Contains(t, doc.Results[1].Error.Object, filepath.Base(newest[0]))
	require.Equal(t, before, tree(t, broken), "nothing of what is damaged is deleted")
	m := metricsOf(t, jsonLines(t, stderr)) // with --json and --emf, standard error is JSON too
	require.Len(t, m, 3)
	require.EqualValues(t, 1, m[broken]["MaintenanceFailures"])
	require.EqualValues(t, len(newest), m[broken]["UnreclaimedVersions"])
	require.EqualValues(t, 0, m[last]["UnreclaimedVersions"])
}

// TestWorstExitCode: failed, partial, skipped, good.
func TestWorstExitCode(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	locked, good := golden(t, "emptied", old), golden(t, "updates", old)
	hold(t, locked, state)
	code, stdout, _ := run(t, state, locked, good)
	require.Equal(t, 4, code)
	require.Contains(t, stdout, "updates.lance: ok")
	code, _, _ = run(t, state, locked, good, filepath.Join(t.TempDir(), "none.lance"))
	require.Equal(t, 1, code)
}

// TestTimeRunsOut before anything begins: partial, not failed; nothing is touched, and the next run does it all.
func TestTimeRunsOut(t *testing.T) {
	t.Parallel()
	folder, state := golden(t, "upserts-2.2", old), t.TempDir()
	before := tree(t, folder)
	code, stdout, _ := run(t, state, "--json", "--timeout", "1s", folder, golden(t, "tags", old))
	require.Equal(t, 3, code, stdout)
	require.Equal(t, 3, strings.Count(stdout, `"outcome":"partial"`), stdout)
	require.Equal(t, before, tree(t, folder))
	for _, timeout := range []string{"1ns", "0s", "-1s", "tomorrow"} {
		code, stdout, stderr := run(t, state, "--timeout="+timeout, folder)
		require.Contains(t, []int{2, 3}, code, timeout)
		require.Contains(t, stdout+stderr, "time", timeout)
	}
	code, stdout, stderr := run(t, state, "--timeout", "1m", folder)
	require.Zero(t, code, stdout+stderr)
}

// TestTableHasTheNumbers of both moments side by side.
func TestTableHasTheNumbers(t *testing.T) {
	t.Parallel()
	folder := golden(t, "upserts-2.0", old)
	manifests, err := filepath.Glob(filepath.Join(folder, "_versions", "*.manifest"))
	require.NoError(t, err)
	_, stdout, _ := run(t, t.TempDir(), folder)
	row := regexp.MustCompile(`(?m)^  manifests +(\d+) +(\d+)$`).FindStringSubmatch(stdout)
	require.NotNil(t, row, stdout)
	left, err := filepath.Glob(filepath.Join(folder, "_versions", "*.manifest"))
	require.NoError(t, err)
	require.Equal(t, []int{len(manifests), len(left)}, []int{number(t, row[1]), number(t, row[2])})
	require.Regexp(t, `(?m)^  fragments +\d+ +1$`, stdout)
	require.Regexp(t, `files: [1-9]`, stdout)
	require.NotRegexp(t, `files: [^)]*\b0 `, stdout, "kinds of which nothing was removed are left out")
	require.NotContains(t, stdout, "{")
}

func number(t *testing.T, text string) int {
	t.Helper()
	var n int
	require.NoError(t, json.Unmarshal([]byte(text), &n))
	return n
}

// TestDrained: pass after pass until nothing is left, as one result.
func TestDrained(t *testing.T) {
	t.Parallel()
	folder := golden(t, "upserts-2.2", old)
	code, stdout, stderr := run(t, t.TempDir(), "--until", "drained", "--grace", "0s", "--allow-short-grace", folder)
	require.Zero(t, code, stderr)
	left, err := filepath.Glob(filepath.Join(folder, "_versions", "*.manifest"))
	require.NoError(t, err)
	require.Len(t, left, 1, stdout)
}

// TestEnvironment: settings come from it, and what is wrong is named as it spells it.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	folder := golden(t, "emptied", old)
	for name, c := range map[string]struct {
		environ []string
		code    int
		says    string
	}{
		"good":      {environ: []string{"LANCEKEEPER_DATASETS=" + folder, "LANCEKEEPER_PRUNE=false", "PATH=/bin"}, code: 0, says: `"source":"environment"`},
		"unknown":   {environ: []string{"LANCEKEEPER_DATSETS=" + folder}, code: 2, says: "LANCEKEEPER_DATASETS"},
		"bad value": {environ: []string{"LANCEKEEPER_DATASETS=" + folder, "LANCEKEEPER_KEEP=all"}, code: 2, says: "LANCEKEEPER_KEEP"},
		"flag only": {environ: []string{"LANCEKEEPER_DATASETS=" + folder, "LANCEKEEPER_ALLOW_SHORT_GRACE=true"}, code: 2, says: "--allow-short-grace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, complaints strings.Builder
			code := command{stdout: &out, stderr: &complaints, environ: c.environ}.run([]string{"--json", "--state", t.TempDir()})
			require.Equal(t, c.code, code, complaints.String())
			require.Contains(t, out.String()+complaints.String(), c.says)
			if code != 0 {
				require.Empty(t, out.String(), "standard output is for the document")
			}
		})
	}
}
