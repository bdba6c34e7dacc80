package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/config"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lock"
	"lancekeeper/internal/objstore/filestore"
)

// golden writes a golden table to a folder of the test's own.
func golden(t *testing.T, name string, age time.Duration) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name+".lance")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	files, err := filestore.Open(folder)
	require.NoError(t, err)
	source := lancetest.Load(t, name, time.Now, age)
	for _, key := range source.Keys() {
		data, o, err := source.Get(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, files.Put(t.Context(), key, data))
		require.NoError(t, os.Chtimes(filepath.Join(folder, filepath.FromSlash(key)), o.Modified, o.Modified))
	}
	return folder
}

const old = 30 * 24 * time.Hour

// run runs the command with a state folder.
func run(t *testing.T, state string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	c := command{stdout: &out, stderr: &complaints, environ: []string{}}
	code = c.run(append([]string{"--state", state}, args...))
	return code, out.String(), complaints.String()
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	broken := golden(t, "upserts-2.0", old)
	newest, err := filepath.Glob(filepath.Join(broken, "_versions", "*.manifest"))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(newest[0], 20))
	good := golden(t, "emptied", old)
	locked, lockedState := golden(t, "emptied", old), t.TempDir()
	key, err := config.DatasetKey(locked)
	require.NoError(t, err)
	lease, err := lock.NewFile(lock.FileOptions{Dir: filepath.Join(lockedState, "locks"), Owner: "somebody", Now: time.Now}).Acquire(t.Context(), key, time.Time{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Release(t.Context()) })
	for name, c := range map[string]struct {
		state string
		args  []string
		code  int
		says  string
	}{
		"good":            {args: []string{good}, code: 0, says: "emptied.lance: ok"},
		"failed":          {args: []string{broken}, code: 1, says: filepath.Base(newest[0])},
		"failed and good": {args: []string{broken, golden(t, "updates", old)}, code: 1, says: "updates.lance: ok"},
		"nothing there":   {args: []string{filepath.Join(t.TempDir(), "none.lance")}, code: 1, says: "none.lance"},
		"unknown flag":    {args: []string{"--grase", "2h", good}, code: 2, says: "--grace"},
		"no dataset":      {args: nil, code: 2, says: "dataset"},
		"short grace":     {args: []string{"--grace", "5m", good}, code: 2, says: "allow-short-grace"},
		"no time":         {args: []string{"--timeout", "1ms", golden(t, "tags", old)}, code: 3, says: "time"},
		"lock held":       {state: lockedState, args: []string{locked}, code: 4, says: "somebody"},
		"help":            {args: []string{"--help"}, code: 0, says: "--until"},
		"version":         {args: []string{"--version"}, code: 0, says: "maintain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := c.state
			if state == "" {
				state = t.TempDir()
			}
			code, stdout, stderr := run(t, state, c.args...)
			require.Equal(t, c.code, code, stdout+stderr)
			require.Contains(t, stdout+stderr, c.says)
		})
	}
}

// TestJSON: one document on standard output, and nothing else anywhere; the names of the contract.
func TestJSON(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := run(t, t.TempDir(), "--json", golden(t, "tags", old))
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	require.Equal(t, 1, strings.Count(stdout, "\n"))
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.Equal(t, "ok", doc["outcome"])
	require.Equal(t, true, doc["drained"])
	result := doc["results"].([]any)[0].(map[string]any) //nolint:forcetypeassert // a panic is a failure too
	for path, names := range map[string][]string{
		"": {
			"dataset", "outcome", "reason", "error", "before", "after", "compaction", "pruning", "remaining", "drained", "unreclaimedVersions",
			"consecutiveFailures", "durationMs", "requests", "policy", "findings",
		},
		"before":     {"version", "manifests", "fragments", "rows", "deletedRows", "files", "bytes"},
		"after":      {"version", "manifests", "fragments", "rows", "deletedRows", "files", "bytes"},
		"compaction": {"tasks", "fragmentsRemoved", "fragmentsAdded", "rowsDropped", "bytesRead", "bytesWritten", "conflicts", "skipped"},
		"pruning":    {"versionsRemoved", "filesRemoved", "bytesReclaimed", "failedDeletes", "kept", "left"},
		"remaining":  {"versions", "bytes"},
		"requests":   {"list", "get", "put", "delete"},
	} {
		part := result
		if path != "" {
			part = result[path].(map[string]any) //nolint:forcetypeassert // a panic is a failure too
		}
		for _, name := range names {
			require.Contains(t, part, name, path)
		}
	}
}

func TestTableShowsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	_, stdout, _ := run(t, t.TempDir(), golden(t, "upserts-2.2", old))
	for _, want := range []string{"before", "after", "version", "manifests", "fragments", "rows", "files", "bytes", "compacted", "removed", "requests", "time"} {
		require.Contains(t, stdout, want)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	folder, state := golden(t, "updates", old), filepath.Join(t.TempDir(), "state")
	before := tree(t, folder)
	code, stdout, stderr := run(t, state, "--dry-run", folder)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "would compact")
	require.Contains(t, stdout, "would remove")
	require.Regexp(t, `(?m)^ +\d+ manifest +.*B +its version has expired$`, stdout)
	require.Equal(t, before, tree(t, folder))
	require.NoDirExists(t, state)
}

func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	}))
	return out
}

func TestMetricsOnStandardErrorOnRequest(t *testing.T) {
	t.Parallel()
	_, _, stderr := run(t, t.TempDir(), "--emf", golden(t, "emptied", old))
	require.Contains(t, stderr, `"Namespace":"Lancekeeper"`)
	_, _, stderr = run(t, t.TempDir(), golden(t, "emptied", old))
	require.NotContains(t, stderr, "Namespace")
}

func TestMarginFitsTheTime(t *testing.T) {
	t.Parallel()
	require.Equal(t, 10*time.Second, margin(time.Time{}))
	require.Equal(t, 10*time.Second, margin(time.Now().Add(15*time.Minute)))
	require.InDelta(t, 3*time.Second, margin(time.Now().Add(20*time.Second)), float64(time.Second))
	require.InDelta(t, time.Second, margin(time.Now().Add(3*time.Second)), float64(time.Second/2))
	require.Equal(t, time.Second, margin(time.Now().Add(-time.Second)))
}

func TestReleaseIsThreeNumbers(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"v1.2.3": "1.2.3", "v1.2.3-4-gabc": "1.2.3", "dev": "0.1.0", "abc1234": "0.1.0"} {
		require.Equal(t, want, release(given))
	}
}
