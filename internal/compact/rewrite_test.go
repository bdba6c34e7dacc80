package compact_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/compact"
	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/memstore"
)

const memory = 64 << 20

// How a rewrite goes: with room enough, and with pages copied however small.
var (
	bounded = compact.RewriteOptions{MemoryBytes: memory}
	copying = compact.RewriteOptions{MemoryBytes: memory, CopyBytes: 1}
)

func latest(t *testing.T, store objstore.Store) (dataset.Version, *manifest.Manifest) {
	t.Helper()
	v, _, err := dataset.Latest(t.Context(), store)
	require.NoError(t, err)
	m, err := dataset.ReadManifest(t.Context(), store, v)
	require.NoError(t, err)
	return v, m
}

// rewrite plans the latest version and rewrites its first task.
func rewrite(t *testing.T, store objstore.Store, o compact.Options, ro compact.RewriteOptions) (*compact.Output, *manifest.Manifest, error) {
	t.Helper()
	_, m := latest(t, store)
	require.NoError(t, compact.Supported(m))
	plan, err := compact.MakePlan(m, o)
	require.NoError(t, err)
	require.NotEmpty(t, plan.Tasks)
	names := make([]string, len(plan.Tasks[0].OutputRows))
	for i := range names {
		names[i] = compact.NewFileName()
	}
	out, err := compact.Rewrite(t.Context(), store, m, plan.Tasks[0], names, ro)
	return out, m, err
}

func publish(t *testing.T, store objstore.Store, m *manifest.Manifest, out *compact.Output) {
	t.Helper()
	_, err := commit.Commit(t.Context(), store, commit.Rewrite{UUID: "0b9f1b4e-7c1f-4c38-9a4e-64b1e6f5a001", ReadVersion: m.GetVersion(), Groups: []commit.Group{out.Group}}, commit.Options{
		Guard: func(context.Context, uint64) error { return nil }, Writer: "lancekeeper", WriterVersion: "1.0.0", Clock: store.Now,
	})
	require.NoError(t, err)
}

var supported = []string{
	"upserts-2.0", "upserts-2.1", "upserts-2.2", "types-2.0", "types-2.1", "types-2.2", "nested-2.0", "nested-2.1", "nested-2.2", "updates", "emptied", "evolved", "reshaped", "tags", "v1names", "detached", "stableids",
}

// TestRowsSurvive: whatever memory there is and however many fragments come out, in the same order.
func TestRowsSurvive(t *testing.T) {
	t.Parallel()
	for _, name := range supported {
		for _, target := range []uint64{1 << 20, 5} {
			for _, o := range []compact.RewriteOptions{bounded, {MemoryBytes: 1}, copying, {MemoryBytes: 1, CopyBytes: 100}} {
				t.Run(fmt.Sprintf("%s/%d/%+v", name, target, o), func(t *testing.T) {
					t.Parallel()
					store := lancetest.Load(t, name, time.Now, time.Hour)
					_, m := latest(t, store)
					plan, err := compact.MakePlan(m, compact.Options{TargetRows: target})
					require.NoError(t, err)
					if len(plan.Tasks) == 0 {
						return
					}
					before := lancetest.Latest(t, store)
					out, m, err := rewrite(t, store, compact.Options{TargetRows: target}, o)
					require.NoError(t, err)
					require.NoError(t, compact.Verify(t.Context(), store, m, out))
					require.Len(t, out.Keys, len(out.Group.New))
					publish(t, store, m, out)
					after := lancetest.Latest(t, store)
					if len(plan.Tasks) > 1 {
						// The group moves behind what is not rewritten yet.
						slices.Sort(before)
						slices.Sort(after)
					}
					require.Equal(t, before, after)
					lancetest.Whole(t, store)
				})
			}
		}
	}
}

func TestUnsupportedDatasetsAreNamed(t *testing.T) {
	t.Parallel()
	_, legacy := latest(t, lancetest.Load(t, "legacy", time.Now, time.Hour))
	_, maps := latest(t, lancetest.Load(t, "nested-2.2", time.Now, time.Hour))
	maps.DataFormat.Version = "2.0"
	for _, f := range maps.GetFragments() {
		for _, file := range f.GetFiles() {
			file.FileMinorVersion = 0
		}
	}
	for want, m := range map[string]*manifest.Manifest{"0.1": legacy, "column map": maps} {
		err := compact.Supported(m)
		require.ErrorIs(t, err, lance.ErrUnsupported, want)
		require.ErrorContains(t, err, want)
	}
}

// TestNullStructsOfTheFirstVersionAreRefused: a fragment without a struct that was added later would need some, which official
// writers refuse too.
func TestNullStructsOfTheFirstVersionAreRefused(t *testing.T) {
	t.Parallel()
	store := lancetest.Load(t, "latestruct", time.Now, time.Hour)
	before := store.Keys()
	_, _, err := rewrite(t, store, compact.Options{TargetRows: 1000}, bounded)
	require.ErrorAs(t, err, new(*compact.FragmentError))
	require.ErrorIs(t, err, lance.ErrUnsupported)
	require.ErrorContains(t, err, "null struct")
	require.ErrorContains(t, err, "column late.a")
	require.Equal(t, before, store.Keys())
}

// files are the data files of the latest version.
func files(t *testing.T, store objstore.Store) []string {
	t.Helper()
	_, m := latest(t, store)
	var keys []string
	for _, f := range m.GetFragments() {
		keys = append(keys, dataset.DataFolder+f.GetFiles()[0].GetPath())
	}
	return keys
}

// TestFaultsOfOneFragmentAreItsOwn: a data or deletion file that is damaged or missing is put down to its fragment.
func TestFaultsOfOneFragmentAreItsOwn(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, store *memstore.Store, key string){
		"cut": func(t *testing.T, store *memstore.Store, key string) {
			t.Helper()
			data, _, err := store.Get(t.Context(), key)
			require.NoError(t, err)
			require.NoError(t, store.Put(t.Context(), key, data[:len(data)/2]))
		},
		"garbage": func(t *testing.T, store *memstore.Store, key string) {
			t.Helper()
			o, err := store.Stat(t.Context(), key)
			require.NoError(t, err)
			require.NoError(t, store.Put(t.Context(), key, []byte(strings.Repeat("x", int(o.Size)))))
		},
		"missing": func(t *testing.T, store *memstore.Store, key string) {
			t.Helper()
			_, err := store.Delete(t.Context(), []string{key})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := lancetest.Load(t, "upserts-2.1", time.Now, time.Hour)
			_, m := latest(t, store)
			keys := files(t, store)
			damage(t, store, keys[1])
			before := store.Keys()
			_, _, err := rewrite(t, store, compact.Options{TargetRows: 1000}, bounded)
			var bad *compact.FragmentError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, m.GetFragments()[1].GetId(), bad.Fragment)
			require.ErrorContains(t, err, keys[1])
			require.Equal(t, before, store.Keys(), "nothing was stored")
		})
	}
}

// TestEveryDamagedByteIsFound: of what was written, between writing and committing. A byte that no reader looks at (padding, the
// file's own copy of the schema) may pass, and then the rows are right.
func TestEveryDamagedByteIsFound(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]compact.RewriteOptions{"decoded": bounded, "copied": copying} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyDamagedByteIsFound(t, o)
		})
	}
}

func everyDamagedByteIsFound(t *testing.T, o compact.RewriteOptions) {
	t.Helper()
	store := lancetest.Load(t, "upserts-2.2", time.Now, time.Hour)
	out, m, err := rewrite(t, store, compact.Options{TargetRows: 1000}, o)
	require.NoError(t, err)
	whole, _, err := store.Get(t.Context(), out.Keys[0])
	require.NoError(t, err)
	found := 0
	for i := range whole {
		damaged := slices.Clone(whole)
		damaged[i] ^= 0x10
		require.NoError(t, store.Put(t.Context(), out.Keys[0], damaged))
		if err := compact.Verify(t.Context(), store, m, out); err != nil {
			var mismatch *compact.MismatchError
			require.ErrorAs(t, err, &mismatch, "byte %d", i)
			require.Equal(t, out.Keys[0], mismatch.File)
			found++
			continue
		}
		clone := store.Clone()
		publish(t, clone, m, out)
		require.Equal(t, lancetest.Latest(t, store), lancetest.Latest(t, clone), "byte %d", i)
	}
	require.Greater(t, found, len(whole)/4)
	require.NoError(t, store.Put(t.Context(), out.Keys[0], whole[:len(whole)-1]))
	require.Error(t, compact.Verify(t.Context(), store, m, out))
}

// TestStoreFaultsAreNobodysFault: a store that does not answer condemns no fragment and no rewrite.
func TestStoreFaultsAreNobodysFault(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"get", "upload"} {
		inner := lancetest.Load(t, "upserts-2.1", time.Now, time.Hour)
		store := faultstore.New(inner)
		armed := false
		store.Hook(func(_ context.Context, op faultstore.Op) error {
			if armed && op.Kind == kind && strings.HasPrefix(op.Key, "data/") {
				return objstore.ErrThrottled
			}
			return nil
		})
		_, m := latest(t, store)
		plan, err := compact.MakePlan(m, compact.Options{TargetRows: 1000})
		require.NoError(t, err)
		armed = true
		_, err = compact.Rewrite(t.Context(), store, m, plan.Tasks[0], []string{"n.lance"}, compact.RewriteOptions{MemoryBytes: memory})
		require.ErrorIs(t, err, objstore.ErrThrottled, kind)
		require.NotErrorAs(t, err, new(*compact.FragmentError))
		armed = false
		out, err := compact.Rewrite(t.Context(), store, m, plan.Tasks[0], []string{"m.lance"}, compact.RewriteOptions{MemoryBytes: memory})
		require.NoError(t, err)
		armed = kind == "get"
		if err := compact.Verify(t.Context(), store, m, out); armed {
			require.ErrorIs(t, err, objstore.ErrThrottled)
			require.NotErrorAs(t, err, new(*compact.MismatchError))
		}
	}
}

func TestNothingAppearsWhereTimeRanOut(t *testing.T) {
	t.Parallel()
	store := lancetest.Load(t, "types-2.1", time.Now, time.Hour)
	before := store.Keys()
	_, m := latest(t, store)
	plan, err := compact.MakePlan(m, compact.Options{TargetRows: 1 << 20})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = compact.Rewrite(ctx, store, m, plan.Tasks[0], []string{"n.lance"}, compact.RewriteOptions{MemoryBytes: memory})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, store.Keys())
}

func TestNamesAreThoseOfTheFormat(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		name := compact.NewFileName()
		require.Regexp(t, `^[01]{24}[0-9a-f]{26}\.lance$`, name)
		require.False(t, seen[name])
		seen[name] = true
	}
}
