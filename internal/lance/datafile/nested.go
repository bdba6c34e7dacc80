package datafile

import (
	"context"
	"fmt"
	"sort"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/v20"
)

// How rows of lists of file version 2.0 are cut into parts: a page of a million lists may own gigabytes of items.
const (
	partBytes  = 16 << 20 // to aim for, of a part's values in memory and of the pages to read for them
	levelBytes = 12       // that an item takes beside its value: levels, offset, validity
)

// Limits of what a part may decode to, beyond a multiple of its input: a page of nulls has no bytes at all.
const (
	maxBare  = 1 << 27 // entries that no byte accounts for
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

// part is a run of rows.
type part struct {
	from, to      uint64
	bytes, weight int64
}

// plan cuts the rows of a column within lists into parts. Lists are read only where those of one page own too much for one part.
func (l *Leaf) plan(ctx context.Context) error {
	if len(l.lists) == 0 {
		return nil
	}
	c := cutter{l: l, starts: starts(l.r.columns[l.column]), bytes: []int64{0}, parts: []part{}}
	for i, p := range l.r.columns[l.column] {
		c.bytes = append(c.bytes, c.bytes[i]+p.bytes())
	}
	outer := &l.lists[0]
	for i, p := range outer.pages {
		if p.rows == 0 {
			continue
		}
		from, to := outer.owned[i], outer.owned[i+1]
		for j := range l.lists[1:] {
			from, to = l.lists[j+1].around(from, to)
		}
		if c.weight(from, to) <= partBytes || p.rows == 1 {
			c.add(outer.starts[i], outer.starts[i+1], from, to)
			continue
		}
		if err := c.cut(ctx, i); err != nil {
			return err
		}
	}
	l.parts = c.parts
	return nil
}

func starts(pages []page) []uint64 {
	out := []uint64{0}
	for i, p := range pages {
		out = append(out, out[i]+uint64(p.rows))
	}
	return out
}

// around gives the items of all pages that hold some of the lists [from, to).
func (l *level) around(from, to uint64) (first, last uint64) {
	if from == to {
		return 0, 0
	}
	return l.owned[pageOf(l.starts, from)], l.owned[pageOf(l.starts, to-1)+1]
}

// pageOf is the page that holds a position; the last one, if there are several that begin there.
func pageOf(starts []uint64, position uint64) int {
	return sort.Search(len(starts), func(i int) bool { return starts[i] > position }) - 1
}

// cutter makes parts.
type cutter struct {
	l      *Leaf
	starts []uint64 // of the pages of values
	bytes  []int64  // for each of them what those before it have, and at last what all have
	parts  []part
}

// pages are the bytes of the pages that hold values [from, to).
func (c *cutter) pages(from, to uint64) int64 {
	if from == to {
		return 0
	}
	return c.bytes[pageOf(c.starts, to-1)+1] - c.bytes[pageOf(c.starts, from)]
}

// weight is about what values [from, to) take in memory, with the pages that are read for them.
func (c *cutter) weight(from, to uint64) int64 {
	return c.pages(from, to) + int64(to-from)*int64(c.l.t.Width()+levelBytes)
}

// add makes a part of the rows [first, last), whose values are [from, to).
func (c *cutter) add(first, last, from, to uint64) {
	p := part{from: first, to: last, bytes: c.pages(from, to), weight: c.weight(from, to)}
	outer := &c.l.lists[0]
	for i := pageOf(outer.starts, first); i < len(outer.pages) && outer.starts[i] < last; i++ {
		p.bytes += outer.pages[i].bytes()
		p.weight += outer.pages[i].bytes()
	}
	c.parts = append(c.parts, p)
}

// cut makes parts of the rows of one page of the outermost lists: as many rows as are not too much. The first page of values
// has to be read whatever the part, so it does not count: else a large page would be read again for every few rows.
func (c *cutter) cut(ctx context.Context, index int) error {
	at, err := c.l.ends(ctx, index)
	if err != nil {
		return err
	}
	row := c.l.lists[0].starts[index]
	for i := 0; i < len(at)-1; {
		from, j := at[i], i+1
		room := partBytes + c.pages(from, min(from+1, at[len(at)-1]))
		for j < len(at)-1 && c.weight(from, at[j+1]) <= room {
			j++
		}
		c.add(row+uint64(i), row+uint64(j), from, at[j])
		i = j
	}
	return nil
}

// ends gives for one page of the outermost lists where in the column of values the items of each list begin, and at last where
// they end.
func (l *Leaf) ends(ctx context.Context, index int) ([]uint64, error) {
	outer := &l.lists[0]
	first := outer.starts[index]
	at := make([]uint64, outer.pages[index].rows+1) // its lists have bytes
	for i := range at {
		at[i] = first + uint64(i)
	}
	for i := range l.lists {
		w := walker{r: l.r, level: &l.lists[i]}
		for j, position := range at {
			var err error
			if at[j], err = w.begin(ctx, position); err != nil {
				return nil, err
			}
		}
	}
	return at, nil
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
	if p.to-p.from > uint64(maxBare+perBytes*p.bytes) {
		return nil, lance.Unsupported("page", "of too many rows", "")
	}
	levels := v20.NewLevels(l.layers, p.from, p.to)
	for i := range l.lists {
		w := walker{r: l.r, level: &l.lists[i]}
		limit := uint64(maxBare + perBytes*p.bytes)
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
