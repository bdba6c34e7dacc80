package v21

import (
	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/fsst"
	"lancekeeper/internal/lance/encoding/general"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// zipDecoder walks the entries of a full-zip page: a control word with the levels, then the value
// (lance-encoding src/encodings/logical/primitive/fullzip_decode.rs).
type zipDecoder struct {
	sh               shape
	repBits, defBits int
	out              *sink
	rep, def         []uint16
	data             []byte
}

func decodeZip(t encoding.Type, l *enc21pb.FullZipLayout, p page, codec *general.Codec) (*encoding.Block, error) {
	sh, err := shapeOf(l.GetLayers())
	if err != nil {
		return nil, err
	}
	variable := t.Kind == encoding.Bytes
	indexed := variable || sh.maxRep > 0
	if len(p.buffers) != 1 && len(p.buffers) != 2 || (len(p.buffers) == 2) != indexed {
		return nil, lance.Corrupt("", "full-zip page with %d buffers", len(p.buffers))
	}
	if l.GetBitsRep() > 16 || l.GetBitsDef() > 16 || (l.GetBitsRep() > 0) != (sh.maxRep > 0) || (l.GetBitsDef() > 0 && sh.maxDef == 0) {
		return nil, lance.Corrupt("", "levels of %d and %d bits with highest levels %d and %d", l.GetBitsRep(), l.GetBitsDef(), sh.maxRep, sh.maxDef)
	}
	d := &zipDecoder{
		sh: sh, repBits: int(l.GetBitsRep()), defBits: int(l.GetBitsDef()),
		out: newSink(t, p.limit, codec), data: p.buffers[0],
	}
	if variable {
		err = d.variable(l)
	} else {
		err = d.fixed(l)
	}
	if err != nil {
		return nil, err
	}
	if d.out.values.N != int(l.GetNumVisibleItems()) {
		return nil, lance.Corrupt("", "%d values in a full-zip page of %d", d.out.values.N, l.GetNumVisibleItems())
	}
	return d.out.block(sh, d.rep, d.def, p.rows)
}

// controlWidth is the bytes of a control word (repdef.rs:ControlWordParser).
func controlWidth(bits int) int {
	switch {
	case bits == 0:
		return 0
	case bits <= 8:
		return 1
	case bits <= 16:
		return 2
	default:
		return 4
	}
}

// walk reads entries to the end of the data and calls value for each that has a slot, with its definition level; value
// returns the bytes that it took.
func (d *zipDecoder) walk(entries int, value func(rest []byte, def uint16) (int, error)) error {
	width := controlWidth(d.repBits + d.defBits)
	rest := d.data
	for range entries {
		if len(rest) < width {
			return lance.Corrupt("", "full-zip page ends in a control word")
		}
		var word uint64
		if width > 0 {
			word = number(rest, width)
			rest = rest[width:]
		}
		def := uint16(word & (1<<d.defBits - 1))
		if d.repBits > 0 {
			d.rep = append(d.rep, uint16(word>>d.defBits))
		}
		if d.defBits > 0 {
			d.def = append(d.def, def)
		}
		if word>>(d.repBits+d.defBits) != 0 {
			return lance.Corrupt("", "control word %#x with %d and %d bits", word, d.repBits, d.defBits)
		}
		if def > d.sh.visible {
			continue
		}
		n, err := value(rest, def)
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	if len(rest) != 0 {
		return lance.Corrupt("", "%d bytes after the last entry of a full-zip page", len(rest))
	}
	return nil
}

// entries checks the declared number of entries against the bytes there are, so that it bounds memory.
func (d *zipDecoder) entries(n uint32, least int) (int, error) {
	if least > 0 && uint64(n)*uint64(least) > uint64(len(d.data)) || least == 0 && n > 0 {
		return 0, lance.Corrupt("", "%d entries in %d bytes", n, len(d.data))
	}
	if err := d.out.take(4 * int(n)); err != nil {
		return 0, err
	}
	if d.repBits > 0 {
		d.rep = make([]uint16, 0, n)
	}
	if d.defBits > 0 {
		d.def = make([]uint16, 0, n)
	}
	return int(n), nil
}

// fixed reads values of equal width; null slots have their bytes too.
func (d *zipDecoder) fixed(l *enc21pb.FullZipLayout) error {
	read, size, err := d.fixedReader(l.GetValueCompression())
	if err != nil {
		return err
	}
	if l.GetBitsPerValue() != uint32(size*8) {
		return lance.Corrupt("", "full-zip values of %d bits, the encoding has %d", l.GetBitsPerValue(), size*8)
	}
	least := controlWidth(d.repBits + d.defBits)
	if least == 0 {
		least = size
	}
	entries, err := d.entries(l.GetNumItems(), least)
	if err != nil {
		return err
	}
	if d.bare(l.GetValueCompression()) {
		return d.whole(entries)
	}
	d.out.reserve(int(l.GetNumVisibleItems()), len(d.data))
	return d.walk(entries, func(rest []byte, _ uint16) (int, error) {
		if len(rest) < size {
			return 0, lance.Corrupt("", "full-zip page ends in a value")
		}
		return size, read(rest[:size])
	})
}

// bare tells if the page is nothing but values, in an encoding that fixedReader takes.
func (d *zipDecoder) bare(enc *enc21pb.CompressiveEncoding) bool {
	for list := enc.GetFixedSizeList(); list != nil; list = list.GetValues().GetFixedSizeList() {
		if list.GetHasValidity() {
			return false
		}
	}
	return d.repBits+d.defBits == 0
}

// whole takes the page as the values; nothing is copied.
func (d *zipDecoder) whole(entries int) error {
	s := d.out
	if len(d.data) != entries*s.width {
		return lance.Corrupt("", "%d bytes in a full-zip page of %d values of %d", len(d.data), entries, s.width)
	}
	s.values.Fixed, s.values.N = d.data, entries
	return s.take(len(d.data))
}

// fixedReader returns what adds one value to the sink from its bytes in the page, and how many those are.
func (d *zipDecoder) fixedReader(enc *enc21pb.CompressiveEncoding) (func([]byte) error, int, error) {
	t, s := d.out.t, d.out
	plain := func(b []byte) error { return s.copyFixed(b, 1) }
	if t.Kind == encoding.Fixed {
		flat := enc.GetFlat()
		if flat == nil {
			return nil, 0, unsupported(enc, "full-zip")
		}
		bits := max(8, t.Bits) // booleans stand as bytes
		return plain, bits / 8, plainFlat(flat, bits)
	}
	if t.Bits == 1 {
		return nil, 0, lance.Unsupported("encoding", "full-zip vectors of booleans", "")
	}
	form, err := newVectorForm(t, enc)
	if err != nil {
		return nil, 0, err
	}
	if len(form.validity) == 0 {
		return plain, s.width, nil
	}
	return d.vectorReader(form)
}

// vectorReader reads the validity bytes of each layer, then the items (physical/value.rs:nullable_per_value_fsl).
func (d *zipDecoder) vectorReader(form vectorForm) (func([]byte) error, int, error) {
	s := d.out
	size := s.width
	if form.null {
		size = 0
	}
	for _, layer := range form.validity {
		size += (layer.items + 7) / 8
	}
	bitmaps := make([][]byte, len(form.validity))
	return func(b []byte) error {
		for i, layer := range form.validity {
			n := (layer.items + 7) / 8
			bitmaps[i], b = b[:n], b[n:]
		}
		slot := s.values.N
		dst, err := s.extend(1)
		if err != nil {
			return err
		}
		copy(dst, b)
		return form.readValidity(s, bitmaps, slot, 1)
	}, size, nil
}

// variable reads values that have a length before them; null slots have nothing.
func (d *zipDecoder) variable(l *enc21pb.FullZipLayout) error {
	read, err := d.variableReader(l.GetValueCompression())
	if err != nil {
		return err
	}
	bits := l.GetBitsPerOffset()
	if bits != 32 && bits != 64 {
		return lance.Corrupt("", "full-zip lengths of %d bits", bits)
	}
	width := int(bits / 8)
	least := controlWidth(d.repBits + d.defBits)
	if least == 0 {
		least = width
	}
	entries, err := d.entries(l.GetNumItems(), least)
	if err != nil {
		return err
	}
	d.out.reserve(int(l.GetNumVisibleItems()), len(d.data))
	return d.walk(entries, func(rest []byte, def uint16) (int, error) {
		if def != 0 {
			return 0, d.out.string(nil)
		}
		if len(rest) < width {
			return 0, lance.Corrupt("", "full-zip page ends in a length")
		}
		size := number(rest, width)
		if size > uint64(len(rest)-width) {
			return 0, lance.Corrupt("", "full-zip value of %d bytes in %d", size, len(rest)-width)
		}
		end := width + int(size)
		return end, read(rest[width:end])
	})
}

// variableReader returns what adds one byte string to the sink from its bytes in the page.
func (d *zipDecoder) variableReader(enc *enc21pb.CompressiveEncoding) (func([]byte) error, error) {
	s := d.out
	switch e := enc.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Variable:
		_, err := offsetBits(e.Variable)
		return s.string, err
	case *enc21pb.CompressiveEncoding_Fsst:
		table, err := fsst.ParseTable(e.Fsst.GetSymbolTable())
		if err != nil {
			return nil, err
		}
		inner, err := d.variableReader(e.Fsst.GetValues())
		if err != nil {
			return nil, err
		}
		if e.Fsst.GetValues().GetVariable() == nil {
			return nil, unsupported(enc, "full-zip")
		}
		var plain []byte
		return func(b []byte) error {
			if plain, err = table.Decode(plain[:0], b); err != nil {
				return err
			}
			return inner(plain)
		}, nil
	case *enc21pb.CompressiveEncoding_General:
		if e.General.GetValues().GetVariable() == nil {
			return nil, unsupported(e.General.GetValues(), "full-zip compressed")
		}
		scheme := e.General.GetCompression().GetScheme()
		return func(b []byte) error {
			plain, err := s.codec.Decompress(scheme, b)
			if err != nil {
				return err
			}
			return s.string(plain)
		}, nil
	default:
		return nil, unsupported(enc, "full-zip")
	}
}
