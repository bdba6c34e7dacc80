package manifeststore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

// List shows the bucket with the versions that the table has: a staged latest version under its final name, and no staged
// object of a version that the table does not have yet. ErrUnsupported where the bucket has a version above the table's
// latest, ErrCorrupt where the table's latest is not there.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	if prefix != "" && prefix != manifest.Folder {
		return s.Store.List(ctx, prefix, startAfter)
	}
	return func(yield func(objstore.Object, error) bool) {
		l := &listing{store: s, whole: startAfter == "", versions: map[uint64]struct{}{}}
		if err := l.begin(ctx, startAfter); err != nil {
			yield(objstore.Object{}, err)
			return
		}
		for o, err := range s.Store.List(ctx, prefix, startAfter) {
			if err != nil {
				yield(o, err)
				return
			}
			if !l.pass(ctx, o, yield) {
				return
			}
		}
		l.end(yield)
	}
}

// listing is one walk over the names.
type listing struct {
	store    *Store
	latest   Row
	virtual  *objstore.Object // the version that was the latest and staged at the beginning, until it was shown
	shown    string           // its key, once it was
	whole    bool
	seen     bool // the latest version
	versions map[uint64]struct{}
}

// begin asks the table, and looks up a staged latest version; one that is gone by then has been finished.
func (l *listing) begin(ctx context.Context, startAfter string) error {
	const tries = 3
	for range tries {
		var err error
		if l.latest, err = l.store.latest(ctx); err != nil {
			return err
		}
		final, staged, err := finalOf(l.latest)
		if err != nil || !staged {
			return err
		}
		o, err := l.store.Store.Stat(ctx, l.latest.Path)
		if errors.Is(err, objstore.ErrNotExist) {
			if _, err = l.store.Store.Stat(ctx, final); err == nil {
				return nil // published, and the row was not mended
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("look at staged manifest %s: %w", l.latest.Path, err)
		}
		o.Key = final
		if final > startAfter {
			l.virtual = &o
		}
		return nil
	}
	return l.missing()
}

func (l *listing) missing() error {
	return lance.Corrupt(l.latest.Path, "the table names it as version %d, and it is not there", l.latest.Version)
}

// pass shows one name, and the staged latest version before it where that is its place. false ends the walk.
func (l *listing) pass(ctx context.Context, o objstore.Object, yield func(objstore.Object, error) bool) bool {
	if version, ok := attached(o.Key); ok {
		if err := l.know(ctx, version); err != nil {
			yield(objstore.Object{}, err)
			return false
		}
		l.versions[version] = struct{}{}
		l.seen = l.seen || version == l.latest.Version
	}
	if o.Key == l.shown {
		return true // finished meanwhile, and shown before: a store that lists in no order
	}
	if l.virtual != nil && o.Key == l.virtual.Key {
		l.virtual = nil // finished meanwhile
	}
	if version, ok := staging(o.Key); ok && (version > l.latest.Version || o.Key == l.latest.Path) {
		return true
	}
	if l.virtual != nil && l.virtual.Key < o.Key && !l.show(yield) {
		return false
	}
	return yield(o, nil)
}

// know makes sure that the table has a version that the bucket has: it may have come while the names were listed.
func (l *listing) know(ctx context.Context, version uint64) error {
	if version <= l.latest.Version {
		return nil
	}
	before := l.latest
	latest, err := l.store.latest(ctx)
	if err != nil {
		return err
	}
	if version > latest.Version {
		return l.store.strange(version, before)
	}
	l.latest.Version, l.latest.Path = version, "" // the bucket has it: that is all that this walk needs to know
	return nil
}

func (l *listing) show(yield func(objstore.Object, error) bool) bool {
	o := *l.virtual
	l.virtual, l.shown = nil, o.Key
	version, _ := attached(o.Key)
	l.versions[version] = struct{}{}
	l.seen = l.seen || version == l.latest.Version
	return yield(o, nil)
}

func (l *listing) end(yield func(objstore.Object, error) bool) {
	if l.virtual != nil && !l.show(yield) {
		return
	}
	if !l.whole {
		return
	}
	if !l.seen {
		yield(objstore.Object{}, l.missing())
		return
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.store.listed = l.versions
}

// read reads an object at its key. A version that is not there yet is read where its row says it is staged; it may have been
// finished after either look, so that its key is tried once more.
func (s *Store) read(ctx context.Context, key string, from func(key string) error) error {
	err := from(key)
	version, ok := attached(key)
	if !ok || !errors.Is(err, objstore.ErrNotExist) {
		return err
	}
	row, found, rowErr := s.table.Row(ctx, version)
	if rowErr != nil {
		return fmt.Errorf("ask the table for version %d: %w", version, rowErr)
	}
	if !found {
		return err
	}
	if final, staged, rowErr := finalOf(row); rowErr != nil || final != key {
		return err
	} else if staged {
		if err := from(row.Path); !errors.Is(err, objstore.ErrNotExist) {
			return err
		}
	}
	return from(key)
}

// Stat looks up an object; a staged version by its final key.
func (s *Store) Stat(ctx context.Context, key string) (o objstore.Object, err error) {
	err = s.read(ctx, key, func(at string) (err error) {
		o, err = s.Store.Stat(ctx, at)
		return err //nolint:wrapcheck // the bucket's own
	})
	o.Key = key
	return o, err
}

// Get reads an object, likewise.
func (s *Store) Get(ctx context.Context, key string) (data []byte, o objstore.Object, err error) {
	err = s.read(ctx, key, func(at string) (err error) {
		data, o, err = s.Store.Get(ctx, at)
		return err //nolint:wrapcheck // the bucket's own
	})
	o.Key = key
	return data, o, err
}

// GetRange reads a part of an object, likewise.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) (data []byte, err error) {
	err = s.read(ctx, key, func(at string) (err error) {
		data, err = s.Store.GetRange(ctx, at, offset, length)
		return err //nolint:wrapcheck // the bucket's own
	})
	return data, err
}

// GetTail reads the end of an object, likewise.
func (s *Store) GetTail(ctx context.Context, key string, n int64) (data []byte, size int64, err error) {
	err = s.read(ctx, key, func(at string) (err error) {
		data, size, err = s.Store.GetTail(ctx, at, n)
		return err //nolint:wrapcheck // the bucket's own
	})
	return data, size, err
}
