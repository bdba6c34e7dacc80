// Package bitpack packs and unpacks groups of 1024 unsigned integers in the FastLanes order.
//
// A group of words of T bits is cut into 1024/T lanes. Each lane is a little-endian bit string of T values, and word k of
// lane l stands at position k*lanes+l (lance-format/lance rust/compression/bitpacking/src/lib.rs:pack, unpack).
package bitpack

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	"lancekeeper/internal/lance"
)

// Group is the number of values in a group.
const Group = 1024

// word is a lane word; its size in bits is T.
type word interface {
	uint8 | uint16 | uint32 | uint64
}

// Size is the bytes that a group packed to width bits takes, whatever its word size.
func Size(width int) int { return Group / 8 * width }

// Unpack writes the 1024 values of a packed group to dst, little-endian, bitWidth bits each. bitWidth is 8, 16, 32 or 64;
// dst holds 1024 values and src Size(width) bytes. The error is of class lance.ErrCorrupt.
func Unpack(dst, src []byte, bitWidth, width int) error {
	if err := check(dst, src, bitWidth, width); err != nil {
		return err
	}
	switch bitWidth {
	case 8:
		unpack[uint8](dst, src, 8, width)
	case 16:
		unpack[uint16](dst, src, 16, width)
	case 32:
		unpack[uint32](dst, src, 32, width)
	default:
		unpack[uint64](dst, src, 64, width)
	}
	return nil
}

// Pack is the inverse of Unpack: it packs 1024 values of bitWidth bits in src into the Size(width) bytes of dst. Bits of a
// value above width are lost; see Width.
func Pack(dst, src []byte, bitWidth, width int) error {
	if err := check(src, dst, bitWidth, width); err != nil {
		return err
	}
	switch bitWidth {
	case 8:
		pack[uint8](dst, src, 8, width)
	case 16:
		pack[uint16](dst, src, 16, width)
	case 32:
		pack[uint32](dst, src, 32, width)
	default:
		pack[uint64](dst, src, 64, width)
	}
	return nil
}

// Width is the number of bits that the largest of the little-endian values in src needs, 0 if all are zero. bitWidth is 8,
// 16, 32 or 64.
func Width(src []byte, bitWidth int) int {
	var or uint64
	for len(src) >= 8 {
		or |= binary.LittleEndian.Uint64(src)
		src = src[8:]
	}
	for i, b := range src {
		or |= uint64(b) << (8 * i)
	}
	for s := 32; s >= bitWidth; s /= 2 {
		or |= or >> s
	}
	if bitWidth < 64 {
		or &= 1<<bitWidth - 1
	}
	return bits.Len64(or)
}

func check(plain, packed []byte, bitWidth, width int) error {
	switch bitWidth {
	case 8, 16, 32, 64:
	default:
		return lance.Unsupported("bit-packing word", strconv.Itoa(bitWidth), "")
	}
	if width < 0 || width > bitWidth {
		return lance.Corrupt("", "bit width %d for %d-bit words", width, bitWidth)
	}
	if len(plain) != Group*bitWidth/8 || len(packed) != Size(width) {
		return lance.Corrupt("", "bit-packed group of %d bytes for %d of plain values, width %d", len(packed), len(plain), width)
	}
	return nil
}

// position is the place of the first lane's value of a row among the 1024 values; lanes follow one by one.
func position(row int) int {
	order := [8]int{0, 4, 2, 6, 1, 5, 3, 7}
	return order[row/8]*16 + row%8*128
}

func unpack[W word](dst, src []byte, size, width int) {
	var words, out [Group]W
	load(words[:Group/size*width], src)
	if width > 0 {
		unpackWords(&out, &words, size, width)
	}
	store(dst, out[:])
}

func unpackWords[W word](out, words *[Group]W, size, width int) {
	lanes := Group / size
	mask := ^W(0) >> (size - width)
	for row := range size {
		bit := row * width
		shift := bit % size
		low := words[lanes*(bit/size):][:lanes]
		at := out[position(row):][:lanes]
		if shift+width <= size {
			for i, v := range low {
				at[i] = v >> shift & mask
			}
			continue
		}
		high := words[lanes*(bit/size+1):][:lanes]
		for i, v := range low {
			at[i] = (v>>shift | high[i]<<(size-shift)) & mask
		}
	}
}

func pack[W word](dst, src []byte, size, width int) {
	var words, in [Group]W
	load(in[:], src)
	if width > 0 {
		packWords(&words, &in, size, width)
	}
	store(dst, words[:Group/size*width])
}

func packWords[W word](words, in *[Group]W, size, width int) {
	lanes := Group / size
	mask := ^W(0) >> (size - width)
	for row := range size {
		bit := row * width
		shift := bit % size
		low := words[lanes*(bit/size):][:lanes]
		at := in[position(row):][:lanes]
		for i, v := range at {
			low[i] |= (v & mask) << shift
		}
		if shift+width <= size {
			continue
		}
		high := words[lanes*(bit/size+1):][:lanes]
		for i, v := range at {
			high[i] |= (v & mask) >> (size - shift)
		}
	}
}

// load reads little-endian words from src, which holds exactly those of dst.
func load[W word](dst []W, src []byte) {
	switch d := any(dst).(type) {
	case []uint8:
		copy(d, src)
	case []uint16:
		for i := range d {
			d[i] = binary.LittleEndian.Uint16(src[2*i:])
		}
	case []uint32:
		for i := range d {
			d[i] = binary.LittleEndian.Uint32(src[4*i:])
		}
	case []uint64:
		for i := range d {
			d[i] = binary.LittleEndian.Uint64(src[8*i:])
		}
	}
}

// store writes the words of src to dst, little-endian.
func store[W word](dst []byte, src []W) {
	switch s := any(src).(type) {
	case []uint8:
		copy(dst, s)
	case []uint16:
		for i, v := range s {
			binary.LittleEndian.PutUint16(dst[2*i:], v)
		}
	case []uint32:
		for i, v := range s {
			binary.LittleEndian.PutUint32(dst[4*i:], v)
		}
	case []uint64:
		for i, v := range s {
			binary.LittleEndian.PutUint64(dst[8*i:], v)
		}
	}
}
