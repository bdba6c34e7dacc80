package ratestore_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/memstore"
	"lancekeeper/internal/objstore/ratestore"
	"lancekeeper/internal/objstore/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) objstore.Store {
		t.Helper()
		return ratestore.New(memstore.New("mem://x", time.Now), 100_000)
	})
}

func TestDeletesTakeTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New("mem://x", time.Now)
		var keys []string
		for i := range 95 {
			keys = append(keys, fmt.Sprintf("data/%d", i))
			require.NoError(t, inner.Put(t.Context(), keys[i], nil))
		}
		store, began := ratestore.New(inner, 10), time.Now()
		failed, err := store.Delete(t.Context(), keys[:55])
		require.NoError(t, err)
		require.Empty(t, failed)
		require.Equal(t, 4500*time.Millisecond, time.Since(began).Round(time.Millisecond), "the first second's worth at once")
		require.Len(t, inner.Keys(), 40)

		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err = store.Delete(ctx, keys[55:])
		require.ErrorIs(t, err, context.DeadlineExceeded, "time ran out, which is no failure")
		require.NotEmpty(t, inner.Keys())
	})
}
