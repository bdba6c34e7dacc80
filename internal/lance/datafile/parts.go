package datafile

import (
	"context"
	"sort"

	"lancekeeper/internal/lance/encoding/v20"
)

// How rows of lists of file version 2.0 are cut into parts: a page of a million lists may own gigabytes of items.
const (
	partBytes  = 16 << 20 // to aim for: what a part takes in memory, with the pages to read for it
	levelBytes = 12       // that a list or item takes beside its value: levels, offset, validity
)

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
	c := cutter{parts: []part{}}
	for i := range l.lists {
		c.columns = append(c.columns, extentOf(l.lists[i].pages, l.lists[i].starts, levelBytes, func(page) bool { return true }))
	}
	values := l.r.columns[l.column]
	c.columns = append(c.columns, extentOf(values, starts(values), levelBytes+l.t.Width(), func(p page) bool {
		e, err := p.array()
		return err == nil && v20.Partly(l.t, e)
	}))
	outer := &l.lists[0]
	for i := range outer.pages {
		first, last := outer.starts[i], outer.starts[i+1]
		if first == last {
			continue
		}
		from, to := []uint64{first, outer.owned[i]}, []uint64{last, outer.owned[i+1]}
		for j := range l.lists[1:] {
			begin, end := l.lists[j+1].around(from[j+1], to[j+1])
			from, to = append(from, begin), append(to, end)
		}
		if c.weight(from, to) <= partBytes || last-first == 1 {
			c.add(from, to)
			continue
		}
		at, err := l.positions(ctx, first, last)
		if err != nil {
			return err
		}
		c.cut(at)
	}
	l.parts = c.parts
	return nil
}

// around gives the items of all pages that hold some of the lists [from, to).
func (l *level) around(from, to uint64) (first, last uint64) {
	if from == to {
		return 0, 0
	}
	return l.owned[pageOf(l.starts, from)], l.owned[pageOf(l.starts, to-1)+1]
}

// positions gives for lists [first, last) of the outermost ones where each begins, and at last where they end: in their own column, in each
// one of lists within them, and in that of the values.
func (l *Leaf) positions(ctx context.Context, first, last uint64) ([][]uint64, error) {
	rows := make([]uint64, last-first+1) // each has some bytes in the file
	for i := range rows {
		rows[i] = first + uint64(i)
	}
	at := [][]uint64{rows}
	for i := range l.lists {
		w := walker{r: l.r, level: &l.lists[i], from: at[i][0], to: at[i][len(rows)-1] + 1}
		items := make([]uint64, len(rows))
		for j, position := range at[i] {
			var err error
			if items[j], err = w.begin(ctx, position); err != nil {
				return nil, err
			}
		}
		at = append(at, items)
	}
	return at, nil
}

// extent is where the pages of a column are.
type extent struct {
	starts []uint64
	bytes  []int64 // for each page what those before it have, and at last what all have
	partly []bool  // for each page whether some of its values can be read without the others
	each   int64   // bytes that a value takes in memory
}

func extentOf(pages []page, starts []uint64, each int, partly func(page) bool) extent {
	e := extent{starts: starts, bytes: []int64{0}, each: int64(each)}
	for i, p := range pages {
		e.bytes = append(e.bytes, e.bytes[i]+p.bytes())
		e.partly = append(e.partly, partly(p))
	}
	return e
}

func starts(pages []page) []uint64 {
	out := []uint64{0}
	for i, p := range pages {
		out = append(out, out[i]+uint64(p.rows))
	}
	return out
}

// pageOf is the page that holds a position; the last one, if there are several that begin there.
func pageOf(starts []uint64, position uint64) int {
	return sort.Search(len(starts), func(i int) bool { return starts[i] > position }) - 1
}

// pages are about the bytes to read for values [from, to).
func (e *extent) pages(from, to uint64) int64 {
	if from == to {
		return 0
	}
	first, last := pageOf(e.starts, from), pageOf(e.starts, to-1)
	n := e.bytes[last+1] - e.bytes[first]
	if e.partly[first] {
		n -= e.share(first, from-e.starts[first])
	}
	if e.partly[last] {
		n -= e.share(last, e.starts[last+1]-to)
	}
	return n
}

// share is about the bytes of so many values of a page.
func (e *extent) share(page int, values uint64) int64 {
	return int64(float64(e.bytes[page+1]-e.bytes[page]) * float64(values) / float64(e.starts[page+1]-e.starts[page]))
}

// cutter makes parts.
type cutter struct {
	columns []extent // of lists, outermost first, and of values
	parts   []part
}

// pages are about the bytes to read for what lies between two places in each column.
func (c *cutter) pages(from, to []uint64) int64 {
	var n int64
	for i := range c.columns {
		n += c.columns[i].pages(from[i], to[i])
	}
	return n
}

// weight is about what that takes in memory, with the pages that are read for it.
func (c *cutter) weight(from, to []uint64) int64 {
	n := c.pages(from, to)
	for i := range c.columns {
		n += int64(to[i]-from[i]) * c.columns[i].each
	}
	return n
}

func (c *cutter) add(from, to []uint64) {
	c.parts = append(c.parts, part{from: from[0], to: to[0], bytes: c.pages(from, to), weight: c.weight(from, to)})
}

// cut makes parts of rows that begin at some places, at last where they end: as many rows as are not too much. What the first row
// needs does not count: else a large page that can only be read whole would be read again for every few rows.
func (c *cutter) cut(at [][]uint64) {
	from, to := make([]uint64, len(at)), make([]uint64, len(at))
	place := func(into []uint64, row int) {
		for k, column := range at {
			into[k] = column[row]
		}
	}
	rows := len(at[0]) - 1
	for i := 0; i < rows; {
		place(from, i)
		for k := range to {
			to[k] = min(from[k]+1, at[k][rows])
		}
		room := partBytes + c.pages(from, to)
		j := i + 1
		for ; j < rows; j++ {
			if place(to, j+1); c.weight(from, to) > room {
				break
			}
		}
		place(to, j)
		c.add(from, to)
		i = j
	}
}
