package v20

import (
	"encoding/binary"
	"slices"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

// Limits of the dictionary that official writers make for text (LANCE_DICT_ENCODING_THRESHOLD).
const (
	dictionaryFrom = 100 // rows in the page
	dictionaryMost = 99  // distinct values
)

// Encode writes a block of a leaf column, without what is around it, as one page. encoding.ErrKeys for a dictionary column of too
// many distinct values.
func Encode(t encoding.Type, b *encoding.Block) (*enc20pb.ArrayEncoding, [][]byte, error) {
	if err := check(t, b); err != nil {
		return nil, nil, err
	}
	w := &writer{}
	switch {
	case t.KeyBits > 0:
		enc, err := w.keyed(t, b)
		return enc, w.buffers, err
	case t.Kind == encoding.Bytes:
		return w.text(t, b), w.buffers, nil
	case t.Kind == encoding.Void:
		if slices.ContainsFunc(b.Def, func(d uint16) bool { return d != 0 }) {
			return nil, nil, nullStruct()
		}
		return Header(), nil, nil
	case b.Rows == 0: // of items of lists that have none
		return allNulls(), nil, nil
	}
	return w.nullable(b.Def, func() *enc20pb.ArrayEncoding { return w.fixed(t, b) }), w.buffers, nil
}

// check verifies that a block agrees with itself.
func check(t encoding.Type, b *encoding.Block) error {
	if err := t.Check(); err != nil {
		return err //nolint:wrapcheck // class and detail are those of the page
	}
	v := &b.Values
	switch {
	case b.Rows < 0:
		return lance.Corrupt("", "page of %d rows", b.Rows)
	case len(b.Layers) != 1 || b.Rep != nil:
		return lance.Unsupported("column", "with lists or structs", "")
	case v.N != b.Rows || b.Def != nil && len(b.Def) != b.Rows:
		return lance.Corrupt("", "%d values and %d levels for %d rows", v.N, len(b.Def), b.Rows)
	case t.Kind == encoding.Bytes && !slices.IsSorted(v.Offsets):
		return lance.Corrupt("", "a value that ends before its start")
	case t.Kind == encoding.Bytes && (len(v.Offsets) != v.N+1 || v.Offsets[0] != 0 || v.Offsets[v.N] > len(v.Data)):
		return lance.Corrupt("", "%d offsets into %d bytes for %d values", len(v.Offsets), len(v.Data), v.N)
	case t.Kind != encoding.Bytes && (len(v.Fixed) != v.N*t.Width() || v.ItemValid != nil && len(v.ItemValid) != v.N*t.Items()):
		return lance.Corrupt("", "%d bytes and %d item flags for %d values of %d bytes", len(v.Fixed), len(v.ItemValid), v.N, t.Width())
	}
	return nil
}

// writer hands out buffer numbers in the order in which encodings are visited.
type writer struct{ buffers [][]byte }

func (w *writer) flat(bits int, data []byte) *enc20pb.ArrayEncoding {
	w.buffers = append(w.buffers, data)
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Flat{Flat: &enc20pb.Flat{
		BitsPerValue: uint64(bits), Buffer: &enc20pb.Buffer{BufferIndex: uint32(len(w.buffers) - 1)},
	}}}
}

func noNulls(values *enc20pb.ArrayEncoding) *enc20pb.ArrayEncoding {
	return nullable(&enc20pb.Nullable{Nullability: &enc20pb.Nullable_NoNulls{NoNulls: &enc20pb.Nullable_NoNull{Values: values}}})
}

func nullable(n *enc20pb.Nullable) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Nullable{Nullable: n}}
}

func allNulls() *enc20pb.ArrayEncoding {
	return nullable(&enc20pb.Nullable{Nullability: &enc20pb.Nullable_AllNulls{AllNulls: &enc20pb.Nullable_AllNull{}}})
}

// nullable chooses among the three forms: no null, all null, a bitmap in front of the values.
func (w *writer) nullable(def []uint16, values func() *enc20pb.ArrayEncoding) *enc20pb.ArrayEncoding {
	nulls := 0
	for _, d := range def {
		if d != 0 {
			nulls++
		}
	}
	switch {
	case nulls == 0:
		return noNulls(values())
	case nulls == len(def):
		return allNulls()
	}
	valid := make([]byte, (len(def)+7)/8)
	for i, d := range def {
		if d == 0 {
			valid[i/8] |= 1 << (i % 8)
		}
	}
	validity := w.flat(1, valid)
	return nullable(&enc20pb.Nullable{Nullability: &enc20pb.Nullable_SomeNulls{SomeNulls: &enc20pb.Nullable_SomeNull{Validity: validity, Values: values()}}})
}

func packBits(flags []byte) []byte {
	out := make([]byte, (len(flags)+7)/8)
	for i, f := range flags {
		out[i/8] |= f & 1 << (i % 8)
	}
	return out
}

func (w *writer) fixed(t encoding.Type, b *encoding.Block) *enc20pb.ArrayEncoding {
	if t.Kind == encoding.Vector {
		return w.vector(t, b)
	}
	return w.values(t, b)
}

func (w *writer) values(t encoding.Type, b *encoding.Block) *enc20pb.ArrayEncoding {
	if t.Bits == 1 {
		return w.flat(1, packBits(b.Values.Fixed))
	}
	return w.flat(t.Bits, b.Values.Fixed)
}

// vector writes nested fixed-size lists around the items.
func (w *writer) vector(t encoding.Type, b *encoding.Block) *enc20pb.ArrayEncoding {
	var levels []uint16
	for _, valid := range b.Values.ItemValid {
		levels = append(levels, uint16(1-valid&1))
	}
	enc := w.nullable(levels, func() *enc20pb.ArrayEncoding { return w.values(t, b) })
	for i := len(t.Dims) - 1; i >= 0; i-- {
		enc = &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_FixedSizeList{FixedSizeList: &enc20pb.FixedSizeList{
			Dimension: uint32(t.Dims[i]), Items: enc,
		}}}
		if i > 0 {
			enc = noNulls(enc)
		}
	}
	return enc
}

// text writes strings: a dictionary for utf8 with few distinct values, else ends and bytes.
func (w *writer) text(t encoding.Type, b *encoding.Block) *enc20pb.ArrayEncoding {
	if t.Text && t.OffsetBits == 32 && b.Rows >= dictionaryFrom {
		if enc := w.listed(t, b); enc != nil {
			return enc
		}
	}
	return w.binary(&b.Values, b.Def)
}

// binary writes each string's end, raised by the adjustment where it is null, and the bytes (physical/binary.rs).
func (w *writer) binary(v *encoding.Values, def []uint16) *enc20pb.ArrayEncoding {
	adjustment := uint64(v.Offsets[v.N]) + 1
	if v.N == 0 {
		adjustment = 0 // as official writers have it
	}
	ends := make([]byte, 0, 8*v.N)
	for i, end := range v.Offsets[1:] {
		at := uint64(end)
		if def != nil && def[i] != 0 {
			at += adjustment
		}
		ends = binary.LittleEndian.AppendUint64(ends, at)
	}
	indices := noNulls(w.flat(64, ends))
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Binary{Binary: &enc20pb.Binary{
		Indices: indices, Bytes: w.flat(8, v.Data[:v.Offsets[v.N]]), NullAdjustment: adjustment,
	}}}
}
