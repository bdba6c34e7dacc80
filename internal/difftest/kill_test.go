//go:build oracle

package difftest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/lock"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/maintain/maintaintest"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/filestore"
)

// all are the settings of a pass that does all it can.
func all() maintain.Settings {
	return maintain.Settings{Keep: 1, UnverifiedAge: 7 * 24 * time.Hour, TargetRows: 1 << 20, Compact: true, Prune: true, MemoryBytes: 64 << 20}
}

// passWithFaults runs a pass over a local dataset through a store with faults, and returns its outcome.
func passWithFaults(t *testing.T, uri, state string, settings maintain.Settings, faults func(*faultstore.Store)) (maintain.Result, *faultstore.Store) {
	t.Helper()
	files, err := filestore.Open(uri)
	require.NoError(t, err)
	store := faultstore.New(files)
	faults(store)
	return passThrough(t, uri, state, settings, store, store), store
}

// passThrough runs a pass over a store. The ledger takes part in the faults.
func passThrough(t *testing.T, uri, state string, settings maintain.Settings, store objstore.Store, faults *faultstore.Store) maintain.Result {
	t.Helper()
	keeper := &maintain.Keeper{
		Locker: lock.NewFile(lock.FileOptions{Dir: state, Owner: "test", Now: time.Now}), Ledger: maintaintest.Mortal{File: ledger.NewFile(state), Faults: faults},
		Metrics: io.Discard, Log: slog.New(slog.DiscardHandler), Now: time.Now, Version: "1.2.3", Margin: 3 * time.Second,
	}
	doc := keeper.Run(t.Context(), []maintain.Target{{
		Key: uri, URI: uri, Open: func(context.Context) (objstore.Store, error) { return store, nil },
		Settings: settings,
	}})
	return doc.Results[0]
}

// TestKilledAnywhere stops a pass before and after each single write or delete. The official engine then opens every one of
// these datasets with the same rows and reads each listed version; the next pass leaves the files of an unbroken one.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, recipe string
		age          string // in days: past the unverified age nothing needs proof, before it everything does
	}{{"young", "upserts", "0"}, {"old", "upserts", "30"}, {"young with tags and a branch", "tags", "0"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			killAnywhere(t, c.recipe, c.age)
		})
	}
}

func killAnywhere(t *testing.T, recipe, age string) {
	t.Helper()
	args := []string{"--age-days", age}
	if recipe == "upserts" {
		args = append(args, "--count", "9", "--keys", "3")
	}
	made := Make(t, recipe, args...)
	before := only(Dump(t, made.URI))
	root := t.TempDir()
	copyOf := func(name string) string {
		uri := filepath.Join(root, name+".lance")
		require.NoError(t, os.CopyFS(uri, os.DirFS(made.URI)))
		require.NoError(t, filepath.WalkDir(made.URI, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(made.URI, path)
			if err != nil {
				return err
			}
			return os.Chtimes(filepath.Join(uri, relative), info.ModTime(), info.ModTime())
		}))
		return uri
	}
	result, whole := passWithFaults(t, copyOf("whole"), t.TempDir(), all(), func(*faultstore.Store) {})
	require.Equal(t, maintain.OK, result.Outcome, result.Reason)
	left := len(tree(t, filepath.Join(root, "whole.lance")))
	type broken struct{ uri, state string }
	var cut []broken
	for n := 1; n <= whole.Mutations(); n++ {
		for when, side := range map[faultstore.When]string{faultstore.Before: "before", faultstore.After: "after"} {
			b := broken{copyOf(fmt.Sprintf("%s-%03d", side, n)), t.TempDir()}
			_, store := passWithFaults(t, b.uri, b.state, all(), func(s *faultstore.Store) { s.KillAt(n, when) })
			require.True(t, store.Killed(), "%s mutation %d", side, n)
			cut = append(cut, b)
		}
	}
	judge := func() {
		for name, table := range Dump(t, root) {
			for _, difference := range Differences(map[string]Table{name: before}, map[string]Table{name: table}) {
				t.Errorf("%s: %s", name, difference)
			}
			require.Equal(t, before.Ordered, table.Ordered, name)
		}
	}
	judge()
	for _, b := range cut {
		result, _ := passWithFaults(t, b.uri, b.state, all(), func(*faultstore.Store) {})
		require.Equal(t, maintain.OK, result.Outcome, "%s: %s", b.uri, result.Reason)
		files, err := filestore.Open(b.uri)
		require.NoError(t, err)
		lancetest.Whole(t, files)
		require.Empty(t, lancetest.Dead(t, files), b.uri)
		require.Len(t, tree(t, b.uri), left, b.uri)
	}
	judge()
	t.Logf("%d mutations", whole.Mutations())
}
