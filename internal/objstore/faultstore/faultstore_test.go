package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/memstore"
	"lancekeeper/internal/objstore/storetest"
)

func newStore() (*faultstore.Store, *memstore.Store) {
	inner := memstore.New("mem://faults", time.Now)
	return faultstore.New(inner), inner
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) objstore.Store { s, _ := newStore(); return s })
}

// work makes five mutations: put a, put b, upload c, and the deletes of a and b.
func work(ctx context.Context, s objstore.Store) error {
	if err := s.Put(ctx, "a", nil); err != nil {
		return err
	}
	if err := s.PutIfAbsent(ctx, "b", nil); err != nil {
		return err
	}
	if _, err := s.Upload(ctx, "c", strings.NewReader("c")); err != nil {
		return err
	}
	_, err := s.Delete(ctx, []string{"a", "b"})
	return err
}

func TestKillAt(t *testing.T) {
	t.Parallel()
	left := [][]string{nil, {"a"}, {"a", "b"}, {"a", "b", "c"}, {"b", "c"}, {"c"}} // after so many mutations
	for n := 1; n < len(left); n++ {
		for when, happened := range map[faultstore.When]int{faultstore.Before: n - 1, faultstore.After: n} {
			s, inner := newStore()
			s.KillAt(n, when)
			require.False(t, s.Exercised())
			require.ErrorIs(t, work(t.Context(), s), faultstore.ErrKilled)
			require.Equal(t, left[happened], inner.Keys(), "%d %v", n, when)
			require.True(t, s.Killed())
			require.True(t, s.Exercised())
			require.Equal(t, n, s.Mutations())
			allDead(t, s)
			require.Equal(t, left[happened], inner.Keys(), "nothing happens after the kill")
		}
	}
	s, _ := newStore()
	s.KillAt(6, faultstore.Before)
	require.NoError(t, work(t.Context(), s))
	require.False(t, s.Killed(), "a kill that was never met is seen")
	require.Equal(t, 5, s.Mutations())
}

func allDead(t *testing.T, s *faultstore.Store) {
	t.Helper()
	ctx := t.Context()
	for kind, call := range map[string]func() error{
		"list": func() error {
			var last error
			for _, err := range s.List(ctx, "", "") {
				last = err
			}
			return last
		},
		"folders":     func() error { _, err := s.Folders(ctx, ""); return err },
		"stat":        func() error { _, err := s.Stat(ctx, "c"); return err },
		"get":         func() error { _, _, err := s.Get(ctx, "c"); return err },
		"range":       func() error { _, err := s.GetRange(ctx, "c", 0, 0); return err },
		"tail":        func() error { _, _, err := s.GetTail(ctx, "c", 1); return err },
		"put":         func() error { return s.Put(ctx, "x", nil) },
		"putIfAbsent": func() error { return s.PutIfAbsent(ctx, "x", nil) },
		"upload":      func() error { _, err := s.Upload(ctx, "x", strings.NewReader("")); return err },
		"delete":      func() error { _, err := s.Delete(ctx, []string{"c"}); return err },
		"delete none": func() error { _, err := s.Delete(ctx, nil); return err },
		"now":         func() error { _, err := s.Now(ctx); return err },
		"mutation":    func() error { return s.Mutation(ctx, "ledger", "x", func() error { return errors.New("done") }) },
	} {
		require.ErrorIs(t, call(), faultstore.ErrKilled, kind)
	}
}

// TestKillAfterAFailure: a mutation that the store refuses is one all the same, and the kill must not miss it.
func TestKillAfterAFailure(t *testing.T) {
	t.Parallel()
	s, inner := newStore()
	require.NoError(t, inner.Put(t.Context(), "a", nil))
	s.KillAt(1, faultstore.After)
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), "a", nil), faultstore.ErrKilled)
	require.True(t, s.Killed())
}

func TestKillBreaksOffAListing(t *testing.T) {
	t.Parallel()
	s, inner := newStore()
	for i := range 5 {
		require.NoError(t, inner.Put(t.Context(), fmt.Sprint("k", i), nil))
	}
	s.KillAt(1, faultstore.After)
	var seen []string
	var last error
	for o, err := range s.List(t.Context(), "", "") {
		if last = err; err == nil {
			seen = append(seen, o.Key)
			_ = s.Put(t.Context(), "x", nil)
		}
	}
	require.Equal(t, []string{"k0"}, seen)
	require.ErrorIs(t, last, faultstore.ErrKilled)
}

func TestHook(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, when := range []faultstore.When{faultstore.Before, faultstore.After} {
		s, inner := newStore()
		s.Hook(func(_ context.Context, op faultstore.Op) error {
			if op.Kind == "putIfAbsent" && op.When == when {
				return broken
			}
			return nil
		})
		require.ErrorIs(t, work(t.Context(), s), broken)
		require.True(t, s.Exercised())
		require.False(t, s.Killed())
		if when == faultstore.Before {
			require.Equal(t, []string{"a"}, inner.Keys())
		} else {
			require.Equal(t, []string{"a", "b"}, inner.Keys(), "it happened, its answer is lost")
		}
		require.NoError(t, s.Put(t.Context(), "d", nil), "the store lives on")
	}
}

func TestHookSeesEveryOperationTwice(t *testing.T) {
	t.Parallel()
	s, _ := newStore()
	var seen []string
	s.Hook(func(_ context.Context, op faultstore.Op) error {
		seen = append(seen, fmt.Sprintf("%s %s %d %d", op.Kind, op.Key, op.Mutation, op.When))
		return nil
	})
	require.NoError(t, work(t.Context(), s))
	_, _, err := s.Get(t.Context(), "none")
	require.ErrorIs(t, err, objstore.ErrNotExist)
	require.Equal(t, []string{
		"put a 1 0", "put a 1 1", "putIfAbsent b 2 0", "putIfAbsent b 2 1", "upload c 3 0", "upload c 3 1",
		"delete a 4 0", "delete a 4 1", "delete b 5 0", "delete b 5 1", "get none 0 0", "get none 0 1",
	}, seen)
}

func TestHookFailsOneKey(t *testing.T) {
	t.Parallel()
	s, inner := newStore()
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, inner.Put(t.Context(), key, nil))
	}
	s.Hook(func(_ context.Context, op faultstore.Op) error {
		if op.Key == "b" {
			return objstore.KeyError{Key: op.Key, Code: "InternalError", Err: errors.New("once more")}
		}
		return nil
	})
	failed, err := s.Delete(t.Context(), []string{"a", "b", "c"})
	require.NoError(t, err)
	require.Len(t, failed, 1)
	require.Equal(t, "b", failed[0].Key)
	require.Equal(t, []string{"b"}, inner.Keys())
}
