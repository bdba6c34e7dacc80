package datafile

import (
	"context"
	"fmt"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/v20"
)

// Limits of what a part may decode to, beyond a multiple of its input: a page of nulls has no bytes at all.
const (
	maxBare  = 1 << 24 // entries that no byte accounts for
	perBytes = 8       // entries for each byte of the pages
)

// level is a column of lists.
type level struct {
	column int
	pages  []page
	starts []uint64 // for each page the position of its first list, and at last their number
	owned  []uint64 // for each page the position of the first item that its lists own, and at last the number of items
}

func (l *level) rows() uint64  { return l.starts[len(l.pages)] }
func (l *level) items() uint64 { return l.owned[len(l.pages)] }

// level finds the lists of a column. It reads nothing.
func (r *Reader) level(column int) (level, error) {
	l := level{column: column, pages: r.columns[column], starts: []uint64{0}, owned: []uint64{0}}
	for i, p := range l.pages {
		e, err := p.array()
		if err != nil {
			return l, fmt.Errorf("page %d of column %d: %w", i, column, err)
		}
		n, err := v20.Items(e)
		if err != nil {
			return l, fmt.Errorf("page %d of column %d: %w", i, column, err)
		}
		if int64(p.rows) > maxBare+perBytes*p.bytes() {
			return l, lance.Unsupported("page", fmt.Sprintf("of %d lists in %d bytes", p.rows, p.bytes()), "")
		}
		if n > maxLength-l.owned[i] {
			return l, lance.Corrupt("", "lists of more than %d items", uint64(maxLength))
		}
		l.starts = append(l.starts, l.starts[i]+uint64(p.rows))
		l.owned = append(l.owned, l.owned[i]+n)
	}
	return l, nil
}

// headers checks that a struct's column has one for each value.
func (r *Reader) headers(column int, values uint64) error {
	for i, p := range r.columns[column] {
		e, err := p.array()
		if err != nil {
			return fmt.Errorf("page %d of column %d: %w", i, column, err)
		}
		if !v20.IsHeader(e) {
			return lance.Unsupported("encoding", "of a struct", "")
		}
	}
	if n := total(r.columns[column]); n != values {
		return lance.Corrupt("", "%d structs in column %d, should be %d", n, column, values)
	}
	return nil
}

// walker looks lists up, at rising positions.
type walker struct {
	r     *Reader
	level *level
	page  int // that lists are of
	lists *v20.Lists
}

// list gives the items of the list at a position, and whether it is null.
func (w *walker) list(ctx context.Context, position uint64) (items v20.Span, null bool, err error) {
	at := w.page
	if w.lists == nil || position >= w.level.starts[at+1] || position < w.level.starts[at] {
		if position >= w.level.rows() {
			return items, false, lance.Corrupt("", "list %d of %d", position, w.level.rows())
		}
		at = pageOf(w.level.starts, position)
		if err := w.load(ctx, at); err != nil {
			return items, false, fmt.Errorf("page %d of column %d: %w", at, w.level.column, err)
		}
	}
	i, first := position-w.level.starts[at], w.level.owned[at]
	items = v20.Span{From: first, To: first + w.lists.Ends[i]}
	if i > 0 {
		items.From = first + w.lists.Ends[i-1]
	}
	return items, w.lists.Null[i], nil
}

// begin is where the items of the list at a position begin, and those of the last one end.
func (w *walker) begin(ctx context.Context, position uint64) (uint64, error) {
	if page := pageOf(w.level.starts, position); w.level.starts[page] == position {
		return w.level.owned[page], nil
	}
	items, _, err := w.list(ctx, position)
	return items.From, err
}

func (w *walker) load(ctx context.Context, page int) error {
	p := w.level.pages[page]
	e, err := p.array()
	if err != nil {
		return err
	}
	buffers, err := w.r.read(ctx, p.buffers)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	lists, err := v20.DecodeLists(e, buffers, p.rows)
	if err != nil {
		return err //nolint:wrapcheck // wrapped by the caller
	}
	w.page, w.lists = page, &lists
	return nil
}

// readNested reads the rows of a part, from the outermost lists inwards.
func (l *Leaf) readNested(ctx context.Context, p part) (*encoding.Block, error) {
	limit := uint64(maxBare + perBytes*p.bytes)
	if p.to-p.from > limit {
		return nil, lance.Unsupported("page", "of too many rows", "")
	}
	levels := v20.NewLevels(l.layers, p.from, p.to)
	for i := range l.lists {
		w := walker{r: l.r, level: &l.lists[i]}
		if err := levels.AddLists(limit, func(position uint64) (v20.Span, bool, error) { return w.list(ctx, position) }); err != nil {
			return nil, err //nolint:wrapcheck // wrapped by the caller
		}
	}
	values, err := l.values(ctx, levels.There())
	if err != nil {
		return nil, err
	}
	return levels.Block(values) //nolint:wrapcheck // wrapped by the caller
}

// values reads what stands at some positions of the column of values, positions rising.
func (l *Leaf) values(ctx context.Context, spans []v20.Span) (*encoding.Block, error) {
	pages := l.r.columns[l.column]
	first := starts(pages)
	builder := encoding.NewBuilder(l.t, 1)
	var block *encoding.Block // page last read
	read := -1
	for _, s := range spans {
		for s.From < s.To {
			at := pageOf(first, s.From)
			if at != read {
				var err error
				if block, err = l.r.readPage(ctx, l.column, at, l.t); err != nil {
					return nil, err
				}
				read = at
			}
			to := min(s.To, first[at+1])
			if err := builder.AppendRows(block, int(s.From-first[at]), int(to-first[at])); err != nil {
				return nil, err //nolint:wrapcheck // wrapped by the caller
			}
			s.From = to
		}
	}
	return builder.Take(builder.Rows()) //nolint:wrapcheck // wrapped by the caller
}
