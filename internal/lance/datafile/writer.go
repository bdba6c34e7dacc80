package datafile

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/v20"
	"lancekeeper/internal/lance/encoding/v21"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancepb/filepb"
)

// Writer writes one data file, front to back. Columns may be written in any order, each column's pages in the order of their
// rows.
type Writer struct {
	w       io.Writer
	minor   int
	schema  *lancepb.Schema
	at      int64
	columns []*filepb.ColumnMetadata
	rows    []uint64 // per column, so far
}

// NewWriter begins a file of version 2.minor with so many columns: one for each leaf of the schema, in the order of its fields.
func NewWriter(w io.Writer, minor int, schema *lancepb.Schema, columns int) (*Writer, error) {
	if minor < 0 || minor > 2 {
		return nil, lance.Unsupported("file version", fmt.Sprintf("2.%d", minor), "")
	}
	out := &Writer{w: w, minor: minor, schema: schema, rows: make([]uint64, columns)}
	columnEncoding, err := direct(urlColumnEncoding, []byte{0x0a, 0x00}) // values{}
	if err != nil {
		return nil, err
	}
	for range columns {
		out.columns = append(out.columns, &filepb.ColumnMetadata{Encoding: columnEncoding})
	}
	return out, nil
}

// WritePage encodes a block and writes it as the next page of a column of type t.
func (w *Writer) WritePage(column int, t encoding.Type, b *encoding.Block) error {
	e, buffers, err := w.encode(t, b)
	if err != nil {
		return fmt.Errorf("encode a page of column %d: %w", column, err)
	}
	p := &filepb.ColumnMetadata_Page{Length: uint64(b.Rows), Encoding: e, Priority: w.rows[column]}
	for _, buffer := range buffers {
		p.BufferOffsets = append(p.BufferOffsets, uint64(w.at))
		p.BufferSizes = append(p.BufferSizes, uint64(len(buffer)))
		if err := w.aligned(buffer); err != nil {
			return err
		}
	}
	w.columns[column].Pages = append(w.columns[column].Pages, p)
	w.rows[column] += uint64(b.Rows)
	return nil
}

func (w *Writer) encode(t encoding.Type, b *encoding.Block) (*filepb.Encoding, [][]byte, error) {
	var message proto.Message
	var buffers [][]byte
	var err error
	url := urlPageLayout
	if w.minor == 0 {
		url = urlArrayEncoding
		message, buffers, err = v20.Encode(t, b)
	} else {
		message, buffers, err = v21.Encode(t, b, w.minor)
	}
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // wrapped by the caller
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the page's description: %w", err)
	}
	e, err := direct(url, body)
	return e, buffers, err
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
	for i, n := range w.rows {
		if i > 0 && n != rows {
			return 0, lance.Corrupt("", "column %d has %d rows, the others %d", i, n, rows)
		}
		rows = n
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
