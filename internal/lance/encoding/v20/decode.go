// Package v20 turns pages of file version 2.0 into rows and back.
//
// Every field of the schema has a column of its own: a struct one of headers, a list one of offsets into the columns below it.
// Decode and Encode are for the leaves, DecodeLists and EncodeLists for lists; Levels and Split are the way between these and
// rows with their repetition and definition levels.
//
// A page is an ArrayEncoding message and a few buffers (lance-format/lance protos/encodings_v2_0.proto and
// rust/lance-encoding/src/array_encoding).
package v20

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/bitpack"
	"lancekeeper/internal/lance/encoding/fsst"
	"lancekeeper/internal/lance/encoding/general"
	"lancekeeper/internal/lance/lancepb/enc20pb"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// Limits of what a page may decode to, so that a few hostile bytes cannot ask for all memory.
const (
	maxAmplified = 1 << 30 // bytes that no buffer has to account for
	perInput     = 16      // and for each byte of the page's buffers
)

// Decode reads the rows of one page of a leaf column of type t, without what is around it. The block may share memory with the buffers. Errors are of class
// lance.ErrCorrupt or lance.ErrUnsupported and name no object.
func Decode(t encoding.Type, enc *enc20pb.ArrayEncoding, buffers [][]byte, rows int) (*encoding.Block, error) {
	return decode(t, enc, newDecoder(buffers), rows)
}

func newDecoder(buffers [][]byte) *decoder {
	limit := maxAmplified
	for _, b := range buffers {
		limit += perInput * len(b)
	}
	return &decoder{buffers: buffers, limit: limit}
}

func decode(t encoding.Type, enc *enc20pb.ArrayEncoding, d *decoder, rows int) (*encoding.Block, error) {
	if err := t.Check(); err != nil {
		return nil, err //nolint:wrapcheck // class and detail are those of the page
	}
	if rows < 0 || rows > d.limit/max(8, t.Width()) {
		return nil, lance.Unsupported("page", fmt.Sprintf("of %d rows", rows), "")
	}
	v, err := d.column(t, enc, rows)
	if err != nil {
		return nil, err
	}
	for _, row := range v.opaque {
		if v.valid == nil || v.valid[row] != 0 {
			return nil, lance.Unsupported("encoding", fmt.Sprintf("null fixed-size list inside a vector (row %d)", row), "")
		}
	}
	return v.block(t, rows), nil
}

type decoder struct {
	buffers [][]byte
	limit   int // bytes that the page, and each of its buffers, may decode to
}

// column is decoded values, with one byte a row that says whether it is there; nil if all are.
type column struct {
	valid  []byte
	values encoding.Values
	opaque []int // rows that hold a null fixed-size list inside a vector, which a Block can express only under a null row
}

// block brings null rows to their normal form.
func (c *column) block(t encoding.Type, rows int) *encoding.Block {
	b := &encoding.Block{Rows: rows, Layers: []encoding.Layer{encoding.AllValidItem}, Values: c.values}
	if c.valid == nil || !slices.Contains(c.valid, 0) {
		return b
	}
	b.Layers[0] = encoding.NullableItem
	b.Def = make([]uint16, rows)
	width, items := t.Width(), t.Items()
	if t.Kind != encoding.Bytes {
		b.Values.Fixed = slices.Clone(b.Values.Fixed)
	}
	for i, valid := range c.valid {
		if valid != 0 {
			continue
		}
		b.Def[i] = 1
		if t.Kind == encoding.Bytes {
			continue // the decoders leave null text empty
		}
		clear(b.Values.Fixed[i*width : (i+1)*width])
		if b.Values.ItemValid != nil {
			for j := range items {
				b.Values.ItemValid[i*items+j] = 1
			}
		}
	}
	if b.Values.ItemValid != nil && !slices.Contains(b.Values.ItemValid, 0) {
		b.Values.ItemValid = nil
	}
	return b
}

// column decodes any encoding of a column.
func (d *decoder) column(t encoding.Type, enc *enc20pb.ArrayEncoding, rows int) (*column, error) {
	if t.KeyBits > 0 {
		return d.keyed(t, enc, rows)
	}
	switch t.Kind {
	case encoding.Bytes:
		return d.text(t, enc, rows)
	case encoding.Void:
		if !IsHeader(enc) {
			return nil, unsupported(enc)
		}
		return &column{values: encoding.Values{N: rows}}, nil
	case encoding.Fixed, encoding.Vector:
	}
	n := enc.GetNullable()
	if n == nil {
		return d.fixed(t, enc, rows)
	}
	switch e := n.GetNullability().(type) {
	case *enc20pb.Nullable_NoNulls:
		return d.fixed(t, e.NoNulls.GetValues(), rows)
	case *enc20pb.Nullable_AllNulls:
		return &column{valid: make([]byte, rows), values: encoding.Values{N: rows, Fixed: make([]byte, rows*t.Width())}}, nil
	case *enc20pb.Nullable_SomeNulls:
		valid, err := d.bits(e.SomeNulls.GetValidity(), rows)
		if err != nil {
			return nil, err
		}
		c, err := d.fixed(t, e.SomeNulls.GetValues(), rows)
		if err != nil {
			return nil, err
		}
		c.valid = valid
		return c, nil
	}
	return nil, lance.Unsupported("encoding", "nullable of no kind", "")
}

// fixed decodes values that are all there.
func (d *decoder) fixed(t encoding.Type, enc *enc20pb.ArrayEncoding, rows int) (*column, error) {
	if t.Kind == encoding.Vector {
		return d.vector(t, enc, rows)
	}
	var raw []byte
	var err error
	switch e := enc.GetArrayEncoding().(type) {
	case *enc20pb.ArrayEncoding_Flat:
		raw, err = d.values(enc, t.Bits, rows)
	case *enc20pb.ArrayEncoding_Bitpacked:
		raw, err = d.bitpacked(e.Bitpacked, t.Bits, rows)
	case *enc20pb.ArrayEncoding_BitpackedForNonNeg:
		raw, err = d.grouped(e.BitpackedForNonNeg, t.Bits, rows)
	default:
		return nil, unsupported(enc)
	}
	if err != nil {
		return nil, err
	}
	return &column{values: encoding.Values{N: rows, Fixed: raw}}, nil
}

// vector decodes fixed-size lists; the items' own nulls lie in a nullable inside.
func (d *decoder) vector(t encoding.Type, enc *enc20pb.ArrayEncoding, rows int) (*column, error) {
	c := &column{values: encoding.Values{N: rows}}
	items := rows
	for i, dim := range t.Dims {
		list := enc.GetFixedSizeList()
		if list == nil {
			return nil, unsupported(enc)
		}
		if list.GetDimension() != uint32(dim) || list.GetHasValidity() {
			return nil, lance.Corrupt("", "lists of %d items in a column of %d", list.GetDimension(), dim)
		}
		items *= dim
		values, valid, err := d.items(list.GetItems(), items)
		if err != nil {
			return nil, err
		}
		if i == len(t.Dims)-1 {
			c.values.ItemValid = valid
		} else {
			c.note(valid, items/max(1, rows))
		}
		enc = values
		if values == nil { // all are null
			c.values.Fixed = make([]byte, rows*t.Width())
			return c, nil
		}
	}
	var err error
	if c.values.Fixed, err = d.values(enc, t.Bits, items); err != nil {
		return nil, err
	}
	if c.values.ItemValid != nil {
		c.values.Fixed = slices.Clone(c.values.Fixed)
		width := max(1, t.Bits/8)
		for i, v := range c.values.ItemValid {
			if v == 0 {
				clear(c.values.Fixed[i*width : (i+1)*width])
			}
		}
	}
	return c, nil
}

// items takes the nullable around the items of a fixed-size list apart. No values: all are null; no validity: none is.
func (d *decoder) items(enc *enc20pb.ArrayEncoding, n int) (values *enc20pb.ArrayEncoding, valid []byte, err error) {
	nullable := enc.GetNullable()
	if nullable == nil {
		return enc, nil, nil
	}
	switch e := nullable.GetNullability().(type) {
	case *enc20pb.Nullable_NoNulls:
		values = e.NoNulls.GetValues()
	case *enc20pb.Nullable_SomeNulls:
		values = e.SomeNulls.GetValues()
		if valid, err = d.bits(e.SomeNulls.GetValidity(), n); err != nil {
			return nil, nil, err
		}
	case *enc20pb.Nullable_AllNulls:
		return nil, make([]byte, n), nil
	}
	if values == nil {
		return nil, nil, lance.Corrupt("", "nullable without values")
	}
	return values, valid, nil
}

// note remembers the rows that have a null list, of each lists in a row.
func (c *column) note(valid []byte, each int) {
	for i, v := range valid {
		if row := i / each; v == 0 && (len(c.opaque) == 0 || c.opaque[len(c.opaque)-1] != row) {
			c.opaque = append(c.opaque, row)
		}
	}
}

// bits decodes a bitmap to one byte a row, least significant bit first.
func (d *decoder) bits(enc *enc20pb.ArrayEncoding, rows int) ([]byte, error) {
	flat := enc.GetFlat()
	if flat == nil || flat.GetBitsPerValue() != 1 {
		return nil, unsupported(enc)
	}
	bitmap, err := d.plain(flat)
	if err != nil {
		return nil, err
	}
	if len(bitmap) < (rows+7)/8 {
		return nil, lance.Corrupt("", "bitmap of %d bytes for %d rows", len(bitmap), rows)
	}
	out := make([]byte, rows)
	for i := range out {
		out[i] = bitmap[i/8] >> (i % 8) & 1
	}
	return out, nil
}

// values gives n values of so many bits from a flat encoding; single bits are widened to a byte each.
func (d *decoder) values(enc *enc20pb.ArrayEncoding, bits, n int) ([]byte, error) {
	flat := enc.GetFlat()
	if flat == nil {
		return nil, unsupported(enc)
	}
	if bits == 1 {
		return d.bits(enc, n)
	}
	return d.flat(flat, bits, n)
}

// flat gives n values of so many bits, a multiple of 8.
func (d *decoder) flat(f *enc20pb.Flat, bits, n int) ([]byte, error) {
	if f.GetBitsPerValue() != uint64(bits) {
		return nil, lance.Corrupt("", "values of %d bits in a column of %d", f.GetBitsPerValue(), bits)
	}
	raw, err := d.plain(f)
	if err != nil {
		return nil, err
	}
	if len(raw) != n*bits/8 {
		return nil, lance.Corrupt("", "%d bytes for %d values of %d bits", len(raw), n, bits)
	}
	return raw, nil
}

// plain gives the buffer of a flat encoding, decompressed where it says so.
func (d *decoder) plain(f *enc20pb.Flat) ([]byte, error) {
	raw, err := d.buffer(f.GetBuffer())
	if err != nil || f.GetCompression() == nil || len(raw) == 0 {
		return raw, err
	}
	scheme := enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_ZSTD
	switch name := f.GetCompression().GetScheme(); name {
	case "zstd":
	case "lz4":
		scheme = enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_LZ4
	case "none", "":
		return raw, nil
	default:
		return nil, lance.Unsupported("compression", name, "")
	}
	codec := general.New(d.limit)
	defer codec.Close()
	return codec.Decompress(scheme, raw) //nolint:wrapcheck // class and detail are those of the page
}

func (d *decoder) buffer(b *enc20pb.Buffer) ([]byte, error) {
	if b.GetBufferType() != enc20pb.Buffer_page {
		return nil, lance.Unsupported("encoding", "column or file buffers", "")
	}
	if int(b.GetBufferIndex()) >= len(d.buffers) {
		return nil, lance.Corrupt("", "buffer %d of %d", b.GetBufferIndex(), len(d.buffers))
	}
	return d.buffers[b.GetBufferIndex()], nil
}

// bitpacked unpacks a plain bit string, value i at bit i*width (decode only: old writers).
func (d *decoder) bitpacked(e *enc20pb.Bitpacked, bits, rows int) ([]byte, error) {
	width := int(min(e.GetCompressedBitsPerValue(), 65))
	if e.GetUncompressedBitsPerValue() != uint64(bits) || width > bits || width > 64 || bits > 64 || bits%8 != 0 {
		return nil, lance.Corrupt("", "%d-bit values packed into %d bits in a column of %d", e.GetUncompressedBitsPerValue(), width, bits)
	}
	raw, err := d.buffer(e.GetBuffer())
	if err != nil {
		return nil, err
	}
	if len(raw) < (rows*width+7)/8 {
		return nil, lance.Corrupt("", "%d bytes for %d values of %d bits", len(raw), rows, width)
	}
	out := make([]byte, 0, rows*bits/8+8)
	for i := range rows {
		var v uint64
		for bit := range width {
			at := i*width + bit
			v |= uint64(raw[at/8]>>(at%8)&1) << bit
		}
		if e.GetSigned() && width > 0 && width < 64 && v>>(width-1)&1 == 1 {
			v |= ^uint64(0) << width
		}
		out = binary.LittleEndian.AppendUint64(out, v)[:(i+1)*bits/8]
	}
	return out, nil
}

// grouped unpacks groups of 1024 values, the last one filled up (decode only: old writers).
func (d *decoder) grouped(e *enc20pb.BitpackedForNonNeg, bits, rows int) ([]byte, error) {
	width := int(min(e.GetCompressedBitsPerValue(), 65))
	if e.GetUncompressedBitsPerValue() != uint64(bits) || width > bits || bits > 64 || bits%8 != 0 || bits == 24 || bits == 40 || bits > 32 && bits != 64 {
		return nil, lance.Corrupt("", "%d-bit values packed into %d bits in a column of %d", e.GetUncompressedBitsPerValue(), width, bits)
	}
	raw, err := d.buffer(e.GetBuffer())
	if err != nil {
		return nil, err
	}
	size := bitpack.Size(width)
	groups := (rows + bitpack.Group - 1) / bitpack.Group
	if len(raw) < groups*size {
		return nil, lance.Corrupt("", "%d bytes for %d values of %d bits", len(raw), rows, width)
	}
	out := make([]byte, groups*bitpack.Group*bits/8)
	for i := range groups {
		if err := bitpack.Unpack(out[i*bitpack.Group*bits/8:(i+1)*bitpack.Group*bits/8], raw[i*size:(i+1)*size], bits, width); err != nil {
			return nil, err //nolint:wrapcheck // class and detail are those of the page
		}
	}
	return out[:rows*bits/8], nil
}

func unsupported(enc *enc20pb.ArrayEncoding) error {
	name := strings.TrimPrefix(fmt.Sprintf("%T", enc.GetArrayEncoding()), "*enc20pb.ArrayEncoding_")
	return lance.Unsupported("encoding", name, "")
}

// text decodes byte strings.
func (d *decoder) text(t encoding.Type, enc *enc20pb.ArrayEncoding, rows int) (*column, error) {
	switch e := enc.GetArrayEncoding().(type) {
	case *enc20pb.ArrayEncoding_Binary:
		return d.binary(e.Binary, rows, nil)
	case *enc20pb.ArrayEncoding_Fsst:
		table, err := fsst.ParseTable(e.Fsst.GetSymbolTable())
		if err != nil {
			return nil, err //nolint:wrapcheck // class and detail are those of the page
		}
		inner := e.Fsst.GetBinary().GetBinary()
		if inner == nil {
			return nil, unsupported(e.Fsst.GetBinary())
		}
		return d.binary(inner, rows, table.Decode)
	case *enc20pb.ArrayEncoding_Dictionary:
		return d.listed(t, e.Dictionary, rows)
	case *enc20pb.ArrayEncoding_FixedSizeBinary:
		return d.fixedText(e.FixedSizeBinary, rows)
	case *enc20pb.ArrayEncoding_Nullable:
		switch n := e.Nullable.GetNullability().(type) {
		case *enc20pb.Nullable_NoNulls:
			if n.NoNulls.GetValues().GetNullable() == nil {
				return d.text(t, n.NoNulls.GetValues(), rows)
			}
		case *enc20pb.Nullable_AllNulls:
			return &column{valid: make([]byte, rows), values: encoding.Values{N: rows, Offsets: make([]int, rows+1)}}, nil
		}
	}
	return nil, unsupported(enc)
}

// binary cuts strings by their ends; a null row's is raised by the adjustment (physical/binary.rs).
func (d *decoder) binary(e *enc20pb.Binary, rows int, decode func(dst, src []byte) ([]byte, error)) (*column, error) {
	indices := e.GetIndices()
	if n := indices.GetNullable().GetNoNulls(); n != nil {
		indices = n.GetValues()
	}
	bytes := e.GetBytes()
	if n := bytes.GetNullable().GetNoNulls(); n != nil {
		bytes = n.GetValues()
	}
	if indices.GetFlat() == nil || bytes.GetFlat() == nil {
		return nil, lance.Unsupported("encoding", "binary of encoded parts", "")
	}
	ends, err := d.flat(indices.GetFlat(), 64, rows)
	if err != nil {
		return nil, err
	}
	data, err := d.plain(bytes.GetFlat())
	if err != nil {
		return nil, err
	}
	adjustment := e.GetNullAdjustment()
	if rows > 0 && adjustment == 0 {
		return nil, lance.Corrupt("", "strings without a null adjustment")
	}
	c := &column{values: encoding.Values{N: rows, Offsets: make([]int, 1, rows+1)}}
	if decode == nil {
		c.values.Data = make([]byte, 0, len(data))
	}
	var from uint64
	for i := range rows {
		v := binary.LittleEndian.Uint64(ends[8*i:])
		to := v % adjustment
		if to < from || to > uint64(len(data)) || v/adjustment > 1 {
			return nil, lance.Corrupt("", "string %d ends at %d, after %d, of %d bytes", i, to, from, len(data))
		}
		if v >= adjustment {
			if c.valid == nil {
				c.valid = slices.Repeat([]byte{1}, rows)
			}
			c.valid[i] = 0
		} else if err := c.add(data[from:to], decode, d.limit); err != nil {
			return nil, err
		}
		c.values.Offsets = append(c.values.Offsets, len(c.values.Data))
		from = to
	}
	return c, nil
}

func (c *column) add(value []byte, decode func(dst, src []byte) ([]byte, error), limit int) (err error) {
	if decode == nil {
		c.values.Data = append(c.values.Data, value...)
		return nil
	}
	c.values.Data, err = decode(c.values.Data, value)
	if err == nil && len(c.values.Data) > limit {
		err = lance.Unsupported("page", "too large when decoded", "")
	}
	return err
}

// fixedText decodes strings of one length without nulls (decode only: old writers).
func (d *decoder) fixedText(e *enc20pb.FixedSizeBinary, rows int) (*column, error) {
	bytes := e.GetBytes()
	if n := bytes.GetNullable().GetNoNulls(); n != nil {
		bytes = n.GetValues()
	}
	if bytes.GetFlat() == nil {
		return nil, unsupported(e.GetBytes())
	}
	data, err := d.plain(bytes.GetFlat())
	if err != nil {
		return nil, err
	}
	width := int(e.GetByteWidth())
	if width < 0 || width > len(data) && rows > 0 || len(data) != rows*width {
		return nil, lance.Corrupt("", "%d bytes for %d strings of %d", len(data), rows, width)
	}
	c := &column{values: encoding.Values{N: rows, Offsets: make([]int, rows+1), Data: slices.Clone(data)}}
	for i := range c.values.Offsets {
		c.values.Offsets[i] = i * width
	}
	return c, nil
}
