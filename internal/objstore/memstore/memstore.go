// Package memstore keeps objects in memory.
package memstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"lancekeeper/internal/objstore"
)

// Store is an objstore.Store in memory, safe for concurrent use.
type Store struct {
	uri string
	now func() time.Time

	mu        sync.Mutex
	objects   map[string]object
	unordered bool
}

type object struct {
	data     []byte
	modified time.Time
}

// New returns an empty store whose clock is now. It lists in order until Unordered is called.
func New(uri string, now func() time.Time) *Store {
	return &Store{uri: uri, now: now, objects: map[string]object{}}
}

// Unordered makes listings come in random order, as a disk's may.
func (s *Store) Unordered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unordered = true
}

// SetModified sets an object's time; it does nothing for a key that is not there.
func (s *Store) SetModified(key string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects[key]; ok {
		o.modified = at
		s.objects[key] = o
	}
}

// Clone is a copy of the store as it stands.
func (s *Store) Clone() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Store{uri: s.uri, now: s.now, objects: maps.Clone(s.objects), unordered: s.unordered}
}

// Keys are all keys, ascending.
func (s *Store) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// URI names the root.
func (s *Store) URI() string { return s.uri }

// Ordered says whether listings ascend.
func (s *Store) Ordered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unordered
}

// Now is the injected clock.
func (s *Store) Now(context.Context) (time.Time, error) { return s.now(), nil }

// List yields a listing taken when it begins.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		if err := objstore.CheckPrefix(prefix); err != nil {
			yield(objstore.Object{}, err)
			return
		}
		for _, o := range s.listing(prefix, startAfter) {
			if err := ctx.Err(); err != nil {
				yield(objstore.Object{}, fmt.Errorf("list %s%s: %w", s.uri, prefix, err))
				return
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (s *Store) listing(prefix, startAfter string) []objstore.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []objstore.Object
	for key, o := range s.objects {
		if strings.HasPrefix(key, prefix) && key > startAfter {
			found = append(found, describe(key, o))
		}
	}
	slices.SortFunc(found, func(a, b objstore.Object) int { return strings.Compare(a.Key, b.Key) })
	if s.unordered {
		r := rand.New(rand.NewPCG(uint64(len(found)), 1))
		r.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	}
	return found
}

func describe(key string, o object) objstore.Object {
	sum := sha256.Sum256(o.data)
	return objstore.Object{Key: key, Size: int64(len(o.data)), Modified: o.modified, ETag: hex.EncodeToString(sum[:8])}
}

// Folders are the names directly below prefix that have something in them.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	if err := objstore.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list the folders of %s%s: %w", s.uri, prefix, err)
	}
	names := map[string]struct{}{}
	for _, o := range s.listing(prefix, "") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(o.Key, prefix), "/"); ok {
			names[name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func (s *Store) find(ctx context.Context, what, key string) (object, error) {
	if err := objstore.CheckKey(key); err != nil {
		return object{}, err
	}
	if err := ctx.Err(); err != nil {
		return object{}, fmt.Errorf("%s %s: %w", what, key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if !ok {
		return object{}, fmt.Errorf("%s %s: %w", what, key, objstore.ErrNotExist)
	}
	return o, nil
}

// Stat looks up one object.
func (s *Store) Stat(ctx context.Context, key string) (objstore.Object, error) {
	o, err := s.find(ctx, "stat", key)
	if err != nil {
		return objstore.Object{}, err
	}
	return describe(key, o), nil
}

// Get reads a whole object.
func (s *Store) Get(ctx context.Context, key string) ([]byte, objstore.Object, error) {
	o, err := s.find(ctx, "get", key)
	if err != nil {
		return nil, objstore.Object{}, err
	}
	return slices.Clone(o.data), describe(key, o), nil
}

// GetRange reads exactly length bytes.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	o, err := s.find(ctx, "get", key)
	if err != nil {
		return nil, err
	}
	size := int64(len(o.data))
	if offset < 0 || length < 0 || offset > size || length > size-offset {
		return nil, fmt.Errorf("get %s bytes %d+%d of %d: %w", key, offset, length, size, io.ErrUnexpectedEOF)
	}
	return slices.Clone(o.data[offset : offset+length]), nil
}

// GetTail reads the last bytes.
func (s *Store) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	o, err := s.find(ctx, "get", key)
	if err != nil {
		return nil, 0, err
	}
	size := int64(len(o.data))
	return slices.Clone(o.data[size-min(size, max(n, 0)):]), size, nil
}

// Copy copies an object.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	o, err := s.find(ctx, "copy", from)
	if err != nil {
		return err
	}
	return s.Put(ctx, to, o.data)
}

// Put writes or replaces an object.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.put(ctx, key, data, false)
}

// PutIfAbsent writes a new object.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return s.put(ctx, key, data, true)
}

func (s *Store) put(ctx context.Context, key string, data []byte, absent bool) error {
	if err := objstore.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[key]; ok && absent {
		return fmt.Errorf("put %s: %w", key, objstore.ErrExists)
	}
	s.objects[key] = object{data: slices.Clone(data), modified: s.now()}
	return nil
}

// Upload reads all of r and writes it as one object.
func (s *Store) Upload(ctx context.Context, key string, r io.Reader) (int64, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return 0, fmt.Errorf("upload %s: %w", key, err)
	}
	return int64(len(data)), s.put(ctx, key, data, false)
}

// Delete removes objects.
func (s *Store) Delete(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	for _, key := range keys {
		if err := objstore.CheckKey(key); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("delete %d objects: %w", len(keys), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.objects, key)
	}
	return nil, nil
}
