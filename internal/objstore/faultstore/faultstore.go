// Package faultstore makes a store fail or stop at chosen operations, for tests.
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"lancekeeper/internal/objstore"
)

// ErrKilled is what every call returns from the kill on, as if the process were gone.
var ErrKilled = errors.New("killed")

// When says on which side of a mutation a kill falls.
type When int

// Sides.
const (
	Before When = iota // it does not happen
	After              // it happens, and nobody hears of it
)

// Op is one operation. Each key of a delete is an operation of its own.
type Op struct {
	Kind     string // list, folders, stat, get, put, putIfAbsent, upload, delete, now
	Key      string // or prefix
	Mutation int    // number of the mutation, from 1; 0 for reads
	When     When
}

// Store passes operations on until a fault is met. Make it with New.
type Store struct {
	inner objstore.Store

	mu        sync.Mutex
	hook      func(ctx context.Context, op Op) error
	killAt    int
	killWhen  When
	mutations int
	killed    bool
	exercised bool
}

// New returns a store without faults.
func New(inner objstore.Store) *Store { return &Store{inner: inner} }

// Hook has f asked before and after every operation; an error makes it fail. After an operation, whatever it came to has
// happened all the same, and only its answer is lost. A KeyError before or after a delete fails that key alone.
func (s *Store) Hook(f func(ctx context.Context, op Op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = f
}

// KillAt stops everything at the n-th mutation.
func (s *Store) KillAt(n int, when When) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killAt, s.killWhen = n, when
}

// Mutations is how many were begun.
func (s *Store) Mutations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mutations
}

// Killed says whether the kill was met: a test whose fault was never met proves nothing.
func (s *Store) Killed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed
}

// Exercised says whether any fault was met: the kill, or an error of the hook.
func (s *Store) Exercised() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed || s.exercised
}

// begin stands before an operation, and numbers it if it is a mutation.
func (s *Store) begin(ctx context.Context, op Op, mutation bool) (Op, error) {
	if mutation {
		s.mu.Lock()
		s.mutations++
		op.Mutation = s.mutations
		s.mu.Unlock()
	}
	return op, s.check(ctx, op)
}

// end stands behind an operation, also one that failed.
func (s *Store) end(ctx context.Context, op Op) error {
	op.When = After
	return s.check(ctx, op)
}

// check is the error of a fault that falls on this side of an operation.
func (s *Store) check(ctx context.Context, op Op) error {
	s.mu.Lock()
	s.killed = s.killed || op.Mutation > 0 && op.Mutation == s.killAt && op.When == s.killWhen
	killed, hook := s.killed, s.hook
	s.mu.Unlock()
	if killed {
		return fmt.Errorf("%s %s: %w", op.Kind, op.Key, ErrKilled)
	}
	if hook == nil {
		return nil
	}
	err := hook(ctx, op)
	if err != nil {
		s.mu.Lock()
		s.exercised = true
		s.mu.Unlock()
	}
	return err
}

// around does an operation between begin and end. A fault behind it hides what it came to.
func (s *Store) around(ctx context.Context, kind, key string, mutation bool, do func() error) error {
	op, err := s.begin(ctx, Op{Kind: kind, Key: key}, mutation)
	if err != nil {
		return err
	}
	outcome := do()
	if err := s.end(ctx, op); err != nil {
		return err
	}
	return outcome
}

// Mutation has something that is not in the store, but must not happen after a kill either, take part in the faults.
func (s *Store) Mutation(ctx context.Context, kind, key string, do func() error) error {
	return s.around(ctx, kind, key, true, do)
}

// URI is the inner store's.
func (s *Store) URI() string { return s.inner.URI() }

// Ordered is the inner store's.
func (s *Store) Ordered() bool { return s.inner.Ordered() }

// List is one operation, which a kill meanwhile breaks off.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		op, err := s.begin(ctx, Op{Kind: "list", Key: prefix}, false)
		if err != nil {
			yield(objstore.Object{}, err)
			return
		}
		for o, err := range s.inner.List(ctx, prefix, startAfter) {
			if s.Killed() {
				break
			}
			if !yield(o, err) || err != nil {
				return
			}
		}
		if err := s.end(ctx, op); err != nil {
			yield(objstore.Object{}, err)
		}
	}
}

// Folders is one operation.
func (s *Store) Folders(ctx context.Context, prefix string) (names []string, err error) {
	err = s.around(ctx, "folders", prefix, false, func() error {
		names, err = s.inner.Folders(ctx, prefix)
		return err //nolint:wrapcheck // a wrapper adds nothing
	})
	return names, err
}

// Stat is one operation.
func (s *Store) Stat(ctx context.Context, key string) (o objstore.Object, err error) {
	err = s.around(ctx, "stat", key, false, func() error {
		o, err = s.inner.Stat(ctx, key)
		return err //nolint:wrapcheck // a wrapper adds nothing
	})
	return o, err
}

// Get is one operation.
func (s *Store) Get(ctx context.Context, key string) (data []byte, o objstore.Object, err error) {
	err = s.around(ctx, "get", key, false, func() error {
		data, o, err = s.inner.Get(ctx, key)
		return err //nolint:wrapcheck // a wrapper adds nothing
	})
	return data, o, err
}

// GetRange is one operation.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) (data []byte, err error) {
	err = s.around(ctx, "get", key, false, func() error {
		data, err = s.inner.GetRange(ctx, key, offset, length)
		return err //nolint:wrapcheck // a wrapper adds nothing
	})
	return data, err
}

// GetTail is one operation.
func (s *Store) GetTail(ctx context.Context, key string, n int64) (data []byte, size int64, err error) {
	err = s.around(ctx, "get", key, false, func() error {
		data, size, err = s.inner.GetTail(ctx, key, n)
		return err //nolint:wrapcheck // a wrapper adds nothing
	})
	return data, size, err
}

// Put is one mutation.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.around(ctx, "put", key, true, func() error { return s.inner.Put(ctx, key, data) })
}

// Copy is one mutation, where the inner store can copy.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	copier, ok := s.inner.(objstore.Copier)
	if !ok {
		return fmt.Errorf("copy %s: %w", from, errors.ErrUnsupported)
	}
	return s.around(ctx, "copy", to, true, func() error { return copier.Copy(ctx, from, to) })
}

// PutIfAbsent is one mutation.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return s.around(ctx, "putIfAbsent", key, true, func() error { return s.inner.PutIfAbsent(ctx, key, data) })
}

// Upload is one mutation.
func (s *Store) Upload(ctx context.Context, key string, r io.Reader) (n int64, err error) {
	err = s.around(ctx, "upload", key, true, func() error {
		n, err = s.inner.Upload(ctx, key, r)
		return err //nolint:wrapcheck // a wrapper adds nothing
	})
	return n, err
}

// Delete removes key by key: each is one mutation.
func (s *Store) Delete(ctx context.Context, keys []string) (failed []objstore.KeyError, err error) {
	if s.Killed() {
		return nil, fmt.Errorf("delete %d objects: %w", len(keys), ErrKilled)
	}
	for _, key := range keys {
		if err := objstore.CheckKey(key); err != nil {
			return nil, err //nolint:wrapcheck // names the key
		}
	}
	for _, key := range keys {
		err := s.around(ctx, "delete", key, true, func() error {
			faults, err := s.inner.Delete(ctx, []string{key})
			failed = append(failed, faults...)
			return err //nolint:wrapcheck // a wrapper adds nothing
		})
		if fault := (objstore.KeyError{}); errors.As(err, &fault) {
			failed = append(failed, fault)
		} else if err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// Now is one operation.
func (s *Store) Now(ctx context.Context) (at time.Time, err error) {
	err = s.around(ctx, "now", "", false, func() error {
		at, err = s.inner.Now(ctx)
		return err //nolint:wrapcheck // a wrapper adds nothing
	})
	return at, err
}
