package datafile

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/v21"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancepb/filepb"
)

// Writer writes one data file, front to back. Leaf columns may be written in any order, each one's pages in the order of their
// rows.
type Writer struct {
	w       io.Writer
	minor   int
	schema  *lancepb.Schema
	at      int64
	columns []*filepb.ColumnMetadata
	leaves  []*leafWriter
	around  []around // for each column, what is known of the lists or structs that it is of
}

// leafWriter is what was written of a leaf column.
type leafWriter struct {
	columns []int // outermost first
	t       encoding.Type
	rows    uint64
	values  uint64 // in the column of values
}

// NewWriter begins a file of version 2.minor. leaves are the columns that hold each leaf, outermost first, as schema.Lay gives
// them; the schema stands in the file as it is.
func NewWriter(w io.Writer, minor int, schema *lancepb.Schema, leaves [][]int) (*Writer, error) {
	if minor < 0 || minor > 2 {
		return nil, lance.Unsupported("file version", fmt.Sprintf("2.%d", minor), "")
	}
	out := &Writer{w: w, minor: minor, schema: schema}
	columns := 0
	for _, leaf := range leaves {
		out.leaves = append(out.leaves, &leafWriter{columns: leaf})
		for _, c := range leaf {
			columns = max(columns, c+1)
		}
	}
	columnEncoding, err := direct(urlColumnEncoding, []byte{0x0a, 0x00}) // values{}
	if err != nil {
		return nil, err
	}
	for range columns {
		out.columns = append(out.columns, &filepb.ColumnMetadata{Encoding: columnEncoding})
	}
	out.around = make([]around, columns)
	return out, nil
}

// WritePage encodes a block and writes it as the next page of a leaf column of type t.
func (w *Writer) WritePage(leaf int, t encoding.Type, b *encoding.Block) error {
	l := w.leaves[leaf]
	if len(l.columns) == 0 || len(l.columns) != columnsOf(w.minor, len(b.Layers)) {
		return lance.Corrupt("", "%d columns for leaf column %d of %d structural layers", len(l.columns), leaf, len(b.Layers))
	}
	l.t = t
	if w.minor == 0 {
		return w.writeArrays(l, b)
	}
	layout, buffers, err := v21.Encode(t, b, w.minor)
	if err != nil {
		return fmt.Errorf("encode a page of column %d: %w", l.columns[0], err)
	}
	if err := w.page(l.columns[0], urlPageLayout, layout, buffers, b.Rows, l.rows); err != nil {
		return err
	}
	l.rows += uint64(b.Rows)
	return nil
}

// page writes one page of a column, whose first row is row.
func (w *Writer) page(column int, url string, description proto.Message, buffers [][]byte, length int, row uint64) error {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(description)
	if err != nil {
		return fmt.Errorf("encode the description of a page of column %d: %w", column, err)
	}
	e, err := direct(url, body)
	if err != nil {
		return err
	}
	return w.put(column, &filepb.ColumnMetadata_Page{Length: uint64(length), Encoding: e, Priority: row}, buffers)
}

// put writes the buffers of a page and notes it as the next one of a column.
func (w *Writer) put(column int, p *filepb.ColumnMetadata_Page, buffers [][]byte) error {
	for _, buffer := range buffers {
		p.BufferOffsets = append(p.BufferOffsets, uint64(w.at))
		p.BufferSizes = append(p.BufferSizes, uint64(len(buffer)))
		if err := w.aligned(buffer); err != nil {
			return err
		}
	}
	w.columns[column].Pages = append(w.columns[column].Pages, p)
	return nil
}

func direct(url string, body []byte) (*filepb.Encoding, error) {
	wrapped, err := proto.MarshalOptions{Deterministic: true}.Marshal(&anypb.Any{TypeUrl: url, Value: body})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", url, err)
	}
	return &filepb.Encoding{Location: &filepb.Encoding_Direct{Direct: &filepb.DirectEncoding{Encoding: wrapped}}}, nil
}

// Close writes what stands behind the pages and returns the file's size. Every column must have the same number of rows.
func (w *Writer) Close() (size int64, err error) {
	var rows uint64
	for i, l := range w.leaves {
		if i > 0 && l.rows != rows {
			return 0, lance.Corrupt("", "leaf column %d has %d rows, the others %d", i, l.rows, rows)
		}
		rows = l.rows
	}
	if w.minor == 0 {
		if err := w.closeArrays(); err != nil {
			return 0, err
		}
	}
	options := proto.MarshalOptions{Deterministic: true}
	descriptor, err := options.Marshal(&lancepb.FileDescriptor{Schema: w.schema, Length: rows})
	if err != nil {
		return 0, fmt.Errorf("encode the file descriptor: %w", err)
	}
	global := span{w.at, int64(len(descriptor))}
	if err := w.write(descriptor); err != nil {
		return 0, err
	}
	f := footer{metas: w.at, buffers: 1, columns: int64(len(w.columns)), major: 2, minor: uint16(w.minor)}
	if w.minor == 0 {
		f.major, f.minor = 0, 3
	}
	var tables []byte
	for i, c := range w.columns {
		body, err := options.Marshal(c)
		if err != nil {
			return 0, fmt.Errorf("encode the metadata of column %d: %w", i, err)
		}
		tables = appendSpan(tables, span{w.at, int64(len(body))})
		if err := w.write(body); err != nil {
			return 0, err
		}
	}
	f.columnTable = w.at
	f.bufferTable = w.at + int64(len(tables))
	tables = appendSpan(tables, global)
	if err := w.write(append(tables, f.bytes()...)); err != nil {
		return 0, err
	}
	return w.at, nil
}

func appendSpan(b []byte, s span) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(s.at))
	return binary.LittleEndian.AppendUint64(b, uint64(s.size))
}

// aligned writes a buffer and pads to where the next one may begin.
func (w *Writer) aligned(b []byte) error {
	if err := w.write(b); err != nil {
		return err
	}
	var pad [alignment]byte
	for i := range pad {
		pad[i] = padByte
	}
	return w.write(pad[:(alignment-w.at%alignment)%alignment])
}

func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	w.at += int64(n)
	if err != nil {
		return fmt.Errorf("write %d bytes at %d: %w", len(b), w.at, err)
	}
	return nil
}
