package compact

import (
	"context"
	"errors"
	"fmt"

	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/encoding"
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

// Verify reads every new data file back from the store and compares rows, and a hash of each column's values in order, with
// what was read from the fragments that it replaces. *MismatchError where they differ or the file can't be read whole.
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
	for i, f := range out.Group.New {
		after += f.GetPhysicalRows()
		if err := verifyFile(ctx, store, columns, layout, out.Keys[i], f.GetPhysicalRows(), int64(f.GetFiles()[0].GetFileSizeBytes()), out.hashes[i]); err != nil {
			return err
		}
	}
	if before != after {
		return &MismatchError{File: fmt.Sprint(out.Keys), Detail: fmt.Sprintf("%d live rows before, %d after", before, after)}
	}
	return nil
}

func verifyFile(ctx context.Context, store objstore.Store, columns []schema.Column, layout schema.Physical, key string, rows uint64, size int64, hashes []uint64) error {
	r, err := datafile.Open(ctx, store, key, size)
	if err != nil {
		return unreadable(ctx, key, "", err)
	}
	if r.Rows() != rows || r.Columns() != len(layout.Fields) {
		return &MismatchError{File: key, Detail: fmt.Sprintf("%d rows in %d columns, should be %d in %d", r.Rows(), r.Columns(), rows, len(layout.Fields))}
	}
	for i, c := range columns {
		hasher := encoding.NewHasher(c.Type)
		leaf, err := r.Leaf(ctx, layout.Leaves[i], c.Type, c.Layers)
		if err != nil {
			return unreadable(ctx, key, c.Name, err)
		}
		for part := range leaf.Parts() {
			block, err := leaf.Read(ctx, part)
			if err != nil {
				return unreadable(ctx, key, c.Name, err)
			}
			hasher.Add(block)
		}
		if sum := hasher.Sum(); sum != hashes[i] {
			return &MismatchError{File: key, Column: c.Name, Detail: fmt.Sprintf("hash %016x of its values, should be %016x", sum, hashes[i])}
		}
	}
	return nil
}

// unreadable tells a store that does not answer, which proves nothing, from a file that can't be decoded.
func unreadable(ctx context.Context, key, column string, err error) error {
	if ctx.Err() != nil || errors.Is(err, objstore.ErrThrottled) || errors.Is(err, objstore.ErrDenied) || !decoding(err) {
		return fmt.Errorf("verify %s: %w", key, err)
	}
	return &MismatchError{File: key, Column: column, Detail: err.Error()}
}
