package maintain_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/objstore/faultstore"
)

// resting is a table of which a pass has just kept what is younger than the grace: 30 versions, a tagged one among them.
func resting(t *testing.T) *bench {
	t.Helper()
	b := newTable(t, 1)
	b.settings.Grace = time.Hour
	for range 30 {
		b.append(1)
	}
	lancetest.Tag(t, b.store, "v3", 3)
	b.settings.Compact = false
	r := b.good()
	require.Greater(t, r.Requests.List, int64(2), "all is listed")
	return b
}

func idle(r maintain.Result) bool {
	for _, f := range r.Findings {
		if f.Kind == "idle" {
			return true
		}
	}
	return false
}

// H8: where nothing is new and nothing can have expired, a pass costs a handful of requests.
func TestH8IdlePass(t *testing.T) {
	t.Parallel()
	b := resting(t)
	full := b.entry()
	b.metrics.Reset()
	ledgerWrites := 0
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.When == faultstore.Before && (op.Kind == "ledger begin" || op.Kind == "ledger save") {
			ledgerWrites++
		}
		return nil
	})
	b.settings.Compact = true
	b.settings.TargetRows = 1 // nothing to compact
	before := contents(t, b.store)
	require.False(t, idle(b.good()), "other settings")
	ledgerWrites = 0
	r := b.good()
	require.True(t, idle(r))
	require.Equal(t, maintain.Requests{List: 2, Get: 1, BytesRead: r.Requests.BytesRead}, r.Requests, "versions, references, the latest manifest")
	require.Equal(t, 2, ledgerWrites, "begun and ended")
	require.Equal(t, before, contents(t, b.store))
	require.True(t, r.Drained)
	require.Equal(t, &maintain.Remaining{}, r.Remaining)
	require.Zero(t, *r.UnreclaimedVersions)
	require.Equal(t, 32, *r.Before.Manifests)
	require.Equal(t, 32, *r.After.Manifests)
	require.Contains(t, b.metrics.String(), `"ManifestsOnStorage":32,`)
	require.Equal(t, full.Manifests, b.entry().Manifests)
	require.True(t, idle(b.good()), "time and again")
}

// Whatever may have given a pass something to do ends the rest, and what is due goes.
func TestRestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(b *bench)
		removed int // versions
	}{
		"a version": {change: func(b *bench) { b.append(1) }},
		"a tag":     {change: func(b *bench) { lancetest.Tag(b.t, b.store, "v4", 4) }},
		"a tag less": {change: func(b *bench) {
			_, err := b.store.Delete(b.t.Context(), []string{lancetest.TagKey("v3")})
			require.NoError(b.t, err)
		}},
		"the policy":     {change: func(b *bench) { b.settings.Grace = 0 }, removed: 30},
		"the grace":      {change: func(b *bench) { b.clock.add(time.Hour) }, removed: 30},
		"a clock behind": {change: func(b *bench) { b.clock.add(-time.Hour) }},
		"made anew": {change: func(b *bench) {
			lancetest.Rewrite(b.t, b.store, b.latest(), func(m *manifest.Manifest) { m.Config = map[string]string{"a": "b"} })
		}},
		"a journal": {change: func(b *bench) {
			e := b.entry()
			e.Sweep = []string{"data/owed.lance"}
			require.NoError(b.t, b.book.Save(b.t.Context(), e))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := resting(t)
			require.True(t, idle(b.good()))
			c.change(b)
			r := b.good()
			require.False(t, idle(r))
			require.Equal(t, c.removed, r.Pruning.VersionsRemoved)
			require.Contains(t, b.numbers(), uint64(3), "tagged, or young")
		})
	}
}

// Files of commits that never happened go though nothing is committed any more: all is listed once a day.
func TestRestIsADayAtMost(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1)
	b.good()
	require.True(t, idle(b.good()))
	b.put(8*24*time.Hour, "data/orphan.lance")
	b.clock.add(23 * time.Hour)
	require.True(t, idle(b.good()))
	b.clock.add(time.Hour)
	r := b.good()
	require.False(t, idle(r))
	require.Equal(t, int64(1), r.Pruning.FilesRemoved["data"])
	require.True(t, idle(b.good()))

	b.settings.UnverifiedAge = time.Hour
	require.False(t, idle(b.good()))
	b.put(time.Minute, "data/another.lance")
	b.clock.add(59 * time.Minute)
	require.True(t, idle(b.good()))
	b.clock.add(time.Minute)
	require.Equal(t, int64(1), b.good().Pruning.FilesRemoved["data"], "no later than the age asks")
}

// What is not well is looked at with every pass, so that its counts do not come to nothing.
func TestNoRestWithBadVersions(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1, 1)
	require.NoError(t, b.store.Put(t.Context(), b.version(2).Key, []byte("damaged")))
	for range 2 {
		r := b.good()
		require.False(t, idle(r))
		require.Contains(t, b.metrics.String(), `"Unsupported":1}`)
		b.metrics.Reset()
	}
}

// A pass that fails or is cut short leaves nothing that the next one may go by.
func TestNoRestAfterFailure(t *testing.T) {
	t.Parallel()
	b := newTable(t, 1, 1, 1)
	b.faults.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Kind == "delete" && op.When == faultstore.Before {
			return context.DeadlineExceeded
		}
		return nil
	})
	require.Equal(t, maintain.Partial, b.pass().Outcome)
	b.restart()
	require.Nil(t, b.entry().Idle)
	r := b.good()
	require.False(t, idle(r))
	require.Equal(t, []uint64{b.latest().Number}, b.numbers())
	require.Equal(t, dataset.ManifestAttached, dataset.Classify(b.latest().Key))
}
