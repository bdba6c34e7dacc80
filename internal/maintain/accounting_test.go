package maintain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
)

// fail has every read of an object denied: opening fails, listing works.
func (b *bench) fail() maintain.Result {
	b.t.Helper()
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "get" {
			return fmt.Errorf("get %s: %w", op.Key, objstore.ErrDenied)
		}
		return nil
	})
	r := b.pass()
	b.restart()
	require.Equal(b.t, maintain.Failed, r.Outcome)
	return r
}

// endEarly runs a pass whose time is over before its first write to the dataset.
func (b *bench) endEarly() maintain.Result {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "ledger begin" && op.When == faultstore.After {
			cancel()
		}
		return nil
	})
	r := b.keeper().Run(ctx, []maintain.Target{b.target()}).Results[0]
	b.restart()
	require.Equal(b.t, maintain.Partial, r.Outcome, r.Reason)
	return r
}

// held runs a pass while another holds the lock.
func (b *bench) held() maintain.Result {
	b.t.Helper()
	keeper := b.keeper()
	lease, err := keeper.Locker.Acquire(b.t.Context(), "table", time.Time{})
	require.NoError(b.t, err)
	r := b.pass()
	require.NoError(b.t, lease.Release(b.t.Context()))
	require.Equal(b.t, maintain.Skipped, r.Outcome)
	return r
}

// Failures add up; any success resets them; what ran out of time, or found the lock held, changes neither.
func TestFailuresAddUp(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1)
	type count struct{ row, all int }
	expect := func(r maintain.Result, want count) {
		t.Helper()
		require.Equal(t, want, count{r.ConsecutiveFailures, r.Failures})
		e := b.entry()
		require.Equal(t, want, count{e.ConsecutiveFailures, e.Failures})
	}
	expect(b.fail(), count{1, 1})
	expect(b.fail(), count{2, 2})
	expect(b.endEarly(), count{2, 2})
	expect(b.held(), count{2, 2})
	expect(b.fail(), count{3, 3})
	expect(b.good(), count{0, 3})
	expect(b.endEarly(), count{0, 3})
	expect(b.fail(), count{1, 4})
	expect(b.good(), count{0, 4})
	var outcomes []string
	for _, o := range slices.Backward(b.entry().Outcomes) {
		outcomes = append(outcomes, o.Outcome)
	}
	require.Equal(t, []string{"failed", "failed", "partial", "failed", "ok", "partial", "failed", "ok"}, outcomes)
}

// The gauge to alert on, in each outcome: before any success the whole backlog; then the versions since the last success,
// growing in every way to fail, until the next one.
func TestUnreclaimedVersions(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1, 1)
	require.Equal(t, uint64(4), *b.fail().UnreclaimedVersions)
	require.Equal(t, uint64(4), *b.endEarly().UnreclaimedVersions)
	require.Zero(t, *b.good().UnreclaimedVersions)
	b.append(1)
	require.Equal(t, uint64(1), *b.fail().UnreclaimedVersions)
	b.append(1)
	b.append(1)
	require.Equal(t, uint64(3), *b.endEarly().UnreclaimedVersions)
	require.Nil(t, b.held().UnreclaimedVersions)
	b.append(1)
	require.Equal(t, uint64(4), *b.fail().UnreclaimedVersions)
	last := b.entry().Outcomes[0]
	require.Equal(t, uint64(4), *last.Unreclaimed)
	require.Equal(t, "denied", last.Class)
	r := b.good()
	require.Zero(t, *r.UnreclaimedVersions)
	require.Contains(t, b.metrics.String(), `"UnreclaimedVersions":0,`)
}

// A pass that only rewrites, and one that only prunes, are successes of what they were told to do.
func TestHalfAPass(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1, 1)
	b.settings.Prune = false
	r := b.good()
	require.Equal(t, 1, r.Compaction.Tasks)
	require.Zero(t, r.Pruning.VersionsRemoved)
	require.Len(t, b.numbers(), 5)
	b.settings.Prune, b.settings.Compact = true, false
	b.append(1)
	r = b.good()
	require.Zero(t, r.Compaction.Tasks)
	require.Len(t, b.numbers(), 1)
}

func TestSecondsSinceSuccess(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1)
	require.InDelta(t, 0, *b.fail().SecondsSinceSuccess, 30, "before any success: since the first pass")
	b.clock.add(time.Hour)
	require.InDelta(t, 3600, *b.fail().SecondsSinceSuccess, 30)
	require.InDelta(t, 0, *b.good().SecondsSinceSuccess, 30)
	b.clock.add(2 * time.Hour)
	require.InDelta(t, 7200, *b.endEarly().SecondsSinceSuccess, 30)
	b.clock.add(time.Hour)
	require.InDelta(t, 10800, *b.fail().SecondsSinceSuccess, 30)
	require.InDelta(t, 0, *b.good().SecondsSinceSuccess, 30)
}

// A failed pass says at warn how many failed in a row and how much is waiting.
func TestWarning(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1, 1)
	b.fail()
	b.logs.Reset()
	b.fail()
	var found bool
	for line := range strings.SplitSeq(strings.TrimSpace(b.logs.String()), "\n") {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		if record["msg"] != "pass failed" {
			continue
		}
		found = true
		require.Equal(t, "WARN", record["level"])
		require.InDelta(t, 2, record["consecutiveFailures"], 0)
		require.InDelta(t, 4, record["unreclaimedVersions"], 0)
		require.Equal(t, b.store.URI(), record["table"])
		require.Contains(t, record["err"], "access denied")
	}
	require.True(t, found, b.logs.String())
	b.logs.Reset()
	b.good()
	require.NotContains(t, b.logs.String(), `"level":"WARN"`)
}

// A success that could not be written down is none: not in the ledger, not in the gauges.
func TestSuccessThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1)
	b.settings.Compact = false
	b.good()
	b.append(1)
	b.append(1)
	b.clock.add(time.Hour)
	b.metrics.Reset()
	b.once(func(op faultstore.Op) bool {
		return op.Kind == "ledger save" && op.When == faultstore.Before && len(b.numbers()) == 1
	}, func() error { return errors.New("the table does not answer") })
	b.settings.UnverifiedAge = time.Minute // so that no journal is written
	r := b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Contains(t, r.Reason, "the table does not answer")
	require.Equal(t, 1, r.ConsecutiveFailures)
	require.Equal(t, uint64(2), *r.UnreclaimedVersions)
	require.InDelta(t, 3600, *r.SecondsSinceSuccess, 30)
	require.Contains(t, b.metrics.String(), `"UnreclaimedVersions":2,`)
	require.NotContains(t, b.metrics.String(), `"UnreclaimedVersions":0`)

	b.restart()
	b.append(1)
	r = b.fail()
	require.Equal(t, uint64(3), *r.UnreclaimedVersions)
	require.Equal(t, 2, r.ConsecutiveFailures, "the pass before left no record: it counts as died")
}

// A ledger that does not answer at all: nothing is done without it, and the failure is loud.
func TestNothingWithoutALedger(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1)
	before := contents(t, b.store)
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if strings.HasPrefix(op.Kind, "ledger") {
			return errors.New("the table does not answer")
		}
		return nil
	})
	r := b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Equal(t, before, contents(t, b.store))
	require.Contains(t, b.metrics.String(), `"MaintenanceFailures":1`)
	require.NotContains(t, b.metrics.String(), `"UnreclaimedVersions":0`)
	b.restart()
	b.good()
}

// A panic is the failure of its pass, and the next dataset is maintained.
func TestPanic(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"now", "list", "get", "upload", "put", "putIfAbsent", "delete"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b, next := newTable(t, 1, 1, 1), newTable(t, 1, 1)
			rows := lancetest.Latest(t, b.store)
			b.settings.Keep = 2
			met := b.once(func(op faultstore.Op) bool { return op.Kind == kind }, func() error { panic("poison") })
			doc := b.keeper().Run(t.Context(), []maintain.Target{b.target(), {
				Key: "next", URI: "mem://next.lance", Settings: b.settings,
				Open: func(context.Context) (objstore.Store, error) { return next.store, nil },
			}})
			require.True(t, *met)
			require.Equal(t, maintain.Failed, doc.Outcome)
			require.False(t, doc.Drained)
			r := doc.Results[0]
			require.Equal(t, maintain.Failed, r.Outcome)
			require.Contains(t, r.Reason, "poison")
			require.Contains(t, r.Reason, "panic in step "+r.Error.Step)
			require.Equal(t, 1, r.ConsecutiveFailures)
			require.Equal(t, 1, b.entry().Failures)
			require.Nil(t, b.entry().Started)
			require.Equal(t, maintain.OK, doc.Results[1].Outcome)
			require.Equal(t, 2, strings.Count(b.metrics.String(), "\n"))
			require.Contains(t, b.logs.String(), "accounting_test.go", "the log says where")
			if kind != "now" && kind != "list" && kind != "get" {
				require.Equal(t, uint64(4), *r.UnreclaimedVersions, "what was seen before it")
			}

			b.restart()
			b.good() // at once: the lease was released
			require.Equal(t, rows, lancetest.Latest(t, b.store))
			require.Empty(t, lancetest.Dead(t, b.store))
			require.Zero(t, b.entry().ConsecutiveFailures)
		})
	}
}

// A store that hangs and does not heed the context is given up on in time: recorded, reported once, the step named. When it
// answers after all, what the pass still does comes to nothing.
func TestHangingStore(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"open", "now", "list", "get", "upload", "put", "putIfAbsent", "delete"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { hang(t, kind) })
		})
	}
}

func hang(t *testing.T, kind string) {
	t.Helper()
	b, next := newTable(t, 1, 1, 1), newTable(t, 1, 1)
	rows := lancetest.Latest(t, b.store)
	answer := make(chan struct{})
	answering := sync.OnceFunc(func() { close(answer) })
	defer answering()
	hung := false
	target := b.target()
	target.Open = func(context.Context) (objstore.Store, error) {
		if kind == "open" {
			<-answer
		}
		return b.faults, nil
	}
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == kind && !hung {
			hung = true
			<-answer
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	doc := b.keeper().Run(ctx, []maintain.Target{target, {
		Key: "next", URI: "mem://next.lance", Settings: b.settings,
		Open: func(context.Context) (objstore.Store, error) { return next.store, nil },
	}})
	require.NoError(t, ctx.Err(), "each target has its share of the time")
	r := doc.Results[0]
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Contains(t, r.Reason, "step "+r.Error.Step+" did not end in time")
	require.Equal(t, 1, r.ConsecutiveFailures)
	require.Equal(t, maintain.OK, doc.Results[1].Outcome)
	require.Equal(t, 1, strings.Count(b.metrics.String(), `"Dataset":"mem://table.lance"`))
	e := b.entry()
	require.Equal(t, 1, e.Failures)
	require.Nil(t, e.Started)

	answering()
	synctest.Wait()
	require.Equal(t, 1, strings.Count(b.metrics.String(), `"Dataset":"mem://table.lance"`), "reported once")
	require.Equal(t, e.Outcomes, b.entry().Outcomes)
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	lancetest.Whole(t, b.store)

	b.restart()
	b.clock.add(time.Hour)
	b.good()
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	require.Empty(t, lancetest.Dead(t, b.store))
}

// A pass that died counts as failed with the next one; what killed it twice is set aside.
func TestDied(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1, 1)
	rows := lancetest.Latest(t, b.store)
	for range 2 {
		b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Kind == "upload" {
				b.faults.KillAt(op.Mutation+1, faultstore.Before)
			}
			return nil
		})
		b.pass()
		require.True(t, b.faults.Killed())
		require.NotNil(t, b.entry().Started, "begun, and never recorded")
		b.restart()
		b.clock.add(time.Hour)
	}
	r := b.good()
	require.Equal(t, 2, r.Failures)
	require.Equal(t, 3, r.Compaction.SkippedFragments)
	require.Contains(t, r.Compaction.Skipped[0].Reason, "2 died")
	require.Zero(t, r.Compaction.Tasks)
	require.Len(t, b.numbers(), 1, "everything else is done meanwhile")
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	died := 0
	for _, o := range b.entry().Outcomes {
		if o.Class == ledger.ClassDied {
			died++
		}
	}
	require.Equal(t, 2, died)

	b.clock.add(25 * time.Hour)
	r = b.good()
	require.Equal(t, 1, r.Compaction.Tasks, "tried once more after a day")
	require.Equal(t, rows, lancetest.Latest(t, b.store))
	require.Empty(t, lancetest.Dead(t, b.store))
}

// Another pass at once goes on where the one before stopped, and its result is the sum of all.
func TestUntilDrained(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1, 1)
	b.settings.UntilDrained = true
	stuck := b.version(2).Key
	tries := 0
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "delete" && op.Key == stuck && op.When == faultstore.Before {
			if tries++; tries == 1 {
				return objstore.KeyError{Key: op.Key, Code: "SlowDown", Err: objstore.ErrThrottled}
			}
		}
		return nil
	})
	r := b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Equal(t, 1, tries, "a failure is not tried again at once")
	require.Equal(t, "throttled", r.Error.Class)
	require.Equal(t, 1, r.Pruning.FailedDeletes)
	require.Equal(t, 1, r.Remaining.Versions)
	require.False(t, r.Drained)
	r = b.good()
	require.True(t, r.Drained)
	require.Equal(t, 1, r.Pruning.VersionsRemoved)
	require.Empty(t, lancetest.Dead(t, b.store))
}

// Compaction has its share of the time, and pruning always its own: a rewrite that never ends is partial, everything else is done,
// and the metrics are out before the time is over. Asked to go on until nothing is left, the keeper begins again at once, and the
// result is the sum.
func TestShareOfTheTime(t *testing.T) {
	t.Parallel()
	for _, untilDrained := range []bool{false, true} {
		t.Run(fmt.Sprintf("until drained %t", untilDrained), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newTable(t, 1, 1, 1)
				rows := lancetest.Latest(t, b.store)
				b.settings.UntilDrained, b.deadline = untilDrained, time.Minute
				began, slow := b.clock.now(), false
				b.faults.Hook(func(ctx context.Context, op faultstore.Op) error {
					if op.Kind != "delete" && strings.HasPrefix(op.Key, dataset.DataFolder) && op.When == faultstore.Before && !slow {
						select {
						case <-time.After(13 * time.Second):
						case <-ctx.Done():
							slow = true
							return ctx.Err()
						}
					}
					return nil
				})
				r := b.pass()
				require.True(t, slow)
				require.Less(t, b.clock.now().Sub(began), time.Minute)
				require.Equal(t, rows, lancetest.Latest(t, b.store))
				require.Empty(t, lancetest.Dead(t, b.store))
				require.Len(t, b.numbers(), 1)
				if !untilDrained {
					require.Equal(t, maintain.Partial, r.Outcome)
					require.Equal(t, maintain.OK, r.Pruning.Outcome)
					require.Equal(t, 3, r.Pruning.VersionsRemoved)
					require.Equal(t, 3, r.After.Fragments)
					require.Equal(t, uint64(1), *r.UnreclaimedVersions, "before any success: what is listed now")
					return
				}
				require.Equal(t, maintain.OK, r.Outcome, r.Reason)
				require.True(t, r.Drained)
				require.Equal(t, 4, r.Pruning.VersionsRemoved)
				require.Equal(t, 1, r.Compaction.Tasks)
				require.Equal(t, 3, r.Before.Fragments)
				require.Equal(t, 1, r.After.Fragments)
				require.Equal(t, int64(4), r.Pruning.FilesRemoved["manifest"])
				require.Equal(t, 2, strings.Count(b.metrics.String(), "\n"), "each pass has its metrics")
			})
		})
	}
}

// Whoever was left untended the longest comes first, so that a run that is too short for all gets to all in time.
func TestLongestUntendedFirst(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1)
	others := map[string]*bench{}
	target := func(key string) maintain.Target {
		if others[key] == nil {
			others[key] = newTable(t, 1, 1)
		}
		return maintain.Target{Key: key, URI: "mem://" + key, Settings: b.settings, Open: others[key].open}
	}
	run := func(keys ...string) (order []string) {
		var targets []maintain.Target
		for _, key := range keys {
			targets = append(targets, target(key))
		}
		doc := b.keeper().Run(t.Context(), targets)
		require.Equal(t, maintain.OK, doc.Outcome)
		for _, r := range doc.Results {
			order = append(order, strings.TrimPrefix(r.Dataset, "mem://"))
		}
		b.clock.add(time.Minute)
		return order
	}
	require.Equal(t, []string{"b", "a"}, run("b", "a"), "never seen: as given")
	run("b")
	require.Equal(t, []string{"new", "a", "b"}, run("b", "a", "new"))
	run("a")
	require.Equal(t, []string{"b", "new", "a"}, run("a", "b", "new"), "of the same second as given")
}

// hiding is a bucket with versioning.
type hiding struct{ objstore.Store }

func (hiding) Hides() bool { return true }

// B7: in a bucket with versioning deletes only add markers. Nothing of that is called reclaimed.
func TestB7VersionedBucket(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1)
	doc := b.keeper().Run(t.Context(), []maintain.Target{{Key: "table", URI: "mem://table", Settings: b.settings, Open: func(context.Context) (objstore.Store, error) {
		return hiding{b.faults}, nil
	}}})
	r := doc.Results[0]
	require.Equal(t, maintain.OK, r.Outcome, r.Reason)
	require.Positive(t, r.Pruning.VersionsRemoved)
	require.Positive(t, r.Pruning.BytesHidden)
	require.Zero(t, r.Pruning.BytesReclaimed)
	require.Contains(t, b.metrics.String(), `"BytesReclaimed":0`)
	require.Equal(t, "versioning", r.Findings[0].Kind)
}

// The table of the locks does not answer, or refuses: that is a failure, as far as it can be told, and nothing is done.
func TestLockTableRefuses(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1)
	b.good()
	b.append(1)
	b.fail()
	before := contents(t, b.store)
	b.locks.fault = fmt.Errorf("update: %w", objstore.ErrDenied)
	r := b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Equal(t, "denied", r.Error.Class)
	require.Equal(t, "lock", r.Error.Step)
	require.Equal(t, 2, r.ConsecutiveFailures, "known to this process alone: without the lock nothing is recorded")
	require.Equal(t, 1, b.entry().ConsecutiveFailures)
	require.Equal(t, uint64(1), *r.UnreclaimedVersions, "the last known value")
	require.Equal(t, before, contents(t, b.store))
	b.locks.fault = nil
	b.good()
}

// A dry run says what a pass would do, and writes nothing: no object, no lock, no ledger, no metrics.
func TestDryRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, "upserts-2.1", time.Minute)
	b.settings.DryRun = true
	before := contents(t, b.store)
	r := b.good()
	require.Equal(t, before, contents(t, b.store))
	require.Empty(t, b.metrics.String())
	require.Empty(t, b.locks.items)
	require.Empty(t, b.book.entries)
	require.Zero(t, b.faults.Mutations())
	require.Len(t, r.Compaction.Plan, 1)
	require.NotEmpty(t, r.Pruning.Plan.Files)
	require.Len(t, r.Pruning.Plan.Versions, len(b.numbers())-1)

	k := b.keeper()
	k.MaxNamed = 6
	other := b.target()
	other.Key = "other"
	bounded := k.Run(t.Context(), []maintain.Target{b.target(), other}).Results[0]
	require.Equal(t, r.Pruning.Plan.Files[:3], bounded.Pruning.Plan.Files)
	require.Equal(t, r.Pruning.Plan.Versions[:3], bounded.Pruning.Plan.Versions)
	require.Len(t, r.Pruning.Plan.Files, 3+bounded.Pruning.Plan.OmittedFiles)
	require.Len(t, r.Pruning.Plan.Versions, 3+bounded.Pruning.Plan.OmittedVersions)
	require.Equal(t, r.Pruning.Plan.Sums, bounded.Pruning.Plan.Sums)
	require.Equal(t, r.Remaining, bounded.Remaining)

	b.settings.DryRun, b.settings.Compact = false, false
	done := b.good()
	removed := maps.Clone(done.Pruning.FilesRemoved)
	for _, s := range r.Pruning.Plan.Sums {
		removed[s.Kind] -= s.Files
	}
	for kind, n := range removed {
		require.Zero(t, n, kind)
	}
	require.Equal(t, done.Pruning.BytesReclaimed, r.Remaining.Bytes)
	require.Equal(t, len(r.Pruning.Plan.Versions), done.Pruning.VersionsRemoved)
	require.Len(t, before, len(b.store.Keys())+len(r.Pruning.Plan.Files))
}

// Where there is no deadline and nobody has stopped the pass, a slow ledger is waited for.
func TestSlowRecordWithoutADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTable(t, 1, 1)
		b.faults.Hook(func(ctx context.Context, op faultstore.Op) error {
			if op.Kind != "ledger save" || op.When != faultstore.Before {
				return nil
			}
			select {
			case <-time.After(20 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		b.good()
		require.NotNil(t, b.entry().LastSuccess)
	})
}

// Where the ledger does not answer there is no order to go by: every target has its pass, which says what is wrong.
func TestOrderWithoutALedger(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1)
	keeper := b.keeper()
	keeper.Ledger = deaf{keeper.Ledger}
	targets := make([]maintain.Target, 4)
	for i := range targets {
		targets[i] = b.target()
		targets[i].Key = fmt.Sprintf("key %d", i)
		targets[i].URI = fmt.Sprintf("mem://%d", i)
	}
	doc := keeper.Run(t.Context(), targets)
	require.Len(t, doc.Results, len(targets))
	for i, r := range doc.Results {
		require.Equal(t, targets[i].URI, r.Dataset)
	}
}

// deaf is a ledger that knows only the first dataset and can't be read beyond it.
type deaf struct{ maintain.Ledger }

func (d deaf) Load(ctx context.Context, dataset string) (ledger.Entry, bool, error) {
	if dataset == "key 0" {
		return d.Ledger.Load(ctx, dataset) //nolint:wrapcheck // a wrapper adds nothing
	}
	return ledger.Entry{}, false, errors.New("no answer")
}

// A pass whose time goes by while the store answers nothing has failed, whichever step it is in; one whose requests are slow and
// answered is unfinished.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hangs func(op faultstore.Op) bool
		step  string
	}{
		"everything": {func(op faultstore.Op) bool { return !strings.HasPrefix(op.Kind, "ledger") }, "open"},
		"data":       {func(op faultstore.Op) bool { return op.Kind == "get" && strings.HasPrefix(op.Key, dataset.DataFolder) }, "compact"},
		"write":      {func(op faultstore.Op) bool { return op.Kind == "upload" }, "compact"},
		"commit":     {func(op faultstore.Op) bool { return op.Kind == "putIfAbsent" && isManifest(op.Key) }, "compact"},
		"delete":     {func(op faultstore.Op) bool { return op.Kind == "delete" }, "prune"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newTable(t, 1, 1, 1)
				rows := lancetest.Latest(t, b.store)
				b.deadline = 20 * time.Second
				b.faults.Hook(func(ctx context.Context, op faultstore.Op) error {
					if !c.hangs(op) {
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				})
				r := b.pass()
				require.Equal(t, maintain.Failed, r.Outcome, r.Reason)
				require.Equal(t, c.step, r.Error.Step)
				require.Contains(t, r.Error.Message, "did not answer for")
				require.Contains(t, r.Reason, "did not answer for")
				require.Equal(t, 1, r.ConsecutiveFailures)
				require.Equal(t, 1, b.entry().ConsecutiveFailures)
				require.Nil(t, b.entry().Started, "recorded as ended")
				require.Equal(t, rows, lancetest.Latest(t, b.store))
				b.restart()
				b.good()
				require.Equal(t, rows, lancetest.Latest(t, b.store))
			})
		})
	}
}
