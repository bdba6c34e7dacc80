package compact

import (
	"context"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// readParallel is how many pages are read at once.
const readParallel = 16

// weighty is something whose reading takes about so many bytes of memory.
type weighty interface{ weight() int64 }

// inOrder reads pieces ahead, several at once and within about memory bytes, and hands what was read on in their order.
func inOrder[P weighty, R any](ctx context.Context, pieces []P, memory int64, read func(context.Context, P) (R, error), use func(R) error) error {
	type slot struct {
		result R
		read   bool
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
				s.result, err = read(inner, p)
				s.read = err == nil
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
			if !s.read {
				return nil // the readers give the cause, which need not be this one
			}
			if err := use(s.result); err != nil {
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
