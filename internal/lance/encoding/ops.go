package encoding

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"lancekeeper/internal/lance"
)

// flat refuses blocks whose rows are not one entry each.
func flat(b *Block) error {
	if b.Rep != nil || len(b.Layers) != 1 {
		return lance.Unsupported("column", "with lists or structs", "")
	}
	return nil
}

// Drop returns the rows that are not dead, in order. It shares no memory with b unless no row is dead.
func Drop(t Type, b *Block, dead func(row int) bool) (*Block, error) {
	if err := flat(b); err != nil {
		return nil, err
	}
	builder := NewBuilder(t, 1)
	builder.layer = b.Layers[0]
	for from := 0; from < b.Rows; {
		if dead(from) {
			from++
			continue
		}
		to := from + 1
		for to < b.Rows && !dead(to) {
			to++
		}
		if from == 0 && to == b.Rows {
			return b, nil
		}
		builder.add(b, from, to)
		from = to
	}
	return builder.Take(builder.Rows())
}

// Nulls returns rows that are all null.
func Nulls(t Type, rows int) *Block {
	b := &Block{Rows: rows, Layers: []Layer{NullableItem}, Def: make([]uint16, rows), Values: Values{N: rows}}
	for i := range b.Def {
		b.Def[i] = 1
	}
	if t.Kind == Bytes {
		b.Values.Offsets = make([]int, rows+1)
	} else {
		b.Values.Fixed = make([]byte, rows*t.Width())
	}
	return b
}

// Builder joins blocks of one column to larger ones.
type Builder struct {
	t      Type
	layers int
	layer  Layer
	rows   int
	def    []uint16 // nil while no row is null
	values Values
}

// NewBuilder begins an empty block of a column with so many structural layers.
func NewBuilder(t Type, layers int) *Builder {
	b := &Builder{t: t, layers: layers}
	b.reset()
	return b
}

func (b *Builder) reset() {
	b.layer, b.rows, b.def, b.values = AllValidItem, 0, nil, Values{}
	if b.t.Kind == Bytes {
		b.values.Offsets = []int{0}
	}
}

// Append adds all rows of a block. ErrUnsupported for columns with lists or structs.
func (b *Builder) Append(block *Block) error {
	if err := flat(block); err != nil {
		return err
	}
	if b.layers != 1 {
		return lance.Unsupported("column", "with lists or structs", "")
	}
	b.add(block, 0, block.Rows)
	return nil
}

// add appends rows [from, to) of a block with one layer.
func (b *Builder) add(block *Block, from, to int) {
	n := to - from
	if block.Def != nil {
		if b.def == nil && slices.ContainsFunc(block.Def[from:to], func(d uint16) bool { return d > 0 }) {
			b.def = make([]uint16, b.rows, b.rows+n)
			b.layer = NullableItem
		}
		if b.def != nil {
			b.def = append(b.def, block.Def[from:to]...)
		}
	} else if b.def != nil {
		b.def = append(b.def, make([]uint16, n)...)
	}
	v := &block.Values
	if b.t.Kind == Bytes {
		base := len(b.values.Data) - v.Offsets[from]
		b.values.Data = append(b.values.Data, v.Data[v.Offsets[from]:v.Offsets[to]]...)
		for _, at := range v.Offsets[from+1 : to+1] {
			b.values.Offsets = append(b.values.Offsets, base+at)
		}
	} else {
		width := b.t.Width()
		b.values.Fixed = append(b.values.Fixed, v.Fixed[from*width:to*width]...)
		b.addItems(v.ItemValid, from, to)
	}
	b.rows += n
	b.values.N += n
}

// addItems joins the validity of items; where one side has none, all its items are valid.
func (b *Builder) addItems(valid []byte, from, to int) {
	items := b.t.Items()
	if valid == nil && b.values.ItemValid == nil {
		return
	}
	if b.values.ItemValid == nil {
		b.values.ItemValid = slices.Repeat([]byte{1}, b.rows*items)
	}
	if valid == nil {
		b.values.ItemValid = append(b.values.ItemValid, slices.Repeat([]byte{1}, (to-from)*items)...)
		return
	}
	b.values.ItemValid = append(b.values.ItemValid, valid[from*items:to*items]...)
}

// Rows is how many rows were appended and not taken.
func (b *Builder) Rows() int { return b.rows }

// Bytes is the memory that they take, about.
func (b *Builder) Bytes() int {
	return len(b.values.Fixed) + len(b.values.Data) + 8*len(b.values.Offsets) + len(b.values.ItemValid) + 2*len(b.def)
}

// Take removes the first rows and returns them as a block of its own.
func (b *Builder) Take(rows int) (*Block, error) {
	if rows < 0 || rows > b.rows {
		return nil, lance.Corrupt("", "%d rows are asked of %d", rows, b.rows)
	}
	whole := &Block{Rows: b.rows, Layers: []Layer{b.layer}, Def: b.def, Values: b.values}
	all := b.rows
	b.reset()
	if rows == all {
		return whole, nil
	}
	first := NewBuilder(b.t, 1)
	first.add(whole, 0, rows)
	b.add(whole, rows, all)
	return first.Take(rows)
}

// Hasher computes a hash of a column's values in order. It does not depend on how they are cut into blocks, nor on whether a
// block without nulls could have had some.
type Hasher struct {
	t      Type
	digest *xxhash.Digest
}

// NewHasher begins a hash of a column's values.
func NewHasher(t Type) *Hasher { return &Hasher{t: t, digest: xxhash.New()} }

// Add hashes the rows of a block: for each its definition level, then its length and bytes where it has any.
func (h *Hasher) Add(b *Block) {
	buffer := make([]byte, 0, 64<<10)
	width, items := h.t.Width(), h.t.Items()
	for i := range b.Rows {
		null := b.Def != nil && b.Def[i] != 0
		if null {
			buffer = append(buffer, 0)
		} else {
			buffer = append(buffer, 1)
			switch {
			case h.t.Kind == Bytes:
				value := b.Values.Data[b.Values.Offsets[i]:b.Values.Offsets[i+1]]
				buffer = binary.AppendUvarint(buffer, uint64(len(value)))
				buffer = append(buffer, value...)
			default:
				buffer = append(buffer, b.Values.Fixed[i*width:(i+1)*width]...)
				buffer = appendItems(buffer, b.Values.ItemValid, i*items, items)
			}
		}
		if len(buffer) >= 48<<10 {
			_, _ = h.digest.Write(buffer) // never fails
			buffer = buffer[:0]
		}
	}
	_, _ = h.digest.Write(buffer) // never fails
}

// appendItems adds which items are null, by position; nothing where none is.
func appendItems(buffer, valid []byte, at, items int) []byte {
	if valid == nil {
		return append(buffer, 0)
	}
	nulls := 0
	for _, v := range valid[at : at+items] {
		nulls += 1 - int(v)
	}
	buffer = binary.AppendUvarint(buffer, uint64(nulls))
	if nulls == 0 {
		return buffer
	}
	for i, v := range valid[at : at+items] {
		if v == 0 {
			buffer = binary.AppendUvarint(buffer, uint64(i))
		}
	}
	return buffer
}

// Sum is the hash of all that was added.
func (h *Hasher) Sum() uint64 { return h.digest.Sum64() }
