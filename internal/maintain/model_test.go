package maintain_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/objstore/faultstore"
)

// draw lets helpers for tests report to rapid, which shows the sequence that failed.
type draw struct {
	testing.TB
	r *rapid.T
}

func (d draw) Helper()                   {}
func (d draw) Errorf(f string, a ...any) { d.r.Errorf(f, a...) }
func (d draw) FailNow()                  { d.r.FailNow() }
func (d draw) Fatalf(f string, a ...any) { d.r.Fatalf(f, a...) }
func (d draw) Logf(f string, a ...any)   { d.r.Logf(f, a...) }

// model is what a table must hold, beside the table.
type model struct {
	*bench
	rows       map[uint64][]string  // of each version that was committed by a writer
	superseded map[uint64]time.Time // when the version behind it was stored; kept apart from the store
	tags       map[string]uint64
	latest     uint64
	began      time.Time // of the last pass
}

// committed notes a version and what it must hold.
func (m *model) committed(v dataset.Version, rows []string) {
	m.superseded[m.latest] = v.Modified
	m.latest = v.Number
	m.rows[v.Number] = rows
}

// current are the rows that the newest version must hold.
func (m *model) current() []string { return m.rows[m.latest] }

func (m *model) add(t *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(t, "rows")
	v := m.append(n)
	rows := slices.Clone(m.current())
	for id := m.next - int64(n) + 1; id <= m.next; id++ {
		rows = append(rows, lancetest.Row(m.t, id))
	}
	m.committed(v, rows)
}

func (m *model) remove(t *rapid.T) {
	m.order()
	var places []int
	var rows []string
	for i, row := range m.current() {
		if rapid.IntRange(0, 2).Draw(t, "deleted") == 0 {
			places = append(places, i)
			continue
		}
		rows = append(rows, row)
	}
	if places == nil {
		return
	}
	m.committed(lancetest.Delete(m.t, m.store, places...), rows)
}

func (m *model) restore(t *rapid.T) {
	listed := m.versions()
	v := listed[rapid.IntRange(0, len(listed)-1).Draw(t, "which")]
	rows := m.held(v.Number)
	m.committed(lancetest.Restore(m.t, m.store, v), rows)
}

// held are the rows that a listed version must hold. One of the keeper's own holds what the writer's before it held.
func (m *model) held(number uint64) []string {
	for n := number; ; n-- {
		if rows, ok := m.rows[n]; ok {
			return rows
		}
	}
}

func (m *model) tag(t *rapid.T) {
	listed := m.numbers()
	name := fmt.Sprintf("tag%d", rapid.IntRange(1, 3).Draw(t, "name"))
	m.tags[name] = rapid.SampledFrom(listed).Draw(t, "version")
	lancetest.Tag(m.t, m.store, name, m.tags[name])
}

func (m *model) untag(t *rapid.T) {
	if len(m.tags) == 0 {
		t.Skip("no tags")
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(m.tags))).Draw(t, "name")
	delete(m.tags, name)
	_, err := m.store.Delete(m.t.Context(), []string{lancetest.TagKey(name)})
	require.NoError(m.t, err)
}

func (m *model) wait(t *rapid.T) {
	m.clock.add(rapid.SampledFrom([]time.Duration{time.Minute, 50 * time.Minute, 26 * time.Hour, 9 * day}).Draw(t, "time"))
}

func (m *model) policy(t *rapid.T) {
	s := &m.settings
	s.Keep = rapid.IntRange(1, 4).Draw(t, "keep")
	s.Grace = rapid.SampledFrom([]time.Duration{0, time.Hour, day}).Draw(t, "grace")
	s.TargetRows = rapid.SampledFrom([]uint64{3, 8, 1 << 20}).Draw(t, "target rows")
	s.DeletionsOver = rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "deletions over")
	s.Compact, s.Prune = rapid.Bool().Draw(t, "compact"), rapid.Bool().Draw(t, "prune")
}

// due are versions that a pass about to run must leave if it takes so long.
func (m *model) due(takes time.Duration) (must []uint64) {
	listed := m.numbers()
	m.began = m.clock.now()
	now := m.began.Add(takes)
	for i, n := range listed {
		tagged := slices.Contains(slices.Collect(maps.Values(m.tags)), n)
		newest := i >= len(listed)-1
		young := false
		if at, ok := m.superseded[n]; ok {
			young = now.Before(at.Add(m.settings.Grace))
		}
		// A version that was the latest until a moment ago is superseded by the pass itself.
		if tagged || newest && m.settings.Grace > 0 || young || !m.settings.Prune {
			must = append(must, n)
		}
	}
	return must
}

func (m *model) good(*rapid.T) {
	must := m.due(0)
	r := m.bench.good()
	m.after(must, r)
	require.True(m.t, r.Drained || !m.settings.Prune)
	var open []string
	for _, a := range m.entry().Attempts {
		require.Greater(m.t, a.Target, m.latest, "settled by a version that is there")
		open = append(open, a.Files...)
	}
	if m.settings.Prune {
		require.Empty(m.t, m.entry().Sweep)
		require.Subset(m.t, open, lancetest.Dead(m.t, m.store))
	}
	if !m.settings.Compact || !m.settings.Prune {
		return
	}
	// What was rewritten moves behind what was not, where it may be small beside new neighbours: a few passes end it.
	for tries := 0; ; tries++ {
		before := m.store.Keys()
		r := m.bench.good()
		m.after(must, r)
		if r.Compaction.Tasks == 0 {
			require.Equal(m.t, before, m.store.Keys(), "the next pass finds nothing to do")
			return
		}
		require.Less(m.t, tries, 4, "it does not come to an end")
	}
}

// rehearse has a dry run name what goes, and a pass remove just that.
func (m *model) rehearse(*rapid.T) {
	defer func(s maintain.Settings) { m.settings = s }(m.settings)
	m.settings.Compact, m.settings.Prune, m.settings.DryRun = false, true, true
	before := m.store.Keys()
	plan := m.bench.good().Pruning.Plan
	require.Equal(m.t, before, m.store.Keys())
	m.settings.DryRun = false
	must := m.due(0)
	m.after(must, m.bench.good())
	want := m.store.Keys()
	for _, f := range plan.Files {
		require.NotEmpty(m.t, f.Reason)
		want = append(want, f.Path)
	}
	require.ElementsMatch(m.t, before, want)
}

// kill ends a pass before or after a write; the keeper comes back later.
func (m *model) kill(t *rapid.T) {
	must := m.due(0)
	n := rapid.IntRange(1, 40).Draw(t, "mutation")
	m.faults.KillAt(n, faultstore.When(rapid.IntRange(0, 1).Draw(t, "side")))
	r := m.pass()
	m.restart()
	m.after(must, r)
	m.clock.add(20 * time.Minute)
}

// beside has another writer commit in the middle of a pass.
func (m *model) beside(t *rapid.T) {
	must := m.due(0)
	at := rapid.IntRange(1, 25).Draw(t, "mutation")
	do := rapid.SampledFrom([]func(*rapid.T){m.add, m.remove}).Draw(t, "writer")
	done := false
	m.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Mutation == at && op.When == faultstore.Before && !done {
			done = true
			do(t)
		}
		return nil
	})
	r := m.pass()
	m.restart()
	m.after(must, r)
}

// overtaken has another keeper make a whole pass in the middle of one, whose lease has ended meanwhile.
func (m *model) overtaken(t *rapid.T) {
	must := m.due(10 * time.Minute)
	at := rapid.IntRange(1, 25).Draw(t, "mutation")
	other := &bench{t: m.t, store: m.store, settings: m.settings, clock: m.clock, owner: "other", book: m.book, locks: newLockTable()}
	other.faults, other.locks = faultstore.New(other.store), m.locks
	done := false
	overtake := func() {
		done = true
		m.clock.add(10 * time.Minute)
		r := other.pass()
		require.Equal(m.t, maintain.OK, r.Outcome, r.Reason)
	}
	m.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Mutation == at && op.When == faultstore.Before && !done {
			overtake()
		}
		return nil
	})
	r := m.pass()
	m.restart()
	m.after(must, r)
	m.clock.add(20 * time.Minute)
}

// after holds whatever became of a pass.
func (m *model) after(must []uint64, r maintain.Result) {
	listed := m.numbers()
	require.Subset(m.t, listed, must, "%+v", r.Pruning)
	for _, v := range m.versions() {
		require.ElementsMatch(m.t, m.held(v.Number), lancetest.Rows(m.t, m.store, v), "version %d", v.Number)
	}
	latest := listed[len(listed)-1]
	if latest > m.latest { // the keeper's own
		for n := m.latest; n < latest; n++ {
			if _, ok := m.superseded[n]; !ok {
				m.superseded[n] = m.began // or later
			}
		}
		m.rows[latest] = m.current()
		m.latest = latest
	}
}

// order takes in how a rewrite ordered the rows: groups move behind what is not rewritten, and nothing else may.
func (m *model) order() {
	rows := lancetest.Latest(m.t, m.store)
	require.ElementsMatch(m.t, m.current(), rows)
	m.rows[m.latest] = rows
}

// invariants hold after every step.
func (m *model) invariants(*rapid.T) {
	lancetest.Whole(m.t, m.store)
	require.ElementsMatch(m.t, m.current(), lancetest.Latest(m.t, m.store))
	for name, version := range m.tags {
		require.Contains(m.t, m.numbers(), version, name)
	}
}

// TestModel: whatever writers, keepers, kills and time do one after the other and at once, the latest version holds its rows,
// every listed one reads whole and as it was, tags hold, and nothing inside the grace is gone.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := newTable(draw{t, r})
		if rapid.Bool().Draw(r, "unordered") {
			b.store.Unordered()
			require.NoError(b.t, b.store.Put(t.Context(), manifest.Folder+manifest.HintName, manifest.EncodeHint(1)))
		}
		m := &model{bench: b, rows: map[uint64][]string{1: nil}, superseded: map[uint64]time.Time{}, tags: map[string]uint64{}, latest: 1}
		r.Repeat(map[string]func(*rapid.T){
			"append": m.add, "delete": m.remove, "restore": m.restore, "tag": m.tag, "untag": m.untag, "wait": m.wait,
			"policy": m.policy, "pass": m.good, "rehearse": m.rehearse, "kill": m.kill, "beside": m.beside, "overtaken": m.overtaken, "": m.invariants,
		})
	})
}
