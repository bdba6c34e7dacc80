package budget_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancekeeper/internal/budget"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant that Go can't write

// until returns a context that ends then. The deadline is in the far future, so that no test races with it.
func until(t *testing.T, deadline time.Time) context.Context {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

func TestRemaining(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	require.Equal(t, budget.Unlimited, budget.Remaining(t.Context(), noon))
	require.Equal(t, time.Minute, budget.Remaining(until(t, later), later.Add(-time.Minute)))
	require.Zero(t, budget.Remaining(until(t, later), later.Add(time.Minute)))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Zero(t, budget.Remaining(ended, noon), "an ended context has no time")
}

func TestNeed(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	ctx := until(t, later)
	require.NoError(t, budget.Need(ctx, later.Add(-time.Minute), time.Minute))
	require.NoError(t, budget.Need(t.Context(), noon, math.MaxInt64))

	err := fmt.Errorf("rewrite: %w", budget.Need(ctx, later.Add(-time.Minute), 61*time.Second))
	require.ErrorIs(t, err, budget.ErrSpent)
	require.EqualError(t, err, "rewrite: the time is spent: about 1m1s needed, 1m0s left")
	var spent *budget.SpentError
	require.ErrorAs(t, err, &spent)
	require.Equal(t, &budget.SpentError{Needed: 61 * time.Second, Left: time.Minute}, spent)
	require.ErrorIs(t, budget.Need(ctx, later, 0), budget.ErrSpent, "at the deadline nothing begins")
}

func TestPredictionBeforeAnyObservation(t *testing.T) {
	t.Parallel()
	var e budget.Estimator
	require.Zero(t, e.Predict(0, 0))
	require.Equal(t, 1500*time.Millisecond, e.Predict(8<<20, 0))
	require.Equal(t, 1500*time.Millisecond, e.Predict(0, 20))
	require.Equal(t, 3*time.Second, e.Predict(8<<20, 20))
	require.Equal(t, budget.Unlimited, e.Predict(math.MaxInt64, math.MaxInt), "no overflow")
	require.Zero(t, e.Predict(-1, -1))
}

func TestPredictionFollowsWhatIsObserved(t *testing.T) {
	t.Parallel()
	var e budget.Estimator
	e.Observe(0, 0, time.Hour)
	e.Observe(1<<20, 1, 0)
	require.Equal(t, 1500*time.Millisecond, e.Predict(8<<20, 0), "what says nothing changes nothing")

	for range 50 {
		e.Observe(80<<20, 0, 100*time.Second) // ten times slower than the defaults
	}
	require.InDelta(t, 15, e.Predict(8<<20, 0).Seconds(), 1)
	for range 100 {
		e.Observe(80<<20, 0, time.Second) // ten times faster
	}
	require.InDelta(t, 0.15, e.Predict(8<<20, 0).Seconds(), 0.1)
}

func TestOneShortObservationIsNotBelieved(t *testing.T) {
	t.Parallel()
	var e budget.Estimator
	e.Observe(1<<20, 1, time.Microsecond)
	require.Greater(t, e.Predict(8<<20, 0), time.Second)
}

func TestFits(t *testing.T) {
	t.Parallel()
	var e budget.Estimator
	later := time.Now().Add(time.Hour)
	ctx := until(t, later)
	require.NoError(t, e.Fits(ctx, later.Add(-2*time.Second), 8<<20, 0))
	err := e.Fits(ctx, later.Add(-time.Second), 8<<20, 0)
	require.ErrorIs(t, err, budget.ErrSpent)
	require.EqualError(t, err, "the time is spent: about 1.5s needed, 1s left")
	require.NoError(t, e.Fits(t.Context(), noon, 1<<50, 0), "without a deadline everything fits")
}

// Whatever was observed, a prediction is never negative, and more work never takes less time.
func TestPredictionGrowsWithTheWork(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var e budget.Estimator
		size, requests := rapid.Int64Range(0, 1<<40), rapid.IntRange(0, 1<<20)
		for range rapid.IntRange(0, 20).Draw(t, "observations") {
			e.Observe(size.Draw(t, "bytes"), requests.Draw(t, "requests"), time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "took")))
		}
		b, r := size.Draw(t, "bytes"), requests.Draw(t, "requests")
		less := e.Predict(b, r)
		require.GreaterOrEqual(t, less, time.Duration(0))
		require.GreaterOrEqual(t, e.Predict(b+size.Draw(t, "more bytes"), r+requests.Draw(t, "more requests")), less)
	})
}
