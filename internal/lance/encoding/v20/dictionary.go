package v20

import (
	"encoding/binary"
	"slices"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

// Dictionaries have two origins (physical/dictionary.rs). The encoder makes one of text with few distinct values: there an index is
// a byte, 0 for null, else the item's number plus 1. A column of Arrow's dictionary type always has one: there indices are the
// keys, and one item is null if some rows are. The column's type says which it is.
const listedBits = 8

// listed decodes text that the encoder made a dictionary of.
func (d *decoder) listed(t encoding.Type, e *enc20pb.Dictionary, rows int) (*column, error) {
	if e.GetItems().GetDictionary() != nil {
		return nil, lance.Corrupt("", "dictionary of dictionaries")
	}
	return d.dictionary(t, e, listedBits, 1, rows)
}

// keyed decodes a column of Arrow's dictionary type.
func (d *decoder) keyed(t encoding.Type, enc *enc20pb.ArrayEncoding, rows int) (*column, error) {
	values := t
	values.KeyBits, values.MaxKeys = 0, 0
	e := enc.GetDictionary()
	if e == nil {
		return nil, unsupported(enc)
	}
	return d.dictionary(values, e, t.KeyBits, 0, rows)
}

// dictionary puts items of type t in the place of indices of so many bits, which count from first; lower ones are null.
func (d *decoder) dictionary(t encoding.Type, e *enc20pb.Dictionary, bits int, first uint64, rows int) (*column, error) {
	indices := e.GetIndices()
	if n := indices.GetNullable().GetNoNulls(); n != nil {
		indices = n.GetValues()
	}
	if indices.GetNullable() != nil {
		return nil, unsupported(indices)
	}
	keys, err := d.fixed(encoding.Type{Bits: bits}, indices, rows)
	if err != nil {
		return nil, err
	}
	n := int(e.GetNumDictionaryItems())
	if n > d.limit/max(8, t.Width()) {
		return nil, lance.Unsupported("page", "of too many dictionary items", "")
	}
	items, err := d.column(t, e.GetItems(), n)
	if err != nil {
		return nil, err
	}
	c := &column{values: encoding.Values{N: rows}}
	if t.Kind == encoding.Bytes {
		c.values.Offsets = make([]int, 1, rows+1)
	}
	for i := range rows {
		key := number(keys.values.Fixed, bits, i)
		at := key - first
		if key >= first && at >= uint64(n) {
			return nil, lance.Corrupt("", "dictionary index %d of %d", at, n)
		}
		if key < first || items.valid != nil && items.valid[at] == 0 {
			if c.valid == nil {
				c.valid = slices.Repeat([]byte{1}, rows)
			}
			c.valid[i] = 0
			c.addNull(t)
		} else if err := c.addItem(t, &items.values, int(at), d.limit); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// number is one of the values of so many bits, a multiple of 8.
func number(values []byte, bits, i int) uint64 {
	var word [8]byte
	copy(word[:bits/8], values[i*bits/8:])
	return binary.LittleEndian.Uint64(word[:])
}

func (c *column) addNull(t encoding.Type) {
	if t.Kind == encoding.Bytes {
		c.values.Offsets = append(c.values.Offsets, len(c.values.Data))
		return
	}
	c.values.Fixed = append(c.values.Fixed, make([]byte, t.Width())...)
}

func (c *column) addItem(t encoding.Type, items *encoding.Values, at, limit int) error {
	if t.Kind == encoding.Bytes {
		c.values.Data = append(c.values.Data, items.Data[items.Offsets[at]:items.Offsets[at+1]]...)
		c.values.Offsets = append(c.values.Offsets, len(c.values.Data))
	} else {
		c.values.Fixed = append(c.values.Fixed, items.Fixed[at*t.Width():(at+1)*t.Width()]...)
	}
	if len(c.values.Data) > limit || len(c.values.Fixed) > limit {
		return lance.Unsupported("page", "too large when decoded", "")
	}
	return nil
}

// distinct are the values of a block, each once in the order of their first, and for each row which one it has.
type distinct struct {
	items encoding.Values
	of    []int // -1: null
	nulls bool
}

// distinctOf finds them; ok is false where there are more than most.
func distinctOf(t encoding.Type, b *encoding.Block, most int) (d distinct, ok bool) {
	v, width := &b.Values, t.Width()
	seen := map[string]int{}
	d.of = make([]int, b.Rows)
	if t.Kind == encoding.Bytes {
		d.items.Offsets = []int{0}
	}
	for i := range b.Rows {
		if b.Def != nil && b.Def[i] != 0 {
			d.of[i], d.nulls = -1, true
			continue
		}
		var value []byte
		if t.Kind == encoding.Bytes {
			value = v.Data[v.Offsets[i]:v.Offsets[i+1]]
		} else {
			value = v.Fixed[i*width : (i+1)*width]
		}
		at, known := seen[string(value)]
		if !known {
			if at = len(seen); at == most {
				return d, false
			}
			seen[string(value)] = at
			if t.Kind == encoding.Bytes {
				d.items.Data = append(d.items.Data, value...)
				d.items.Offsets = append(d.items.Offsets, len(d.items.Data))
			} else {
				d.items.Fixed = append(d.items.Fixed, value...)
			}
		}
		d.of[i] = at
	}
	d.items.N = len(seen)
	return d, true
}

// listed writes text as one byte a row. nil where there are too many items.
func (w *writer) listed(t encoding.Type, b *encoding.Block) *enc20pb.ArrayEncoding {
	d, ok := distinctOf(t, b, dictionaryMost)
	if !ok || d.items.N == 0 {
		return nil
	}
	indices := make([]byte, b.Rows)
	for i, at := range d.of {
		indices[i] = byte(at + 1)
	}
	keys := noNulls(w.flat(listedBits, indices))
	return dictionaryOf(keys, w.binary(&d.items, nil), d.items.N)
}

// keyed writes a column of Arrow's dictionary type: readers want a dictionary whatever it costs, and keys of the column's own
// width.
func (w *writer) keyed(t encoding.Type, b *encoding.Block) (*enc20pb.ArrayEncoding, error) {
	d, ok := distinctOf(t, b, t.MaxKeys)
	null := d.items.N // number of the null item
	if !ok || d.nulls && null == t.MaxKeys {
		return nil, encoding.ErrKeys
	}
	indices := make([]byte, 0, b.Rows*t.KeyBits/8+8)
	for i, at := range d.of {
		if at < 0 {
			at = null
		}
		indices = binary.LittleEndian.AppendUint64(indices, uint64(at))[:(i+1)*t.KeyBits/8]
	}
	keys := noNulls(w.flat(t.KeyBits, indices))
	return dictionaryOf(keys, w.items(t, &d, null), d.items.N), nil
}

// items writes a dictionary's items, and a null one behind them where rows are null or there is no other.
func (w *writer) items(t encoding.Type, d *distinct, null int) *enc20pb.ArrayEncoding {
	var def []uint16
	if d.nulls || null == 0 {
		def = make([]uint16, null+1)
		def[null] = 1
		d.items.N++
		if t.Kind == encoding.Bytes {
			d.items.Offsets = append(d.items.Offsets, len(d.items.Data))
		} else {
			d.items.Fixed = append(d.items.Fixed, make([]byte, t.Width())...)
		}
	}
	if t.Kind == encoding.Bytes {
		return w.binary(&d.items, def)
	}
	return w.nullable(def, func() *enc20pb.ArrayEncoding { return w.values(t, &encoding.Block{Values: d.items}) })
}

func dictionaryOf(keys, items *enc20pb.ArrayEncoding, n int) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Dictionary{Dictionary: &enc20pb.Dictionary{
		Indices: keys, Items: items, NumDictionaryItems: uint32(n),
	}}}
}
