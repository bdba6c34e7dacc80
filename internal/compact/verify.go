package compact

import (
	"context"
	"errors"
	"fmt"

	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/schema"
	"lancekeeper/internal/objstore"
)

// MismatchError says that what was written is not what was read. It must never be committed, and compaction of the dataset
// stops.
type MismatchError struct {
	File   string // key of the new data file
	Column string // empty where the rows do not add up
	Detail string
}

// Error names the file and the column.
func (e *MismatchError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("rewritten file %s differs from its input: %s", e.File, e.Detail)
	}
	return fmt.Sprintf("rewritten file %s differs from its input in column %q: %s", e.File, e.Column, e.Detail)
}

// Verify reads every new data file back from the store and compares rows, a hash of each column's values in order, and one of each copied
// page, with what was read from the fragments that it replaces. *MismatchError where they differ or the file can't be read whole.
func Verify(ctx context.Context, store objstore.Store, m *manifest.Manifest, out *Output) error {
	columns, err := schema.Columns(m.GetFields())
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	_, minor, _ := manifest.FileVersion(m)
	layout, err := schema.Lay(columns, minor)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	var before, after uint64
	for _, f := range out.Group.Old {
		before += live(f)
	}
	v := verifier{store: store, columns: columns, layout: layout, minor: minor, memory: out.memory}
	for i, f := range out.Group.New {
		after += f.GetPhysicalRows()
		if err := v.file(ctx, f, out.Keys[i], out.columns[i]); err != nil {
			return err
		}
	}
	if before != after {
		return &MismatchError{File: fmt.Sprint(out.Keys), Detail: fmt.Sprintf("%d live rows before, %d after", before, after)}
	}
	return nil
}

type verifier struct {
	store   objstore.Store
	columns []schema.Column
	layout  schema.Physical
	minor   int
	memory  int64 // for pages read ahead
}

// file verifies the one file of a new fragment.
func (v *verifier) file(ctx context.Context, f *lancepb.DataFragment, key string, segments [][]segment) error {
	r, err := datafile.Open(ctx, v.store, key, int64(f.GetFiles()[0].GetFileSizeBytes()))
	if err != nil {
		return unreadable(ctx, key, "", err)
	}
	if r.Rows() != f.GetPhysicalRows() || r.Columns() != len(v.layout.Fields) || r.Minor() != v.minor {
		return &MismatchError{File: key, Detail: fmt.Sprintf("%d rows in %d columns of file version 2.%d, should be %d in %d of 2.%d",
			r.Rows(), r.Columns(), r.Minor(), f.GetPhysicalRows(), len(v.layout.Fields), v.minor)}
	}
	for i, c := range v.columns {
		leaf, err := r.Leaf(ctx, v.layout.Leaves[i], c.Type, c.Layers)
		if err != nil {
			return unreadable(ctx, key, c.Name, err)
		}
		if err := v.column(ctx, leaf, c.Type, segments[i]); err != nil {
			return unreadable(ctx, key, c.Name, err)
		}
	}
	return nil
}

// stored is one part of a new column, and the segment that it is of.
type stored struct {
	leaf *datafile.Leaf
	part int
	of   segment
	last bool // part of the segment
}

func (s stored) weight() int64 { return s.leaf.Weight(s.part) }

// readBack is what was read of a part.
type readBack struct {
	stored
	chunk
}

func (s stored) read(ctx context.Context) (readBack, error) {
	if !s.of.copied {
		block, err := s.leaf.Read(ctx, s.part)
		return readBack{s, chunk{block: block}}, err //nolint:wrapcheck // wrapped by the caller
	}
	page, err := s.leaf.ReadRaw(ctx, s.part)
	if err != nil {
		return readBack{}, err //nolint:wrapcheck // wrapped by the caller
	}
	return readBack{s, chunk{page: page, sum: page.Sum()}}, nil
}

// errDiffers: a new column is not what it should be.
var errDiffers = errors.New("not what was read")

// column compares a new column with what it should be.
func (v *verifier) column(ctx context.Context, leaf *datafile.Leaf, t encoding.Type, segments []segment) error {
	parts, err := match(leaf, segments)
	if err != nil {
		return err
	}
	hasher := encoding.NewHasher(t)
	return inOrder(ctx, parts, v.memory, func(ctx context.Context, s stored) (readBack, error) { return s.read(ctx) }, func(r readBack) error {
		sum := r.sum
		if !r.of.copied {
			hasher.Add(r.block)
			if !r.last {
				return nil
			}
			sum, hasher = hasher.Sum(), encoding.NewHasher(t)
		}
		if sum != r.of.sum {
			return fmt.Errorf("%w: hash %016x of %d rows, should be %016x", errDiffers, sum, r.of.rows, r.of.sum)
		}
		return nil
	})
}

// match finds the parts of each segment.
func match(leaf *datafile.Leaf, segments []segment) ([]stored, error) {
	var parts []stored
	for _, s := range segments {
		var rows uint64
		for rows < s.rows && len(parts) < leaf.Parts() && (rows == 0 || !s.copied) {
			rows += uint64(leaf.Rows(len(parts)))
			parts = append(parts, stored{leaf: leaf, part: len(parts), of: s, last: rows == s.rows})
		}
		if rows != s.rows {
			return nil, fmt.Errorf("%w: pages end at row %d behind another's end, should at %d", errDiffers, rows, s.rows)
		}
	}
	if len(parts) != leaf.Parts() {
		return nil, fmt.Errorf("%w: %d pages, should be %d", errDiffers, leaf.Parts(), len(parts))
	}
	return parts, nil
}

// unreadable tells a store that does not answer, which proves nothing, from a file that can't be decoded.
func unreadable(ctx context.Context, key, column string, err error) error {
	if ctx.Err() != nil || errors.Is(err, objstore.ErrThrottled) || errors.Is(err, objstore.ErrDenied) || !decoding(err) && !errors.Is(err, errDiffers) {
		return fmt.Errorf("verify %s: %w", key, err)
	}
	return &MismatchError{File: key, Column: column, Detail: err.Error()}
}
