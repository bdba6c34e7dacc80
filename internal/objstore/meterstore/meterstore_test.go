package meterstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/memstore"
	"lancekeeper/internal/objstore/meterstore"
	"lancekeeper/internal/objstore/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) objstore.Store { return meterstore.New(memstore.New("mem://metered", time.Now)) })
}

// filled is a store of n objects that nothing was asked of yet.
func filled(t *testing.T, n int) (*meterstore.Store, []string) {
	t.Helper()
	inner := memstore.New("mem://metered", time.Now)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k/%06d", i)
		require.NoError(t, inner.Put(t.Context(), keys[i], []byte("0123456789")))
	}
	return meterstore.New(inner), keys
}

func TestPagesAndBatchesAreRequests(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int64{0: 1, 1: 1, 999: 1, 1000: 1, 1001: 2, 2000: 2, 2001: 3} {
		s, keys := filled(t, n)
		for _, err := range s.List(t.Context(), "", "") {
			require.NoError(t, err)
		}
		require.Equal(t, meterstore.Counts{List: want}, s.Counts(), "list %d", n)
		_, err := s.Delete(t.Context(), keys)
		require.NoError(t, err)
		deletes := want
		if n == 0 {
			deletes = 0
		}
		require.Equal(t, deletes, s.Counts().Delete, "delete %d", n)
	}
}

func TestListingThatStopsEarlyPaysOnePage(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 3000)
	for range s.List(t.Context(), "", "") {
		break
	}
	require.EqualValues(t, 1, s.Counts().List)
}

func TestEachOperation(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 1)
	ctx, key := t.Context(), "k/000000"
	for name, c := range map[string]struct {
		do   func() error
		want meterstore.Counts
	}{
		"folders":    {func() error { _, err := s.Folders(ctx, ""); return err }, meterstore.Counts{List: 1}},
		"stat":       {func() error { _, err := s.Stat(ctx, key); return err }, meterstore.Counts{Get: 1}},
		"get":        {func() error { _, _, err := s.Get(ctx, key); return err }, meterstore.Counts{Get: 1, BytesRead: 10}},
		"range":      {func() error { _, err := s.GetRange(ctx, key, 2, 3); return err }, meterstore.Counts{Get: 1, BytesRead: 3}},
		"tail":       {func() error { _, _, err := s.GetTail(ctx, key, 4); return err }, meterstore.Counts{Get: 1, BytesRead: 4}},
		"clock":      {func() error { _, err := s.Now(ctx); return err }, meterstore.Counts{}},
		"put":        {func() error { return s.Put(ctx, "p", []byte("12345")) }, meterstore.Counts{Put: 1, BytesWritten: 5}},
		"put absent": {func() error { return s.PutIfAbsent(ctx, "q", []byte("12")) }, meterstore.Counts{Put: 1, BytesWritten: 2}},
		"upload":     {func() error { _, err := s.Upload(ctx, "u", strings.NewReader("1234567")); return err }, meterstore.Counts{Put: 1, BytesWritten: 7}},
	} {
		before := s.Counts()
		require.NoError(t, c.do(), name)
		require.Equal(t, c.want, less(s.Counts(), before), name)
	}
}

func less(a, b meterstore.Counts) meterstore.Counts {
	return meterstore.Counts{
		List: a.List - b.List, Get: a.Get - b.Get, Put: a.Put - b.Put, Delete: a.Delete - b.Delete,
		BytesRead: a.BytesRead - b.BytesRead, BytesWritten: a.BytesWritten - b.BytesWritten,
	}
}

func TestCountsFromManySides(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 1)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			for range 50 {
				_, _, _ = s.Get(t.Context(), "k/000000")
			}
		})
	}
	group.Wait()
	require.Equal(t, meterstore.Counts{Get: 1000, BytesRead: 10_000}, s.Counts())
}

// Only a request that was given up makes a silence, as long as nothing at all was answered before its end; waiting for what an upload
// sends is none of the store's.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		faults := faultstore.New(memstore.New("mem://metered", time.Now))
		s := meterstore.New(faults)
		require.NoError(t, s.Put(t.Context(), "k", []byte("0123456789")))
		get := func(answer, wait time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			faults.Hook(func(ctx context.Context, _ faultstore.Op) error {
				select {
				case <-time.After(answer):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			_, _, _ = s.Get(ctx, "k")
		}
		get(time.Hour, 2*time.Hour)
		require.Zero(t, s.Silence(), "slow, and answered")
		get(time.Hour, time.Minute)
		require.Equal(t, time.Minute, s.Silence())
		get(time.Hour, time.Second)
		require.Equal(t, time.Minute, s.Silence(), "the longest")

		faults.Hook(func(ctx context.Context, op faultstore.Op) error {
			if op.Kind == "get" {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(30 * time.Second) // before and after
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Second)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() { _, _, _ = s.Get(ctx, "k") })
		for range 3 {
			_, err := s.Stat(ctx, "k")
			require.NoError(t, err)
		}
		group.Wait()
		require.Equal(t, time.Minute, s.Silence(), "another request was answered a second before")

		ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		faults.Hook(func(context.Context, faultstore.Op) error { return nil })
		_, err := s.Upload(ctx, "u", slow{ctx})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, s.Silence(), "the store waited for us")
	})
}

// slow is a source that has nothing before its time is over.
type slow struct{ ctx context.Context }

func (s slow) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
