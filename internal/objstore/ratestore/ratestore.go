// Package ratestore limits how many objects a store removes in a second.
package ratestore

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/time/rate"

	"lancekeeper/internal/objstore"
)

// Store is a store with a limit. Make it with New.
type Store struct {
	objstore.Store
	limiter *rate.Limiter
	burst   int
}

// New limits deletes to so many objects a second.
func New(inner objstore.Store, objects int) *Store {
	return &Store{Store: inner, limiter: rate.NewLimiter(rate.Limit(objects), objects), burst: objects}
}

// Delete removes a second's worth after the other. Where the time runs out, what was not begun is not removed.
func (s *Store) Delete(ctx context.Context, keys []string) (failed []objstore.KeyError, err error) {
	for part := range slices.Chunk(keys, s.burst) {
		if err := s.limiter.WaitN(ctx, len(part)); err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err) // it would be over before the turn comes
			}
			return failed, fmt.Errorf("wait for the turn of %d deletes: %w", len(part), err)
		}
		faults, err := s.Store.Delete(ctx, part)
		failed = append(failed, faults...)
		if err != nil {
			return failed, err //nolint:wrapcheck // a wrapper adds nothing
		}
	}
	return failed, nil
}
