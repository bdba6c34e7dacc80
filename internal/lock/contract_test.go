package lock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lock"
)

const dataset = "s3://bucket/path/t.lance"

// locker is what both implementations promise.
type locker interface {
	Acquire(ctx context.Context, dataset string, until time.Time) (*lock.Lease, error)
	Break(ctx context.Context, dataset, token string) error
}

// testLocker runs what holds for every locker. open returns a locker of the given owner on the same, at first empty, place.
func testLocker(t *testing.T, open func(t *testing.T, owner string) locker) {
	t.Helper()
	until := time.Now().Add(5 * time.Minute)

	t.Run("held, named, released, taken again", func(t *testing.T) {
		a, b := open(t, "a"), open(t, "b")
		lease, err := a.Acquire(t.Context(), dataset, until)
		require.NoError(t, err)
		require.NoError(t, lease.Check(t.Context()))
		require.Equal(t, "a", lease.Owner())
		require.Equal(t, dataset, lease.Dataset())
		require.WithinDuration(t, until, lease.Expires(), time.Second)

		_, err = b.Acquire(t.Context(), dataset, until)
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "a", held.Owner)
		require.Equal(t, dataset, held.Dataset)
		require.Equal(t, lease.Generation(), held.Generation)
		require.WithinDuration(t, until, held.Until, time.Second)
		require.WithinDuration(t, time.Now(), held.Since, time.Minute)

		require.NoError(t, lease.Release(t.Context()))
		require.ErrorIs(t, lease.Check(t.Context()), lock.ErrLost)
		require.NoError(t, lease.Release(t.Context()), "a second release changes nothing")

		next, err := b.Acquire(t.Context(), dataset, until)
		require.NoError(t, err)
		require.Equal(t, lease.Generation()+1, next.Generation(), "the fence survives the release")
		require.NoError(t, next.Release(t.Context()))
	})

	t.Run("datasets do not share a lock", func(t *testing.T) {
		a := open(t, "a")
		one, err := a.Acquire(t.Context(), "s3://bucket/one.lance", until)
		require.NoError(t, err)
		two, err := a.Acquire(t.Context(), "s3://bucket/two.lance", until)
		require.NoError(t, err)
		require.NoError(t, one.Release(t.Context()))
		require.NoError(t, two.Release(t.Context()))
	})

	t.Run("of many at once exactly one gets it", func(t *testing.T) {
		for range 5 {
			var won atomic.Int32
			var leases sync.Map
			var group sync.WaitGroup
			for range 16 {
				k := open(t, "racer")
				group.Go(func() {
					lease, err := k.Acquire(t.Context(), "s3://bucket/race.lance", until)
					if err == nil {
						won.Add(1)
						leases.Store(lease, true)
					}
				})
			}
			group.Wait()
			require.Equal(t, int32(1), won.Load())
			leases.Range(func(lease, _ any) bool {
				held, ok := lease.(*lock.Lease)
				require.True(t, ok)
				require.NoError(t, held.Release(t.Context()))
				return true
			})
		}
	})

	t.Run("what has no deadline is held until it is released", func(t *testing.T) {
		lease, err := open(t, "a").Acquire(t.Context(), "s3://bucket/long.lance", time.Time{})
		require.NoError(t, err)
		require.NoError(t, lease.Check(t.Context()))
		require.NoError(t, lease.Release(t.Context()))
	})
}

func TestZeroLeaseProvesNothing(t *testing.T) {
	t.Parallel()
	var lease lock.Lease
	require.ErrorIs(t, lease.Check(t.Context()), lock.ErrLost)
	require.ErrorIs(t, lease.Release(t.Context()), lock.ErrLost)
}
