package compact

import (
	"context"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"lancekeeper/internal/lance/encoding"
)

// readParallel is how many pages are read at once.
const readParallel = 16

// inOrder reads pieces ahead, several at once and within about memory bytes, and hands them on in their order.
func inOrder(ctx context.Context, pieces []piece, memory int64, read func(context.Context, piece) (*encoding.Block, error), use func(*encoding.Block) error) error {
	type slot struct {
		block  *encoding.Block
		weight int64
		done   chan struct{}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	room := semaphore.NewWeighted(max(memory, 1))
	queue := make(chan *slot, readParallel)
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(queue)
		readers, inner := errgroup.WithContext(inner)
		readers.SetLimit(readParallel)
		for _, p := range pieces {
			s := &slot{weight: min(max(p.weight(), 1), max(memory, 1)), done: make(chan struct{})}
			if room.Acquire(inner, s.weight) != nil {
				break // the reason comes from whoever ended the context
			}
			readers.Go(func() error {
				defer close(s.done)
				var err error
				s.block, err = read(inner, p)
				return err
			})
			select {
			case queue <- s:
			case <-inner.Done():
			}
		}
		return readers.Wait() //nolint:wrapcheck // names the fragment
	})
	group.Go(func() error {
		for s := range queue {
			select {
			case <-s.done:
			case <-inner.Done():
				return inner.Err() //nolint:wrapcheck // the cause is the readers'
			}
			if inner.Err() != nil {
				return inner.Err() //nolint:wrapcheck // the cause is the readers'
			}
			if err := use(s.block); err != nil {
				return err
			}
			room.Release(s.weight)
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // wrapped by the steps
	}
	return ctx.Err() //nolint:wrapcheck // the pieces were not all read
}
