package v21

import (
	"encoding/binary"
	"math/bits"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/bitpack"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

func flatEncoding(width int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Flat{Flat: &enc21pb.Flat{BitsPerValue: uint64(width)}}}
}

func variableEncoding(offsetBits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Variable{Variable: &enc21pb.Variable{Offsets: flatEncoding(offsetBits)}}}
}

func inlineEncoding(width int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_InlineBitpacking{
		InlineBitpacking: &enc21pb.InlineBitpacking{UncompressedBitsPerValue: uint64(width)},
	}}
}

func outOfLineEncoding(width, packed int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_OutOfLineBitpacking{
		OutOfLineBitpacking: &enc21pb.OutOfLineBitpacking{UncompressedBitsPerValue: uint64(width), Values: flatEncoding(packed)},
	}}
}

func runEncoding(width int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Rle{
		Rle: &enc21pb.Rle{Values: flatEncoding(width), RunLengths: flatEncoding(8)},
	}}
}

func generalEncoding(scheme enc21pb.CompressionScheme, inner *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_General{
		General: &enc21pb.General{Compression: &enc21pb.BufferCompression{Scheme: scheme}, Values: inner},
	}}
}

// levelWriter packs level streams, each chunk by itself with the one description of the page.
type levelWriter struct {
	packed int // bits a level; 16 is not packed
}

// newLevelWriter takes the width of the largest level of the page.
func newLevelWriter(levels []uint16) levelWriter {
	var or uint16
	for _, l := range levels {
		or |= l
	}
	return levelWriter{packed: max(1, bits.Len16(or))}
}

func (w levelWriter) encoding() *enc21pb.CompressiveEncoding {
	if w.packed == 16 {
		return flatEncoding(16)
	}
	return outOfLineEncoding(16, w.packed)
}

// pack packs groups of 1024; the tail is packed too when that is smaller than raw, which readers see by the size
// (encodings/physical/bitpacking.rs:bitpack_out_of_line).
func (w levelWriter) pack(levels []uint16) []byte {
	if w.packed == 16 {
		return appendLevels(nil, levels)
	}
	var dst []byte
	var group [2 * bitpack.Group]byte
	for len(levels) > 0 {
		n := min(len(levels), bitpack.Group)
		if n < bitpack.Group && bitpack.Size(w.packed) >= 2*n {
			return appendLevels(dst, levels)
		}
		clear(group[copy(group[:], appendLevels(group[:0], levels[:n])):])
		dst = appendPacked(dst, group[:], 16, w.packed)
		levels = levels[n:]
	}
	return dst
}

// appendPacked packs one group of values of a word size that bitpack knows, to no less than their width.
func appendPacked(dst, group []byte, wordBits, width int) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, bitpack.Size(width))...)
	if err := bitpack.Pack(dst[at:], group, wordBits, width); err != nil {
		panic(err) //nolint:forbidigo // sizes are computed here, no input reaches this
	}
	return dst
}

func appendLevels(dst []byte, levels []uint16) []byte {
	for _, l := range levels {
		dst = binary.LittleEndian.AppendUint16(dst, l)
	}
	return dst
}

// appendNumber adds a little-endian number of 1, 2, 4 or 8 bytes.
func appendNumber(dst []byte, width int, v uint64) []byte {
	switch width {
	case 8:
		return binary.LittleEndian.AppendUint64(dst, v)
	case 4:
		return binary.LittleEndian.AppendUint32(dst, uint32(v))
	case 2:
		return binary.LittleEndian.AppendUint16(dst, uint16(v))
	default:
		return append(dst, byte(v))
	}
}

// stringsBlock writes byte strings in the block position (encodings/physical/binary.rs:VariableEncoder).
func stringsBlock(v *encoding.Values, offsetBits int) []byte {
	width := offsetBits / 8
	start := 2*width + (v.N+1)*width
	dst := make([]byte, 0, start+len(v.Data))
	dst = appendNumber(dst, width, uint64(offsetBits))
	dst = appendNumber(dst, width, uint64(start))
	for _, o := range v.Offsets {
		dst = appendNumber(dst, width, uint64(o))
	}
	return append(dst, v.Data...)
}
