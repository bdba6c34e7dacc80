package ledger_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/ledger"
)

const dataset = "s3://bucket/path/t.lance"

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant that Go can't write

// book is what both implementations promise.
type book interface {
	Begin(ctx context.Context, dataset string, generation uint64, now time.Time, owner string) (ledger.Entry, error)
	Save(ctx context.Context, e ledger.Entry) error
	Load(ctx context.Context, dataset string) (ledger.Entry, bool, error)
	Skip(ctx context.Context, dataset string, now time.Time, holder string) error
	List(ctx context.Context) ([]string, error)
}

// full is an entry that uses every member.
func full(e ledger.Entry) ledger.Entry {
	n := uint64(3)
	e = e.Measured(noon, 100, 4, 96).Failed(ledger.Outcome{At: noon, Reason: "no", Class: "other", Version: 100, Unreclaimed: &n, DurationMs: 5})
	e = e.Succeeded(ledger.Outcome{At: noon.Add(time.Hour), Version: 101, Unreclaimed: new(uint64), DurationMs: 6, Drained: true})
	e = e.WithAttempt(ledger.Attempt{
		TransactionUUID: "u", ReadVersion: 100, Target: 101, Files: []string{"data/a.lance"}, Fragments: []uint64{1, 2, 3, 9}, At: noon,
	})
	e = e.WithAttempt(ledger.Attempt{TransactionUUID: "v", ReadVersion: 101, At: noon})
	e = e.AttemptFailed(noon, []uint64{1, 2}, "it broke").AttemptFailed(noon, []uint64{2}, "again")
	e.Sweep = []string{"data/ä b.lance", "_deletions/1-2-3.arrow"}
	e.Idle = &ledger.Idle{Version: 101, ETag: `"etag"`, Refs: "digest", Policy: "another", ListedAt: noon, Until: noon.Add(time.Hour)}
	return e
}

// testBook runs what holds for every ledger. open returns a new, empty one.
func testBook(t *testing.T, open func(t *testing.T) book) {
	t.Helper()
	t.Run("nothing is known at first", func(t *testing.T) {
		b := open(t)
		e, found, err := b.Load(t.Context(), dataset)
		require.NoError(t, err)
		require.False(t, found)
		require.Equal(t, ledger.Entry{Dataset: dataset}, e)
		names, err := b.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, names)
	})

	t.Run("a pass is begun, saved on the way, recorded", func(t *testing.T) {
		b := open(t)
		e, err := b.Begin(t.Context(), dataset, 5, noon, "a")
		require.NoError(t, err)
		require.Nil(t, e.Unfinished)
		require.Equal(t, &ledger.Started{At: noon, Owner: "a", Generation: 5}, e.Started)
		require.Equal(t, noon, e.FirstSeen)

		e.Sweep = []string{"data/x.lance"}
		require.NoError(t, b.Save(t.Context(), e))
		loaded, found, err := b.Load(t.Context(), dataset)
		require.NoError(t, err)
		require.True(t, found)
		require.NotNil(t, loaded.Started, "under way")
		require.Empty(t, cmp.Diff(e, loaded))

		e = full(e)
		require.NoError(t, b.Save(t.Context(), e))
		require.NoError(t, b.Save(t.Context(), e), "a repeated call changes nothing")
		loaded, _, err = b.Load(t.Context(), dataset)
		require.NoError(t, err)
		require.Nil(t, loaded.Started)
		require.Empty(t, cmp.Diff(e, loaded))

		next, err := b.Begin(t.Context(), dataset, 6, noon.Add(time.Hour), "b")
		require.NoError(t, err)
		require.Nil(t, next.Unfinished, "the pass before was recorded")
		require.Equal(t, e.Sweep, next.Sweep)
		require.Equal(t, uint64(6), next.Generation)
		names, err := b.List(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{dataset}, names)
	})

	t.Run("a later pass fences the one before", func(t *testing.T) {
		b := open(t)
		old, err := b.Begin(t.Context(), dataset, 5, noon, "a")
		require.NoError(t, err)
		again, err := b.Begin(t.Context(), dataset, 5, noon, "a")
		require.NoError(t, err, "the same call, whose answer was lost")
		require.Empty(t, cmp.Diff(old, again))
		_, err = b.Begin(t.Context(), dataset, 5, noon, "another")
		require.ErrorIs(t, err, ledger.ErrFenced)
		_, err = b.Begin(t.Context(), dataset, 4, noon, "a")
		require.ErrorIs(t, err, ledger.ErrFenced)

		young, err := b.Begin(t.Context(), dataset, 6, noon.Add(time.Minute), "b")
		require.NoError(t, err)
		require.Equal(t, &ledger.Started{At: noon, Owner: "a", Generation: 5}, young.Unfinished)
		require.ErrorIs(t, b.Save(t.Context(), old), ledger.ErrFenced)

		// The unfinished one stays to be seen until a pass is recorded.
		require.NoError(t, b.Save(t.Context(), young))
		loaded, _, err := b.Load(t.Context(), dataset)
		require.NoError(t, err)
		require.NotNil(t, loaded.Unfinished)
		young = young.Succeeded(ledger.Outcome{At: noon, Version: 1})
		require.NoError(t, b.Save(t.Context(), young))
		loaded, _, err = b.Load(t.Context(), dataset)
		require.NoError(t, err)
		require.Nil(t, loaded.Unfinished)
	})

	t.Run("an entry that was never begun is not saved", func(t *testing.T) {
		b := open(t)
		require.ErrorIs(t, b.Save(t.Context(), ledger.Entry{Dataset: dataset, Generation: 1}), ledger.ErrFenced)
	})

	t.Run("skips are counted without a lease, until a pass begins", func(t *testing.T) {
		b := open(t)
		require.NoError(t, b.Skip(t.Context(), dataset, noon, "holder"))
		e, err := b.Begin(t.Context(), dataset, 1, noon, "a")
		require.NoError(t, err)
		require.Zero(t, e.ConsecutiveSkips)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { _ = b.Skip(t.Context(), dataset, noon, "a") }) // looked at below
		}
		group.Wait()
		require.NoError(t, b.Save(t.Context(), full(e)), "a skip meanwhile is no fence")
		loaded, found, err := b.Load(t.Context(), dataset)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, 4, loaded.ConsecutiveSkips)
		require.Equal(t, &ledger.Skip{At: noon, Holder: "a"}, loaded.LastSkip)
		require.Equal(t, uint64(101), loaded.LastSuccess.Version)
	})

	t.Run("a large journal fits, a huge one is refused", func(t *testing.T) {
		b := open(t)
		e, err := b.Begin(t.Context(), dataset, 1, noon, "a")
		require.NoError(t, err)
		e.Sweep = randomNames(t, 5000)
		require.NoError(t, b.Save(t.Context(), e))
		loaded, _, err := b.Load(t.Context(), dataset)
		require.NoError(t, err)
		require.Equal(t, e.Sweep, loaded.Sweep)

		huge := e
		huge.Sweep = randomNames(t, 50_000)
		var large *ledger.TooLargeError
		require.ErrorAs(t, b.Save(t.Context(), huge), &large)
		require.Equal(t, dataset, large.Dataset)
		loaded, _, err = b.Load(t.Context(), dataset)
		require.NoError(t, err)
		require.Equal(t, e.Sweep, loaded.Sweep, "what was stored is still there")
	})
}

func randomNames(t *testing.T, n int) []string {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		id := make([]byte, 24)
		_, err := rand.Read(id)
		require.NoError(t, err)
		names[i] = fmt.Sprintf("data/%s.lance", hex.EncodeToString(id))
	}
	return names
}
