package v21

import (
	"encoding/binary"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/general"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// decodeConstant reads a page whose values are all null or all equal, in one of three forms that the buffers tell apart:
// none and no inline value: all rows null; two (levels) and no inline value: nothing but nulls; else one value for all
// (lance-encoding src/encodings/logical/primitive/{all_null,constant}.rs).
func decodeConstant(t encoding.Type, l *enc21pb.ConstantLayout, p page, codec *general.Codec) (*encoding.Block, error) {
	sh, err := shapeOf(l.GetLayers())
	if err != nil {
		return nil, err
	}
	if err := checkConstant(l, p); err != nil {
		return nil, err
	}
	value, levels, err := constantValue(t, l, p.buffers)
	if err != nil {
		return nil, err
	}
	hasValue := l.InlineValue != nil || len(p.buffers)%2 == 1
	var rep, def []uint16
	switch {
	case len(levels) == 2:
		if rep, def, err = constantLevels(l, levels, blockReader{codec, p.limit}); err != nil {
			return nil, err
		}
	case !hasValue:
		if def, err = allNull(sh, p.rows); err != nil {
			return nil, err
		}
	}
	slots, err := sh.check(rep, def, p.rows)
	if err != nil {
		return nil, err
	}
	out := newSink(t, p.limit, codec)
	if err := out.repeat(value, nullSlots(sh, def), slots); err != nil {
		return nil, err
	}
	if !hasValue && slots > 0 && nullCount(sh, def) != slots {
		return nil, lance.Corrupt("", "page of nulls with %d values that are not", slots-nullCount(sh, def))
	}
	return out.block(sh, rep, def, p.rows)
}

func checkConstant(l *enc21pb.ConstantLayout, p page) error {
	if p.minor < 2 && (l.InlineValue != nil || l.GetRepCompression() != nil || l.GetDefCompression() != nil || len(p.buffers)%2 == 1) {
		return lance.Corrupt("", "constant page of a later version in a file of 2.%d", p.minor)
	}
	if len(p.buffers) > 3 || l.InlineValue != nil && len(p.buffers)%2 == 1 {
		return lance.Corrupt("", "constant page with %d buffers, inline value: %t", len(p.buffers), l.InlineValue != nil)
	}
	return nil
}

// constantValue finds the one value, empty if there is none, and returns the buffers that are left: none, or two of levels.
func constantValue(t encoding.Type, l *enc21pb.ConstantLayout, buffers [][]byte) (value []byte, levels [][]byte, err error) {
	if len(buffers)%2 == 0 {
		if l.InlineValue != nil && (t.Kind != encoding.Fixed || len(l.InlineValue) != t.Width()) {
			return nil, nil, lance.Corrupt("", "inline value of %d bytes in a column of %d", len(l.InlineValue), t.Width())
		}
		return l.InlineValue, buffers, nil
	}
	value, err = scalarBuffer(t, buffers[0])
	return value, buffers[1:], err
}

// scalarBuffer reads the value buffer of a constant page: the Arrow buffers of an array of one value behind their sizes
// (lance-arrow src/scalar.rs:encode_scalar_value_buffer).
func scalarBuffer(t encoding.Type, b []byte) ([]byte, error) {
	parts, err := scalarParts(b)
	if err != nil {
		return nil, err
	}
	if t.Kind == encoding.Fixed && len(parts) == 1 && len(parts[0]) == t.Width() {
		return parts[0], nil
	}
	width := t.OffsetBits / 8
	if t.Kind != encoding.Bytes || len(parts) != 2 || len(parts[0]) != 2*width {
		return nil, lance.Corrupt("", "constant value in %d buffers", len(parts))
	}
	from, to := number(parts[0], width), number(parts[0][width:], width)
	if from != 0 || to != uint64(len(parts[1])) {
		return nil, lance.Corrupt("", "constant value from %d to %d in %d bytes", from, to, len(parts[1]))
	}
	return parts[1], nil
}

func scalarParts(b []byte) ([][]byte, error) {
	if len(b) < 4 {
		return nil, lance.Corrupt("", "constant value of %d bytes", len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	if n > 2 || len(b) < 4+4*int(n) {
		return nil, lance.Corrupt("", "constant value in %d buffers", n)
	}
	sizes, rest := b[4:4+4*n], b[4+4*n:]
	parts := make([][]byte, n)
	for i := range parts {
		size := binary.LittleEndian.Uint32(sizes[4*i:])
		if uint64(size) > uint64(len(rest)) {
			return nil, lance.Corrupt("", "constant value: buffer of %d bytes in %d", size, len(rest))
		}
		parts[i], rest = rest[:size], rest[size:]
	}
	if len(rest) != 0 {
		return nil, lance.Corrupt("", "%d bytes after a constant value", len(rest))
	}
	return parts, nil
}

// constantLevels reads the two level buffers: raw, or by the codec that 2.2 may name for each. An empty one is absent.
func constantLevels(l *enc21pb.ConstantLayout, buffers [][]byte, r blockReader) (rep, def []uint16, err error) {
	if rep, err = constantStream(l.GetRepCompression(), buffers[0], l.GetNumRepValues(), r); err != nil {
		return nil, nil, err
	}
	def, err = constantStream(l.GetDefCompression(), buffers[1], l.GetNumDefValues(), r)
	return rep, def, err
}

func constantStream(enc *enc21pb.CompressiveEncoding, buf []byte, count uint64, r blockReader) ([]uint16, error) {
	if enc == nil {
		if len(buf)%2 != 0 {
			return nil, lance.Corrupt("", "%d bytes of levels", len(buf))
		}
		if len(buf) == 0 {
			return nil, nil
		}
		return rawLevels(buf), nil
	}
	n, err := intOf(count, "levels")
	if err != nil {
		return nil, err
	}
	return r.levels(enc, buf, n)
}

// allNull is the definition stream of rows nulls; the outermost layer that can be null is (one layer in what is written).
func allNull(sh shape, rows int) ([]uint16, error) {
	if sh.maxRep > 0 || sh.maxDef != 1 {
		return nil, lance.Corrupt("", "page of nulls without levels and with layers %v", sh.layers)
	}
	def := make([]uint16, rows)
	for i := range def {
		def[i] = 1
	}
	return def, nil
}

func nullCount(sh shape, def []uint16) int {
	n := 0
	for _, d := range def {
		if d != 0 && d <= sh.visible {
			n++
		}
	}
	return n
}

// repeat adds slots times value, or an empty one in null slots. Without a value all slots must be null.
func (s *sink) repeat(value []byte, null []bool, slots int) error {
	if s.t.Kind != encoding.Bytes {
		dst, err := s.extend(slots)
		if err != nil || value == nil {
			return err
		}
		fill(dst, value)
		return nil
	}
	if size := len(value) + 8; slots > s.room/size {
		return s.take(-1)
	}
	s.reserve(slots, slots*(len(value)+1))
	for i := range slots {
		v := value
		if null != nil && null[i] {
			v = nil
		}
		if err := s.string(v); err != nil {
			return err
		}
	}
	return nil
}
