package maintain_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifeststore"
	"lancekeeper/internal/lance/manifeststore/manifeststoretest"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/lock"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/memstore"
)

// bench is a dataset with everything that passes over it need.
type bench struct {
	t        testing.TB
	store    *memstore.Store
	faults   *faultstore.Store // in front of store
	locks    *lockTable
	book     *book
	settings maintain.Settings
	metrics  bytes.Buffer
	logs     bytes.Buffer
	clock    *clock
	owner    string
	deadline time.Duration // of a run; 0: none
	next     int64         // the last id that append gave to a row

	tune  func(table map[string]string) (maintain.Settings, []string, error)
	table *manifeststoretest.Table // of an external manifest store; nil: there is none
}

// clock can be set forward.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// newBench loads a golden table of the given age, to be maintained without grace.
func newBench(t testing.TB, name string, age time.Duration) *bench {
	t.Helper()
	c := &clock{}
	return benchOf(t, c, lancetest.Load(t, name, c.now, age))
}

// newTable makes a table of our own with a fragment for each number of rows.
func newTable(t testing.TB, fragments ...int) *bench {
	t.Helper()
	c := &clock{}
	b := benchOf(t, c, memstore.New("mem://table.lance", c.now))
	lancetest.Create(t, b.store)
	for _, rows := range fragments {
		b.append(rows)
	}
	return b
}

func benchOf(t testing.TB, c *clock, store *memstore.Store) *bench {
	t.Helper()
	b := &bench{t: t, store: store, settings: settings(), clock: c, owner: "test", book: newBook(), locks: newLockTable()}
	b.restart()
	return b
}

// restart is a new process: it knows of no kill, and has no hook.
func (b *bench) restart() {
	b.faults = faultstore.New(b.store)
	b.locks.faults = b.faults
	if b.table != nil {
		b.table.Faults = b.faults
	}
}

// open is the dataset as a process sees it.
func (b *bench) open(context.Context) (objstore.Store, error) {
	if b.table == nil {
		return b.faults, nil
	}
	return manifeststore.New(b.faults, b.table, b.store.URI())
}

// append commits a fragment of rows that no other has.
func (b *bench) append(rows int) dataset.Version {
	b.t.Helper()
	ids := make([]int64, rows)
	for i := range ids {
		b.next++
		ids[i] = b.next
	}
	return lancetest.Append(b.t, b.store, ids...)
}

func settings() maintain.Settings {
	return maintain.Settings{Keep: 1, UnverifiedAge: 7 * 24 * time.Hour, TargetRows: 1 << 20, Compact: true, Prune: true, MemoryBytes: 64 << 20}
}

// mortal is a ledger that takes part in the faults of a store: what a killed process would not have written is not written.
type mortal struct {
	*book
	faults *faultstore.Store
}

func (m mortal) Begin(ctx context.Context, dataset string, generation uint64, now time.Time, owner string) (e ledger.Entry, err error) {
	err = m.faults.Mutation(ctx, "ledger begin", dataset, func() error {
		e, err = m.book.Begin(ctx, dataset, generation, now, owner)
		return err
	})
	return e, err
}

func (m mortal) Save(ctx context.Context, e ledger.Entry) error {
	return m.faults.Mutation(ctx, "ledger save", e.Dataset, func() error { return m.book.Save(ctx, e) })
}

func (b *bench) keeper() *maintain.Keeper {
	return &maintain.Keeper{
		Locker: lock.NewDynamo(b.locks, lock.DynamoOptions{Table: "locks", Owner: b.owner, Now: b.clock.now}), Ledger: mortal{b.book, b.faults},
		Metrics: &b.metrics, Log: slog.New(slog.NewJSONHandler(&b.logs, nil)), Now: b.clock.now, Version: "1.2.3", Margin: 3 * time.Second,
	}
}

func (b *bench) target() maintain.Target {
	return maintain.Target{Key: "table", URI: b.store.URI(), Settings: b.settings, Tune: b.tune, Open: b.open}
}

// pass runs one pass.
func (b *bench) pass() maintain.Result {
	b.t.Helper()
	ctx := b.t.Context()
	if b.deadline != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.deadline)
		defer cancel()
	}
	doc := b.keeper().Run(ctx, []maintain.Target{b.target()})
	require.Len(b.t, doc.Results, 1)
	require.Equal(b.t, doc.Results[0].Outcome, doc.Outcome)
	return doc.Results[0]
}

// good runs a pass that must succeed.
func (b *bench) good() maintain.Result {
	b.t.Helper()
	r := b.pass()
	require.Equal(b.t, maintain.OK, r.Outcome, "%s: %+v\n%s", r.Reason, r.Error, b.logs.String())
	require.Nil(b.t, r.Error)
	return r
}

func (b *bench) entry() ledger.Entry {
	b.t.Helper()
	e, _, err := b.book.Load(b.t.Context(), "table")
	require.NoError(b.t, err)
	return e
}

func (b *bench) versions() []dataset.Version {
	b.t.Helper()
	l, err := dataset.List(b.t.Context(), b.store)
	require.NoError(b.t, err)
	return l.Versions
}

// compacted are the golden tables that a pass makes one fragment of; the others say why not.
var compacted = []string{"upserts-2.0", "upserts-2.1", "upserts-2.2", "types-2.0", "types-2.1", "types-2.2", "nested-2.0", "nested-2.1", "nested-2.2", "updates", "emptied", "cleared", "evolved", "reshaped", "tags", "v1names", "detached", "stableids"}

func readable(name string) bool {
	return name != "legacy"
}

func TestPassKeepsTheRowsAndRemovesTheRest(t *testing.T) {
	t.Parallel()
	for _, name := range lancetest.Names(t) {
		for _, age := range []time.Duration{time.Minute, 30 * 24 * time.Hour} {
			t.Run(fmt.Sprintf("%s/%s", name, age), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, name, age)
				var before []string
				if readable(name) {
					before = lancetest.Latest(t, b.store)
				}
				versions := len(b.versions())
				r := b.good()
				lancetest.Whole(t, b.store)
				if readable(name) {
					require.Equal(t, before, lancetest.Latest(t, b.store))
				}
				if slices.Contains(compacted, name) {
					require.LessOrEqual(t, r.After.Fragments, 1)
					require.Zero(t, r.Compaction.SkippedFragments)
				} else {
					require.NotZero(t, r.Compaction.SkippedFragments, "left alone without a word")
				}
				require.Empty(t, lancetest.Dead(t, b.store))
				require.Equal(t, versions+int(r.After.Version-r.Before.Version)-len(b.versions()), r.Pruning.VersionsRemoved)
				require.Equal(t, len(b.store.Keys()), int(*r.After.Files))
				require.Zero(t, *r.UnreclaimedVersions)
				require.Empty(t, b.entry().Attempts)
				require.Empty(t, b.entry().Sweep)

				again := b.good()
				require.Equal(t, r.After.Version, again.After.Version, "an idle pass commits nothing")
				require.Zero(t, again.Pruning.VersionsRemoved)
				require.Zero(t, again.Pruning.BytesReclaimed)
			})
		}
	}
}

// TestKilledAnywhere stops the pass before and after each single write or delete, of the store and of the ledger: every listed
// version reads whole, the latest has the same rows, and the next pass ends with the files of an unbroken one.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		age       time.Duration
		unordered bool
	}{
		{"upserts-2.2", time.Minute, false},
		{"upserts-2.0", 30 * 24 * time.Hour, true},
		{"tags", time.Minute, true},
		{"indexed", time.Minute, false},
		{"emptied", 30 * 24 * time.Hour, false},
	} {
		t.Run(fmt.Sprintf("%s/%s/unordered=%t", c.name, c.age, c.unordered), func(t *testing.T) {
			t.Parallel()
			killAnywhere(t, c.name, c.age, c.unordered)
		})
	}
}

func killAnywhere(t *testing.T, name string, age time.Duration, unordered bool) {
	t.Helper()
	load := func() *bench {
		b := newBench(t, name, age)
		if unordered {
			b.store.Unordered()
		}
		return b
	}
	whole := load()
	rows := lancetest.Latest(t, whole.store)
	whole.good()
	shape := kinds(whole.store)
	mutations := whole.faults.Mutations()
	require.Greater(t, mutations, 10)
	for n := 1; n <= mutations; n++ {
		for when, side := range map[faultstore.When]string{faultstore.Before: "before", faultstore.After: "after"} {
			b := load()
			b.faults.KillAt(n, when)
			b.pass()
			require.True(t, b.faults.Killed(), "%s mutation %d of %d", side, n, mutations)
			lancetest.Whole(t, b.store)
			require.Equal(t, rows, lancetest.Latest(t, b.store), "%s mutation %d", side, n)

			b.restart()
			b.clock.add(time.Hour) // so that the lease has ended
			b.good()
			lancetest.Whole(t, b.store)
			require.Equal(t, rows, lancetest.Latest(t, b.store), "%s mutation %d, next pass", side, n)
			require.Empty(t, lancetest.Dead(t, b.store), "%s mutation %d, next pass: %+v", side, n, b.entry())
			require.Equal(t, shape, kinds(b.store), "%s mutation %d, next pass", side, n)
			require.Empty(t, b.entry().Attempts, "%s mutation %d", side, n)
			require.Empty(t, b.entry().Sweep, "%s mutation %d", side, n)
		}
	}
}

// kinds counts the objects of a store by class: names differ from pass to pass, since new files have random ones.
func kinds(store *memstore.Store) map[dataset.Class]int {
	out := map[dataset.Class]int{}
	for _, key := range store.Keys() {
		out[dataset.Classify(key)]++
	}
	return out
}
