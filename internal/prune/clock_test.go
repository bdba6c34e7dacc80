package prune_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/prune"
)

// TestTheClockMayBeTruncated: S3 tells its time in whole seconds, and lists times within them. What was superseded in the second that
// has just begun has been superseded. A time far ahead, as a copied file may have it, moves no clock.
func TestTheClockMayBeTruncated(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for ahead, expired := range map[time.Duration]int{0: 1, 400 * time.Millisecond: 1, time.Second: 1, 10 * time.Second: 0, time.Hour: 0} {
		store := lancetest.Load(t, "cleared", func() time.Time { return now }, 0)
		plan, err := prune.MakePlan(t.Context(), prune.Input{Store: store, Now: now, Policy: prune.Policy{Keep: 1, UnverifiedAge: time.Hour}})
		require.NoError(t, err)
		all := len(plan.Expired)
		keys := store.Keys()
		for _, key := range keys {
			store.SetModified(key, now.Add(ahead))
		}
		plan, err = prune.MakePlan(t.Context(), prune.Input{Store: store, Now: now, Policy: prune.Policy{Keep: 1, UnverifiedAge: time.Hour}})
		require.NoError(t, err)
		require.Len(t, plan.Expired, expired*all, "%s", ahead)
	}
}
