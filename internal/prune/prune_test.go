package prune_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/memstore"
	"lancekeeper/internal/prune"
)

const (
	week = 7 * 24 * time.Hour
	year = 365 * 24 * time.Hour
)

// yard is a table under a clean-up, on a clock that only the test moves.
type yard struct {
	t      testing.TB
	store  *memstore.Store
	faults *faultstore.Store
	now    time.Time
	policy prune.Policy
	owed   []string // the journal, as last written
	ids    int64
}

func newYard(t testing.TB) *yard {
	t.Helper()
	y := &yard{t: t, now: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), policy: prune.Policy{Keep: 1, UnverifiedAge: week}}
	y.store = memstore.New("mem://table.lance", func() time.Time { return y.now })
	y.faults = faultstore.New(y.store)
	lancetest.Create(t, y.store)
	return y
}

// golden is a table of the official engine.
func golden(t testing.TB, name string, age time.Duration) *yard {
	t.Helper()
	y := &yard{t: t, now: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), policy: prune.Policy{Keep: 1, UnverifiedAge: week}}
	y.store = lancetest.Load(t, name, func() time.Time { return y.now }, age)
	y.faults = faultstore.New(y.store)
	return y
}

// append commits a fragment of rows that no other has, a second later.
func (y *yard) append(rows int) dataset.Version {
	y.t.Helper()
	y.now = y.now.Add(time.Second)
	ids := make([]int64, rows)
	for i := range ids {
		y.ids++
		ids[i] = y.ids
	}
	return lancetest.Append(y.t, y.store, ids...)
}

func (y *yard) delete(rows ...int) dataset.Version {
	y.t.Helper()
	y.now = y.now.Add(time.Second)
	return lancetest.Delete(y.t, y.store, rows...)
}

// put stores foreign bytes of an age.
func (y *yard) put(age time.Duration, keys ...string) {
	y.t.Helper()
	for _, key := range keys {
		require.NoError(y.t, y.store.Put(y.t.Context(), key, []byte("x")))
		y.store.SetModified(key, y.now.Add(-age))
	}
}

// lose removes objects behind the clean-up's back.
func (y *yard) lose(keys ...string) {
	y.t.Helper()
	_, err := y.store.Delete(y.t.Context(), keys)
	require.NoError(y.t, err)
}

// names are the data files that a version names, each with its folder.
func (y *yard) names(v dataset.Version) (keys []string) {
	y.t.Helper()
	m, err := dataset.ReadManifest(y.t.Context(), y.store, v)
	require.NoError(y.t, err)
	for _, f := range m.GetFragments() {
		for _, file := range f.GetFiles() {
			keys = append(keys, dataset.DataFolder+file.GetPath())
		}
	}
	return keys
}

// explained are the files that would go, and the count of those that stay unproven.
func (y *yard) explained() (files []prune.File, unproven prune.Left) {
	y.t.Helper()
	unproven, err := y.planned().Explain(y.t.Context(), y.store, nil, func(f prune.File) { files = append(files, f) })
	require.NoError(y.t, err)
	return files, unproven
}

func (y *yard) plan() (*prune.Plan, error) {
	return prune.MakePlan(y.t.Context(), prune.Input{Store: y.faults, Policy: y.policy, Now: y.now, Owed: y.owed})
}

func (y *yard) planned() *prune.Plan {
	y.t.Helper()
	p, err := y.plan()
	require.NoError(y.t, err)
	return p
}

func (y *yard) hooks() prune.Hooks {
	return prune.Hooks{
		Guard:   func(context.Context) error { return nil },
		Journal: func(_ context.Context, names []string) error { y.owed = names; return nil },
	}
}

// sweep plans and sweeps.
func (y *yard) sweep() *prune.Result {
	y.t.Helper()
	r, err := prune.Sweep(y.t.Context(), y.faults, y.planned(), y.hooks())
	require.NoError(y.t, err)
	return r
}

func (y *yard) numbers() (out []uint64) {
	y.t.Helper()
	l, err := dataset.List(y.t.Context(), y.store)
	require.NoError(y.t, err)
	for _, v := range l.Versions {
		out = append(out, v.Number)
	}
	return out
}

func (y *yard) holds(key string) bool { return slices.Contains(y.store.Keys(), key) }

// Young files go only where something proves that they are not of a commit under way.
func TestProof(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		history func(y *yard) (dead string)
		proven  bool
	}{
		"by the transaction that brought it": {func(y *yard) string {
			file := y.names(y.append(3))[0]
			y.append(2)
			y.delete(0, 1, 2)
			return file
		}, true},
		"by the first version that is listed": {func(y *yard) string {
			a := y.append(3)
			file := y.names(a)[0]
			y.append(2)
			y.delete(0, 1, 2)
			y.lose(a.Key)
			return file
		}, true},
		"by the first version behind a gap": {func(y *yard) string {
			y.append(2)
			b := y.append(3)
			y.append(1)
			file := y.names(b)[1]
			y.delete(2, 3, 4)
			y.lose(b.Key)
			return file
		}, true},
		"by a restore of what is gone": {func(y *yard) string {
			a := y.append(3)
			file := y.names(a)[0]
			b := y.delete(0, 1, 2)
			lancetest.Restore(y.t, y.store, a)
			y.append(2)
			y.delete(0, 1, 2)
			y.lose(a.Key, "_versions/18446744073709551614.manifest")
			require.Equal(y.t, b.Number, y.numbers()[0])
			return file
		}, true},
		"by nothing: a gap swallowed it": {func(y *yard) string {
			y.append(2)
			b := y.append(3)
			file := y.names(b)[1]
			c := y.delete(2, 3, 4)
			y.append(1)
			y.lose(b.Key, c.Key)
			return file
		}, false},
		"by nothing: never committed": {func(y *yard) string {
			y.append(2)
			y.append(2)
			y.put(0, "data/alone.lance")
			return "data/alone.lance"
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			dead := c.history(y)
			rows := lancetest.Latest(t, y.store)
			r := y.sweep()
			require.Equal(t, rows, lancetest.Latest(t, y.store))
			lancetest.Whole(t, y.store)
			require.Equal(t, !c.proven, y.holds(dead), "%+v", r)
			require.Len(t, y.numbers(), 1)
			if c.proven {
				return
			}
			require.Positive(t, r.Unproven.Files)
			require.Contains(t, r.Unproven.Reason, "168h0m0s")
			y.now = y.now.Add(week)
			r = y.sweep()
			require.False(t, y.holds(dead), "an old one goes without proof")
			require.Zero(t, r.Unproven.Files)
			require.Empty(t, lancetest.Dead(t, y.store))
		})
	}
}

// The age of a file that no version names is judged to the nanosecond, by the store's clock.
func TestUnverifiedAge(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.put(week-1, "data/young.lance")
	y.put(week, "data/old.lance")
	p := y.planned()
	require.Equal(t, y.now.Add(1), p.NextExpiry)
	y.sweep()
	require.True(t, y.holds("data/young.lance"))
	require.False(t, y.holds("data/old.lance"))
}

// Blob payloads beside a data file go and stay with it.
func TestSidecarsFollowTheirFile(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{0, year} {
		t.Run(age.String(), func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			dead := y.names(y.append(3))[0]
			alive := y.names(y.append(2))[1]
			y.delete(0, 1, 2)
			sidecar := func(data string, n int) string {
				return strings.TrimSuffix(data, ".lance") + "/" + fmt.Sprintf("%032b", n) + ".blob"
			}
			goes := []string{sidecar(dead, 1), sidecar(dead, 2)}
			stays := []string{sidecar(alive, 1), strings.TrimSuffix(dead, ".lance") + "/notes.txt", strings.TrimSuffix(dead, ".lance") + "/deep/" + fmt.Sprintf("%032b", 1) + ".blob"}
			alone := sidecar("data/nobody.lance", 1)
			y.put(0, slices.Concat(goes, stays, []string{alone})...)
			y.now = y.now.Add(age)
			y.sweep()
			for _, key := range goes {
				require.False(t, y.holds(key), key)
			}
			for _, key := range stays {
				require.True(t, y.holds(key), key)
			}
			require.Equal(t, age == 0, y.holds(alone))
		})
	}
}

// addIndex commits an index in place of all others.
func (y *yard) addIndex(files ...string) (id string) {
	y.t.Helper()
	y.now = y.now.Add(time.Second)
	u := uuid.New()
	for _, file := range files {
		y.put(0, "_indices/"+u.String()+"/"+file)
	}
	lancetest.Commit(y.t, y.store, func(m *manifest.Manifest) *lancepb.Transaction {
		op := &lancepb.Transaction_CreateIndex{NewIndices: []*lancepb.IndexMetadata{{Uuid: &lancepb.UUID{Uuid: u[:]}, Name: "idx", Fields: []int32{0}}}, RemovedIndices: m.Indices}
		m.Indices = op.GetNewIndices()
		return &lancepb.Transaction{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: op}}
	})
	return u.String()
}

// Index folders are known by their uuid. A build writes into its folder long before it commits: the folder is as old as its
// youngest file, and goes whole or not at all.
func TestIndexFolders(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.append(3)
	replaced := y.addIndex("page_data.lance", "sub/other.bin")
	current := y.addIndex("page_data.lance")
	running, dead := uuid.NewString(), uuid.NewString()
	y.put(20*24*time.Hour, "_indices/"+running+"/a", "_indices/"+dead+"/a", "_indices/"+dead+"/sub/b")
	y.put(2*24*time.Hour, "_indices/"+running+"/b")
	y.put(year, "_indices/notes.txt", "_indices/not-a-uuid/a", "_indices/"+strings.ToUpper(uuid.NewString())+"/a")
	y.sweep()
	left := map[string]int{}
	for _, key := range y.store.Keys() {
		if rest, ok := strings.CutPrefix(key, "_indices/"); ok {
			folder, _, _ := strings.Cut(rest, "/")
			left[folder]++
		}
	}
	require.Zero(t, left[replaced])
	require.Zero(t, left[dead])
	require.Equal(t, 1, left[current])
	require.Equal(t, 2, left[running])
	require.Len(t, left, 5, "foreign names stay")
	lancetest.Whole(t, y.store)
}

// What only a detached version names stays, young or old.
func TestDetachedVersions(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{0, year} {
		y := newYard(t)
		a := y.append(3)
		y.append(2)
		y.delete(0, 1, 2)
		m, err := dataset.ReadManifest(t.Context(), y.store, a)
		require.NoError(t, err)
		m.Version = 1<<63 | 5
		data, err := manifest.Encode(m)
		require.NoError(t, err)
		require.NoError(t, y.store.Put(t.Context(), fmt.Sprintf("_versions/d%d.manifest", m.GetVersion()), data))
		y.now = y.now.Add(age)
		y.sweep()
		require.Len(t, y.numbers(), 1)
		require.True(t, y.holds(y.names(dataset.Version{Number: m.GetVersion(), Key: fmt.Sprintf("_versions/d%d.manifest", m.GetVersion())})[0]))
	}
}

// Tags and branches hold versions of main; a branch of a branch holds the version of main at which its descent begins.
func TestReferences(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		refs map[string]string
		kept []uint64
	}{
		"none":                             {nil, nil},
		"a tag":                            {map[string]string{"tags/a.json": `{"branch":null,"version":2,"manifestSize":9}`}, []uint64{2}},
		"a tag that names main":            {map[string]string{"tags/a.json": `{"branch":"main","version":2}`}, []uint64{2}},
		"a tag of another branch":          {map[string]string{"tags/a.json": `{"branch":"dev","version":2}`}, nil},
		"a tag of a version that is gone":  {map[string]string{"tags/a.json": `{"version":99}`}, nil},
		"a branch":                         {map[string]string{"branches/dev.json": `{"parentBranch":null,"parentVersion":3}`}, []uint64{3}},
		"a branch with its descent":        {map[string]string{"branches/dev.json": `{"parentBranch":null,"parentVersion":3,"identifier":{"version_mapping":[[3,"u"]]}}`}, []uint64{3}},
		"a branch of a branch":             {map[string]string{"branches/exp.json": `{"parentBranch":"dev","parentVersion":7,"identifier":{"version_mapping":[[4,"u"],[7,"w"]]}}`}, []uint64{4}},
		"a branch of a branch, old record": {map[string]string{"branches/dev.json": `{"parentVersion":3}`, "branches/exp.json": `{"parentBranch":"dev","parentVersion":7}`}, []uint64{3}},
		"several":                          {map[string]string{"branches/a%2Fb.json": `{"parentVersion":1}`, "tags/x.json": `{"version":4}`}, []uint64{1, 4}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			for range 5 {
				y.append(1)
			}
			for key, data := range c.refs {
				require.NoError(t, y.store.Put(t.Context(), "_refs/"+key, []byte(data)))
			}
			p := y.planned()
			for _, k := range p.Kept {
				require.NotEmpty(t, k.Reason)
				require.Zero(t, k.Until)
			}
			y.sweep()
			require.Equal(t, append(c.kept, 6), y.numbers())
			lancetest.Whole(t, y.store)
			for key := range c.refs {
				require.True(t, y.holds("_refs/"+key), "references are never ours")
			}
		})
	}
	for name, record := range map[string][2]string{
		"damaged tag":     {"tags/a.json", `{"version"`},
		"tag of nothing":  {"tags/a.json", `{}`},
		"damaged branch":  {"branches/a.json", `{"parentVersion":3,"identifier":{"version_mapping":[[3]]}}`},
		"unknown kind":    {"stashes/a.json", `{}`},
		"unknown, deeper": {"tags/x/a.json", `{"version":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.append(1)
			require.NoError(t, y.store.Put(t.Context(), "_refs/"+record[0], []byte(record[1])))
			_, err := y.plan()
			require.ErrorContains(t, err, "_refs/"+record[0])
		})
	}
}

// What narrows the policy further.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(p *prune.Policy)
		kept   []uint64
	}{
		"before a version":                 {func(p *prune.Policy) { p.Before = 3 }, []uint64{3, 4, 5, 6}},
		"before a version, and the newest": {func(p *prune.Policy) { p.Before, p.Keep = 5, 3 }, []uint64{4, 5, 6}},
		"before the first":                 {func(p *prune.Policy) { p.Before = 1 }, []uint64{1, 2, 3, 4, 5, 6}},
		"before one to come":               {func(p *prune.Policy) { p.Before = 99 }, []uint64{6}},
		"pinned":                           {func(p *prune.Policy) { p.Pinned = []uint64{2, 4, 99} }, []uint64{2, 4, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			for range 5 {
				y.append(1)
			}
			c.change(&y.policy)
			y.sweep()
			require.Equal(t, c.kept, y.numbers())
			lancetest.Whole(t, y.store)
		})
	}
}

// Where it is asked, a tagged version that would expire is an error before anything goes; one that stays anyway is none.
func TestErrorIfTagged(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	for range 5 {
		y.append(1)
	}
	lancetest.Tag(t, y.store, "mine", 3)
	y.policy.FailIfTagged = true
	before := y.store.Keys()
	_, err := y.plan()
	var tagged *prune.TaggedError
	require.ErrorAs(t, err, &tagged)
	require.Equal(t, uint64(3), tagged.Version)
	require.ErrorContains(t, err, "tag mine")
	require.Equal(t, before, y.store.Keys())

	for _, harmless := range []func(){
		func() { y.policy.Keep = 4 }, func() { y.policy.Keep, y.policy.Pinned = 1, []uint64{3} }, func() { y.policy.Pinned, y.policy.Before = nil, 3 },
	} {
		harmless()
		_, err = y.plan()
		require.NoError(t, err)
	}
}

// Foreign things stay, and are counted by folder with the reason.
func TestForeignThings(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.append(1)
	y.put(year, "notes.txt", "videos/a/b.mp4", "videos/c.mp4", "_fri/1/map", "_deletions/1-2.bin", "_deletions/1-2-3.txt", "_transactions/1-x.txn", "tree/dev/data/x.lance", "_versions/sub/1.manifest")
	got := map[string]string{}
	files := map[string]int64{}
	for _, l := range y.planned().Left {
		got[l.Path], files[l.Path] = l.Reason, l.Files
		require.Equal(t, l.Files, l.Bytes)
	}
	require.Equal(t, map[string]string{
		"notes.txt": "not a file of the format", "videos/": "not a folder of the format", "_fri/": "of the format, and not understood well enough to be pruned",
		"_deletions/": "names that are not of the format", "_transactions/": "names that are not of the format",
		"_versions/sub/": "names that are not of the format", "tree/": "branches: each is a dataset of its own",
	}, got)
	require.Equal(t, int64(2), files["videos/"])
	require.Equal(t, int64(2), files["_deletions/"])
	before := len(y.store.Keys())
	r := y.sweep()
	require.Len(t, y.store.Keys(), before-int(sum(r.Files)))
	want := prune.CountsByKind()
	want[prune.KindManifest], want[prune.KindTransaction] = 1, 1
	require.Equal(t, want, r.Files)
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Deletes that fail are counted and never as removed; files of a version whose manifest stays wait in the journal.
func TestFailedDeletes(t *testing.T) {
	t.Parallel()
	t.Run("of a manifest", func(t *testing.T) {
		t.Parallel()
		y := newYard(t)
		stuck := y.append(3)
		y.append(2)
		y.delete(0, 1, 2)
		y.put(year, "data/old.lance")
		files := y.names(stuck)
		y.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Kind == "delete" && op.Key == stuck.Key && op.When == faultstore.Before {
				return objstore.KeyError{Key: op.Key, Code: "AccessDenied", Err: objstore.ErrDenied}
			}
			return nil
		})
		total := bytesOf(t, y.store)
		r := y.sweep()
		require.Equal(t, []uint64{stuck.Number, 4}, y.numbers())
		lancetest.Whole(t, y.store)
		require.Equal(t, 2, r.Versions)
		require.Equal(t, 1, r.Remaining)
		require.Len(t, r.Failed, 1)
		require.Equal(t, stuck.Key, r.Failed[0].Key)
		require.Equal(t, total-bytesOf(t, y.store), r.Bytes)
		require.Subset(t, y.owed, files)
		require.True(t, y.holds("data/old.lance"), "what is old waits too: the version may name it")

		y.faults = faultstore.New(y.store)
		r = y.sweep()
		require.Empty(t, y.owed)
		require.Equal(t, 1, r.Versions)
		require.Empty(t, lancetest.Dead(t, y.store))
	})
	t.Run("of a file", func(t *testing.T) {
		t.Parallel()
		y := newYard(t)
		stuck := y.names(y.append(3))[0]
		y.append(2)
		y.delete(0, 1, 2)
		y.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Kind == "delete" && op.Key == stuck && op.When == faultstore.Before {
				return objstore.KeyError{Key: op.Key, Code: "SlowDown", Err: objstore.ErrThrottled}
			}
			return nil
		})
		total := bytesOf(t, y.store)
		r := y.sweep()
		require.Len(t, y.numbers(), 1)
		require.Equal(t, total-bytesOf(t, y.store), r.Bytes)
		require.Equal(t, []string{stuck}, y.owed)
		require.Len(t, r.Failed, 1)
		require.Equal(t, int64(1), r.Unproven.Files)

		y.faults = faultstore.New(y.store)
		files, _ := y.explained()
		require.Len(t, files, 1)
		require.Equal(t, stuck, files[0].Key)
		require.Contains(t, files[0].Reason(), "an earlier pass")
		y.sweep()
		require.Empty(t, y.owed)
		require.False(t, y.holds(stuck))
	})
	t.Run("as a whole", func(t *testing.T) {
		t.Parallel()
		y := newYard(t)
		y.append(3)
		y.append(2)
		y.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Kind == "delete" && op.Mutation == 2 && op.When == faultstore.Before {
				return objstore.ErrThrottled
			}
			return nil
		})
		r, err := prune.Sweep(t.Context(), y.faults, y.planned(), y.hooks())
		require.ErrorIs(t, err, objstore.ErrThrottled)
		require.Zero(t, r.Versions, "one went, and nobody knows which: none is claimed")
		require.Equal(t, 2, r.Remaining)
		y.faults = faultstore.New(y.store)
		y.sweep()
		require.Empty(t, lancetest.Dead(t, y.store))
	})
}

func bytesOf(t testing.TB, store objstore.Store) (n int64) {
	t.Helper()
	for o, err := range store.List(t.Context(), "", "") {
		require.NoError(t, err)
		n += o.Size
	}
	return n
}

// While a plan is swept, others restore, tag and branch: nothing that the new things name goes.
func TestRevived(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		revive  func(y *yard, v dataset.Version)
		changed bool
	}{
		"restored": {func(y *yard, v dataset.Version) { lancetest.Restore(y.t, y.store, v) }, false},
		"tagged":   {func(y *yard, v dataset.Version) { lancetest.Tag(y.t, y.store, "late", v.Number) }, true},
		"branched": {func(y *yard, v dataset.Version) {
			require.NoError(y.t, y.store.Put(y.t.Context(), "_refs/branches/dev.json", fmt.Appendf(nil, `{"parentVersion":%d}`, v.Number)))
		}, true},
	} {
		for _, age := range []time.Duration{0, year} {
			for when := range 4 {
				t.Run(fmt.Sprintf("%s/%s/%d", name, age, when), func(t *testing.T) {
					t.Parallel()
					y := newYard(t)
					v := y.append(3)
					y.append(2)
					y.delete(0, 1, 2)
					y.now = y.now.Add(age)
					p := y.planned()
					asked := 0
					revive := func() {
						if slices.Contains(y.numbers(), v.Number) {
							c.revive(y, v)
						}
					}
					hooks := y.hooks()
					hooks.Guard = func(context.Context) error {
						if asked == when {
							revive()
						}
						asked++
						return nil
					}
					_, err := prune.Sweep(t.Context(), y.faults, p, hooks)
					if c.changed && err != nil {
						require.ErrorIs(t, err, prune.ErrChanged)
						require.Contains(t, y.numbers(), v.Number)
					} else {
						require.NoError(t, err)
					}
					lancetest.Whole(t, y.store)
					rows := lancetest.Latest(t, y.store)
					y.sweep()
					lancetest.Whole(t, y.store)
					require.Equal(t, rows, lancetest.Latest(t, y.store))
					require.Empty(t, lancetest.Dead(t, y.store))
				})
			}
		}
	}
}

// paged lists page by page, as a store does: something may come in between.
type paged struct {
	objstore.Store
	between func(next string)
}

func (s paged) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		for {
			more := false
			for o, err := range s.Store.List(ctx, prefix, after) {
				if prefix == "" {
					s.between(o.Key)
				}
				more = true
				after = o.Key
				if !yield(o, err) {
					return
				}
				break //nolint:staticcheck // a page of one object
			}
			if !more {
				return
			}
		}
	}
}

// A listing of many objects takes long. A version that comes meanwhile is listed, but its deletion file lies in a folder that
// had been listed before: that is no loss.
func TestVersionComesWhileNamesAreListed(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.append(3)
	y.append(2)
	y.delete(0)
	y.append(1)
	came := false
	store := paged{y.store, func(next string) {
		if strings.HasPrefix(next, "_transactions/") && !came {
			came = true
			y.delete(1)
		}
	}}
	p, err := prune.MakePlan(t.Context(), prune.Input{Store: store, Policy: y.policy, Now: y.now})
	require.NoError(t, err)
	require.True(t, came)
	require.Equal(t, uint64(6), p.Latest)
	_, err = prune.Sweep(t.Context(), y.store, p, y.hooks())
	require.NoError(t, err)
	lancetest.Whole(t, y.store)
	require.Len(t, lancetest.Latest(t, y.store), 4)
}

// Another clean-up may be at work: versions and files vanish under the plan.
func TestAnotherCleanUpIsFaster(t *testing.T) {
	t.Parallel()
	for _, lost := range [][]int{{0}, {1, 2}, {0, 1, 2, 3}} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			versions := []dataset.Version{y.append(3), y.append(2), y.delete(0, 1, 2), y.append(1)}
			y.append(4)
			p := y.planned()
			for _, i := range lost {
				y.lose(versions[i].Key)
			}
			_, err := prune.Sweep(t.Context(), y.faults, p, y.hooks())
			require.NoError(t, err)
			lancetest.Whole(t, y.store)
			require.Len(t, y.numbers(), 1)
		})
	}
	t.Run("of what is retained", func(t *testing.T) {
		t.Parallel()
		y := newYard(t)
		v := y.append(3)
		y.append(2)
		y.policy.Keep = 3
		lose := func() { y.lose(v.Key) }
		y.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Kind == "get" && op.Key == v.Key && op.When == faultstore.Before {
				lose()
			}
			return nil
		})
		_, err := y.plan()
		require.ErrorIs(t, err, prune.ErrChanged)
	})
}

// A dataset that was dropped and made anew under its name has nothing to do with the plan.
func TestDatasetMadeAnew(t *testing.T) {
	t.Parallel()
	for name, appends := range map[string]int{"fewer versions": 1, "as many": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			for range 3 {
				y.append(2)
			}
			p := y.planned()
			y.lose(y.store.Keys()...)
			lancetest.Create(t, y.store)
			for range appends {
				y.append(1)
			}
			before := y.store.Keys()
			_, err := prune.Sweep(t.Context(), y.faults, p, y.hooks())
			require.ErrorIs(t, err, prune.ErrChanged)
			require.Equal(t, before, y.store.Keys())
		})
	}
}

// A guard that refuses stops everything at once.
func TestGuard(t *testing.T) {
	t.Parallel()
	whole := golden(t, "upserts-2.1", 0)
	asked := 0
	hooks := whole.hooks()
	hooks.Guard = func(context.Context) error { asked++; return nil }
	_, err := prune.Sweep(t.Context(), whole.faults, whole.planned(), hooks)
	require.NoError(t, err)
	require.Greater(t, asked, 2)
	lost := errors.New("lease lost")
	for n := range asked {
		y := golden(t, "upserts-2.1", 0)
		hooks, asked, at := y.hooks(), 0, 0
		hooks.Guard = func(context.Context) error {
			if asked == n {
				at = y.faults.Mutations()
				return lost
			}
			asked++
			return nil
		}
		r, err := prune.Sweep(t.Context(), y.faults, y.planned(), hooks)
		require.ErrorIs(t, err, lost)
		require.Equal(t, at, y.faults.Mutations(), "nothing goes after it")
		require.Equal(t, r.Remaining, len(y.numbers())-1)
		lancetest.Whole(t, y.store)
	}
}

// However slowly objects are let go, the lease and the dataset are looked at for each second's worth, and for no less than a hundred.
func TestBatchesFollowTheRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[int]int{0: 1, 1: 10, 250: 4, 5000: 1} {
		y := newYard(t)
		y.append(1)
		for i := range 1000 {
			y.put(8*24*time.Hour, fmt.Sprintf("data/orphan-%d.lance", i))
		}
		hooks, asked := y.hooks(), 0
		hooks.Guard = func(context.Context) error { asked++; return nil }
		hooks.Rate = rate
		plan := y.planned()
		plan.Expired = nil // the old files are what this is about
		_, err := prune.Sweep(t.Context(), y.faults, plan, hooks)
		require.NoError(t, err)
		require.Equal(t, want, asked, "%d a second", rate)
	}
}

// Each file that goes is named with the version that has expired, or with its age.
func TestExplainSaysWhy(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	first := y.append(4)
	data := y.names(first)[0]
	y.delete(0)
	y.delete(0, 1, 2) // of the fragment nothing is left
	y.append(1)
	y.put(time.Hour, "data/young.lance")
	y.put(8*24*time.Hour, "data/old.lance", "_versions/.tmp1", manifest.Key(1, manifest.V2)+"-"+uuid.NewString())
	files, unproven := y.explained()
	require.Equal(t, int64(1), unproven.Files)
	reasons := map[string]string{}
	for _, f := range files {
		require.Equal(t, prune.KindOf(dataset.Classify(f.Key)), f.Kind)
		reasons[f.Key] = f.Reason()
	}
	require.Equal(t, "version 2 has expired", reasons[first.Key])
	require.Equal(t, "no version that stays names it, and it is older than 168h0m0s", reasons["data/old.lance"])
	require.Equal(t, "unfinished, and it is older than 168h0m0s", reasons["_versions/.tmp1"])
	require.NotContains(t, reasons, "data/young.lance")
	require.Equal(t, "version 2 brought it, and only versions that have expired name it", reasons[data])
	said := slices.Collect(maps.Values(reasons))
	require.Contains(t, said, "staged for a commit that is over, and it is older than 168h0m0s")
	require.Contains(t, said, "version 3 brought it, and only versions that have expired name it", "its deletion file")
}

// What Explain names is what Sweep then removes.
func TestExplainNamesWhatSweepRemoves(t *testing.T) {
	t.Parallel()
	for _, name := range lancetest.Names(t) {
		for _, age := range []time.Duration{time.Minute, year} {
			for _, keep := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, age, keep), func(t *testing.T) {
					t.Parallel()
					y := golden(t, name, age)
					y.policy.Keep = keep
					y.put(time.Hour, "data/young.lance", "_versions/.tmp1")
					y.put(year, "data/old.lance", "_versions/.tmp2", "notes.txt")
					before := y.store.Keys()
					explained, unproven := y.explained()
					require.Equal(t, before, y.store.Keys())
					r := y.sweep()
					gone := map[string]struct{}{}
					for _, key := range before {
						gone[key] = struct{}{}
					}
					for _, key := range y.store.Keys() {
						delete(gone, key)
					}
					var bytes int64
					named := map[string]struct{}{}
					for _, f := range explained {
						require.NotEmpty(t, f.Reason())
						named[f.Key] = struct{}{}
						bytes += f.Size
					}
					require.Equal(t, slices.Sorted(maps.Keys(gone)), slices.Sorted(maps.Keys(named)))
					require.Len(t, named, len(explained))
					require.Equal(t, r.Bytes, bytes)
					require.Equal(t, r.Unproven, unproven)
					for _, f := range explained {
						r.Files[f.Kind]--
					}
					for kind, n := range r.Files {
						require.Zero(t, n, kind)
					}
				})
			}
		}
	}
}

// Readers of stores that do not list in order begin at the hinted version and probe upwards: a gap above it would hide the
// latest one.
func TestHintIsRaised(t *testing.T) {
	t.Parallel()
	hint := manifest.Folder + manifest.HintName
	for name, c := range map[string]struct {
		unordered    bool
		before, want string
	}{
		"lags":             {true, `{"version":2}`, `{"version":5}`},
		"at the last gone": {true, `{"version":4}`, `{"version":5}`},
		"up to date":       {true, `{"version":5}`, `{"version":5}`},
		"ahead":            {true, `{"version":9}`, `{"version":9}`},
		"damaged":          {true, `?`, `{"version":5}`},
		"none":             {true, "", ""},
		"plays no part":    {false, `{"version":2}`, `{"version":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			for range 4 {
				y.append(1)
			}
			if c.unordered {
				y.store.Unordered()
			}
			if c.before != "" {
				require.NoError(t, y.store.Put(t.Context(), hint, []byte(c.before)))
			}
			y.faults.Hook(func(ctx context.Context, op faultstore.Op) error {
				if op.Kind == "delete" && op.When == faultstore.Before && c.want != "" {
					data, _, err := y.store.Get(ctx, hint)
					require.NoError(t, err)
					require.Equal(t, c.want, string(data), "before anything goes")
				}
				return nil
			})
			y.sweep()
			require.Equal(t, []uint64{5}, y.numbers())
			require.Equal(t, c.want != "", y.holds(hint))
		})
	}
}
