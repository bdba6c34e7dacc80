// Package meterstore counts what is asked of a store, and notices when it does not answer.
package meterstore

import (
	"context"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"lancekeeper/internal/objstore"
)

// perRequest is how many keys one list or delete request of S3 takes.
const perRequest = 1000

// Counts are requests, as S3 bills them, and bytes moved.
type Counts struct {
	List, Get, Put, Delete  int64
	BytesRead, BytesWritten int64
}

// Store counts, listens and passes on. Make it with New.
type Store struct {
	inner                   objstore.Store
	list, get, put, deletes atomic.Int64
	read, written           atomic.Int64
	line                    line
}

// New returns a store that counts what is asked of inner.
func New(inner objstore.Store) *Store { return &Store{inner: inner} }

// Counts is what was asked so far.
func (s *Store) Counts() Counts {
	return Counts{
		List: s.list.Load(), Get: s.get.Load(), Put: s.put.Load(), Delete: s.deletes.Load(),
		BytesRead: s.read.Load(), BytesWritten: s.written.Load(),
	}
}

// Silence is the longest time in which the store answered nothing at all and at whose end a request was given up, since its
// context had ended. A request that took long and was answered is none.
func (s *Store) Silence() time.Duration { return s.line.longest() }

// URI is the inner store's.
func (s *Store) URI() string { return s.inner.URI() }

// Ordered is the inner store's.
func (s *Store) Ordered() bool { return s.inner.Ordered() }

// List counts one request for each thousand objects that are taken, and one at least.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		s.list.Add(1)
		n := 0
		s.line.ask()
		defer s.line.hear(nil)
		for o, err := range s.inner.List(ctx, prefix, startAfter) {
			s.line.hear(err)
			if n++; n > perRequest && n%perRequest == 1 {
				s.list.Add(1) // the first object of a further page
			}
			more := yield(o, err)
			s.line.ask()
			if !more {
				return
			}
		}
	}
}

// Folders counts one list request.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	s.list.Add(1)
	s.line.ask()
	folders, err := s.inner.Folders(ctx, prefix)
	s.line.hear(err)
	return folders, err //nolint:wrapcheck // a wrapper adds nothing
}

// Stat counts as a read.
func (s *Store) Stat(ctx context.Context, key string) (objstore.Object, error) {
	s.get.Add(1)
	s.line.ask()
	o, err := s.inner.Stat(ctx, key)
	s.line.hear(err)
	return o, err //nolint:wrapcheck // a wrapper adds nothing
}

// Get counts a read.
func (s *Store) Get(ctx context.Context, key string) ([]byte, objstore.Object, error) {
	s.get.Add(1)
	s.line.ask()
	data, o, err := s.inner.Get(ctx, key)
	s.line.hear(err)
	s.read.Add(int64(len(data)))
	return data, o, err //nolint:wrapcheck // a wrapper adds nothing
}

// GetRange counts a read.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	s.get.Add(1)
	s.line.ask()
	data, err := s.inner.GetRange(ctx, key, offset, length)
	s.line.hear(err)
	s.read.Add(int64(len(data)))
	return data, err //nolint:wrapcheck // a wrapper adds nothing
}

// GetTail counts a read.
func (s *Store) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	s.get.Add(1)
	s.line.ask()
	data, size, err := s.inner.GetTail(ctx, key, n)
	s.line.hear(err)
	s.read.Add(int64(len(data)))
	return data, size, err //nolint:wrapcheck // a wrapper adds nothing
}

// Put counts a write.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	s.put.Add(1)
	s.written.Add(int64(len(data)))
	s.line.ask()
	err := s.inner.Put(ctx, key, data)
	s.line.hear(err)
	return err //nolint:wrapcheck // a wrapper adds nothing
}

// PutIfAbsent counts a write.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	s.put.Add(1)
	s.written.Add(int64(len(data)))
	s.line.ask()
	err := s.inner.PutIfAbsent(ctx, key, data)
	s.line.hear(err)
	return err //nolint:wrapcheck // a wrapper adds nothing
}

// Upload counts one write, however many parts it takes.
func (s *Store) Upload(ctx context.Context, key string, r io.Reader) (int64, error) {
	s.put.Add(1)
	s.line.ask()
	n, err := s.inner.Upload(ctx, key, &source{r, &s.line})
	s.line.hear(err)
	s.written.Add(n)
	return n, err //nolint:wrapcheck // a wrapper adds nothing
}

// Delete counts one request for each thousand keys.
func (s *Store) Delete(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	s.deletes.Add(int64((len(keys) + perRequest - 1) / perRequest))
	s.line.ask()
	failed, err := s.inner.Delete(ctx, keys)
	s.line.hear(err)
	return failed, err //nolint:wrapcheck // a wrapper adds nothing
}

// Now does not count: a store that was listed before knows it.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	s.line.ask()
	now, err := s.inner.Now(ctx)
	s.line.hear(err)
	return now, err //nolint:wrapcheck // a wrapper adds nothing
}
