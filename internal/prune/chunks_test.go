package prune_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/prune"
)

// long makes a table of more versions than are removed at once. Each replaces the one fragment, as upserts of a one-row table
// do; the files are copies of one.
func long(t testing.TB, versions int) (y *yard, all []dataset.Version) {
	t.Helper()
	y = newYard(t)
	v := y.append(3)
	data, _, err := y.store.Get(t.Context(), y.names(v)[0])
	require.NoError(t, err)
	for n := range versions - 2 {
		y.now = y.now.Add(time.Second)
		v, err = lancetest.CommitOn(t, y.store, v, func(m *manifest.Manifest) *lancepb.Transaction {
			f := proto.CloneOf(m.GetFragments()[0])
			op := &lancepb.Transaction_Update{RemovedFragmentIds: []uint64{f.GetId()}}
			f.Id++
			f.Files[0].Path = fmt.Sprintf("copy-%06d.lance", n)
			require.NoError(t, y.store.Put(t.Context(), dataset.DataFolder+f.GetFiles()[0].GetPath(), data))
			highest := uint32(f.GetId())
			m.Fragments, m.MaxFragmentId = []*lancepb.DataFragment{f}, &highest
			op.NewFragments = m.GetFragments()
			return &lancepb.Transaction{Operation: &lancepb.Transaction_Update_{Update: op}}
		})
		require.NoError(t, err)
		all = append(all, v)
	}
	return y, all
}

func TestManyVersions(t *testing.T) {
	t.Parallel()
	y, _ := long(t, 2300)
	rows := lancetest.Latest(t, y.store)
	files, _ := y.explained()
	before := len(y.store.Keys())
	var journals []int
	hooks := y.hooks()
	hooks.Journal = func(_ context.Context, names []string) error { journals = append(journals, len(names)); return nil }
	var last [2]int64
	hooks.Progress = func(done, total int64) {
		require.LessOrEqual(t, done, total)
		require.GreaterOrEqual(t, done, last[0])
		last = [2]int64{done, total}
	}
	r, err := prune.Sweep(t.Context(), y.faults, y.planned(), hooks)
	require.NoError(t, err)
	require.Equal(t, 2299, r.Versions)
	require.Zero(t, r.Remaining)
	require.Equal(t, len(files), before-len(y.store.Keys()))
	require.Equal(t, last[0], last[1])
	require.Equal(t, rows, lancetest.Latest(t, y.store))
	require.Empty(t, lancetest.Dead(t, y.store))
	require.Len(t, journals, 6, "written and cleared for each of three chunks")
	require.Zero(t, journals[5])
	for _, n := range journals {
		require.LessOrEqual(t, n, 4000)
	}
}

// Killed in the middle of a chunk, the next pass ends with the same files.
func TestKilledBetweenChunks(t *testing.T) {
	t.Parallel()
	whole, all := long(t, 1200)
	whole.sweep()
	kept := whole.store.Keys()
	for _, n := range []int{1, 500, 1000, 1001, 2500, 3001, 3003, 3150, 3500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			y, _ := long(t, 1200)
			y.faults.KillAt(n, faultstore.When(n%2))
			_, err := prune.Sweep(t.Context(), y.faults, y.planned(), y.hooks())
			require.Error(t, err)
			require.True(t, y.faults.Killed())
			lancetest.Whole(t, y.store)
			y.faults = faultstore.New(y.store)
			y.sweep()
			require.Len(t, y.store.Keys(), len(kept))
			require.Empty(t, lancetest.Dead(t, y.store))
			require.Empty(t, y.owed)
		})
	}
	require.Len(t, all, 1198)
}

// One damaged version stops nothing, wherever it stands: at the end of a chunk, or first behind one.
func TestDamagedVersionAmongMany(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 500, 997, 998, 999, 1000, 1150} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			y, all := long(t, 1200)
			v := all[at]
			data, _, err := y.store.Get(t.Context(), v.Key)
			require.NoError(t, err)
			copy(data[len(data)-60:], make([]byte, 60)) // as long as before: no outlier by its size
			require.NoError(t, y.store.Put(t.Context(), v.Key, data))
			y.store.SetModified(v.Key, v.Modified)
			rows := lancetest.Latest(t, y.store)
			r := y.sweep()
			require.Equal(t, 1198, r.Versions)
			require.Equal(t, []uint64{v.Number, 1200}, y.numbers())
			require.Len(t, r.Bad, 1)
			require.Equal(t, v.Number, r.Bad[0].Version)
			require.Contains(t, r.Bad[0].Reason, v.Key)
			require.Equal(t, rows, lancetest.Latest(t, y.store))
			require.True(t, y.holds(fmt.Sprintf("data/copy-%06d.lance", at)), "what it alone may have named waits")
		})
	}
}

// What one chunk could not remove is still owed when the next one is done.
func TestJournalOverChunks(t *testing.T) {
	t.Parallel()
	for name, stuck := range map[string]func(all []dataset.Version) string{
		"a manifest": func(all []dataset.Version) string { return all[10].Key },
		"a file":     func([]dataset.Version) string { return "data/copy-000010.lance" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y, all := long(t, 1200)
			key := stuck(all)
			y.faults.Hook(func(_ context.Context, op faultstore.Op) error {
				if op.Kind == "delete" && op.Key == key && op.When == faultstore.Before {
					return objstore.KeyError{Key: op.Key, Code: "AccessDenied", Err: objstore.ErrDenied}
				}
				return nil
			})
			r := y.sweep()
			require.Len(t, r.Failed, 1)
			require.Contains(t, y.owed, "data/copy-000010.lance")
			lancetest.Whole(t, y.store)
			y.faults = faultstore.New(y.store)
			y.sweep()
			require.Empty(t, y.owed)
			require.Empty(t, lancetest.Dead(t, y.store))
			require.Equal(t, []uint64{1200}, y.numbers())
		})
	}
}
