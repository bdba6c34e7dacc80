package datafile

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/v20"
	"lancekeeper/internal/lance/encoding/v21"
	"lancekeeper/internal/lance/lancepb/enc21pb"
	"lancekeeper/internal/lance/lancepb/filepb"
)

// RawPage is a page as a file holds it, without its place. It can be moved to another file of the same version, to a leaf column of
// the same type.
type RawPage struct {
	Rows     int
	Minor    int    // n of the file version 2.n
	Encoding []byte // a google.protobuf.Any
	Buffers  [][]byte
}

// Sum is a hash of all of the page.
func (p *RawPage) Sum() uint64 {
	head := []uint64{uint64(p.Rows), uint64(p.Minor), uint64(len(p.Encoding)), uint64(len(p.Buffers))}
	for _, b := range p.Buffers {
		head = append(head, uint64(len(b)))
	}
	hash := xxhash.New()
	var scratch []byte
	for _, n := range head {
		scratch = binary.LittleEndian.AppendUint64(scratch, n)
	}
	for _, b := range append([][]byte{scratch, p.Encoding}, p.Buffers...) {
		_, _ = hash.Write(b) // never fails
	}
	return hash.Sum64()
}

// readRaw reads one page of values.
func (r *Reader) readRaw(ctx context.Context, column, index int) (*RawPage, error) {
	p := r.columns[column][index]
	buffers, err := r.read(ctx, p.buffers)
	if err != nil {
		return nil, fmt.Errorf("read page %d of column %d of %s: %w", index, column, r.key, err)
	}
	return &RawPage{Rows: p.rows, Minor: r.minor, Encoding: p.encoding, Buffers: buffers}, nil
}

// decode gives the rows of a page, without lists or structs around them in file version 2.0.
func (p *RawPage) decode(t encoding.Type) (*encoding.Block, error) {
	if p.Minor == 0 {
		e, err := page{encoding: p.Encoding}.array()
		if err != nil {
			return nil, err
		}
		return v20.Decode(t, e, p.Buffers, p.Rows) //nolint:wrapcheck // wrapped by the caller
	}
	l, err := p.layout()
	if err != nil {
		return nil, err
	}
	return v21.Decode(t, l, p.Buffers, p.Rows, p.Minor) //nolint:wrapcheck // wrapped by the caller
}

// layout is the encoding of a page of file version 2.1 or 2.2.
func (p *RawPage) layout() (*enc21pb.PageLayout, error) {
	var l enc21pb.PageLayout
	return &l, page{encoding: p.Encoding}.unwrap(urlPageLayout, &l)
}

// Movable says whether a part is a page that has all of its rows, so that ReadRaw can give it. In file version 2.0 a page of values
// below lists has not.
func (l *Leaf) Movable() bool { return l.parts == nil }

// Minor is n of the file version 2.n.
func (l *Leaf) Minor() int { return l.r.minor }

// ReadRaw reads a part of a movable leaf as it is.
func (l *Leaf) ReadRaw(ctx context.Context, i int) (*RawPage, error) {
	return l.r.readRaw(ctx, l.column, i)
}

// Decode gives the rows of what ReadRaw read as part i. ErrCorrupt or ErrUnsupported, naming the file.
func (l *Leaf) Decode(i int, p *RawPage) (*encoding.Block, error) {
	block, err := p.decode(l.t)
	if err != nil {
		return nil, fmt.Errorf("page %d of column %d of %s: %w", i, l.column, l.r.key, err)
	}
	if len(block.Layers) == len(l.layers) {
		return block, nil
	}
	if p.Minor > 0 {
		return nil, lance.Corrupt(l.r.key, "page %d of column %d has %d structural layers, should have %d", i, l.column, len(block.Layers), len(l.layers))
	}
	return v20.NewLevels(l.layers, 0, uint64(block.Rows)).Block(block) //nolint:wrapcheck // the rows are those of the block
}

// Sound says whether a page that was decoded to b also holds what it should for those who read single rows. If not, its rows are right
// all the same, but the page must not be moved.
func (p *RawPage) Sound(b *encoding.Block) bool {
	if p.Minor == 0 {
		return true // decoding uses all of it
	}
	l, err := p.layout()
	return err == nil && v21.Indexed(l, p.Buffers, b)
}

// CopyPage writes a page of another file as the next one of a leaf column. It must have been decoded once: nothing in it is checked.
func (w *Writer) CopyPage(leaf int, p *RawPage) error {
	l := w.leaves[leaf]
	if p.Minor != w.minor || p.Rows <= 0 || len(l.columns) == 0 {
		return lance.Corrupt("", "page of %d rows of file version 2.%d for leaf column %d of one of 2.%d", p.Rows, p.Minor, leaf, w.minor)
	}
	last := len(l.columns) - 1
	for _, c := range l.columns[:last] {
		s, err := w.say(c, l, false)
		if err != nil {
			return err
		}
		s.values += uint64(p.Rows)
	}
	e := &filepb.Encoding{Location: &filepb.Encoding_Direct{Direct: &filepb.DirectEncoding{Encoding: p.Encoding}}}
	if err := w.put(l.columns[last], &filepb.ColumnMetadata_Page{Length: uint64(p.Rows), Encoding: e, Priority: l.rows}, p.Buffers); err != nil {
		return err
	}
	l.values += uint64(p.Rows)
	l.rows += uint64(p.Rows)
	return nil
}
