package maintain_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"lancekeeper/internal/config"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/memstore"
)

// Each test here is something that went wrong for people who keep Lance tables or their relatives.

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// contents is a snapshot of what a store holds, to be compared with later.
func contents(t testing.TB, store *memstore.Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, key := range store.Keys() {
		data, _, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		out[key] = string(data)
	}
	return out
}

// put stores foreign bytes of some age.
func (b *bench) put(age time.Duration, keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		require.NoError(b.t, b.store.Put(b.t.Context(), key, []byte("not ours")))
		b.store.SetModified(key, b.clock.now().Add(-age))
	}
}

// numbers are the versions that are listed.
func (b *bench) numbers() []uint64 {
	b.t.Helper()
	var out []uint64
	for _, v := range b.versions() {
		out = append(out, v.Number)
	}
	return out
}

func (b *bench) latest() dataset.Version {
	b.t.Helper()
	versions := b.versions()
	return versions[len(versions)-1]
}

// version is a listed one.
func (b *bench) version(number uint64) dataset.Version {
	b.t.Helper()
	for _, v := range b.versions() {
		if v.Number == number {
			return v
		}
	}
	require.Failf(b.t, "version is not listed", "%d", number)
	return dataset.Version{}
}

func isManifest(key string) bool { return dataset.Classify(key) == dataset.ManifestAttached }

// once has the hook do something at the first operation that fits.
func (b *bench) once(fits func(op faultstore.Op) bool, do func() error) (met *bool) {
	met = new(bool)
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if *met || !fits(op) {
			return nil
		}
		*met = true
		return do()
	})
	return met
}

func claiming(op faultstore.Op) bool {
	return op.Kind == "putIfAbsent" && isManifest(op.Key) && op.When == faultstore.Before
}

func unknownField(number protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// A1: a clean-up walked the lists of a fragment that it knew; a newer list hung on the same fragment, and the files that it
// named were deleted under the latest version.
func TestA1UnknownListOnARetainedFragment(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]int{"latest": 1, "retained": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTable(t, 3, 2, 4)
			b.put(0, "data/newer.lance")
			lancetest.Rewrite(t, b.store, b.latest(), func(m *manifest.Manifest) {
				m.GetFragments()[1].ProtoReflect().SetUnknown(unknownField(77, "newer.lance"))
			})
			if keep > 1 {
				lancetest.Restore(t, b.store, b.version(2)) // on top of it, and understood
			}
			b.settings.Keep, b.settings.Compact = keep, false
			b.clock.add(8 * day)
			before := contents(t, b.store)

			next := newTable(t, 1, 1)
			doc := b.keeper().Run(t.Context(), []maintain.Target{b.target(), {
				Key: "next", URI: "mem://next.lance", Settings: b.settings,
				Open: func(context.Context) (objstore.Store, error) { return next.store, nil },
			}})
			r := doc.Results[0]
			require.Equal(t, maintain.Failed, r.Outcome)
			require.Equal(t, "unsupported", r.Error.Class)
			require.Contains(t, r.Reason, "field 77 in fragment 1")
			require.Equal(t, before, contents(t, b.store))
			require.Contains(t, b.metrics.String(), `"Unsupported":1`)
			require.Equal(t, maintain.OK, doc.Results[1].Outcome, "the next dataset is maintained")
		})
	}
}

// A1, its neighbour: files of the lists that are known stay.
func TestA1KnownListsOfAFragment(t *testing.T) {
	t.Parallel()
	b := newTable(t, 3, 2)
	b.put(0, "data/overlay.lance")
	lancetest.Rewrite(t, b.store, b.latest(), func(m *manifest.Manifest) {
		f := m.GetFragments()[1]
		f.Overlays = append(f.GetOverlays(), &lancepb.DataOverlayFile{DataFile: &lancepb.DataFile{
			Path: "overlay.lance", Fields: []int32{0}, ColumnIndices: []int32{0}, FileMajorVersion: 2, FileMinorVersion: 1,
		}})
	})
	b.clock.add(8 * day)
	r := b.good()
	require.Contains(t, b.store.Keys(), "data/overlay.lance")
	require.Equal(t, 1, r.Compaction.SkippedFragments)
	require.Equal(t, 1, r.Pruning.VersionsRemoved+len(b.versions())-2, "%v", b.numbers())
}

// A2: the manifest was stored and the answer lost; the next try met it, took it for another's, and the files that the live
// version names were deleted.
func TestA2PutStoredAndAnswerLost(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"500": objstore.ErrAmbiguous, "503": objstore.ErrThrottled, "412 after a retry": objstore.ErrExists, "time-out": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "upserts-2.1", time.Minute)
			rows, latest := lancetest.Latest(t, b.store), b.latest().Number
			lost := b.once(func(op faultstore.Op) bool {
				return op.Kind == "putIfAbsent" && isManifest(op.Key) && op.When == faultstore.After
			}, func() error { return fmt.Errorf("put: %w", answer) })
			r := b.good()
			require.True(t, *lost)
			require.Equal(t, 1, r.Compaction.Tasks)
			require.Zero(t, r.Compaction.Conflicts)
			require.Equal(t, []uint64{latest + 1}, b.numbers())
			require.Equal(t, rows, lancetest.Latest(t, b.store))
			lancetest.Whole(t, b.store)
		})
	}
}

// A2, when the version can't be read back either: nobody knows, and nothing goes until somebody does.
func TestA2NobodyKnows(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.1", time.Minute)
	rows, latest := lancetest.Latest(t, b.store), b.latest().Number
	ours := manifest.Key(latest+1, manifest.V2)
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		switch {
		case op.Key != ours, op.Kind == "putIfAbsent" && op.When == faultstore.Before:
			return nil
		case op.Kind == "putIfAbsent":
			return objstore.ErrAmbiguous
		}
		return objstore.ErrThrottled
	})
	r := b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Contains(t, r.Reason, "not known whether the version was made")
	require.Len(t, b.entry().Attempts, 1)
	require.Len(t, b.numbers(), int(latest)+1, "no version went")
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	lancetest.Whole(t, b.store)

	b.restart()
	b.good()
	require.Empty(t, b.entry().Attempts)
	require.Equal(t, []uint64{latest + 1}, b.numbers())
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	require.Empty(t, lancetest.Dead(t, b.store))
}

// A3: a slow writer read v1; v2 and v3 came, and a clean-up took v1 and v2; the writer's put of v2 then succeeded behind the
// latest version, and its rows were never seen.
func TestA3SlowWriterMeetsItsNumber(t *testing.T) {
	t.Parallel()
	b := newTable(t)
	slow := b.latest()
	b.append(3)
	b.append(2)
	b.settings.Grace = time.Hour
	b.clock.add(59 * time.Minute)
	b.good()
	_, err := lancetest.CommitOn(t, b.store, slow, func(m *manifest.Manifest) *lancepb.Transaction {
		return lancetest.AddFragment(t, b.store, m, 100)
	})
	require.ErrorIs(t, err, objstore.ErrExists, "so that it knows and tries again")
}

// A3, the other way round: our own version lands behind newer ones, because a clean-up removed the number that it was to meet.
func TestA3OurOwnGhost(t *testing.T) {
	t.Parallel()
	b := newTable(t, 3, 2, 4)
	met := b.once(claiming, func() error {
		ours := b.latest().Number + 1
		b.append(1)
		lancetest.Delete(t, b.store, 0)
		m, err := dataset.ReadManifest(t.Context(), b.store, b.version(ours))
		require.NoError(t, err)
		_, err = b.store.Delete(t.Context(), []string{manifest.Key(ours, manifest.V2), dataset.TransactionFolder + m.GetTransactionFile()})
		return err
	})
	r := b.pass()
	require.True(t, *met)
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Contains(t, r.Reason, "made behind newer ones")
	rows := lancetest.Latest(t, b.store)
	require.Len(t, rows, 9)
	lancetest.Whole(t, b.store)

	b.restart()
	b.good()
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	require.Empty(t, lancetest.Dead(t, b.store))
	require.Empty(t, b.entry().Attempts)
	require.Len(t, b.numbers(), 1)
}

// A4: the age of a version was taken from when it was made: one that was the latest for days went the moment that it was
// superseded, with readers in it.
func TestA4AgeFromSupersession(t *testing.T) {
	t.Parallel()
	b := newTable(t, 3, 2)
	quiet := b.latest()
	b.clock.add(10 * day)
	b.append(1)
	superseded := b.latest().Modified
	b.clock.add(time.Minute)
	b.settings.Grace, b.settings.Compact = time.Hour, false
	r := b.good()
	require.Equal(t, []uint64{quiet.Number, quiet.Number + 1}, b.numbers())
	require.Len(t, r.Pruning.Kept, 1)
	require.Equal(t, quiet.Number, r.Pruning.Kept[0].Version)
	require.WithinDuration(t, superseded.Add(time.Hour), *r.Pruning.Kept[0].Until, time.Second)

	b.clock.add(time.Hour)
	b.good()
	require.Equal(t, []uint64{quiet.Number + 1}, b.numbers())
}

// A5: media files below the root, and branches, were listed by the clean-up and could go.
func TestA5WhatElseLiesBelowTheRoot(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.0", year)
	foreign := []string{"videos/a.mp4", "notes.txt", "data/readme.txt", "data/x.lance.bak", "tree/dev/data/y.lance", "_indices/notes.txt", "_blobs/a.blob", "_mem_wal/x"}
	b.put(year, foreign...)
	r := b.good()
	for _, key := range foreign {
		require.Contains(t, b.store.Keys(), key)
	}
	left := map[string]int64{}
	for _, l := range r.Pruning.Left {
		require.NotEmpty(t, l.Reason)
		require.Equal(t, l.Files*int64(len("not ours")), l.Bytes)
		left[l.Path] = l.Files
	}
	require.Equal(t, map[string]int64{"videos/": 1, "notes.txt": 1, "data/": 2, "tree/": 1, "_indices/": 1, "_blobs/": 1, "_mem_wal/": 1}, left)
}

// A6: two tables had nested locations; cleaning one removed the other's files.
func TestA6NestedDatasets(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"data/inner.lance/", "other/inner.lance/", "_indices/" + uuid.NewString() + "/"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "upserts-2.0", year)
			inner := contents(t, lancetest.Load(t, "updates", b.clock.now, year))
			for key, data := range inner {
				require.NoError(t, b.store.Put(t.Context(), folder+key, []byte(data)))
				b.store.SetModified(folder+key, b.clock.now().Add(-year))
			}
			r := b.good()
			require.Len(t, b.numbers(), 1)
			after := contents(t, b.store)
			for key, data := range inner {
				require.Equal(t, data, after[folder+key], key)
			}
			var left int64
			for _, l := range r.Pruning.Left {
				left += l.Files
			}
			require.Equal(t, int64(len(inner)), left)
		})
	}
}

// A7, a retention shorter than the longest write, is refused where settings are read: see TestErrors of package config. What a pass is
// told with an explicit override it does, but files that no version names keep their own limit (TestB5).

// respelled lists one key in another spelling than manifests have.
type respelled struct {
	objstore.Store
	from, to string
}

func (s respelled) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		for o, err := range s.Store.List(ctx, prefix, after) {
			o.Key = strings.ReplaceAll(o.Key, s.from, s.to)
			if !yield(o, err) {
				return
			}
		}
	}
}

// A8: names of listings and of metadata were compared as text although their escaping differed: everything looked orphaned.
func TestA8NamesThatDoNotCompare(t *testing.T) {
	t.Parallel()
	b := newTable(t)
	odd := "my file+1%.lance"
	lancetest.Commit(t, b.store, func(m *manifest.Manifest) *lancepb.Transaction {
		transaction := lancetest.AddFragment(t, b.store, m, 1, 2)
		file := m.GetFragments()[0].GetFiles()[0]
		data, _, err := b.store.Get(t.Context(), "data/"+file.GetPath())
		require.NoError(t, err)
		file.Path = odd
		require.NoError(t, b.store.Put(t.Context(), "data/"+odd, data))
		return transaction
	})
	b.settings.Compact = false
	b.clock.add(year)
	rows := lancetest.Latest(t, b.store)

	t.Run("spelled differently", func(t *testing.T) {
		before := contents(t, b.store)
		target := b.target()
		target.Open = func(context.Context) (objstore.Store, error) {
			return respelled{b.store, odd, "my%20file%2B1%25.lance"}, nil
		}
		r := b.keeper().Run(t.Context(), []maintain.Target{target}).Results[0]
		require.Equal(t, maintain.Failed, r.Outcome)
		require.Equal(t, "data/"+odd, r.Error.Object)
		require.Contains(t, r.Reason, "no listing shows it")
		require.Equal(t, before, contents(t, b.store))
	})
	t.Run("missing", func(t *testing.T) {
		gone := &bench{t: t, store: b.store.Clone(), settings: b.settings, clock: b.clock, book: newBook(), locks: newLockTable()}
		gone.restart()
		_, err := gone.store.Delete(t.Context(), []string{"data/" + odd})
		require.NoError(t, err)
		before := contents(t, gone.store)
		r := gone.pass()
		require.Equal(t, maintain.Failed, r.Outcome)
		require.Equal(t, "corrupt", r.Error.Class)
		require.Equal(t, before, contents(t, gone.store))
	})
	t.Run("the same", func(t *testing.T) {
		b.t = t
		b.clock.add(time.Hour)
		b.good()
		require.Equal(t, rows, lancetest.Latest(t, b.store))
		require.Len(t, b.numbers(), 1)
	})
}

// A9: the manifest folder holds more than manifests.
func TestA9OtherNamesAmongTheManifests(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.2", year)
	latest := b.latest()
	stays := []string{latest.Key + "-" + uuid.NewString(), "_versions/.tmp_fresh", latest.Key + "#7"}
	goes := []string{latest.Key + "-" + uuid.NewString(), "_versions/.tmp_old", latest.Key + "#1"}
	never := []string{"_versions/_latest.manifest", "_versions/007.manifest", "_versions/x.manifest-" + uuid.NewString(), latest.Key + "#", "_versions/18446744073709551615.manifest"}
	b.put(5*time.Minute, stays...)
	b.put(30*day, append(slices.Clone(goes), never...)...)
	require.Contains(t, b.store.Keys(), "_versions/latest_version_hint.json")
	r := b.good()
	for _, key := range slices.Concat(stays, never, []string{"_versions/latest_version_hint.json"}) {
		require.Contains(t, b.store.Keys(), key)
	}
	for _, key := range goes {
		require.NotContains(t, b.store.Keys(), key)
	}
	require.Equal(t, 1, *r.After.Manifests, "only exact names count")
}

// A10: manifests that could not be read were skipped after some tries, and what they alone named was deleted.
func TestA10RetainedManifestUnreadable(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.2", 30*day)
	b.settings.Keep, b.settings.Compact = 3, false
	second := b.version(b.latest().Number - 1).Key
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "get" && op.Key == second {
			return fmt.Errorf("get %s: %w", op.Key, objstore.ErrThrottled)
		}
		return nil
	})
	before := contents(t, b.store)
	r := b.pass()
	require.True(t, b.faults.Exercised())
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Equal(t, "throttled", r.Error.Class)
	require.Contains(t, r.Reason, second)
	require.Equal(t, before, contents(t, b.store))
}

// A11: a folder's name without its slash is a prefix of its neighbour's.
func TestA11Neighbours(t *testing.T) {
	t.Parallel()
	b := newTable(t)
	golden := contents(t, lancetest.Load(t, "upserts-2.1", b.clock.now, year))
	parent := memstore.New("mem://db", b.clock.now)
	folders := []string{"stats.lance/", "stats.lance.bak/", "stats.lance2/", "stats/", "stats.lance/data_old/", "stats.lance/_versions2/", "stats.lance/_transactions_/"}
	for _, folder := range folders {
		for key, data := range golden {
			require.NoError(t, parent.Put(t.Context(), folder+key, []byte(data)))
			parent.SetModified(folder+key, b.clock.now().Add(-year))
		}
	}
	root, err := objstore.Sub(parent, "stats.lance")
	require.NoError(t, err)
	target := b.target()
	target.Open = func(context.Context) (objstore.Store, error) { return root, nil }
	r := b.keeper().Run(t.Context(), []maintain.Target{target}).Results[0]
	require.Equal(t, maintain.OK, r.Outcome, r.Reason)
	require.NotZero(t, r.Pruning.VersionsRemoved)
	after := contents(t, parent)
	for _, folder := range folders[1:] {
		for key, data := range golden {
			require.Equal(t, data, after[folder+key], folder+key)
		}
	}
}

// B3: each lost compaction left its whole output, untouchable for a week; under steady conflicts a table of 3.5 GB grew by
// tens of GB a day. Same for C3: conflicts are counted and are no failures.
func TestB3LostRewritesLeaveNothing(t *testing.T) {
	t.Parallel()
	b := newTable(t, 30, 20, 25)
	b.settings.Prune = false
	for range 3 {
		b.restart()
		b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if claiming(op) {
				lancetest.Delete(t, b.store, 0)
			}
			return nil
		})
		before := len(b.store.Keys())
		r := b.pass()
		require.Equal(t, maintain.OK, r.Outcome, r.Reason)
		require.Positive(t, r.Compaction.Conflicts)
		require.Zero(t, r.Compaction.Tasks)
		require.Len(t, b.store.Keys(), before+3*r.Compaction.Conflicts, "what the other writer left is all there is more")
		require.Empty(t, lancetest.Dead(t, b.store))
		require.Empty(t, b.entry().Attempts)
		require.Contains(t, b.metrics.String(), fmt.Sprintf(`"CommitConflicts":%d`, r.Compaction.Conflicts))
	}
	rows := lancetest.Latest(t, b.store)
	b.restart()
	b.settings.Prune = true
	b.good()
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	require.Empty(t, lancetest.Dead(t, b.store))
}

// B1, B2: with one old tag the files that only newer, expired versions named were never listed again; nor were those of an
// abandoned write that are younger than the oldest version that stays.
func TestB1TagsStrandNothing(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1)
	b.clock.add(time.Second)
	lancetest.Tag(t, b.store, "first", b.latest().Number)
	tagged := b.latest().Number
	for range 5 {
		b.clock.add(day)
		b.append(1)
		lancetest.Delete(t, b.store, 0)
	}
	b.put(8*day, "data/abandoned.lance")
	b.put(6*day, "data/young.lance")
	r := b.good()
	require.Equal(t, []uint64{tagged, r.After.Version}, b.numbers())
	require.NotContains(t, b.store.Keys(), "data/abandoned.lance")
	require.Contains(t, b.store.Keys(), "data/young.lance")
	require.Equal(t, []string{"data/young.lance"}, lancetest.Dead(t, b.store), "nothing else is unexplained")
	require.True(t, slices.ContainsFunc(r.Pruning.Left, func(l maintain.LeftFiles) bool { return l.Files == 1 && strings.Contains(l.Reason, "until they are") }))
}

// B4: staged manifests matched no rule and stayed for ever.
func TestB4StagedManifests(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1)
	old, young := []string{}, b.latest().Key+"-"+uuid.NewString()
	for range 3 {
		old = append(old, b.version(2).Key+"-"+uuid.NewString())
	}
	b.put(30*day, old...)
	b.put(5*time.Minute, young)
	b.good()
	for _, key := range old {
		require.NotContains(t, b.store.Keys(), key)
	}
	require.Contains(t, b.store.Keys(), young)
}

// B5: failed commits leave their transaction files, which pile up faster than versions.
func TestB5TransactionsOfFailedCommits(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.1", time.Minute)
	names := func(n int) (keys []string) {
		for range n {
			keys = append(keys, "_transactions/3-"+uuid.NewString()+".txn")
		}
		return keys
	}
	old, young := names(600), names(500)
	b.put(8*day, old...)
	b.put(6*day, young...)
	r := b.good()
	require.NotContains(t, b.store.Keys(), old[0])
	require.Subset(t, b.store.Keys(), young)
	require.Equal(t, int64(500), r.Pruning.Left[len(r.Pruning.Left)-1].Files)
	require.GreaterOrEqual(t, r.Pruning.FilesRemoved["transaction"], int64(600))

	b.clock.add(day)
	b.good()
	require.Empty(t, lancetest.Dead(t, b.store))
}

// B6: the history went first and the files after; a kill between left files that nothing names any more.
func TestB6KilledBetweenManifestsAndFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.1", time.Minute)
	b.settings.Compact = false
	var gone bool // the last manifest
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "delete" && !isManifest(op.Key) && op.When == faultstore.Before {
			gone = true
			return faultstore.ErrKilled
		}
		if gone && op.Mutation > 0 {
			return faultstore.ErrKilled
		}
		return nil
	})
	r := b.pass()
	require.True(t, gone)
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Len(t, b.numbers(), 1)
	require.NotEmpty(t, lancetest.Dead(t, b.store))
	require.Subset(t, b.entry().Sweep, lancetest.Dead(t, b.store))

	b.restart()
	b.clock.add(time.Hour)
	b.good()
	require.Empty(t, lancetest.Dead(t, b.store))
	require.Empty(t, b.entry().Sweep)
}

// B11: compaction failed, and pruning came after it in the same step and so never ran: the disk filled.
func TestB11CompactionFailsPruningRuns(t *testing.T) {
	t.Parallel()
	t.Run("the store refuses", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "upserts-2.1", time.Minute)
		b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Kind == "upload" {
				return fmt.Errorf("upload: %w", objstore.ErrDenied)
			}
			return nil
		})
		r := b.pass()
		require.Equal(t, maintain.Failed, r.Outcome)
		require.Equal(t, maintain.Failed, r.Compaction.Outcome)
		require.Equal(t, maintain.OK, r.Pruning.Outcome)
		require.Equal(t, "denied", r.Error.Class)
		require.Len(t, b.numbers(), 1)
		require.Contains(t, b.metrics.String(), `"MaintenanceFailures":1`)
		require.Empty(t, b.entry().Attempts)
	})
	t.Run("a fragment is damaged", func(t *testing.T) {
		t.Parallel()
		b := newTable(t, 3, 3, 3, 3, 3)
		m, err := dataset.ReadManifest(t.Context(), b.store, b.latest())
		require.NoError(t, err)
		file := m.GetFragments()[2].GetFiles()[0]
		require.NoError(t, b.store.Put(t.Context(), "data/"+file.GetPath(), make([]byte, file.GetFileSizeBytes())))
		r := b.pass()
		require.Equal(t, maintain.Failed, r.Outcome)
		require.Equal(t, "corrupt", r.Error.Class)
		require.Equal(t, "data/"+file.GetPath(), r.Error.Object)
		require.Equal(t, maintain.OK, r.Pruning.Outcome)
		require.Equal(t, []maintain.SkippedFragment{{Fragment: 2, Reason: r.Compaction.Skipped[0].Reason}}, r.Compaction.Skipped)
		require.Equal(t, 2, r.Compaction.Tasks, "its neighbours on both sides are merged")
		require.Len(t, b.numbers(), 1)

		// The second failure sets it aside: named and counted, and no failure any more.
		r = b.pass()
		require.Equal(t, maintain.Failed, r.Outcome)
		r = b.pass()
		require.Equal(t, maintain.OK, r.Outcome, r.Reason)
		require.Equal(t, 1, r.Compaction.SkippedFragments)
		require.Contains(t, r.Compaction.Skipped[0].Reason, "set aside until")
		require.Contains(t, b.metrics.String(), `"SkippedFragments":1`)
		b.clock.add(25 * time.Hour)
		require.Equal(t, maintain.Failed, b.pass().Outcome, "it is tried once more after a day")
	})
}

// C1: the commit took the version current at commit time as its read version: deletes between planning and committing were not
// looked at, and deleted rows came back. C2 is the same in the retry after a lost race.
func TestC1DeleteBetweenPlanAndCommit(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(op faultstore.Op) bool{
		"before the rewrite": func(op faultstore.Op) bool { return op.Kind == "upload" },
		"after the rewrite": func(op faultstore.Op) bool {
			return op.Kind == "put" && dataset.Classify(op.Key) == dataset.Transaction
		},
		"before the put": claiming,
	} {
		for _, rows := range [][]int{{0}, {1, 5}, {0, 1, 2}} {
			t.Run(fmt.Sprintf("%s/%v", name, rows), func(t *testing.T) {
				t.Parallel()
				b := newTable(t, 3, 2, 4)
				want := lancetest.Latest(t, b.store)
				for _, i := range slices.Backward(rows) {
					want = slices.Delete(want, i, i+1)
				}
				met := b.once(at, func() error {
					lancetest.Delete(t, b.store, rows...)
					return nil
				})
				r := b.good()
				require.True(t, *met)
				require.Positive(t, r.Compaction.Conflicts)
				require.Equal(t, want, lancetest.Latest(t, b.store))
				require.Equal(t, 1, r.After.Fragments, "planned anew")
				require.Empty(t, lancetest.Dead(t, b.store))
			})
		}
	}
}

// C1, its harmless neighbour: an append in between is no conflict of the rewrite.
func TestC1AppendBetweenPlanAndCommit(t *testing.T) {
	t.Parallel()
	b := newTable(t, 3, 2, 4)
	met := b.once(claiming, func() error {
		b.append(5)
		return nil
	})
	r := b.good()
	require.True(t, *met)
	require.Equal(t, 1, r.Compaction.Conflicts)
	require.Equal(t, 1, r.Compaction.Tasks)
	require.Len(t, lancetest.Latest(t, b.store), 14)
	require.Equal(t, 2, r.After.Fragments)
	lancetest.Whole(t, b.store)
}

// E5: after a hard stop the newest manifest was empty; every command failed with a message about ranges.
func TestE5NewestManifestDamaged(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(data []byte) []byte{
		"0 bytes": func([]byte) []byte { return nil },
		"half":    func(data []byte) []byte { return data[:len(data)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "upserts-2.1", 30*day)
			latest := b.latest()
			data, _, err := b.store.Get(t.Context(), latest.Key)
			require.NoError(t, err)
			data = cut(data)
			require.NoError(t, b.store.Put(t.Context(), latest.Key, data))
			before := contents(t, b.store)
			r := b.pass()
			require.Equal(t, maintain.Failed, r.Outcome)
			require.Equal(t, "corrupt", r.Error.Class)
			require.Equal(t, latest.Key, r.Error.Object)
			require.Equal(t, "open", r.Error.Step)
			require.Contains(t, r.Reason, fmt.Sprintf("manifest of %d bytes", len(data)))
			require.Equal(t, before, contents(t, b.store))
			require.Equal(t, latest.Number, *r.UnreclaimedVersions, "before any success: the whole backlog")
		})
	}
}

// E7: columns added as all-null change only the schema: older files lack them. Every compaction failed, or wrote files that
// claim columns which they do not hold.
func TestE7ColumnsAddedLater(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1, 1, 1)
	added := &lancepb.Field{Id: 3, Name: "later", LogicalType: "int64", ParentId: -1, Nullable: true}
	lancetest.Commit(t, b.store, func(m *manifest.Manifest) *lancepb.Transaction {
		m.Fields = append(m.GetFields(), added)
		return &lancepb.Transaction{Operation: &lancepb.Transaction_Merge_{Merge: &lancepb.Transaction_Merge{Fragments: m.GetFragments(), Schema: m.GetFields()}}}
	})
	b.append(2)
	b.append(1)
	lancetest.Delete(t, b.store, 1, 4)
	lancetest.Commit(t, b.store, func(m *manifest.Manifest) *lancepb.Transaction {
		m.Fields = m.GetFields()[1:]
		return &lancepb.Transaction{Operation: &lancepb.Transaction_Project_{Project: &lancepb.Transaction_Project{Schema: m.GetFields()}}}
	})
	rows := lancetest.Latest(t, b.store)
	require.Len(t, rows, 5)
	r := b.good()
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	require.Equal(t, 1, r.After.Fragments)
	m, err := dataset.ReadManifest(t.Context(), b.store, b.latest())
	require.NoError(t, err)
	require.Equal(t, []int32{1, 2, 3}, m.GetFragments()[0].GetFiles()[0].GetFields())
}

// E9: a clean-up reads every manifest, the expired ones too, and stops at the first that is damaged or not understood: one bad
// old version keeps all others for ever.
func TestE9BadExpiredVersions(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{time.Minute, 30 * day} {
		t.Run(age.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "upserts-2.1", age)
			rows := lancetest.Latest(t, b.store)
			total := len(b.numbers())
			cut, flagged := b.version(7), b.version(8)
			data, _, err := b.store.Get(t.Context(), cut.Key)
			require.NoError(t, err)
			require.NoError(t, b.store.Put(t.Context(), cut.Key, data[:len(data)/2]))
			b.store.SetModified(cut.Key, cut.Modified)
			lancetest.Rewrite(t, b.store, flagged, func(m *manifest.Manifest) { m.WriterFeatureFlags |= 1 << 40 })

			r := b.good()
			require.Equal(t, total-2, r.Pruning.VersionsRemoved)
			require.Equal(t, []uint64{7, 8, uint64(total + 1)}, b.numbers())
			reasons := map[uint64]string{}
			for _, k := range r.Pruning.Kept {
				reasons[k.Version] = k.Reason
			}
			require.Contains(t, reasons[7], "is corrupt")
			require.Contains(t, reasons[8], "writer feature flag bit 40")
			require.Equal(t, 2, r.Pruning.KeptVersions)
			require.Contains(t, b.metrics.String(), `"Unsupported":2`)
			require.Len(t, r.Findings, 2)
			require.Contains(t, r.Findings[0].Detail, "version 7 has expired and stays")
			require.Contains(t, r.Findings[1].Detail, "version 8 has expired and stays")
			require.Equal(t, rows, lancetest.Latest(t, b.store))

			// What the one names that can be read is there.
			m, err := dataset.ReadManifest(t.Context(), b.store, flagged)
			require.NoError(t, err)
			files := dataset.NewFiles()
			require.NoError(t, files.Add(flagged.Key, m))
			require.Subset(t, b.store.Keys(), slices.Collect(maps.Keys(files.Keys)))
		})
	}
}

// G3: nothing in a dataset tells of the shallow clones that name its files. A setting does: then no file that a clone may name
// goes, whatever its age, and versions may be held by number.
func TestG3Clones(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.2", 30*day)
	var files []string
	for _, key := range b.store.Keys() {
		if strings.HasPrefix(key, "data/") || strings.HasPrefix(key, "_deletions/") {
			files = append(files, key)
		}
	}
	b.settings.HasClones, b.settings.PinVersions = true, []uint64{3}
	r := b.good()
	require.Subset(t, b.store.Keys(), files)
	require.Equal(t, []uint64{3, r.After.Version}, b.numbers())
	require.Equal(t, "pinned by the settings", r.Pruning.Kept[0].Reason)
	require.True(t, slices.ContainsFunc(r.Pruning.Left, func(l maintain.LeftFiles) bool { return strings.Contains(l.Reason, "clone") && l.Files > 0 }))
	lancetest.Whole(t, b.store)

	b.settings.HasClones, b.settings.PinVersions = false, nil
	b.good()
	require.Empty(t, lancetest.Dead(t, b.store))
}

// G1: a tag on a branch that is gone holds nothing of main, fails nothing, and is not ours to delete.
func TestG1DanglingTag(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.2", 30*day)
	require.NoError(t, b.store.Put(t.Context(), "_refs/tags/old.json", []byte(`{"branch":"dev","version":1,"manifestSize":1}`)))
	r := b.good()
	require.Equal(t, []uint64{r.After.Version}, b.numbers())
	require.Contains(t, b.store.Keys(), "_refs/tags/old.json")
}

// B10, N2: a dataset's own configuration has a say in its upkeep; what is wrong with it stops that dataset, and nothing goes.
func TestN2OwnPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.2", 30*day)
	var seen map[string]string
	var wrong error
	b.tune = func(table map[string]string) (maintain.Settings, []string, error) {
		seen = table
		s := b.settings
		s.Keep, s.Policy = 5, map[string]maintain.PolicySetting{"keep": {Value: "5", Source: "table configuration"}}
		return s, []string{"official writers clean up too"}, wrong
	}
	lancetest.Rewrite(t, b.store, b.latest(), func(m *manifest.Manifest) { m.Config = map[string]string{"lancekeeper.keep": "5"} })
	wrong = &config.Error{Setting: "lancekeeper.keep", Source: config.Table, Detail: "wrong"}
	before := contents(t, b.store)
	r := b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Equal(t, "config", r.Error.Class)
	require.Equal(t, before, contents(t, b.store))

	wrong = nil
	r = b.good()
	require.Equal(t, map[string]string{"lancekeeper.keep": "5"}, seen)
	require.Len(t, b.numbers(), 5)
	require.Equal(t, "table configuration", r.Policy["keep"].Source)
	require.Equal(t, []maintain.Finding{{Kind: "policy", Detail: "official writers clean up too"}}, r.Findings)
}

// I1, I3, I5: a function that died left a lock that others could only take after watching it for a whole lease, or that never
// expired at all because its end was never written.
func TestI1LeaseOfADeadHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.1", time.Minute)
	rows := lancetest.Latest(t, b.store)
	b.faults.KillAt(6, faultstore.After)
	b.pass()
	require.True(t, b.faults.Killed())
	for _, attribute := range []string{"lease_owner", "lease_token", "lease_expires", "lease_acquired", "lease_generation"} {
		require.Contains(t, b.locks.items["table"], attribute)
	}

	b.restart()
	r := b.pass()
	require.Equal(t, maintain.Skipped, r.Outcome, "not waited for")
	b.clock.add(5 * time.Minute)
	r = b.good()
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	require.Equal(t, 1, r.Failures, "the pass that died")
	require.Empty(t, lancetest.Dead(t, b.store))
}

// I2: a paused holder wakes up after its lease has ended and works on, believing that it holds the lock. Here another keeper
// makes a whole pass before each single write and delete of the first one.
func TestI2PausedHolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"upserts-2.1", "tags"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := newBench(t, name, time.Minute)
			rows := lancetest.Latest(t, whole.store)
			whole.good()
			for n := 1; n <= whole.faults.Mutations(); n++ {
				pausedAt(t, name, n, rows)
			}
		})
	}
}

func pausedAt(t *testing.T, name string, n int, rows []string) {
	t.Helper()
	paused := newBench(t, name, time.Minute)
	paused.owner = "paused"
	other := &bench{t: t, store: paused.store, settings: settings(), clock: paused.clock, owner: "other", book: paused.book}
	other.faults = faultstore.New(other.store)
	other.locks = paused.locks
	var woken bool
	var after []faultstore.Op
	meanwhile := func() {
		paused.clock.add(time.Hour)
		other.good()
		woken = true
	}
	paused.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if woken && op.Mutation > n && op.When == faultstore.Before {
			after = append(after, op)
		}
		if op.Mutation != n || op.When != faultstore.Before {
			return nil
		}
		meanwhile()
		return nil
	})
	r := paused.pass()
	require.True(t, woken, "mutation %d", n)
	for _, op := range after {
		require.False(t, claiming(op), "mutation %d: a version is claimed without the lease", n)
	}
	require.Equal(t, rows, lancetest.Latest(t, paused.store), "mutation %d", n)
	lancetest.Whole(t, paused.store)
	if r.Outcome != maintain.OK {
		require.Equal(t, "lock", r.Error.Class, "mutation %d: %s", n, r.Reason)
	}

	last := &bench{t: t, store: paused.store, settings: settings(), clock: paused.clock, owner: "last", book: paused.book, locks: paused.locks}
	last.restart()
	last.clock.add(time.Hour)
	last.good()
	require.Equal(t, rows, lancetest.Latest(t, paused.store), "mutation %d", n)
	require.Empty(t, lancetest.Dead(t, paused.store), "mutation %d", n)
	require.Empty(t, last.entry().Attempts)
	require.Empty(t, last.entry().Sweep)
}

// I4: a lock without an end, left by a dead owner: every pass was skipped for weeks, and nobody was told.
func TestI4LockWithoutAnEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.1", time.Minute)
	b.locks.byHand()
	for n := 1; n <= 3; n++ {
		b.clock.add(10 * day)
		r := b.pass()
		require.Equal(t, maintain.Skipped, r.Outcome)
		require.Contains(t, r.Reason, "locked by somebody")
		require.Contains(t, r.Reason, "--table locks --break-lock 't1' table")
		require.Equal(t, n, b.entry().ConsecutiveSkips)
		require.Equal(t, "somebody", b.entry().LastSkip.Holder)
	}
	require.Equal(t, 3, strings.Count(b.metrics.String(), `"LockContended":1`))
}

// I6: "locked" was reported as a quick success.
func TestI6HeldLockChangesNoGauge(t *testing.T) {
	t.Parallel()
	b := newTable(t, 2, 2)
	b.good()
	b.append(1)
	success := *b.entry().LastSuccess
	before := contents(t, b.store)
	b.locks.byHand()
	b.metrics.Reset()
	r := b.pass()
	require.Equal(t, maintain.Skipped, r.Outcome)
	require.NotEqual(t, maintain.OK.ExitCode(), r.Outcome.ExitCode())
	require.Nil(t, r.Error)
	require.Nil(t, r.UnreclaimedVersions)
	require.Nil(t, r.SecondsSinceSuccess)
	require.Equal(t, success, *b.entry().LastSuccess)
	require.Zero(t, b.entry().Failures)
	require.Equal(t, before, contents(t, b.store))
	for _, gauge := range []string{"UnreclaimedVersions", "SecondsSinceSuccess", "ConsecutiveFailures", "MaintenanceFailures", "FragmentsAfter", "DatasetVersion"} {
		require.NotContains(t, b.metrics.String(), gauge)
	}
	require.Contains(t, b.metrics.String(), `"LockContended":1`)
}

// J1: an event is delivered twice, at once or after an error.
func TestJ1SameEventTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.1", time.Minute)
	var second maintain.Result
	b.once(func(op faultstore.Op) bool { return op.Kind == "upload" }, func() error {
		second = b.pass()
		return nil
	})
	first := b.good()
	require.Equal(t, maintain.Skipped, second.Outcome)
	before := contents(t, b.store)
	third := b.good()
	require.Equal(t, before, contents(t, b.store))
	first.After.Files, first.After.Bytes = nil, nil // the third did not list
	require.Equal(t, first.After, third.After)
	require.Zero(t, third.Requests.Put+third.Requests.Delete)
}

// J2: on a time-out nothing was logged and no metric left: the worst run looked like none. Here the time ends before each
// single write or delete.
func TestJ2TimeRunsOut(t *testing.T) {
	t.Parallel()
	whole := newBench(t, "upserts-2.1", time.Minute)
	rows := lancetest.Latest(t, whole.store)
	whole.good()
	partial := 0
	for n := 1; n <= whole.faults.Mutations(); n++ {
		b := newBench(t, "upserts-2.1", time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Mutation == n {
				cancel()
			}
			return nil
		})
		r := b.keeper().Run(ctx, []maintain.Target{b.target()}).Results[0]
		require.Contains(t, []maintain.Outcome{maintain.Partial, maintain.OK}, r.Outcome, "mutation %d: %s", n, r.Reason)
		require.Equal(t, 1, strings.Count(b.metrics.String(), "\n"), "mutation %d", n)
		require.Contains(t, b.metrics.String(), `"MaintenanceFailures":0`)
		require.Nil(t, b.entry().Started, "mutation %d: recorded", n)
		require.Equal(t, rows, lancetest.Latest(t, b.store))
		if r.Outcome == maintain.Partial {
			partial++
			require.False(t, r.Drained)
			require.NotEmpty(t, r.Reason)
			require.Nil(t, b.entry().LastSuccess, "mutation %d", n)
			require.Positive(t, *r.UnreclaimedVersions)
		}
		b.restart()
		require.True(t, b.good().Drained)
		require.Equal(t, rows, lancetest.Latest(t, b.store))
		require.Empty(t, lancetest.Dead(t, b.store), "mutation %d", n)
	}
	require.Greater(t, partial, 10)
}

// L8: a backlog of 0 and one that could not be read look the same.
func TestL8NothingMeasurable(t *testing.T) {
	t.Parallel()
	b := newTable(t, 2, 2, 2)
	denied := func() {
		b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if strings.HasPrefix(op.Kind, "ledger") {
				return nil
			}
			return fmt.Errorf("%s: %w", op.Kind, objstore.ErrDenied)
		})
	}
	denied()
	r := b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Equal(t, "denied", r.Error.Class)
	require.Nil(t, r.UnreclaimedVersions, "nothing is known")
	require.NotContains(t, b.metrics.String(), "UnreclaimedVersions")
	require.Contains(t, b.metrics.String(), `"MaintenanceFailures":1`)

	// Only the newest manifest can't be opened: before any success, all that is listed counts.
	b.restart()
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "get" {
			return objstore.ErrDenied
		}
		return nil
	})
	r = b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Equal(t, uint64(4), *r.UnreclaimedVersions)

	denied()
	r = b.pass()
	require.Equal(t, uint64(4), *r.UnreclaimedVersions, "the last known value")

	b.restart()
	b.good()
	denied()
	r = b.pass()
	require.Nil(t, r.UnreclaimedVersions, "0 was known, and is not shown as measured")

	b.restart()
	b.append(1)
	b.append(1)
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "get" {
			return objstore.ErrDenied
		}
		return nil
	})
	r = b.pass()
	require.Equal(t, uint64(2), *r.UnreclaimedVersions)
	denied()
	r = b.pass()
	require.Equal(t, uint64(2), *r.UnreclaimedVersions, "the last known value")
	require.NotContains(t, b.metrics.String(), `"UnreclaimedVersions":0,"SecondsSinceSuccess":0,"MaintenanceFailures":1`)
}
