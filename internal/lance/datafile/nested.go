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

// headers is the number of structs in a column of them.
func (r *Reader) headers(column int) (uint64, error) {
	for i, p := range r.columns[column] {
		e, err := p.array()
		if err != nil {
			return 0, fmt.Errorf("page %d of column %d: %w", i, column, err)
		}
		if !v20.IsHeader(e) {
			return 0, lance.Unsupported("encoding", "of a struct", "")
		}
	}
	return total(r.columns[column]), nil
}

// walker looks lists up, at rising positions from one to another. It reads no others.
type walker struct {
	r        *Reader
	level    *level
	from, to uint64

	at    v20.Span // positions of those read
	lists v20.Lists
	first uint64 // item that the first of them begins at, counted from items
	items uint64 // position of the page's first item
}

// list gives the items of the list at a position, and whether it is null.
func (w *walker) list(ctx context.Context, position uint64) (items v20.Span, null bool, err error) {
	if position >= w.at.To {
		if position >= w.level.rows() || position >= w.to {
			return items, false, lance.Corrupt("", "list %d of %d", position, w.level.rows())
		}
		page := pageOf(w.level.starts, position)
		if err := w.load(ctx, page); err != nil {
			return items, false, fmt.Errorf("page %d of column %d: %w", page, w.level.column, err)
		}
	}
	i := position - w.at.From
	items = v20.Span{From: w.items + w.first, To: w.items + w.lists.Ends[i]}
	if i > 0 {
		items.From = w.items + w.lists.Ends[i-1]
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

// load reads the wanted lists of a page.
func (w *walker) load(ctx context.Context, index int) error {
	p, start := w.level.pages[index], w.level.starts[index]
	e, err := p.array()
	if err != nil {
		return err
	}
	from, to := max(w.from, start), min(w.to, w.level.starts[index+1])
	w.lists, w.first, err = v20.DecodeListRows(e, w.r.buffers(ctx, p), p.rows, int(from-start), int(to-start))
	w.at, w.items = v20.Span{From: from, To: to}, w.level.owned[index]
	return err //nolint:wrapcheck // wrapped by the caller
}

// buffers are those of a page, to be read in part.
func (r *Reader) buffers(ctx context.Context, p page) v20.Buffers {
	b := v20.Buffers{Read: func(ranges []v20.Range) ([][]byte, error) {
		spans := make([]span, len(ranges))
		for i, part := range ranges {
			if part.From < 0 || part.From > part.To || part.To > p.buffers[part.Buffer].size {
				return nil, lance.Corrupt("", "bytes %d to %d of a buffer of %d", part.From, part.To, p.buffers[part.Buffer].size)
			}
			spans[i] = span{p.buffers[part.Buffer].at + part.From, part.To - part.From}
		}
		return r.read(ctx, spans)
	}}
	for _, s := range p.buffers {
		b.Sizes = append(b.Sizes, s.size)
	}
	return b
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
		if there := levels.There(); len(there) > 0 {
			w.from, w.to = there[0].From, there[len(there)-1].To
		}
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

// values reads what stands at some positions of the column of values, positions rising. It uses the spans up.
func (l *Leaf) values(ctx context.Context, spans []v20.Span) (*encoding.Block, error) {
	pages := l.r.columns[l.column]
	first := starts(pages)
	builder := encoding.NewBuilder(l.t, 1)
	for len(spans) > 0 {
		if spans[0].From == spans[0].To {
			spans = spans[1:]
			continue
		}
		at := pageOf(first, spans[0].From)
		from, to := spans[0].From, spans[0].From // of what is wanted of the page
		for _, s := range spans {
			if s.From >= first[at+1] {
				break
			}
			to = max(to, min(s.To, first[at+1]))
		}
		block, err := l.r.readRows(ctx, l.column, at, l.t, int(from-first[at]), int(to-first[at]))
		if err != nil {
			return nil, err
		}
		for len(spans) > 0 && spans[0].From < to {
			end := min(spans[0].To, to)
			if err := builder.AppendRows(block, int(spans[0].From-from), int(end-from)); err != nil {
				return nil, err //nolint:wrapcheck // wrapped by the caller
			}
			if spans[0].To > to {
				spans[0].From = to
				break
			}
			spans = spans[1:]
		}
	}
	return builder.Take(builder.Rows()) //nolint:wrapcheck // wrapped by the caller
}

// readRows reads and decodes rows [from, to) of a page of values of file version 2.0.
func (r *Reader) readRows(ctx context.Context, column, index int, t encoding.Type, from, to int) (*encoding.Block, error) {
	p := r.columns[column][index]
	e, err := p.array()
	if err != nil {
		return nil, fmt.Errorf("page %d of column %d: %w", index, column, err)
	}
	block, err := v20.DecodeRows(t, e, r.buffers(ctx, p), p.rows, from, to)
	if err != nil {
		return nil, fmt.Errorf("page %d of column %d: %w", index, column, err)
	}
	return block, nil
}
