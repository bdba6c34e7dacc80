package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/objstore/filestore"
)

// golden writes a golden table to a folder, by default one of the test's own.
func golden(t *testing.T, name string) string {
	t.Helper()
	return goldenIn(t, t.TempDir(), name)
}

func goldenIn(t *testing.T, parent, name string) string {
	t.Helper()
	folder := filepath.Join(parent, name+".lance")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	files, err := filestore.Open(folder)
	require.NoError(t, err)
	source := lancetest.Load(t, name, time.Now, time.Hour)
	for _, key := range source.Keys() {
		data, _, err := source.Get(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, files.Put(t.Context(), key, data))
	}
	return folder
}

// cut damages the newest manifest, and returns its name.
func cut(t *testing.T, folder string) string {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(folder, "_versions", "*.manifest")) // the newest comes first
	require.NoError(t, err)
	require.NoError(t, os.Truncate(manifests[0], 20))
	return filepath.Base(manifests[0])
}

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
	good, broken := golden(t, "tags"), golden(t, "upserts-2.1")
	damaged := cut(t, broken)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"good":            {args: []string{good}, code: 0, says: "tags.lance"},
		"failed":          {args: []string{broken}, code: 1, says: damaged},
		"failed and good": {args: []string{broken, good}, code: 1, says: "tags.lance"},
		"nothing there":   {args: []string{filepath.Join(t.TempDir(), "none.lance")}, code: 1, says: "none.lance"},
		"unknown flag":    {args: []string{"--jsn", good}, code: 2, says: "--json"},
		"no dataset":      {args: nil, code: 2, says: "dataset"},
		"bad value":       {args: []string{"--grace", "soon", good}, code: 2, says: "--grace"},
		"help":            {args: []string{"--help"}, code: 0, says: "--json"},
		"version":         {args: []string{"--version"}, code: 0, says: "report"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(t, t.TempDir(), c.args...)
			require.Equal(t, c.code, code, stdout+stderr)
			require.Contains(t, stdout+stderr, c.says)
		})
	}
}

type document struct {
	Reports []struct {
		Dataset             string
		Error               string
		Manifests           *int
		UnreclaimedVersions *uint64
		SecondsSinceSuccess *float64
	}
}

// TestJSON: one document, also where a dataset is damaged or gone; each dataset is measured once.
func TestJSON(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	good, broken := goldenIn(t, root, "tags"), goldenIn(t, root, "updates")
	cut(t, broken)
	gone := filepath.Join(t.TempDir(), "gone.lance")
	code, stdout, stderr := run(t, t.TempDir(), "--json", good, gone, root)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "gone.lance")
	var doc document
	decoder := json.NewDecoder(bytes.NewReader([]byte(stdout)))
	require.NoError(t, decoder.Decode(&doc))
	require.False(t, decoder.More())
	require.Len(t, doc.Reports, 3, "the good one was named twice")
	for _, r := range doc.Reports {
		switch filepath.Base(r.Dataset) {
		case "tags.lance":
			require.Empty(t, r.Error)
			require.EqualValues(t, *r.Manifests, *r.UnreclaimedVersions, "before any success, all there are")
		case "updates.lance":
			require.NotEmpty(t, r.Error)
			require.Positive(t, *r.UnreclaimedVersions)
		case "gone.lance":
			require.NotEmpty(t, r.Error)
			require.Nil(t, r.UnreclaimedVersions)
		default:
			require.Fail(t, "unexpected", r.Dataset)
		}
	}
}

// TestWritesNothing: neither to the dataset nor to the state.
func TestWritesNothing(t *testing.T) {
	t.Parallel()
	folder, state := golden(t, "indexed"), filepath.Join(t.TempDir(), "state")
	before := tree(t, folder)
	for _, args := range [][]string{{folder}, {"--json", folder}} {
		code, _, stderr := run(t, state, args...)
		require.Zero(t, code, stderr)
	}
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
		info, _ := d.Info()
		out[path] = info.ModTime().String() + string(data)
		return err
	}))
	return out
}

// remember records in a state folder a success at a version, two hours ago, and the version that was last seen.
func remember(t *testing.T, state, key string, success, seen uint64) {
	t.Helper()
	at := time.Now().Add(-2 * time.Hour)
	book := ledger.NewFile(filepath.Join(state, "ledger"))
	entry, err := book.Begin(t.Context(), key, 1, at, "test")
	require.NoError(t, err)
	entry = entry.Measured(at, success, 1, 1).Succeeded(ledger.Outcome{At: at, Version: success, Drained: true})
	require.NoError(t, book.Save(t.Context(), entry.Measured(at, seen, 1, 1)))
}
