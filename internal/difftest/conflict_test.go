//go:build oracle

package difftest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/compact"
	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/filestore"
)

// landed is what a dataset holds after an operation of the official engine.
type landed struct {
	Bag  string `json:"bag"`
	Rows uint64 `json:"rows"`
}

// verdict is what the official engine made of its own rewrite of the same fragments, before which the operation landed.
type verdict struct {
	Committed bool   `json:"committed"`
	Error     string `json:"error"`
}

// TestConflictMatrix: a rewrite is planned, its files are written, and the moment before its manifest is put an operation of the
// official engine lands. It is rebased or given up as the official engine does with its own rewrite of the same fragments. Either way
// the dataset holds exactly what the operation left, and the next pass finishes.
func TestConflictMatrix(t *testing.T) {
	t.Parallel()
	made := Make(t, "contended", "--age-days", "0")
	theirs := official(t, made.URI)
	root := t.TempDir()
	want := map[string]landed{}
	for _, operation := range slices.Sorted(maps.Keys(theirs)) {
		uri := filepath.Join(root, operation+".lance")
		require.NoError(t, os.CopyFS(uri, os.DirFS(made.URI)))
		left, committed := overtaken(t, uri, operation)
		require.Equal(t, theirs[operation].Committed, committed, "%s: the official engine: %+v", operation, theirs[operation])
		want[operation+".lance"] = left
	}
	holds := func(when string) {
		tables := Dump(t, root)
		require.Len(t, tables, len(want))
		for name, table := range tables {
			held := landed{Bag: table.Bag, Rows: table.Rows}
			require.Equal(t, want[name], held, "%s, %s", name, when)
			for _, v := range table.Versions {
				require.Equal(t, v.Rows, v.Scan, "%s, %s, version %d", name, when, v.Number)
			}
			require.Empty(t, Files(t, filepath.Join(root, name)).Missing, "%s, %s", name, when)
		}
	}
	holds("after the commit")
	for name := range want {
		uri := filepath.Join(root, name)
		result, _ := passWithFaults(t, uri, t.TempDir(), all(), func(*faultstore.Store) {})
		require.Equal(t, maintain.OK, result.Outcome, "%s: %s", name, result.Reason)
	}
	holds("after the next pass")
}

// official asks the official engine for the same on copies of a dataset.
func official(t *testing.T, uri string) map[string]verdict {
	t.Helper()
	root := t.TempDir()
	var operations []string
	python(t, &operations, "conflict.py", uri, "--list")
	for _, operation := range operations {
		require.NoError(t, os.CopyFS(filepath.Join(root, operation+".lance"), os.DirFS(uri)))
	}
	verdicts := map[string]verdict{}
	python(t, &verdicts, "conflict.py", root, "--rewrite")
	require.Len(t, verdicts, len(operations))
	both := map[bool]int{}
	for _, v := range verdicts {
		both[v.Committed]++
	}
	require.Len(t, both, 2, "an engine that always says the same proves nothing")
	return verdicts
}

// overtaken rewrites the first group of small fragments; just before its manifest is put the operation lands.
func overtaken(t *testing.T, uri, operation string) (left landed, committed bool) {
	t.Helper()
	files, err := filestore.Open(uri)
	require.NoError(t, err)
	v, _, err := dataset.Latest(t.Context(), files)
	require.NoError(t, err)
	m, err := dataset.ReadManifest(t.Context(), files, v)
	require.NoError(t, err)
	plan, err := compact.MakePlan(m, compact.Options{TargetRows: 100})
	require.NoError(t, err)
	require.Len(t, plan.Tasks, 2)
	task := plan.Tasks[0]
	require.EqualValues(t, 1, task.Fragments[0].GetId())
	require.Len(t, task.Fragments, 4)
	out, err := compact.Rewrite(t.Context(), files, m, task, []string{compact.NewFileName()}, compact.RewriteOptions{MemoryBytes: 64 << 20})
	require.NoError(t, err)
	require.NoError(t, compact.Verify(t.Context(), files, m, out))

	store, met := faultstore.New(files), false
	store.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "putIfAbsent" && op.When == faultstore.Before && strings.HasPrefix(op.Key, manifest.Folder) && !met {
			met = true
			python(t, &left, "conflict.py", uri, operation) //nolint:contextcheck // it has the test's
		}
		return nil
	})
	_, err = commit.Commit(t.Context(), store, commit.Rewrite{
		UUID: uuid.NewString(), ReadVersion: m.GetVersion(), Groups: []commit.Group{out.Group}, Indices: task.Indices,
	}, commit.Options{Guard: func(context.Context, uint64) error { return nil }, Writer: "test", WriterVersion: "1", Clock: objstore.Store(files).Now})
	require.True(t, met, "%s never landed", operation)
	lancetest.Whole(t, files)
	if conflict := (*commit.ConflictError)(nil); errors.As(err, &conflict) {
		t.Logf("%s: given up: %v", operation, err)
		return left, false
	}
	require.NoError(t, err, operation)
	t.Logf("%s: committed", operation)
	return left, true
}
