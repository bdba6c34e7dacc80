package datafile

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

// Leaf gives the rows of one leaf column of a file, in parts that are read each by itself. Its methods may be called concurrently.
type Leaf struct {
	r      *Reader
	t      encoding.Type
	layers []encoding.Layer
	column int     // of the values
	lists  []level // file version 2.0: the lists around them, outermost first
	parts  []part  // nil where each page of the column is one
}

// Leaf finds the leaf column of type t with the given structural layers, innermost first, in the columns that hold it, outermost
// first: all from the top to the leaf in file version 2.0, else one. Column -1 is a struct's that the file does not have.
// ErrCorrupt where their pages do not fit together.
func (r *Reader) Leaf(ctx context.Context, columns []int, t encoding.Type, layers []encoding.Layer) (*Leaf, error) {
	l := &Leaf{r: r, t: t, layers: layers}
	if want := columnsOf(r.minor, len(layers)); len(columns) != want || want == 0 {
		return nil, lance.Corrupt(r.key, "%d columns of a leaf of %d structural layers", len(columns), len(layers))
	}
	for _, c := range columns {
		if c >= len(r.columns) || c < 0 && c != noColumn {
			return nil, lance.Corrupt(r.key, "column %d of %d", c, len(r.columns))
		}
	}
	if err := l.find(columns); err != nil {
		return nil, fmt.Errorf("columns %v of %s: %w", columns, r.key, err)
	}
	if err := l.plan(ctx); err != nil {
		return nil, fmt.Errorf("columns %v of %s: %w", columns, r.key, err)
	}
	return l, nil
}

// columnsOf is how many columns hold a leaf of so many structural layers.
func columnsOf(minor, layers int) int {
	if minor == 0 {
		return layers
	}
	return min(layers, 1)
}

// noColumn stands for a struct's column that a file does not have; it would say nothing.
const noColumn = -1

// find takes the columns apart and checks that what each holds adds up.
func (l *Leaf) find(columns []int) error {
	values := l.r.rows
	below := false // a struct
	for i, c := range columns[:len(columns)-1] {
		list := l.layers[len(l.layers)-1-i].List()
		switch {
		case list && c == noColumn:
			return lance.Unsupported("column", "of lists whose offsets are not there", "")
		case list:
			lists, err := l.r.level(c)
			if err != nil {
				return err
			}
			if err := same(c, lists.rows(), values, below); err != nil {
				return err
			}
			l.lists = append(l.lists, lists)
			values = lists.items()
		case c != noColumn:
			n, err := l.r.headers(c)
			if err != nil {
				return err
			}
			if err := same(c, n, values, below); err != nil {
				return err
			}
		}
		below = below || !list
	}
	if l.column = columns[len(columns)-1]; l.column == noColumn {
		return lance.Corrupt("", "no column of values")
	}
	return same(l.column, total(l.r.columns[l.column]), values, below)
}

// same checks the number of values of a column. Of a part of an array of structs, pylance 0.20.0 stored the fields of the whole array, and
// shows other rows than were written; newer readers refuse such a file.
func same(column int, n, want uint64, belowStruct bool) error {
	switch {
	case n == want:
		return nil
	case n > want && belowStruct:
		return lance.Unsupported("struct", fmt.Sprintf("whose fields have more values (%d in column %d) than it has rows (%d)", n, column, want), "")
	}
	return lance.Corrupt("", "pages of column %d have %d values, should have %d", column, n, want)
}

// total is the number of values of pages.
func total(pages []page) uint64 {
	var n uint64
	for _, p := range pages {
		n += uint64(p.rows)
	}
	return n
}

// Parts is the number of parts.
func (l *Leaf) Parts() int {
	if l.parts != nil {
		return len(l.parts)
	}
	return len(l.r.columns[l.column])
}

// Rows is the number of rows of a part.
func (l *Leaf) Rows(i int) int {
	if l.parts != nil {
		return int(l.parts[i].to - l.parts[i].from)
	}
	return l.r.columns[l.column][i].rows
}

// Bytes is about what is read from the store for a part.
func (l *Leaf) Bytes(i int) int64 {
	if l.parts != nil {
		return l.parts[i].bytes
	}
	return l.r.columns[l.column][i].bytes()
}

// Weight is about what a part takes in memory while it is read.
func (l *Leaf) Weight(i int) int64 {
	if l.parts != nil {
		return l.parts[i].weight
	}
	return 2 * l.r.columns[l.column][i].bytes()
}

// Read reads and decodes one part. ErrCorrupt or ErrUnsupported, naming the file.
func (l *Leaf) Read(ctx context.Context, i int) (*encoding.Block, error) {
	if l.parts != nil {
		b, err := l.readNested(ctx, l.parts[i])
		if err != nil {
			return nil, fmt.Errorf("rows %d to %d of column %d of %s: %w", l.parts[i].from, l.parts[i].to, l.column, l.r.key, err)
		}
		return b, nil
	}
	raw, err := l.ReadRaw(ctx, i)
	if err != nil {
		return nil, err
	}
	return l.Decode(i, raw)
}

// bytes is the size of a page's buffers.
func (p page) bytes() int64 {
	var n int64
	for _, s := range p.buffers {
		n += s.size
	}
	return n
}

// array is the encoding of a page of file version 2.0.
func (p page) array() (*enc20pb.ArrayEncoding, error) {
	var e enc20pb.ArrayEncoding
	return &e, p.unwrap(urlArrayEncoding, &e)
}

// unwrap decodes the message that describes a page.
func (p page) unwrap(url string, into proto.Message) error {
	var wrapped anypb.Any
	if err := proto.Unmarshal(p.encoding, &wrapped); err != nil {
		return lance.Corrupt("", "encoding: %v", err)
	}
	if wrapped.GetTypeUrl() != url {
		return lance.Unsupported("encoding", wrapped.GetTypeUrl(), "")
	}
	if err := proto.Unmarshal(wrapped.GetValue(), into); err != nil {
		return lance.Corrupt("", "encoding: %v", err)
	}
	return nil
}
