package manifeststore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/objstore"
)

// forgetParallel is how many rows are removed at once.
const forgetParallel = 16

// Delete removes objects, and the rows of versions with their manifests: the manifest first, so that a kill in between leaves
// a row that names nothing, which harms no reader of an older version, and which Tidy removes. The latest version
// is finished before anything goes, and never goes itself. A staged manifest that a row names is published first, or, where its
// version had been removed already, its row goes before it: else a reader could bring that version back.
func (s *Store) Delete(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	latest, err := s.finished(ctx)
	if err != nil {
		return nil, err
	}
	var versions []uint64
	for _, key := range keys {
		if version, ok := attached(key); ok {
			if version >= latest.Version {
				return nil, lance.Unsupported("delete", fmt.Sprintf("of version %d, where the table's latest is %d", version, latest.Version), s.uri)
			}
			versions = append(versions, version)
		}
		if err := s.settle(ctx, key); err != nil {
			return nil, err
		}
	}
	rows, err := s.rows(ctx, versions)
	if err != nil {
		return nil, err
	}
	failed, err := s.Store.Delete(ctx, keys)
	if err != nil {
		return failed, err //nolint:wrapcheck // the bucket's own
	}
	for _, f := range failed {
		if version, ok := attached(f.Key); ok {
			delete(rows, version)
		}
	}
	return failed, s.forget(ctx, rows)
}

// settle makes sure that no row names a staged manifest that is about to go.
func (s *Store) settle(ctx context.Context, key string) error {
	version, ok := staging(key)
	if !ok {
		return nil
	}
	row, found, err := s.table.Row(ctx, version)
	if err != nil {
		return fmt.Errorf("ask the table for version %d: %w", version, err)
	}
	if !found || row.Path != key {
		return nil
	}
	final, _, err := finalOf(row)
	if err != nil {
		return err
	}
	_, err = s.Store.Stat(ctx, final)
	switch {
	case errors.Is(err, objstore.ErrNotExist) && s.removed(version):
		return s.forget(ctx, map[uint64]Row{version: row})
	case errors.Is(err, objstore.ErrNotExist):
		err = s.publish(ctx, row)
	}
	if err != nil {
		return fmt.Errorf("finish version %d, which another left staged: %w", version, err)
	}
	return s.repoint(ctx, row)
}

// removed says whether a version lies below all that were listed: then a clean-up has taken it.
func (s *Store) removed(version uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for listed := range s.listed {
		if listed < version {
			return false
		}
	}
	return s.listed != nil
}

// rows are those of versions that are about to go. Where one names a staged object, that goes first.
func (s *Store) rows(ctx context.Context, versions []uint64) (map[uint64]Row, error) {
	rows := map[uint64]Row{}
	if len(versions) == 0 {
		return rows, nil
	}
	first, last := slices.Min(versions), slices.Max(versions)
	all, err := s.table.Rows(ctx, first, last)
	if err != nil {
		return nil, fmt.Errorf("ask the table for versions %d to %d: %w", first, last, err)
	}
	wanted := map[uint64]struct{}{}
	for _, version := range versions {
		wanted[version] = struct{}{}
	}
	for _, row := range all {
		if _, ok := wanted[row.Version]; !ok {
			continue
		}
		final, staged, err := finalOf(row)
		if err != nil {
			return nil, err
		}
		if staged {
			if err := s.repoint(ctx, row); err != nil {
				return nil, err
			}
			row.Path = final
		}
		rows[row.Version] = row
	}
	return rows, nil
}

func (s *Store) forget(ctx context.Context, rows map[uint64]Row) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(forgetParallel)
	for _, row := range rows {
		group.Go(func() error {
			if err := s.table.Forget(inner, row); err != nil {
				return fmt.Errorf("remove the row of version %d, whose manifest is gone: %w", row.Version, err)
			}
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // wrapped inside
}

// Tidy removes the rows that Stale names.
func (s *Store) Tidy(ctx context.Context) error {
	stale, err := s.stale(ctx)
	if err != nil {
		return err
	}
	return s.forget(ctx, stale)
}

// Stale are the versions of rows that other clean-ups and killed passes have left, ascending: those below the latest that the
// last whole listing did not show. Without one there are none. A row that names a staged object is left alone: its version
// can still be brought back.
func (s *Store) Stale(ctx context.Context) ([]uint64, error) {
	stale, err := s.stale(ctx)
	return slices.Sorted(maps.Keys(stale)), err
}

func (s *Store) stale(ctx context.Context) (map[uint64]Row, error) {
	s.mu.Lock()
	listed := s.listed
	s.mu.Unlock()
	var newest uint64
	for version := range listed {
		newest = max(newest, version)
	}
	if newest < 2 {
		return map[uint64]Row{}, nil
	}
	rows, err := s.table.Rows(ctx, 1, newest-1)
	if err != nil {
		return nil, fmt.Errorf("ask the table for its rows: %w", err)
	}
	stale := map[uint64]Row{}
	for _, row := range rows {
		_, there := listed[row.Version]
		if _, staged, err := finalOf(row); !there && err == nil && !staged {
			stale[row.Version] = row
		}
	}
	return stale, nil
}
