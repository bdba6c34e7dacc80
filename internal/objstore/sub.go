package objstore

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Sub is the same store rooted deeper: at folder, a checked key without a trailing slash.
func Sub(store Store, folder string) (Store, error) {
	if err := CheckKey(folder); err != nil {
		return nil, fmt.Errorf("open %s below %s: %w", folder, store.URI(), err)
	}
	s := &sub{inner: store, prefix: folder + "/"}
	if copier, ok := store.(Copier); ok {
		return &copyingSub{sub: s, copier: copier}, nil
	}
	return s, nil
}

// copyingSub is a sub of a store that can copy.
type copyingSub struct {
	*sub
	copier Copier
}

func (s *copyingSub) Copy(ctx context.Context, from, to string) error {
	for _, key := range []string{from, to} {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	return s.copier.Copy(ctx, s.prefix+from, s.prefix+to)
}

type sub struct {
	inner  Store
	prefix string
}

func (s *sub) URI() string   { return s.inner.URI() + "/" + strings.TrimSuffix(s.prefix, "/") }
func (s *sub) Ordered() bool { return s.inner.Ordered() }

// Unwrap is the store that this is a part of.
func (s *sub) Unwrap() Store { return s.inner }

func (s *sub) List(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error] {
	if startAfter != "" {
		startAfter = s.prefix + startAfter
	}
	return func(yield func(Object, error) bool) {
		for o, err := range s.inner.List(ctx, s.prefix+prefix, startAfter) {
			o.Key = strings.TrimPrefix(o.Key, s.prefix)
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func (s *sub) Folders(ctx context.Context, prefix string) ([]string, error) {
	return s.inner.Folders(ctx, s.prefix+prefix)
}

func (s *sub) Stat(ctx context.Context, key string) (Object, error) {
	if err := CheckKey(key); err != nil {
		return Object{}, err
	}
	o, err := s.inner.Stat(ctx, s.prefix+key)
	o.Key = key
	return o, err
}

func (s *sub) Get(ctx context.Context, key string) ([]byte, Object, error) {
	if err := CheckKey(key); err != nil {
		return nil, Object{}, err
	}
	data, o, err := s.inner.Get(ctx, s.prefix+key)
	o.Key = key
	return data, o, err
}

func (s *sub) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	return s.inner.GetRange(ctx, s.prefix+key, offset, length)
}

func (s *sub) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	if err := CheckKey(key); err != nil {
		return nil, 0, err
	}
	return s.inner.GetTail(ctx, s.prefix+key, n)
}

func (s *sub) Put(ctx context.Context, key string, data []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return s.inner.Put(ctx, s.prefix+key, data)
}

func (s *sub) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return s.inner.PutIfAbsent(ctx, s.prefix+key, data)
}

func (s *sub) Upload(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	return s.inner.Upload(ctx, s.prefix+key, r)
}

func (s *sub) Delete(ctx context.Context, keys []string) ([]KeyError, error) {
	full := make([]string, len(keys))
	for i, key := range keys {
		if err := CheckKey(key); err != nil {
			return nil, err
		}
		full[i] = s.prefix + key
	}
	failed, err := s.inner.Delete(ctx, full)
	for i := range failed {
		failed[i].Key = strings.TrimPrefix(failed[i].Key, s.prefix)
	}
	return failed, err
}

func (s *sub) Now(ctx context.Context) (time.Time, error) { return s.inner.Now(ctx) }
