package v21

import (
	"encoding/binary"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/general"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// Limits of mini-block chunks (lance-encoding src/encodings/logical/primitive/miniblock.rs).
const (
	miniAlign      = 8
	maxChunkValues = 1 << 16 // of one chunk; writers stay below 2^15
	maxMiniBuffers = 64      // value buffers of a chunk: one a fixed-size list layer, and one
)

// miniDecoder decodes the chunks of one mini-block page.
type miniDecoder struct {
	layout *enc21pb.MiniBlockLayout
	sh     shape
	blocks blockReader
	values miniCodec
	out    *sink
	rep    []uint16
	def    []uint16
}

func decodeMini(t encoding.Type, l *enc21pb.MiniBlockLayout, p page, codec *general.Codec) (*encoding.Block, error) {
	sh, err := shapeOf(l.GetLayers())
	if err != nil {
		return nil, err
	}
	if err := checkMini(l, sh, p); err != nil {
		return nil, err
	}
	items, err := intOf(l.GetNumItems(), "values in a mini-block page")
	if err != nil {
		return nil, err
	}
	stored := t
	if l.GetDictionary() != nil {
		if stored, err = indexType(l.GetValueCompression()); err != nil {
			return nil, err
		}
	}
	d := &miniDecoder{layout: l, sh: sh, blocks: blockReader{codec, p.limit}, out: newSink(stored, p.limit, codec)}
	if d.values, err = newMiniCodec(stored, l.GetValueCompression()); err != nil {
		return nil, err
	}
	if l.GetNumBuffers() != uint64(d.values.buffers) {
		return nil, lance.Corrupt("", "%d value buffers, the encoding has %d", l.GetNumBuffers(), d.values.buffers)
	}
	d.out.reserve(items, len(p.buffers[1]))
	if err := d.chunks(p.buffers[0], p.buffers[1], items); err != nil {
		return nil, err
	}
	if l.GetDictionary() != nil {
		if err := d.resolve(t, p.buffers[2]); err != nil {
			return nil, err
		}
	}
	return d.out.block(sh, d.rep, d.def, p.rows)
}

// checkMini verifies what a layout says about its streams and buffers.
func checkMini(l *enc21pb.MiniBlockLayout, sh shape, p page) error {
	if l.GetHasLargeChunk() != (p.minor >= 2) {
		return lance.Corrupt("", "chunk words of the wrong width in file version 2.%d", p.minor)
	}
	if (l.GetRepCompression() != nil) != (sh.maxRep > 0) {
		return lance.Corrupt("", "%d list layers, repetition levels: %t", sh.maxRep, l.GetRepCompression() != nil)
	}
	if sh.maxDef == 0 && l.GetDefCompression() != nil {
		return lance.Corrupt("", "definition levels in a page without nulls")
	}
	if l.GetNumBuffers() > maxMiniBuffers || l.GetRepetitionIndexDepth() > 1 {
		return lance.Unsupported("encoding", "mini-block with more buffers than known", "")
	}
	want := 2 + int(l.GetRepetitionIndexDepth())
	if l.GetDictionary() != nil {
		want++
	}
	if len(p.buffers) != want {
		return lance.Corrupt("", "mini-block page with %d buffers, not %d", len(p.buffers), want)
	}
	return nil
}

// indexType is the type of dictionary indices, which their encoding alone tells.
func indexType(enc *enc21pb.CompressiveEncoding) (encoding.Type, error) {
	var bits uint64
	switch e := enc.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Flat:
		bits = e.Flat.GetBitsPerValue()
	case *enc21pb.CompressiveEncoding_InlineBitpacking:
		bits = e.InlineBitpacking.GetUncompressedBitsPerValue()
	case *enc21pb.CompressiveEncoding_Rle:
		bits = e.Rle.GetValues().GetFlat().GetBitsPerValue()
	case *enc21pb.CompressiveEncoding_General:
		if e.General.GetValues().GetGeneral() != nil {
			return encoding.Type{}, unsupported(enc, "dictionary index")
		}
		return indexType(e.General.GetValues())
	default:
		return encoding.Type{}, unsupported(enc, "dictionary index")
	}
	if bits > 64 || !wordSize(int(bits)) {
		return encoding.Type{}, lance.Corrupt("", "dictionary indices of %d bits", bits)
	}
	return encoding.Type{Kind: encoding.Fixed, Bits: int(bits)}, nil
}

// chunks walks the metadata words: the low four bits are the logarithm of the number of values, 0 in the last chunk, which
// takes the rest; the others the size in 8 bytes, less one.
func (d *miniDecoder) chunks(words, data []byte, items int) error {
	width := 2
	if d.layout.GetHasLargeChunk() {
		width = 4
	}
	if len(words)%width != 0 {
		return lance.Corrupt("", "%d bytes of chunk words of %d", len(words), width)
	}
	for len(words) > 0 {
		word := number(words, width)
		words = words[width:]
		size, log := int(word>>4+1)*miniAlign, word&15
		n := items
		if len(words) > 0 {
			n = 1 << log
		}
		wrongLog := log == 0 && len(words) > 0 || log != 0 && n != 1<<log
		if wrongLog || n > items || n > maxChunkValues || size > len(data) {
			return lance.Corrupt("", "chunk of 2^%d values, %d bytes, where %d values and %d bytes are left", log, size, items, len(data))
		}
		items -= n
		if err := d.chunk(data[:size], n); err != nil {
			return err
		}
		data = data[size:]
	}
	if items != 0 || len(data) != 0 {
		return lance.Corrupt("", "%d values and %d bytes after the last chunk", items, len(data))
	}
	return nil
}

// chunkParts cuts a chunk: a header of sizes, then repetition levels, definition levels and value buffers, each padded to
// 8 bytes from the chunk's start.
type chunkParts struct {
	levels   int // number of entries; modulo 65536 in old files with run-length levels
	rep, def []byte
	values   [][]byte
}

func (d *miniDecoder) cut(c []byte) (chunkParts, error) {
	var parts chunkParts
	width := 2
	if d.layout.GetHasLargeChunk() {
		width = 4
	}
	hasRep, hasDef := d.layout.GetRepCompression() != nil, d.layout.GetDefCompression() != nil
	head := 2 + d.values.buffers*width
	if hasRep {
		head += 2
	}
	if hasDef {
		head += 2
	}
	if len(c) < head {
		return parts, lance.Corrupt("", "chunk of %d bytes with a header of %d", len(c), head)
	}
	parts.levels = int(binary.LittleEndian.Uint16(c))
	at, rest := 2, c[:head]
	next := func(width int) uint64 {
		v := number(rest[at:], width)
		at += width
		return v
	}
	pos := align(head)
	part := func(size uint64) ([]byte, error) {
		if pos > len(c) || size > uint64(len(c)-pos) {
			return nil, lance.Corrupt("", "part of %d bytes at %d in a chunk of %d", size, pos, len(c))
		}
		b := c[pos : pos+int(size)]
		pos = align(pos + int(size))
		return b, nil
	}
	var repSize, defSize uint64
	if hasRep {
		repSize = next(2)
	}
	if hasDef {
		defSize = next(2)
	}
	var err error
	if hasRep {
		if parts.rep, err = part(repSize); err != nil {
			return parts, err
		}
	}
	if hasDef {
		if parts.def, err = part(defSize); err != nil {
			return parts, err
		}
	}
	parts.values = make([][]byte, d.values.buffers)
	for i := range parts.values {
		if parts.values[i], err = part(next(width)); err != nil {
			return parts, err
		}
	}
	return parts, nil
}

func align(n int) int { return (n + miniAlign - 1) &^ (miniAlign - 1) }

// chunk decodes one chunk of n values.
func (d *miniDecoder) chunk(c []byte, n int) error {
	parts, err := d.cut(c)
	if err != nil {
		return err
	}
	if err := d.levels(parts, n); err != nil {
		return err
	}
	before := d.out.values.N
	if err := d.values.decode(d.out, parts.values, n); err != nil {
		return err
	}
	if got := d.out.values.N - before; got != n {
		return lance.Corrupt("", "%d values in a chunk of %d", got, n)
	}
	return nil
}

// levels decodes a chunk's levels and checks that they have the chunk's number of value slots.
func (d *miniDecoder) levels(parts chunkParts, n int) error {
	if parts.rep == nil && parts.def == nil {
		return nil
	}
	count, err := d.levelCount(parts)
	if err != nil {
		return err
	}
	if err := d.out.take(4 * count); err != nil {
		return err
	}
	slots := count
	if d.layout.GetRepCompression() != nil {
		rep, err := d.blocks.levels(d.layout.GetRepCompression(), parts.rep, count)
		if err != nil {
			return err
		}
		d.rep = append(d.rep, rep...)
	}
	if d.layout.GetDefCompression() != nil {
		def, err := d.blocks.levels(d.layout.GetDefCompression(), parts.def, count)
		if err != nil {
			return err
		}
		d.def = append(d.def, def...)
		slots = d.sh.slots(def)
	}
	if slots != n {
		return lance.Corrupt("", "levels of a chunk have %d value slots for %d values", slots, n)
	}
	return nil
}

// levelCount is the number of entries in a chunk. Old writers let it overflow its 16 bits; run-length levels tell the true
// number then (miniblock_decode.rs:resolve_num_levels).
func (d *miniDecoder) levelCount(parts chunkParts) (int, error) {
	for _, stream := range []struct {
		enc *enc21pb.CompressiveEncoding
		buf []byte
	}{{d.layout.GetRepCompression(), parts.rep}, {d.layout.GetDefCompression(), parts.def}} {
		total, err := runTotal(stream.enc, stream.buf)
		if err != nil {
			return 0, err
		}
		if total > parts.levels && total%(1<<16) == parts.levels {
			return total, nil
		}
	}
	return parts.levels, nil
}

// resolve replaces dictionary indices by the items they stand for. Null slots may hold any index.
func (d *miniDecoder) resolve(t encoding.Type, buf []byte) error {
	count, err := intOf(d.layout.GetNumDictionaryItems(), "dictionary items")
	if err != nil {
		return err
	}
	items, err := d.blocks.items(t, d.layout.GetDictionary(), buf, count)
	if err != nil {
		return err
	}
	index := d.out
	width := index.width
	out := newSink(t, index.room, index.codec)
	out.reserve(index.values.N, len(index.values.Fixed)+len(buf))
	null := nullSlots(d.sh, d.def)
	if null != nil && len(null) != index.values.N {
		return lance.Corrupt("", "%d values for %d slots", index.values.N, len(null))
	}
	for i := range index.values.N {
		at := number(index.values.Fixed[i*width:], width)
		isNull := null != nil && null[i]
		if at >= uint64(count) && !isNull {
			return lance.Corrupt("", "dictionary index %d of %d", at, count)
		}
		if err := out.copySlot(&items.values, int(min(at, uint64(count))), isNull); err != nil {
			return err
		}
	}
	d.out = out
	return nil
}

// copySlot adds value i of from, or an empty one for a null slot.
func (s *sink) copySlot(from *encoding.Values, i int, null bool) error {
	if s.t.Kind == encoding.Bytes {
		if null {
			return s.string(nil)
		}
		return s.string(from.Data[from.Offsets[i]:from.Offsets[i+1]])
	}
	dst, err := s.extend(1)
	if err == nil && !null {
		copy(dst, from.Fixed[i*s.width:(i+1)*s.width])
	}
	return err
}
