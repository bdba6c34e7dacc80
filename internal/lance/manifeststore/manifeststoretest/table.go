// Package manifeststoretest keeps the rows of an external manifest store in memory, for tests.
package manifeststoretest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/manifeststore"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
)

// Table is a manifeststore.Table in memory. Make it with New.
type Table struct {
	Faults *faultstore.Store // what a killed process would not have written is not written; nil: no faults

	mu   sync.Mutex
	rows map[uint64]manifeststore.Row
}

// New returns a table with a finished row for each manifest among the keys of a store.
func New(keys []string) *Table {
	t := &Table{rows: map[uint64]manifeststore.Row{}}
	for _, key := range keys {
		base, ok := strings.CutPrefix(key, manifest.Folder)
		if name := manifest.ParseName(base); ok && name.Kind == manifest.Attached {
			t.Set(manifeststore.Row{Version: name.Version, Path: key})
		}
	}
	return t
}

// Set writes a row, whatever there was.
func (t *Table) Set(row manifeststore.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[row.Version] = row
}

// All are the rows, ascending.
func (t *Table) All() []manifeststore.Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.rows), func(a, b manifeststore.Row) int { return cmp.Compare(a.Version, b.Version) })
}

// Latest is the highest row.
func (t *Table) Latest(context.Context) (manifeststore.Row, bool, error) {
	all := t.All()
	if len(all) == 0 {
		return manifeststore.Row{}, false, nil
	}
	return all[len(all)-1], true, nil
}

// Row is one version's.
func (t *Table) Row(_ context.Context, version uint64) (manifeststore.Row, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row, found := t.rows[version]
	return row, found, nil
}

// Rows are those of some versions.
func (t *Table) Rows(_ context.Context, first, last uint64) ([]manifeststore.Row, error) {
	return slices.DeleteFunc(t.All(), func(r manifeststore.Row) bool { return r.Version < first || r.Version > last }), nil
}

// Claim is one mutation.
func (t *Table) Claim(ctx context.Context, row manifeststore.Row) error {
	return t.mutate(ctx, "row claim", row, func() error {
		if _, taken := t.rows[row.Version]; taken {
			return fmt.Errorf("claim version %d: %w", row.Version, objstore.ErrExists)
		}
		t.rows[row.Version] = row
		return nil
	})
}

// Repoint is one mutation.
func (t *Table) Repoint(ctx context.Context, row manifeststore.Row) error {
	return t.mutate(ctx, "row repoint", row, func() error {
		if _, there := t.rows[row.Version]; !there {
			return fmt.Errorf("finish version %d: %w", row.Version, objstore.ErrNotExist)
		}
		t.rows[row.Version] = row
		return nil
	})
}

// Forget is one mutation.
func (t *Table) Forget(ctx context.Context, row manifeststore.Row) error {
	return t.mutate(ctx, "row forget", row, func() error {
		if t.rows[row.Version].Path == row.Path {
			delete(t.rows, row.Version)
		}
		return nil
	})
}

func (t *Table) mutate(ctx context.Context, kind string, row manifeststore.Row, do func() error) error {
	locked := func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		return do()
	}
	if t.Faults == nil {
		return locked()
	}
	return t.Faults.Mutation(ctx, kind, row.Path, locked) //nolint:wrapcheck // a wrapper adds nothing
}
