package v21

import (
	"fmt"
	"strings"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/fsst"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// unsupported names an encoding that is not understood in a position.
func unsupported(enc *enc21pb.CompressiveEncoding, position string) error {
	name := strings.TrimPrefix(fmt.Sprintf("%T", enc.GetCompression()), "*enc21pb.CompressiveEncoding_")
	return lance.Unsupported("encoding", position+" "+name, "")
}

// chunkDecoder adds the n values that the buffers of one mini-block chunk hold to a sink.
type chunkDecoder func(s *sink, bufs [][]byte, n int) error

// miniCodec is the decoder of a page's chunks, and how many buffers it takes.
type miniCodec struct {
	buffers int
	decode  chunkDecoder
}

// newMiniCodec prepares the decoder for an encoding in the mini-block position, for values of type t.
func newMiniCodec(t encoding.Type, enc *enc21pb.CompressiveEncoding) (miniCodec, error) {
	if general := enc.GetGeneral(); general != nil {
		return newGeneralMini(t, general)
	}
	switch t.Kind {
	case encoding.Fixed:
		return newFixedMini(t, enc)
	case encoding.Bytes:
		return newBytesMini(enc)
	case encoding.Vector:
		return newVectorMini(t, enc)
	case encoding.Void:
	}
	return miniCodec{}, unsupported(enc, "mini-block")
}

// newGeneralMini decompresses buffer 0 of each chunk; further buffers are plain.
func newGeneralMini(t encoding.Type, e *enc21pb.General) (miniCodec, error) {
	if e.GetValues().GetGeneral() != nil {
		return miniCodec{}, lance.Unsupported("encoding", "compression of compression", "")
	}
	inner, err := newMiniCodec(t, e.GetValues())
	if err != nil {
		return miniCodec{}, err
	}
	scheme := e.GetCompression().GetScheme()
	return miniCodec{inner.buffers, func(s *sink, bufs [][]byte, n int) error {
		plain, err := s.codec.Decompress(scheme, bufs[0])
		if err != nil {
			return err
		}
		unpacked := append([][]byte{plain}, bufs[1:]...)
		return inner.decode(s, unpacked, n)
	}}, nil
}

func newFixedMini(t encoding.Type, enc *enc21pb.CompressiveEncoding) (miniCodec, error) {
	switch e := enc.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Flat:
		return miniCodec{1, flatChunk(t.Bits)}, plainFlat(e.Flat, t.Bits)
	case *enc21pb.CompressiveEncoding_InlineBitpacking:
		return miniCodec{1, func(s *sink, bufs [][]byte, n int) error {
			raw, err := unpackInline(e.InlineBitpacking, bufs[0], t.Bits, n)
			if err != nil {
				return err
			}
			return s.copyFixed(raw, n)
		}}, nil
	case *enc21pb.CompressiveEncoding_Rle:
		return miniCodec{2, runChunk(t.Bits)}, checkRuns(e.Rle, t.Bits)
	case *enc21pb.CompressiveEncoding_ByteStreamSplit:
		flat := e.ByteStreamSplit.GetValues().GetFlat()
		if flat == nil {
			return miniCodec{}, lance.Unsupported("encoding", "byte stream split of encoded values", "")
		}
		return miniCodec{1, splitChunk}, plainFlat(flat, t.Bits)
	default:
		return miniCodec{}, unsupported(enc, "mini-block")
	}
}

// flatChunk copies values, or widens booleans to a byte each.
func flatChunk(bits int) chunkDecoder {
	return func(s *sink, bufs [][]byte, n int) error {
		if want := (n*bits + 7) / 8; len(bufs[0]) != want {
			return lance.Corrupt("", "flat chunk of %d bytes, not %d", len(bufs[0]), want)
		}
		if bits > 1 {
			return s.copyFixed(bufs[0], n)
		}
		dst, err := s.extend(n)
		if err != nil {
			return err
		}
		expandBits(dst, bufs[0])
		return nil
	}
}

// expandBits writes one byte 0 or 1 for each of the first len(dst) bits, least significant first.
func expandBits(dst, bitmap []byte) {
	for i := range dst {
		dst[i] = bitmap[i/8] >> (i % 8) & 1
	}
}

func (s *sink) copyFixed(raw []byte, n int) error {
	dst, err := s.extend(n)
	if err != nil {
		return err
	}
	copy(dst, raw)
	return nil
}

// runChunk expands run values (buffer 0) by run lengths (buffer 1).
func runChunk(bits int) chunkDecoder {
	return func(s *sink, bufs [][]byte, n int) error {
		if len(bufs[1]) == 0 && n > 0 || n > len(bufs[1])*255 {
			return lance.Corrupt("", "%d runs for %d values", len(bufs[1]), n)
		}
		dst, err := s.extend(n)
		if err != nil {
			return err
		}
		total, err := expandRuns(dst, bufs[0], bufs[1], bits/8)
		if err != nil {
			return err
		}
		if total < n {
			return lance.Corrupt("", "runs of %d values in a chunk of %d", total, n)
		}
		return nil
	}
}

// splitChunk joins values whose bytes stand apart: all first bytes, then all second ones (physical/byte_stream_split.rs).
func splitChunk(s *sink, bufs [][]byte, n int) error {
	if len(bufs[0]) != n*s.width {
		return lance.Corrupt("", "split chunk of %d bytes for %d values of %d", len(bufs[0]), n, s.width)
	}
	dst, err := s.extend(n)
	if err != nil {
		return err
	}
	for k := range s.width {
		for i, b := range bufs[0][k*n : (k+1)*n] {
			dst[i*s.width+k] = b
		}
	}
	return nil
}

func newBytesMini(enc *enc21pb.CompressiveEncoding) (miniCodec, error) {
	switch e := enc.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Variable:
		return variableMini(e.Variable, nil)
	case *enc21pb.CompressiveEncoding_Fsst:
		table, err := fsst.ParseTable(e.Fsst.GetSymbolTable())
		if err != nil {
			return miniCodec{}, err
		}
		if e.Fsst.GetValues().GetVariable() == nil {
			return miniCodec{}, unsupported(e.Fsst.GetValues(), "fsst")
		}
		return variableMini(e.Fsst.GetValues().GetVariable(), table.Decode)
	default:
		return miniCodec{}, unsupported(enc, "mini-block")
	}
}

// variableMini cuts strings by n+1 offsets that count from the start of the buffer (physical/binary.rs:chunk_offsets).
func variableMini(e *enc21pb.Variable, fn func(dst, src []byte) ([]byte, error)) (miniCodec, error) {
	bits, err := offsetBits(e)
	if err != nil {
		return miniCodec{}, err
	}
	width := bits / 8
	return miniCodec{1, func(s *sink, bufs [][]byte, n int) error {
		buf := bufs[0]
		if n >= len(buf)/width {
			return lance.Corrupt("", "variable chunk of %d bytes for %d values", len(buf), n)
		}
		head := (n + 1) * width
		if first := number(buf, width); first != uint64(head) {
			return lance.Corrupt("", "first value of a variable chunk at %d, not %d", first, head)
		}
		return cutStrings(s, buf[:head], buf, width, fn)
	}}, nil
}

// vectorForm is a FixedSizeList description, flattened.
type vectorForm struct {
	validity []validityLayer // outermost first
	null     bool            // all items are null and take no bytes
}

// validityLayer is a list layer that tells which of its items are null.
type validityLayer struct {
	items int  // of this layer in one value
	leaf  bool // its items are numbers, not lists
}

// newVectorForm checks a FixedSizeList description against the column's type.
func newVectorForm(t encoding.Type, enc *enc21pb.CompressiveEncoding) (vectorForm, error) {
	var f vectorForm
	product := 1
	for i, dim := range t.Dims {
		list := enc.GetFixedSizeList()
		if list == nil {
			return f, unsupported(enc, "vector")
		}
		if list.GetItemsPerValue() != uint64(dim) {
			return f, lance.Corrupt("", "lists of %d items in a column of %d", list.GetItemsPerValue(), dim)
		}
		product *= dim
		if list.GetHasValidity() {
			f.validity = append(f.validity, validityLayer{product, i == len(t.Dims)-1})
		}
		enc = list.GetValues()
	}
	switch e := enc.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Flat:
		return f, plainFlat(e.Flat, t.Bits)
	case *enc21pb.CompressiveEncoding_Constant:
		if e.Constant.GetValue() != nil || len(f.validity) == 0 {
			return f, lance.Unsupported("encoding", "vectors of one constant", "")
		}
		f.null = true
		return f, nil
	default:
		return f, unsupported(enc, "vector")
	}
}

// newVectorMini decodes one bitmap for each layer with validity, then the items of all vectors (physical/value.rs:chunk_fsl).
func newVectorMini(t encoding.Type, enc *enc21pb.CompressiveEncoding) (miniCodec, error) {
	form, err := newVectorForm(t, enc)
	if err != nil {
		return miniCodec{}, err
	}
	if form.null {
		return miniCodec{}, lance.Unsupported("encoding", "vectors without items in mini-blocks", "")
	}
	items := t.Items()
	return miniCodec{len(form.validity) + 1, func(s *sink, bufs [][]byte, n int) error {
		raw := bufs[len(bufs)-1]
		if want := (n*items*t.Bits + 7) / 8; len(raw) != want {
			return lance.Corrupt("", "chunk of vectors of %d bytes, not %d", len(raw), want)
		}
		first := s.values.N
		dst, err := s.extend(n)
		if err != nil {
			return err
		}
		if t.Bits == 1 {
			expandBits(dst, raw)
		} else {
			copy(dst, raw)
		}
		return form.readValidity(s, bufs[:len(bufs)-1], first, n)
	}}, nil
}

// readValidity adds the validity of n values, the first of which is the sink's slot first, from one bitmap a layer.
func (f vectorForm) readValidity(s *sink, bitmaps [][]byte, first, n int) error {
	if len(f.validity) == 0 {
		return nil
	}
	valid, err := s.extendItems(n)
	if err != nil {
		return err
	}
	for i, layer := range f.validity {
		bitmap := bitmaps[i]
		if len(bitmap) != (n*layer.items+7)/8 {
			return lance.Corrupt("", "validity of %d bytes for %d vectors of %d items", len(bitmap), n, layer.items)
		}
		if layer.leaf {
			expandBits(valid, bitmap)
			continue
		}
		for j := range n * layer.items {
			if bitmap[j/8]>>(j%8)&1 == 0 {
				s.markOpaque(first + j/layer.items)
			}
		}
	}
	return nil
}
