package manifeststore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/manifeststore"
	"lancekeeper/internal/lance/manifeststore/manifeststoretest"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/memstore"
)

// rig is a bucket with versions 1 to 3, known to the table, and the dataset's store over both.
type rig struct {
	t      *testing.T
	bucket *memstore.Store
	faults *faultstore.Store
	table  *manifeststoretest.Table
	store  *manifeststore.Store
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, bucket: memstore.New("mem://t.lance", time.Now)}
	for v := uint64(1); v <= 3; v++ {
		r.put(key(v), content(v))
	}
	r.table = manifeststoretest.New(r.bucket.Keys())
	r.restart()
	return r
}

// restart is a new process.
func (r *rig) restart() {
	r.t.Helper()
	r.faults = faultstore.New(r.bucket)
	r.table.Faults = r.faults
	store, err := manifeststore.New(r.faults, r.table, "s3+ddb://b/t.lance")
	require.NoError(r.t, err)
	r.store = store
}

func key(version uint64) string     { return manifest.Key(version, manifest.V2) }
func content(version uint64) string { return strings.Repeat("m", int(version)) }

func (r *rig) put(key, data string) {
	r.t.Helper()
	require.NoError(r.t, r.bucket.Put(r.t.Context(), key, []byte(data)))
}

// staged leaves version v as a writer that was killed behind a step of the protocol does: 1 staged, 2 claimed, 3 copied, 4
// pointed at. It returns the staged key.
func (r *rig) staged(v uint64, step int) string {
	r.t.Helper()
	at := key(v) + "-" + uuid.NewString()
	r.put(at, content(v))
	if step >= 2 {
		r.table.Set(manifeststore.Row{Version: v, Path: at, Size: int64(v)})
	}
	if step >= 3 {
		r.put(key(v), content(v))
	}
	if step >= 4 {
		r.table.Set(manifeststore.Row{Version: v, Path: key(v), Size: int64(v)})
	}
	return at
}

func (r *rig) latest() uint64 {
	r.t.Helper()
	v, _, err := dataset.Latest(r.t.Context(), r.store)
	require.NoError(r.t, err)
	return v.Number
}

// list walks over everything.
func (r *rig) list() (keys []string, err error) {
	for o, err := range r.store.List(r.t.Context(), "", "") {
		if err != nil {
			return keys, err
		}
		keys = append(keys, o.Key)
	}
	return keys, nil
}

// Whatever step a writer was killed behind: reading shows what the official reader would, and writes nothing; the next commit
// finishes what was claimed, and takes the next number.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	for step, latest := range map[int]uint64{1: 3, 2: 4, 3: 4, 4: 4} {
		r := newRig(t)
		at := r.staged(4, step)
		before := r.bucket.Keys()
		require.Equal(t, latest, r.latest(), "behind step %d", step)
		keys, err := r.list()
		require.NoError(t, err)
		require.True(t, slices.IsSorted(keys))
		require.Equal(t, latest == 4, slices.Contains(keys, key(4)))
		data, _, err := r.store.Get(t.Context(), key(4))
		if latest == 4 {
			require.NoError(t, err)
			require.Equal(t, content(4), string(data))
			tail, size, err := r.store.GetTail(t.Context(), key(4), 2)
			require.NoError(t, err)
			require.Equal(t, "mm", string(tail))
			require.EqualValues(t, 4, size)
			part, err := r.store.GetRange(t.Context(), key(4), 1, 2)
			require.NoError(t, err)
			require.Equal(t, "mm", string(part))
			o, err := r.store.Stat(t.Context(), key(4))
			require.NoError(t, err)
			require.Equal(t, key(4), o.Key)
		} else {
			require.ErrorIs(t, err, objstore.ErrNotExist)
		}
		require.Zero(t, r.faults.Mutations(), "reading writes nothing")
		require.Equal(t, before, r.bucket.Keys())

		require.NoError(t, r.store.PutIfAbsent(t.Context(), key(latest+1), []byte(content(latest+1))))
		require.Equal(t, latest+1, r.latest())
		for _, row := range r.table.All() {
			require.Equal(t, key(row.Version), row.Path)
			_, err := r.bucket.Stat(t.Context(), row.Path)
			require.NoError(t, err)
		}
		if step == 2 || step == 3 {
			require.NotContains(t, r.bucket.Keys(), at, "finished, and removed")
		}
	}
}

// Killed before or after any of its own steps, a commit is either there for every reader or not at all, and the next one of
// the same version knows.
func TestKilledCommits(t *testing.T) {
	t.Parallel()
	whole := newRig(t)
	require.NoError(t, whole.store.PutIfAbsent(t.Context(), key(4), []byte(content(4))))
	mutations := whole.faults.Mutations()
	require.Equal(t, 5, mutations, "stage, claim, copy, point, remove")
	for n := 1; n <= mutations; n++ {
		for when := range map[faultstore.When]struct{}{faultstore.Before: {}, faultstore.After: {}} {
			r := newRig(t)
			r.faults.KillAt(n, when)
			err := r.store.PutIfAbsent(t.Context(), key(4), []byte(content(4)))
			require.True(t, r.faults.Killed())
			r.restart()
			claimed := n > 2 || n == 2 && when == faultstore.After
			if claimed {
				require.EqualValues(t, 4, r.latest(), "mutation %d", n)
				require.ErrorIs(t, r.store.PutIfAbsent(t.Context(), key(4), []byte("other")), objstore.ErrExists)
			} else {
				require.Error(t, err)
				require.EqualValues(t, 3, r.latest(), "mutation %d", n)
				require.NoError(t, r.store.PutIfAbsent(t.Context(), key(4), []byte(content(4))))
			}
			data, _, err := r.store.Get(t.Context(), key(4))
			require.NoError(t, err)
			require.Equal(t, content(4), string(data))
		}
	}
}

// A lost race takes its own staged manifest away and leaves the winner's alone; an answer that was lost is looked up.
func TestRaces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var winner string
	r.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "row claim" && op.When == faultstore.Before && winner == "" {
			winner = r.staged(4, 2) //nolint:contextcheck // the test's
		}
		return nil
	})
	err := r.store.PutIfAbsent(t.Context(), key(4), []byte("loser"))
	require.ErrorIs(t, err, objstore.ErrExists)
	data, _, err := r.store.Get(t.Context(), key(4))
	require.NoError(t, err)
	require.Equal(t, content(4), string(data))
	var left []string
	for _, k := range r.bucket.Keys() {
		if strings.Contains(k, ".manifest-") {
			left = append(left, k)
		}
	}
	require.Equal(t, []string{winner}, left)

	for side := range map[faultstore.When]struct{}{faultstore.Before: {}, faultstore.After: {}} {
		r := newRig(t)
		r.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Kind == "row claim" && op.When == side {
				return errors.New("no answer")
			}
			return nil
		})
		err := r.store.PutIfAbsent(t.Context(), key(4), []byte(content(4)))
		require.True(t, r.faults.Exercised())
		if side == faultstore.After {
			require.NoError(t, err, "the row says that it was done")
			require.EqualValues(t, 4, r.latest())
		} else {
			require.ErrorIs(t, err, objstore.ErrAmbiguous, "it may still come")
		}
	}
}

// Versions that the bucket has and the table has not: somebody wrote without the table. And the other way round.
func TestTableAndBucketDisagree(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(key(4), content(4))
	_, err := r.list()
	require.ErrorIs(t, err, lance.ErrUnsupported)
	require.ErrorContains(t, err, "somebody has written without the table")
	_, _, err = dataset.Latest(t.Context(), r.store)
	require.ErrorIs(t, err, lance.ErrUnsupported)
	require.ErrorIs(t, r.store.PutIfAbsent(t.Context(), key(5), nil), lance.ErrUnsupported)

	r = newRig(t)
	r.table.Set(manifeststore.Row{Version: 4, Path: key(4)})
	_, err = r.list()
	require.ErrorIs(t, err, lance.ErrCorrupt)
	r.table.Set(manifeststore.Row{Version: 5, Path: key(5) + "-" + uuid.NewString()})
	_, err = r.list()
	require.ErrorIs(t, err, lance.ErrCorrupt)

	r = newRig(t)
	r.table.Set(manifeststore.Row{Version: 4, Path: "data/x.lance"})
	_, err = r.list()
	require.ErrorIs(t, err, lance.ErrUnsupported)

	none, err := manifeststore.New(r.bucket, manifeststoretest.New(nil), "s3+ddb://b/t.lance")
	require.NoError(t, err)
	_, _, err = dataset.Latest(t.Context(), none)
	require.ErrorContains(t, err, "knows no version")
}

// A version that comes while the names are listed is one that the table has by then.
func TestCommitWhileListing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "list" && op.When == faultstore.Before {
			r.staged(4, 4) //nolint:contextcheck // the test's
		}
		return nil
	})
	keys, err := r.list()
	require.NoError(t, err)
	require.Contains(t, keys, key(4))
}

// A version that is finished while the names are listed is shown once, in whatever order they come.
func TestFinishedWhileListing(t *testing.T) {
	t.Parallel()
	for _, unordered := range []bool{false, true} {
		r := newRig(t)
		if unordered {
			r.bucket.Unordered()
		}
		at := r.staged(4, 2)
		for i := range 20 {
			r.put(fmt.Sprintf("data/%d.lance", i), "x")
		}
		r.faults.Hook(func(ctx context.Context, op faultstore.Op) error {
			if op.Kind == "list" && op.When == faultstore.Before {
				return r.bucket.Copy(ctx, at, key(4))
			}
			return nil
		})
		keys, err := r.list()
		require.NoError(t, err)
		require.Len(t, slices.DeleteFunc(keys, func(k string) bool { return k != key(4) }), 1)
		require.NotContains(t, keys, at)
	}
}

// A staged version that another finishes between two looks of a read is read all the same: before its row was asked for, and after.
func TestFinishedWhileRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		looks int // so many found nothing before it was finished
	}{"before the row is read": {1}, "after": {2}} {
		for kind, read := range map[string]func(s *manifeststore.Store) error{
			"get":   func(s *manifeststore.Store) error { _, _, err := s.Get(t.Context(), key(4)); return err },
			"range": func(s *manifeststore.Store) error { _, err := s.GetRange(t.Context(), key(4), 0, 2); return err },
			"tail":  func(s *manifeststore.Store) error { _, _, err := s.GetTail(t.Context(), key(4), 2); return err },
			"stat":  func(s *manifeststore.Store) error { _, err := s.Stat(t.Context(), key(4)); return err },
		} {
			r := newRig(t)
			at := r.staged(4, 2)
			looks := 0
			r.faults.Hook(func(ctx context.Context, op faultstore.Op) error {
				if op.Kind != "get" && op.Kind != "stat" {
					return nil
				}
				if (c.looks == 1 && op.When == faultstore.After || c.looks == 2 && op.Key == at && op.When == faultstore.Before) && looks == 0 {
					looks++
					r.table.Set(manifeststore.Row{Version: 4, Path: key(4), Size: 4})
					_, err := r.bucket.Delete(ctx, []string{at})
					return errors.Join(err, r.bucket.Put(ctx, key(4), []byte(content(4))))
				}
				return nil
			})
			require.NoError(t, read(r.store), "%s, %s", name, kind)
			require.Equal(t, 1, looks)
		}
	}
	r := newRig(t)
	_, _, err := r.store.Get(t.Context(), key(9))
	require.ErrorIs(t, err, objstore.ErrNotExist, "no such version")
}

// Rows go with their manifests and after them; rows that others left go too; the latest never does.
func TestDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.staged(5, 4)
	for v := uint64(10); v <= 12; v++ {
		r.staged(v, 4)
	}
	r.table.Set(manifeststore.Row{Version: 4, Path: key(4)}) // a clean-up that knows no rows removed its manifest
	open := r.staged(13, 2)
	_, err := r.list()
	require.NoError(t, err)
	_, err = r.store.Delete(t.Context(), []string{key(13)})
	require.ErrorIs(t, err, lance.ErrUnsupported, "the latest")

	at := r.staged(2, 3) // published, and the row was not mended
	failed, err := r.store.Delete(t.Context(), []string{key(1), key(2), key(5)})
	require.NoError(t, err)
	require.Empty(t, failed)
	require.NoError(t, r.store.Tidy(t.Context()))
	var versions []uint64
	for _, row := range r.table.All() {
		versions = append(versions, row.Version)
		require.Equal(t, key(row.Version), row.Path)
	}
	require.Equal(t, []uint64{3, 10, 11, 12, 13}, versions)
	require.Contains(t, r.bucket.Keys(), key(13), "finished before anything went")
	for _, gone := range []string{key(1), key(2), key(5), at, open} {
		require.NotContains(t, r.bucket.Keys(), gone)
	}
}

// A staged manifest that a row names does not go before that row names something else: its version is finished, or, where a
// clean-up has removed it, forgotten.
func TestStagedManifestsThatRowsName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version  uint64
		step     int
		finished bool
	}{"published": {2, 3, true}, "in the middle, not published": {2, 2, true}, "removed before": {1, 2, false}} {
		r := newRig(t)
		require.NoError(t, r.delete(key(c.version)))
		at := r.staged(c.version, c.step)
		_, err := r.list()
		require.NoError(t, err)
		_, err = r.store.Delete(t.Context(), []string{at})
		require.NoError(t, err, name)
		row, found, err := r.table.Row(t.Context(), c.version)
		require.NoError(t, err)
		require.Equal(t, c.finished, found, name)
		require.Equal(t, c.finished, slices.Contains(r.bucket.Keys(), key(c.version)), name)
		if found {
			require.Equal(t, key(c.version), row.Path, name)
		}
		require.NotContains(t, r.bucket.Keys(), at)
	}
}

func (r *rig) delete(key string) error {
	_, err := r.bucket.Delete(r.t.Context(), []string{key})
	return err
}

// Killed before or after each step of a removal: no row is without its manifest but those of versions that were to go, and the
// next removal ends with neither.
func TestKilledRemovals(t *testing.T) {
	t.Parallel()
	whole := newRig(t)
	whole.staged(4, 2)
	require.NoError(t, whole.remove())
	mutations := whole.faults.Mutations()
	require.Equal(t, 7, mutations, "copy, point, remove; two manifests; two rows")
	for n := 1; n <= mutations; n++ {
		for when := range map[faultstore.When]struct{}{faultstore.Before: {}, faultstore.After: {}} {
			r := newRig(t)
			r.staged(4, 2)
			r.faults.KillAt(n, when)
			require.Error(t, r.remove())
			require.True(t, r.faults.Killed())
			r.restart()
			require.EqualValues(t, 4, r.latest())
			rows := map[uint64]bool{}
			for _, row := range r.table.All() {
				rows[row.Version] = true
			}
			for _, k := range r.bucket.Keys() {
				if name := manifest.ParseName(strings.TrimPrefix(k, manifest.Folder)); name.Kind == manifest.Attached {
					require.True(t, rows[name.Version], "mutation %d: a manifest outlives its row", n)
				}
			}
			require.NoError(t, r.remove())
			require.NoError(t, r.store.Tidy(t.Context()))
			require.Equal(t, []string{key(4), key(3)}, slices.DeleteFunc(r.bucket.Keys(), func(k string) bool {
				return strings.Contains(k, ".manifest-") // of no row: it goes as staged manifests do, when it is old
			}))
			require.Len(t, r.table.All(), 2)
		}
	}
}

func (r *rig) remove() error {
	if _, err := r.list(); err != nil {
		return err
	}
	_, err := r.store.Delete(r.t.Context(), []string{key(1), key(2)})
	return err
}
