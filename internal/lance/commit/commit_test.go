package commit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/compact"
	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/txn"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/memstore"
)

const id = "7f1c6c9e-55a1-4c0e-9f0d-2a4e0c1b9d10"

// table makes four fragments of three rows each, with the second row of the second deleted.
func table(t *testing.T) *memstore.Store {
	t.Helper()
	store := memstore.New("mem://t.lance", time.Now)
	lancetest.Create(t, store)
	for i := range 4 {
		at := int64(10 * i)
		lancetest.Append(t, store, at, at+1, at+2)
	}
	lancetest.Delete(t, store, 4)
	return store
}

func latest(t *testing.T, store objstore.Store) (dataset.Version, *manifest.Manifest) {
	t.Helper()
	v, _, err := dataset.Latest(t.Context(), store)
	require.NoError(t, err)
	m, err := dataset.ReadManifest(t.Context(), store, v)
	require.NoError(t, err)
	return v, m
}

// rewritten is a rewrite of the first three fragments, planned on the latest version.
func rewritten(t *testing.T, store objstore.Store) commit.Rewrite {
	t.Helper()
	_, m := latest(t, store)
	plan, err := compact.MakePlan(m, compact.Options{TargetRows: 1000})
	require.NoError(t, err)
	task := plan.Tasks[0]
	task.Fragments = task.Fragments[:3]
	task.LiveRows, task.OutputRows = 8, []uint64{8}
	out, err := compact.Rewrite(t.Context(), store, m, task, []string{compact.NewFileName()}, compact.RewriteOptions{MemoryBytes: 1 << 20})
	require.NoError(t, err)
	return commit.Rewrite{UUID: id, ReadVersion: m.GetVersion(), Groups: []commit.Group{out.Group}}
}

func options(store objstore.Store) commit.Options {
	return commit.Options{Guard: func(context.Context, uint64) error { return nil }, Writer: "lancekeeper", WriterVersion: "1.2.3", Clock: store.Now}
}

func ids(t *testing.T, store objstore.Store) []string {
	t.Helper()
	return lancetest.Latest(t, store)
}

func rows(t *testing.T, numbers ...int64) []string {
	t.Helper()
	var out []string
	for _, n := range numbers {
		out = append(out, lancetest.Row(t, n))
	}
	return out
}

func TestManifestOfARewrite(t *testing.T) {
	t.Parallel()
	store := table(t)
	store.Unordered()
	v, _ := latest(t, store)
	lancetest.Rewrite(t, store, v, func(m *manifest.Manifest) {
		m.Config = map[string]string{"a": "b"}
		m.TableMetadata = map[string]string{"c": "d"}
		m.Tag, m.VersionAuxData = "old", 9
		highest := uint32(40) // some ids were reserved
		m.MaxFragmentId = &highest
		m.Indices = []*lancepb.IndexMetadata{{Name: "i", Uuid: &lancepb.UUID{Uuid: make([]byte, 16)}, FragmentBitmap: bitmap(t, 3)}}
		m.Fields[1].ProtoReflect().SetUnknown(unknownField(99)) // a column's own business, and none of ours
	})
	before, base := latest(t, store)
	require.NoError(t, store.Put(t.Context(), "_indices/00000000-0000-0000-0000-000000000000/x", nil))
	all := ids(t, store)
	r := rewritten(t, store)
	result, err := commit.Commit(t.Context(), store, r, options(store))
	require.NoError(t, err)
	require.Equal(t, commit.Result{Version: before.Number + 1}, result)
	after, m := latest(t, store)
	require.Equal(t, before.Number+1, after.Number)
	require.Equal(t, after.Number, m.GetVersion())
	require.Len(t, m.GetFragments(), 2)
	require.EqualValues(t, 3, m.GetFragments()[0].GetId())
	require.EqualValues(t, 41, m.GetFragments()[1].GetId())
	require.EqualValues(t, 41, m.GetMaxFragmentId())
	require.Empty(t, m.GetTag())
	require.Zero(t, m.GetVersionAuxData())
	require.Equal(t, base.GetConfig(), m.GetConfig())
	require.Equal(t, base.GetTableMetadata(), m.GetTableMetadata())
	require.Equal(t, "lancekeeper", m.GetWriterVersion().GetLibrary())
	require.Equal(t, "1.2.3", m.GetWriterVersion().GetVersion())
	require.WithinDuration(t, time.Now(), m.GetTimestamp().AsTime(), time.Minute)
	require.Zero(t, m.GetReaderFeatureFlags()&manifest.FlagDeletionFiles, "the only deletion file is gone")
	require.NotZero(t, m.GetWriterFeatureFlags()&manifest.FlagTableConfig)
	require.True(t, proto.Equal(base.Indices[0], m.Indices[0]), "carried byte for byte")
	require.True(t, proto.Equal(base.GetFields()[1], m.GetFields()[1]), "unknown fields too")
	require.NotEmpty(t, m.GetFields()[1].ProtoReflect().GetUnknown())
	require.Equal(t, txn.FileName(before.Number, id), m.GetTransactionFile())
	file, _, err := store.Get(t.Context(), txn.Key(before.Number, id))
	require.NoError(t, err)
	var fromFile lancepb.Transaction
	require.NoError(t, proto.Unmarshal(file, &fromFile))
	require.True(t, proto.Equal(&fromFile, m.Transaction), "the file and the inline copy are one message")
	require.EqualValues(t, 41, m.Transaction.GetRewrite().GetGroups()[0].GetNewFragments()[0].GetId())
	hint, _, err := store.Get(t.Context(), manifest.Folder+manifest.HintName)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(`{"version":%d}`, after.Number), string(hint))
	require.ElementsMatch(t, all, ids(t, store))
	lancetest.Whole(t, store)
}

func unknownField(number protowire.Number) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 7)
}

func bitmap(t *testing.T, ids ...uint32) []byte {
	t.Helper()
	data, err := roaring.BitmapOf(ids...).ToBytes()
	require.NoError(t, err)
	return data
}

func TestNoTransactionFileWhereTheFlagSaysSo(t *testing.T) {
	t.Parallel()
	store := table(t)
	v, _ := latest(t, store)
	lancetest.Rewrite(t, store, v, func(m *manifest.Manifest) { m.WriterFeatureFlags |= manifest.FlagNoTransactionFiles })
	_, err := commit.Commit(t.Context(), store, rewritten(t, store), options(store))
	require.NoError(t, err)
	_, m := latest(t, store)
	require.Empty(t, m.GetTransactionFile())
	require.Equal(t, id, m.Transaction.GetUuid())
	require.NotContains(t, store.Keys(), txn.Key(v.Number, id))
}

// TestWhatCameInBetween: others commit after the rewrite was planned. Either it is rebased over them, or given up; rows that they
// deleted do not come back, and rows that they added stay.
func TestWhatCameInBetween(t *testing.T) {
	t.Parallel()
	op := func(change func(m *manifest.Manifest) *lancepb.Transaction) func(t *testing.T, store objstore.Store) {
		return func(t *testing.T, store objstore.Store) {
			t.Helper()
			lancetest.Commit(t, store, change)
		}
	}
	for name, c := range map[string]struct {
		theirs   func(t *testing.T, store objstore.Store)
		conflict string // operation; "" if the rewrite is rebased
	}{
		"nothing": {func(*testing.T, objstore.Store) {}, ""},
		"append":  {func(t *testing.T, s objstore.Store) { t.Helper(); lancetest.Append(t, s, 50, 51) }, ""},
		"three appends": {func(t *testing.T, s objstore.Store) {
			t.Helper()
			lancetest.Append(t, s, 50)
			lancetest.Append(t, s, 51)
			lancetest.Append(t, s, 52)
		}, ""},
		"delete elsewhere":    {func(t *testing.T, s objstore.Store) { t.Helper(); lancetest.Delete(t, s, 9) }, ""},
		"delete rows of ours": {func(t *testing.T, s objstore.Store) { t.Helper(); lancetest.Delete(t, s, 0) }, "Delete"},
		"delete a fragment":   {func(t *testing.T, s objstore.Store) { t.Helper(); lancetest.Delete(t, s, 0, 1, 2) }, "Delete"},
		"restore":             {func(t *testing.T, s objstore.Store) { t.Helper(); v, _ := latest(t, s); lancetest.Restore(t, s, v) }, "Restore"},
		"overwrite": {op(func(m *manifest.Manifest) *lancepb.Transaction {
			m.Fragments = nil
			return &lancepb.Transaction{Operation: &lancepb.Transaction_Overwrite_{Overwrite: &lancepb.Transaction_Overwrite{}}}
		}), "Overwrite"},
		"config": {op(func(m *manifest.Manifest) *lancepb.Transaction {
			m.Config = map[string]string{"k": "v"}
			return &lancepb.Transaction{Operation: &lancepb.Transaction_UpdateConfig_{UpdateConfig: &lancepb.Transaction_UpdateConfig{}}}
		}), ""},
		"reserved ids": {op(func(m *manifest.Manifest) *lancepb.Transaction {
			highest := m.GetMaxFragmentId() + 5
			m.MaxFragmentId = &highest
			return &lancepb.Transaction{Operation: &lancepb.Transaction_ReserveFragments_{ReserveFragments: &lancepb.Transaction_ReserveFragments{NumFragments: 5}}}
		}), ""},
		"index elsewhere": {op(func(m *manifest.Manifest) *lancepb.Transaction {
			i := &lancepb.IndexMetadata{Name: "i", Uuid: &lancepb.UUID{Uuid: make([]byte, 16)}, FragmentBitmap: bitmap(t, 3)}
			m.Indices = append(m.Indices, i)
			return &lancepb.Transaction{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: &lancepb.Transaction_CreateIndex{NewIndices: m.Indices}}}
		}), ""},
		"index over ours": {op(func(m *manifest.Manifest) *lancepb.Transaction {
			i := &lancepb.IndexMetadata{Name: "i", Uuid: &lancepb.UUID{Uuid: make([]byte, 16)}, FragmentBitmap: bitmap(t, 0, 1)}
			m.Indices = append(m.Indices, i)
			return &lancepb.Transaction{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: &lancepb.Transaction_CreateIndex{NewIndices: m.Indices}}}
		}), "CreateIndex"},
		"unknown": {op(func(*manifest.Manifest) *lancepb.Transaction { return &lancepb.Transaction{} }), "unknown"},
		"says append and changes ours": {op(func(m *manifest.Manifest) *lancepb.Transaction {
			m.Fragments[0] = proto.CloneOf(m.GetFragments()[0])
			m.Fragments[0].PhysicalRows++
			return &lancepb.Transaction{Operation: &lancepb.Transaction_Append_{Append: &lancepb.Transaction_Append{}}}
		}), "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := table(t)
			require.NoError(t, store.Put(t.Context(), "_indices/00000000-0000-0000-0000-000000000000/x", nil))
			r := rewritten(t, store)
			c.theirs(t, store)
			before, _ := latest(t, store)
			keys := len(store.Keys())
			result, err := commit.Commit(t.Context(), store, r, options(store))
			if c.conflict != "" {
				var conflict *commit.ConflictError
				require.ErrorAs(t, err, &conflict)
				require.Equal(t, c.conflict, conflict.Operation)
				after, _ := latest(t, store)
				require.Equal(t, before, after, "nothing was committed")
				require.Len(t, store.Keys(), keys, "nothing was written")
				return
			}
			require.NoError(t, err)
			require.Equal(t, before.Number+1, result.Version)
			require.EqualValues(t, before.Number-r.ReadVersion, result.Conflicts)
			old := lancetest.Rows(t, store, before)
			require.ElementsMatch(t, old, ids(t, store))
			_, m := latest(t, store)
			require.Equal(t, r.ReadVersion, m.Transaction.GetReadVersion(), "the version that it was planned on")
			lancetest.Whole(t, store)
		})
	}
}

// TestLostRaces: others commit at the very moment before our put.
func TestLostRaces(t *testing.T) {
	t.Parallel()
	for _, lost := range []int{1, 5, 30} {
		inner := table(t)
		r := rewritten(t, inner)
		before := ids(t, inner)
		store, n := faultstore.New(inner), 0
		store.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Kind == "putIfAbsent" && op.When == faultstore.Before && n < lost {
				n++
				lancetest.Append(t, inner, int64(100+n))
			}
			return nil
		})
		result, err := commit.Commit(t.Context(), store, r, options(inner))
		if lost > 20 {
			require.ErrorAs(t, err, new(*commit.ConflictError), "a steady writer: given up after a number of races")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, lost, result.Conflicts)
		for i := range lost {
			before = append(before, lancetest.Row(t, int64(101+i)))
		}
		require.ElementsMatch(t, before, ids(t, inner))
	}
}

// TestAnswersOfThePut: whatever the store answers, what counts is whose the version is.
func TestAnswersOfThePut(t *testing.T) {
	t.Parallel()
	lost := func(err error) func(context.Context, *testing.T, *memstore.Store, faultstore.Op, int) error {
		return func(_ context.Context, _ *testing.T, _ *memstore.Store, op faultstore.Op, _ int) error {
			if op.When == faultstore.After {
				return err
			}
			return nil
		}
	}
	never := func(err error) func(context.Context, *testing.T, *memstore.Store, faultstore.Op, int) error {
		return func(context.Context, *testing.T, *memstore.Store, faultstore.Op, int) error { return err }
	}
	for name, c := range map[string]struct {
		answer func(ctx context.Context, t *testing.T, inner *memstore.Store, op faultstore.Op, try int) error
		ours   bool
		class  error
	}{
		"stored, answer lost":               {lost(objstore.ErrAmbiguous), true, nil},
		"stored, a retry saw itself":        {lost(objstore.ErrExists), true, nil},
		"stored, throttled afterwards":      {lost(objstore.ErrThrottled), true, nil},
		"never stored, always without word": {never(objstore.ErrAmbiguous), false, commit.ErrUnknownOutcome},
		"refused":                           {never(objstore.ErrDenied), false, objstore.ErrDenied},
		"not stored at first": {func(_ context.Context, _ *testing.T, _ *memstore.Store, op faultstore.Op, try int) error {
			if op.When == faultstore.Before && try == 1 {
				return objstore.ErrAmbiguous
			}
			return nil
		}, true, nil},
		"without word, and another's": {func(_ context.Context, t *testing.T, inner *memstore.Store, op faultstore.Op, try int) error {
			t.Helper()
			if op.When == faultstore.Before && try == 1 {
				lancetest.Append(t, inner, 77)
				return objstore.ErrAmbiguous
			}
			return nil
		}, true, nil}, // as the version behind it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := table(t)
			r := rewritten(t, inner)
			store, try := faultstore.New(inner), 0
			store.Hook(func(ctx context.Context, op faultstore.Op) error {
				if op.Kind != "putIfAbsent" {
					return nil
				}
				if op.When == faultstore.Before {
					try++
				}
				return c.answer(ctx, t, inner, op, try)
			})
			_, err := commit.Commit(t.Context(), store, r, options(inner))
			_, m := latest(t, inner)
			require.Equal(t, c.ours, m.Transaction.GetUuid() == id)
			if c.class == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.class)
			}
			lancetest.Whole(t, inner)
		})
	}
}

// TestTimeRunsOutDuringThePut: what became of it is looked up all the same.
func TestTimeRunsOutDuringThePut(t *testing.T) {
	t.Parallel()
	inner := table(t)
	r := rewritten(t, inner)
	store := faultstore.New(inner)
	ctx, cancel := context.WithCancel(t.Context())
	store.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "putIfAbsent" && op.When == faultstore.After {
			cancel()
			return fmt.Errorf("%w: %w", objstore.ErrAmbiguous, context.Canceled)
		}
		return nil
	})
	_, err := commit.Commit(ctx, store, r, options(inner))
	require.ErrorIs(t, err, context.Canceled, "the look behind the new version did not come about")
	verdict, err := commit.Resolve(t.Context(), inner, r.ReadVersion+1, id)
	require.NoError(t, err)
	require.Equal(t, commit.Ours, verdict)
}

func TestGuardStopsBeforeAnythingIsClaimed(t *testing.T) {
	t.Parallel()
	store := table(t)
	r := rewritten(t, store)
	before, _ := latest(t, store)
	refusal := errors.New("lease lost")
	o := options(store)
	var asked uint64
	o.Guard = func(_ context.Context, version uint64) error {
		asked = version
		return refusal
	}
	_, err := commit.Commit(t.Context(), store, r, o)
	require.ErrorIs(t, err, refusal)
	require.Equal(t, before.Number+1, asked)
	after, _ := latest(t, store)
	require.Equal(t, before, after)
}

// TestGhostVersion: while we were slow, others committed more versions and a clean-up removed the first of them: its number is free
// again. A version made under it is no part of the latest state.
func TestGhostVersion(t *testing.T) {
	t.Parallel()
	inner := table(t)
	r := rewritten(t, inner)
	store := faultstore.New(inner)
	before, _ := latest(t, inner)
	store.Hook(func(ctx context.Context, op faultstore.Op) error {
		if op.Kind == "putIfAbsent" && op.When == faultstore.Before && strings.HasPrefix(op.Key, manifest.Folder) {
			lancetest.Append(t, inner, 60)
			lancetest.Append(t, inner, 61)
			_, err := inner.Delete(ctx, []string{manifest.Key(before.Number+1, manifest.V2), manifest.Key(before.Number, manifest.V2)})
			return err
		}
		return nil
	})
	_, err := commit.Commit(t.Context(), store, r, options(inner))
	require.ErrorIs(t, err, commit.ErrReplaced)
	after, _ := latest(t, inner)
	require.Equal(t, before.Number+2, after.Number)
	require.Subset(t, ids(t, inner), rows(t, 60, 61))
	lancetest.Whole(t, inner)
}

func TestDatasetMadeAnew(t *testing.T) {
	t.Parallel()
	store := table(t)
	r := rewritten(t, store)
	for _, key := range store.Keys() {
		_, err := store.Delete(t.Context(), []string{key})
		require.NoError(t, err)
	}
	lancetest.Create(t, store)
	_, err := commit.Commit(t.Context(), store, r, options(store))
	require.ErrorAs(t, err, new(*commit.ConflictError))
	require.Empty(t, ids(t, store))
}

func TestResolve(t *testing.T) {
	t.Parallel()
	store := table(t)
	v, m := latest(t, store)
	for uuid, want := range map[string]commit.Verdict{m.Transaction.GetUuid(): commit.Ours, id: commit.Theirs} {
		verdict, err := commit.Resolve(t.Context(), store, v.Number, uuid)
		require.NoError(t, err)
		require.Equal(t, want, verdict)
	}
	verdict, err := commit.Resolve(t.Context(), store, v.Number+1, id)
	require.NoError(t, err)
	require.Equal(t, commit.Absent, verdict)
	lancetest.Rewrite(t, store, v, func(m *manifest.Manifest) { m.Transaction, m.TransactionFile = nil, "" })
	verdict, err = commit.Resolve(t.Context(), store, v.Number, id)
	require.NoError(t, err)
	require.Equal(t, commit.Unknown, verdict)
	require.NoError(t, store.Put(t.Context(), v.Key, []byte("cut")))
	_, err = commit.Resolve(t.Context(), store, v.Number, id)
	require.Error(t, err)
}
