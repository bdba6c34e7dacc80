package v20

import (
	"encoding/binary"
	"math"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

// Range is bytes [From, To) of one of a page's buffers.
type Range struct {
	Buffer   int
	From, To int64
}

// Buffers are those of a page, not read yet.
type Buffers struct {
	Sizes []int64
	Read  func([]Range) ([][]byte, error)
}

// Partly says whether some rows of a page can be decoded without reading all of its buffers.
func Partly(t encoding.Type, enc *enc20pb.ArrayEncoding) bool {
	if _, _, ok := plainText(t, enc); ok {
		return true
	}
	_, ok := widths(enc)
	return ok
}

// DecodeRows decodes rows [from, to) of a page of so many rows, reading no more than they need where the encoding allows it.
// Errors are those of Decode and of reading.
func DecodeRows(t encoding.Type, enc *enc20pb.ArrayEncoding, b Buffers, rows, from, to int) (*encoding.Block, error) {
	if from < 0 || from > to || to > rows {
		return nil, lance.Corrupt("", "rows %d to %d of %d", from, to, rows)
	}
	if ends, data, ok := plainText(t, enc); ok && to-from < rows && from < to {
		return decodeTexts(t, enc, b, ends, data, rows, from, to)
	}
	first, last := 0, rows
	bits, ok := widths(enc)
	if ok {
		first, last = from&^7, min(rows, (to+7)&^7) // bitmaps are cut at bytes
	}
	ranges := make([]Range, len(b.Sizes))
	for i, size := range b.Sizes {
		ranges[i] = Range{Buffer: i, To: size}
		width := bits[i]
		if width == 0 {
			continue
		}
		if want := sizeOf(rows, width); size < want || width%8 == 0 && size != want {
			return nil, lance.Corrupt("", "%d bytes for %d rows of %d bits", size, rows, width)
		}
		ranges[i].From, ranges[i].To = sizeOf(first, width), sizeOf(last, width)
	}
	buffers, err := b.Read(ranges)
	if err != nil {
		return nil, err
	}
	block, err := Decode(t, enc, buffers, last-first)
	if err != nil || last-first == to-from {
		return block, err
	}
	builder := encoding.NewBuilder(t, 1)
	if err := builder.AppendRows(block, from-first, to-first); err != nil {
		return nil, err //nolint:wrapcheck // class and detail are those of the page
	}
	return builder.Take(to - from) //nolint:wrapcheck // as above
}

// sizeOf is the bytes of so many rows of so many bits. Both are bounded: no sum overflows.
func sizeOf(rows int, bits int64) int64 { return (int64(rows)*bits + 7) / 8 }

// maxRowBits bounds the bits of a row in one buffer.
const maxRowBits = 1 << 20

// widths gives the bits of a row in each buffer that rows lie in one after the other. Others are needed whole; ok is false where
// that is all of them.
func widths(enc *enc20pb.ArrayEncoding) (bits map[int]int64, ok bool) {
	w := widener{bits: map[int]int64{}, seen: map[int]struct{}{}}
	if !w.add(enc, 1) {
		return nil, false
	}
	return w.bits, true
}

type widener struct {
	bits map[int]int64
	seen map[int]struct{} // buffers, of which each has one use
}

// use notes a buffer; false if it has another use.
func (w *widener) use(b *enc20pb.Buffer) bool {
	before := len(w.seen)
	w.seen[int(b.GetBufferIndex())] = struct{}{}
	return len(w.seen) > before
}

// whole notes the buffers of an encoding that is needed whole.
func (w *widener) whole(enc *enc20pb.ArrayEncoding) bool {
	switch e := enc.GetArrayEncoding().(type) {
	case *enc20pb.ArrayEncoding_Flat:
		return w.use(e.Flat.GetBuffer())
	case *enc20pb.ArrayEncoding_Binary:
		return w.whole(e.Binary.GetIndices()) && w.whole(e.Binary.GetBytes())
	case *enc20pb.ArrayEncoding_Nullable:
		switch n := e.Nullable.GetNullability().(type) {
		case *enc20pb.Nullable_NoNulls:
			return w.whole(n.NoNulls.GetValues())
		case *enc20pb.Nullable_SomeNulls:
			return w.whole(n.SomeNulls.GetValidity()) && w.whole(n.SomeNulls.GetValues())
		case *enc20pb.Nullable_AllNulls:
			return true
		}
	}
	return false
}

// add notes the buffers of an encoding of which a row has so many values.
func (w *widener) add(enc *enc20pb.ArrayEncoding, values int64) bool {
	switch e := enc.GetArrayEncoding().(type) {
	case *enc20pb.ArrayEncoding_Flat:
		at := int(e.Flat.GetBuffer().GetBufferIndex())
		if e.Flat.GetBitsPerValue() == 0 || e.Flat.GetBitsPerValue() > maxRowBits || e.Flat.GetCompression() != nil || !w.use(e.Flat.GetBuffer()) {
			return false
		}
		w.bits[at] = values * int64(e.Flat.GetBitsPerValue())
		return w.bits[at] <= maxRowBits
	case *enc20pb.ArrayEncoding_FixedSizeList:
		values *= int64(e.FixedSizeList.GetDimension())
		return values > 0 && values <= maxRowBits && w.add(e.FixedSizeList.GetItems(), values)
	case *enc20pb.ArrayEncoding_Dictionary:
		return values == 1 && w.add(e.Dictionary.GetIndices(), 1) && w.whole(e.Dictionary.GetItems())
	case *enc20pb.ArrayEncoding_Nullable:
		switch n := e.Nullable.GetNullability().(type) {
		case *enc20pb.Nullable_NoNulls:
			return w.add(n.NoNulls.GetValues(), values)
		case *enc20pb.Nullable_SomeNulls:
			return w.add(n.SomeNulls.GetValidity(), values) && w.add(n.SomeNulls.GetValues(), values)
		case *enc20pb.Nullable_AllNulls:
			return true
		}
	}
	return false
}

// plainText are the buffers of ends and of bytes of text that is neither compressed nor otherwise encoded.
func plainText(t encoding.Type, enc *enc20pb.ArrayEncoding) (ends, data int, ok bool) {
	e := enc.GetBinary()
	if t.Kind != encoding.Bytes || t.KeyBits > 0 || e == nil {
		return 0, 0, false
	}
	indices, bytes := e.GetIndices(), e.GetBytes()
	if n := indices.GetNullable().GetNoNulls(); n != nil {
		indices = n.GetValues()
	}
	if n := bytes.GetNullable().GetNoNulls(); n != nil {
		bytes = n.GetValues()
	}
	i, b := indices.GetFlat(), bytes.GetFlat()
	if i == nil || b == nil || i.GetBuffer().GetBufferIndex() == b.GetBuffer().GetBufferIndex() || i.GetBitsPerValue() != 64 || i.GetCompression() != nil || b.GetCompression() != nil ||
		i.GetBuffer().GetBufferType() != enc20pb.Buffer_page || b.GetBuffer().GetBufferType() != enc20pb.Buffer_page {
		return 0, 0, false
	}
	return int(i.GetBuffer().GetBufferIndex()), int(b.GetBuffer().GetBufferIndex()), true
}

// decodeTexts decodes rows [from, to) of plain text: it makes a page of them alone.
func decodeTexts(t encoding.Type, enc *enc20pb.ArrayEncoding, b Buffers, ends, data, rows, from, to int) (*encoding.Block, error) {
	if ends >= len(b.Sizes) || data >= len(b.Sizes) || b.Sizes[ends] != 8*int64(rows) {
		return nil, lance.Corrupt("", "buffers %d and %d of %d for %d strings", ends, data, len(b.Sizes), rows)
	}
	adjustment := enc.GetBinary().GetNullAdjustment()
	if adjustment == 0 || adjustment > math.MaxInt64 {
		return nil, lance.Corrupt("", "strings with a null adjustment of %d", adjustment)
	}
	before := max(from-1, 0)
	raw, err := b.Read([]Range{{Buffer: ends, From: 8 * int64(before), To: 8 * int64(to)}})
	if err != nil {
		return nil, err
	}
	ends64 := raw[0]
	var base uint64
	if from > 0 {
		base, ends64 = binary.LittleEndian.Uint64(ends64)%adjustment, ends64[8:]
	}
	last := binary.LittleEndian.Uint64(ends64[len(ends64)-8:]) % adjustment
	if last < base || last > uint64(b.Sizes[data]) {
		return nil, lance.Corrupt("", "strings end at %d, after %d, of %d bytes", last, base, b.Sizes[data])
	}
	text, err := b.Read([]Range{{Buffer: data, From: int64(base), To: int64(last)}})
	if err != nil {
		return nil, err
	}
	moved := make([]byte, 0, len(ends64))
	for i := range to - from {
		v := binary.LittleEndian.Uint64(ends64[8*i:])
		end := v % adjustment
		if end < base || end > last || v/adjustment > 1 {
			return nil, lance.Corrupt("", "string %d ends at %d, after %d", from+i, end, base)
		}
		end -= base
		if v >= adjustment {
			end += last - base + 1
		}
		moved = binary.LittleEndian.AppendUint64(moved, end)
	}
	w := &writer{}
	page := &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Binary{Binary: &enc20pb.Binary{
		Indices: noNulls(w.flat(64, moved)), Bytes: w.flat(8, text[0]), NullAdjustment: last - base + 1,
	}}}
	return Decode(t, page, w.buffers, to-from)
}

// DecodeListRows reads lists [from, to) of a page of so many. Their ends still count from the first item of the page; first is where
// the items of the first of them begin.
func DecodeListRows(enc *enc20pb.ArrayEncoding, b Buffers, rows, from, to int) (lists Lists, first uint64, err error) {
	list := enc.GetList()
	if list == nil {
		return Lists{}, 0, unsupported(enc)
	}
	before := max(from-1, 0)
	offsets, err := DecodeRows(encoding.Type{Bits: 64}, list.GetOffsets(), b, rows, before, to)
	if err != nil {
		return Lists{}, 0, err
	}
	lists, err = listsOf(list, offsets)
	if err != nil {
		return Lists{}, 0, err
	}
	if to == rows && lists.Items() != list.GetNumItems() {
		return Lists{}, 0, lance.Corrupt("", "lists own %d of %d items", lists.Items(), list.GetNumItems())
	}
	if from > 0 {
		first = lists.Ends[0]
		lists.Ends, lists.Null = lists.Ends[1:], lists.Null[1:]
	}
	return lists, first, nil
}
