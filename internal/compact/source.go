package compact

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/schema"
	"lancekeeper/internal/objstore"
)

// FragmentError is a fault of one fragment's own files: trying it again in the same pass is of no use.
type FragmentError struct {
	Fragment uint64
	Err      error
}

// Error names the fragment.
func (e *FragmentError) Error() string { return fmt.Sprintf("fragment %d: %v", e.Fragment, e.Err) }

// Unwrap gives the cause.
func (e *FragmentError) Unwrap() error { return e.Err }

// noColumn is the column of a struct that a file does not have.
const noColumn = -1

// openParallel is how many files are opened at once: small ones are bound by requests.
const openParallel = 32

// source is a fragment to read rows from.
type source struct {
	fragment *lancepb.DataFragment
	deleted  *roaring.Bitmap // nil if none
	files    []*datafile.Reader
	columns  []*datafile.Leaf // where each column of the schema is; nil: the fragment does not have it
	live     uint64
}

// openSources opens all files of a task, of which a file of version 2.minor is to be made. What they keep in memory together is at most keep bytes, where that can be helped:
// the content of small files beyond that is read again when needed.
func openSources(ctx context.Context, store objstore.Store, task Task, columns []schema.Column, minor int, keep int64) ([]*source, error) {
	sources := make([]*source, len(task.Fragments))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(openParallel)
	var held atomic.Int64
	for i, f := range task.Fragments {
		group.Go(func() error {
			s, err := openSource(inner, store, f, columns, minor)
			if err != nil {
				return blame(inner, f.GetId(), err)
			}
			for _, r := range s.files {
				if content := r.Held(); held.Add(content) > keep {
					r.Shed()
					held.Add(r.Held() - content)
				}
			}
			sources[i] = s
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err //nolint:wrapcheck // names the fragment already
	}
	return sources, nil
}

func openSource(ctx context.Context, store objstore.Store, f *lancepb.DataFragment, columns []schema.Column, minor int) (*source, error) {
	s := &source{fragment: f, live: live(f)}
	var err error
	if s.deleted, err = dataset.ReadDeletions(ctx, store, f); err != nil {
		return nil, fmt.Errorf("read its deletions: %w", err)
	}
	if s.deleted != nil && s.deleted.GetCardinality() != f.GetPhysicalRows()-s.live {
		return nil, lance.Corrupt("", "%d rows are deleted, the manifest says %d", s.deleted.GetCardinality(), f.GetPhysicalRows()-s.live)
	}
	for _, file := range f.GetFiles() {
		key := dataset.DataFolder + file.GetPath()
		r, err := datafile.Open(ctx, store, key, int64(file.GetFileSizeBytes()))
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		if r.Rows() != f.GetPhysicalRows() {
			return nil, lance.Corrupt(key, "it has %d rows, the manifest says %d", r.Rows(), f.GetPhysicalRows())
		}
		s.files = append(s.files, r)
	}
	missing := map[int32]bool{} // by top-level field: whether the fragment has none of it
	for _, c := range columns {
		leaf, err := s.find(ctx, c, minor)
		if err != nil {
			return nil, err
		}
		if before, known := missing[c.Top]; known && before != (leaf == nil) {
			return nil, lance.Unsupported("column", "of which a part was added later", "column "+c.Name)
		}
		missing[c.Top] = leaf == nil
		s.columns = append(s.columns, leaf)
	}
	return s, nil
}

// find looks a column up in the fragment's files. One that is in none was added later: its rows are null, and nil is returned.
func (s *source) find(ctx context.Context, c schema.Column, minor int) (*datafile.Leaf, error) {
	var found *datafile.Leaf
	for i, file := range s.fragment.GetFiles() {
		key := dataset.DataFolder + file.GetPath()
		if len(file.GetFields()) != len(file.GetColumnIndices()) {
			return nil, lance.Corrupt(key, "the manifest names %d fields and %d columns of it", len(file.GetFields()), len(file.GetColumnIndices()))
		}
		at := slices.Index(file.GetFields(), c.Field)
		if at < 0 {
			continue
		}
		if found != nil || slices.Contains(file.GetFields()[at+1:], c.Field) {
			return nil, lance.Corrupt(key, "column %q is there twice", c.Name)
		}
		var columns []int
		for _, field := range c.Stored(s.files[i].Minor()) {
			column := noColumn
			if at := slices.Index(file.GetFields(), field); at >= 0 {
				column = int(file.GetColumnIndices()[at])
			}
			columns = append(columns, column)
		}
		var err error
		if found, err = s.files[i].Leaf(ctx, columns, c.Type, c.Layers); err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	if found == nil && !c.Nullable {
		return nil, lance.Corrupt("", "no file has column %q, which can't be null", c.Name)
	}
	if found == nil && !c.CanBeNull(minor) {
		return nil, lance.Unsupported("null struct", "in file version 2.0", "column "+c.Name+", which was added later")
	}
	return found, nil
}

// position is the physical row of the n-th live row, counted from 0; the physical row count where there are no more.
func (s *source) position(n uint64) int {
	rows := int(s.fragment.GetPhysicalRows())
	if s.deleted == nil {
		return min(int(n), rows)
	}
	low, high := 0, rows // the answer is the first row with more than n live rows at or before it
	for low < high {
		middle := (low + high) / 2
		if uint64(middle+1)-s.deleted.Rank(uint32(middle)) > n {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// piece is one part, or a run of rows that are not stored, of one column of a source; rows [from, to) of it are wanted.
type piece struct {
	source *source
	leaf   *datafile.Leaf // nil: not stored
	part   int
	first  int // physical row of the part's first row
	rows   int
	from   int // physical rows wanted
	to     int
}

// pieces lists what to read of a column for the live rows [skip, skip+n) of the sources, in order.
func pieces(sources []*source, column int, skip, n uint64) []piece {
	var out []piece
	for _, s := range sources {
		if n == 0 {
			break
		}
		if skip >= s.live {
			skip -= s.live
			continue
		}
		take := min(n, s.live-skip)
		from, to := s.position(skip), s.position(skip+take)
		n, skip = n-take, 0
		leaf := s.columns[column]
		if leaf == nil {
			out = append(out, piece{source: s, rows: int(s.fragment.GetPhysicalRows()), from: from, to: to})
			continue
		}
		first := 0
		for i := range leaf.Parts() {
			rows := leaf.Rows(i)
			if first+rows > from && first < to {
				out = append(out, piece{source: s, leaf: leaf, part: i, first: first, rows: rows, from: max(from, first), to: min(to, first+rows)})
			}
			first += rows
		}
	}
	return out
}

// weight is about what the piece takes in memory while it is read.
func (p piece) weight() int64 {
	if p.leaf == nil {
		return int64(p.rows)
	}
	return p.leaf.Weight(p.part)
}

// bytes is about what is read from the store for the piece.
func (p piece) bytes() int64 {
	if p.leaf == nil {
		return 0
	}
	return p.leaf.Bytes(p.part)
}

// whole says whether all rows of the part are wanted and live.
func (p piece) whole() bool {
	end := p.first + p.rows
	return p.from == p.first && p.to == end && (p.source.deleted == nil || p.source.deleted.CardinalityInRange(uint64(p.first), uint64(end)) == 0)
}

// deleted gives a function that says whether a row is deleted; it is asked of rising rows, the first being one of the part's.
func (p piece) deleted() func(row uint32) bool {
	if p.source.deleted == nil {
		return func(uint32) bool { return false }
	}
	rows := p.source.deleted.Iterator()
	return func(row uint32) bool {
		for rows.HasNext() && rows.PeekNext() < row {
			rows.AdvanceIfNeeded(row)
		}
		return rows.HasNext() && rows.PeekNext() == row
	}
}

// movable says whether the piece is a page, all of whose rows are wanted, that a file of version 2.minor can have as it is.
func (p piece) movable(minor int) bool {
	return p.leaf != nil && p.leaf.Movable() && p.leaf.Minor() == minor && p.rows > 0 && p.whole()
}

// copy gives a movable page as it is. It is decoded once all the same, so that a damaged one is found here; one whose rows are right
// and nothing else is, is given as rows.
func (p piece) copy(ctx context.Context) (chunk, error) {
	page, err := p.leaf.ReadRaw(ctx, p.part)
	if err != nil {
		return chunk{}, blame(ctx, p.source.fragment.GetId(), err)
	}
	sum := page.Sum()
	block, err := p.leaf.Decode(p.part, page)
	if err != nil {
		return chunk{}, blame(ctx, p.source.fragment.GetId(), err)
	}
	if !page.Sound(block) {
		return chunk{block: block}, nil
	}
	return chunk{page: page, sum: sum}, nil
}

// read gives the wanted live rows of the piece; nil if there are none.
func (p piece) read(ctx context.Context, t encoding.Type, layers []encoding.Layer) (*encoding.Block, error) {
	s := p.source
	if p.leaf == nil {
		n := p.to - p.from
		if s.deleted != nil {
			n -= int(s.deleted.CardinalityInRange(uint64(p.from), uint64(p.to)))
		}
		if n == 0 {
			return nil, nil //nolint:nilnil // nothing is wanted
		}
		return encoding.Nulls(t, layers, n), nil
	}
	block, err := p.leaf.Read(ctx, p.part)
	if err != nil {
		return nil, blame(ctx, s.fragment.GetId(), err)
	}
	if p.whole() {
		return block, nil
	}
	deleted := p.deleted()
	kept, err := encoding.Drop(t, block, func(row int) bool {
		row += p.first
		return row < p.from || row >= p.to || deleted(uint32(row))
	})
	if err != nil {
		return nil, blame(ctx, s.fragment.GetId(), err)
	}
	if kept.Rows == 0 {
		return nil, nil //nolint:nilnil // nothing is wanted
	}
	return kept, nil
}
