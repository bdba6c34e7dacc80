package v21

import (
	"encoding/binary"
	"math"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/bitpack"
	"lancekeeper/internal/lance/encoding/general"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// blockReader decodes buffers in the block position: levels and dictionary values, one buffer each, the number of values
// told by the container (lance-encoding src/compression.rs:create_block_decompressor).
type blockReader struct {
	codec *general.Codec
	limit int // bytes that one call may return
}

// levels decodes n levels.
func (r blockReader) levels(enc *enc21pb.CompressiveEncoding, buf []byte, n int) ([]uint16, error) {
	raw, err := r.fixed(enc, buf, 16, n)
	if err != nil {
		return nil, err
	}
	return rawLevels(raw), nil
}

// rawLevels reads little-endian levels; an odd byte at the end is left out.
func rawLevels(raw []byte) []uint16 {
	out := make([]uint16, len(raw)/2)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	return out
}

// fixed decodes n values of bits bits, a multiple of 8, to their little-endian bytes. The result may be a part of buf.
func (r blockReader) fixed(enc *enc21pb.CompressiveEncoding, buf []byte, bits, n int) ([]byte, error) {
	width := bits / 8
	if n < 0 || n > r.limit/width {
		return nil, lance.Unsupported("page", "too large when decoded", "")
	}
	switch e := enc.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Flat:
		if err := plainFlat(e.Flat, bits); err != nil {
			return nil, err
		}
		if len(buf) != n*width {
			return nil, lance.Corrupt("", "flat block of %d bytes for %d values of %d", len(buf), n, width)
		}
		return buf, nil
	case *enc21pb.CompressiveEncoding_InlineBitpacking:
		return unpackInline(e.InlineBitpacking, buf, bits, n)
	case *enc21pb.CompressiveEncoding_OutOfLineBitpacking:
		return unpackOutOfLine(e.OutOfLineBitpacking, buf, bits, n)
	case *enc21pb.CompressiveEncoding_Rle:
		return unpackRunBlock(e.Rle, buf, bits, n)
	case *enc21pb.CompressiveEncoding_General:
		plain, err := r.codec.Decompress(e.General.GetCompression().GetScheme(), buf)
		if err != nil {
			return nil, err
		}
		return r.fixed(e.General.GetValues(), plain, bits, n)
	default:
		return nil, unsupported(enc, "block")
	}
}

// plainFlat checks a Flat description: its width, and that it has no compression of its own (none is written).
func plainFlat(f *enc21pb.Flat, bits int) error {
	if f.GetData() != nil {
		return lance.Unsupported("encoding", "flat with compression", "")
	}
	if f.GetBitsPerValue() != uint64(bits) {
		return lance.Corrupt("", "flat values of %d bits in a column of %d", f.GetBitsPerValue(), bits)
	}
	return nil
}

// unpackInline decodes one group that begins with a word that holds its width (encodings/physical/bitpacking.rs).
func unpackInline(e *enc21pb.InlineBitpacking, buf []byte, bits, n int) ([]byte, error) {
	if e.GetUncompressedBitsPerValue() != uint64(bits) {
		return nil, lance.Corrupt("", "bit-packed words of %d bits in a column of %d", e.GetUncompressedBitsPerValue(), bits)
	}
	if e.GetValues() != nil {
		return nil, lance.Unsupported("encoding", "inline bit-packing with compression", "")
	}
	if n > bitpack.Group || !wordSize(bits) || len(buf) < bits/8 {
		return nil, lance.Corrupt("", "bit-packed group of %d bytes for %d values of %d bits", len(buf), n, bits)
	}
	width := buf[0]
	for _, b := range buf[1 : bits/8] {
		if b != 0 {
			return nil, lance.Corrupt("", "bit-packed group of a width above 255")
		}
	}
	out := make([]byte, bitpack.Group*bits/8)
	if err := bitpack.Unpack(out, buf[bits/8:], bits, int(width)); err != nil {
		return nil, err
	}
	return out[:n*bits/8], nil
}

func wordSize(bits int) bool { return bits == 8 || bits == 16 || bits == 32 || bits == 64 }

// unpackOutOfLine decodes groups of 1024 values and a tail that is raw or a group too, which only its size tells.
func unpackOutOfLine(e *enc21pb.OutOfLineBitpacking, buf []byte, bits, n int) ([]byte, error) {
	flat := e.GetValues().GetFlat()
	width := int(min(flat.GetBitsPerValue(), 65))
	if e.GetUncompressedBitsPerValue() != uint64(bits) || flat == nil || flat.GetData() != nil || !wordSize(bits) || width > bits {
		return nil, lance.Corrupt("", "bit-packing of %d-bit values into %d bits in a column of %d", e.GetUncompressedBitsPerValue(), flat.GetBitsPerValue(), bits)
	}
	size, group := bits/8, bitpack.Size(width)
	full, tail := n/bitpack.Group, n%bitpack.Group
	rest := len(buf) - full*group
	rawTail := rest == tail*size
	if !rawTail && rest != group {
		return nil, lance.Corrupt("", "bit-packed block of %d bytes for %d values of %d bits", len(buf), n, width)
	}
	groups := full
	if !rawTail {
		groups++
	}
	out := make([]byte, groups*bitpack.Group*size, max(groups*bitpack.Group, n)*size)
	for g := range groups {
		if err := bitpack.Unpack(out[g*bitpack.Group*size:][:bitpack.Group*size], buf[g*group:][:group], bits, width); err != nil {
			return nil, err
		}
	}
	if rawTail {
		out = append(out, buf[full*group:]...)
	}
	return out[:n*size], nil
}

// runs splits a run-length block: 64-bit size of the values, the values, one length byte for each.
func runs(buf []byte) (values, lengths []byte, err error) {
	if len(buf) < 8 {
		return nil, nil, lance.Corrupt("", "run-length block of %d bytes", len(buf))
	}
	size := binary.LittleEndian.Uint64(buf)
	buf = buf[8:]
	if size > uint64(len(buf)) {
		return nil, nil, lance.Corrupt("", "run-length block with %d bytes of values in %d", size, len(buf))
	}
	return buf[:size], buf[size:], nil
}

// runTotal is the number of values of a run-length block, -1 when enc is another encoding.
func runTotal(enc *enc21pb.CompressiveEncoding, buf []byte) (int, error) {
	if enc.GetRle() == nil {
		return -1, nil
	}
	_, lengths, err := runs(buf)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, l := range lengths {
		n += int(l)
	}
	return n, nil
}

func unpackRunBlock(e *enc21pb.Rle, buf []byte, bits, n int) ([]byte, error) {
	values, lengths, err := runs(buf)
	if err != nil {
		return nil, err
	}
	if err := checkRuns(e, bits); err != nil {
		return nil, err
	}
	out := make([]byte, n*bits/8)
	total, err := expandRuns(out, values, lengths, bits/8)
	if err != nil {
		return nil, err
	}
	if total != n {
		return nil, lance.Corrupt("", "runs of %d values in a block of %d", total, n)
	}
	return out, nil
}

// checkRuns verifies the description: plain values of the column's width, lengths of one byte.
func checkRuns(e *enc21pb.Rle, bits int) error {
	if !wordSize(bits) {
		return lance.Corrupt("", "runs of %d-bit values", bits)
	}
	values, lengths := e.GetValues().GetFlat(), e.GetRunLengths().GetFlat()
	if values == nil || lengths == nil {
		return lance.Unsupported("encoding", "runs that are compressed themselves", "")
	}
	if err := plainFlat(values, bits); err != nil {
		return err
	}
	return plainFlat(lengths, 8)
}

// expandRuns fills dst with the runs and returns how many values they hold. What exceeds dst is left out: writers up to
// pylance 1.0.0 let the runs of a chunk overshoot (encodings/physical/rle.rs:clamp_overflow).
func expandRuns(dst, values, lengths []byte, width int) (int, error) {
	if len(values) != len(lengths)*width {
		return 0, lance.Corrupt("", "%d bytes of run values for %d runs of %d-byte values", len(values), len(lengths), width)
	}
	total := 0
	for i, l := range lengths {
		if l == 0 {
			return 0, lance.Corrupt("", "run of length 0")
		}
		total += int(l)
		run := dst[:min(len(dst), int(l)*width)]
		dst = dst[len(run):]
		fill(run, values[i*width:(i+1)*width])
	}
	return total, nil
}

// fill repeats value over all of dst, a multiple of it.
func fill(dst, value []byte) {
	n := copy(dst, value)
	for n > 0 && n < len(dst) {
		n += copy(dst[n:], dst[:n])
	}
}

// strings decodes n byte strings into s (encodings/physical/binary.rs:VariableEncoder).
func (r blockReader) strings(s *sink, enc *enc21pb.CompressiveEncoding, buf []byte, n int) error {
	switch e := enc.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Variable:
		return variableBlock(s, e.Variable, buf, n)
	case *enc21pb.CompressiveEncoding_General:
		plain, err := r.codec.Decompress(e.General.GetCompression().GetScheme(), buf)
		if err != nil {
			return err
		}
		return r.strings(s, e.General.GetValues(), plain, n)
	default:
		return unsupported(enc, "block")
	}
}

// variableBlock reads `bits | start of bytes | n+1 offsets from 0 | bytes`, all numbers bits wide. An old form begins
// `u8 bits | n | start`: bytes 1 to 3 tell them apart.
func variableBlock(s *sink, e *enc21pb.Variable, buf []byte, n int) error {
	bits, err := offsetBits(e)
	if err != nil {
		return err
	}
	width := bits / 8
	if len(buf) < 4 {
		return lance.Corrupt("", "variable block of %d bytes", len(buf))
	}
	at := 0 // of the start of bytes
	declared, found := uint64(buf[0]), uint64(n)
	if buf[1]|buf[2]|buf[3] != 0 {
		at = 1 + width
		if len(buf) >= at {
			found = number(buf[1:], width)
		}
	} else {
		at = width
		if len(buf) >= at {
			declared = number(buf, width)
		}
	}
	offsets := at + width
	if len(buf) < offsets || declared != uint64(bits) || found != uint64(n) {
		return lance.Corrupt("", "variable block of %d bytes, %d bits, for %d values of %d bits", len(buf), declared, n, bits)
	}
	start := number(buf[at:], width)
	if n > (len(buf)-offsets)/width || start != uint64(offsets+(n+1)*width) || start > uint64(len(buf)) {
		return lance.Corrupt("", "variable block of %d bytes whose %d values begin at %d", len(buf), n, start)
	}
	return cutStrings(s, buf[offsets:start], buf[start:], width, nil)
}

// cutStrings adds the byte strings between consecutive offsets into data, decoded by fn if there is one.
func cutStrings(s *sink, offsets, data []byte, width int, fn func(dst, src []byte) ([]byte, error)) error {
	from := number(offsets, width)
	for i := width; i < len(offsets); i += width {
		to := number(offsets[i:], width)
		if to < from || to > uint64(len(data)) {
			return lance.Corrupt("", "value from %d to %d in %d bytes", from, to, len(data))
		}
		value := data[from:to]
		from = to
		if fn == nil {
			if err := s.string(value); err != nil {
				return err
			}
			continue
		}
		before := len(s.values.Data)
		out, err := fn(s.values.Data, value)
		if err != nil {
			return err
		}
		if err := s.take(len(out) - before + 8); err != nil {
			return err
		}
		s.values.Data = out
		s.closeString()
	}
	return nil
}

// offsetBits is the width of a Variable's offsets, 32 or 64.
func offsetBits(e *enc21pb.Variable) (int, error) {
	flat := e.GetOffsets().GetFlat()
	if flat == nil || flat.GetData() != nil || e.GetValues() != nil {
		return 0, lance.Unsupported("encoding", "variable with encoded offsets or values", "")
	}
	bits := flat.GetBitsPerValue()
	if bits != 32 && bits != 64 {
		return 0, lance.Corrupt("", "offsets of %d bits", bits)
	}
	return int(bits), nil
}

// number reads a little-endian number of 1, 2, 4 or 8 bytes.
func number(b []byte, width int) uint64 {
	switch width {
	case 8:
		return binary.LittleEndian.Uint64(b)
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	default:
		return uint64(b[0])
	}
}

// intOf converts a count of the file; what does not fit can only be damage.
func intOf(n uint64, what string) (int, error) {
	if n > math.MaxInt32*256 {
		return 0, lance.Corrupt("", "%d %s", n, what)
	}
	return int(n), nil
}

// items decodes the values of a dictionary.
func (r blockReader) items(t encoding.Type, enc *enc21pb.CompressiveEncoding, buf []byte, n int) (*sink, error) {
	s := newSink(t, r.limit, r.codec)
	switch {
	case t.Kind == encoding.Bytes:
		return s, r.strings(s, enc, buf, n)
	case t.Kind == encoding.Fixed && t.Bits >= 8:
		raw, err := r.fixed(enc, buf, t.Bits, n)
		s.values.Fixed, s.values.N = raw, n
		return s, err
	default:
		return nil, lance.Unsupported("encoding", "dictionary of vectors or booleans", "")
	}
}
