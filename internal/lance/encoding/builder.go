package encoding

import (
	"slices"

	"lancekeeper/internal/lance"
)

// Builder joins blocks of one column to larger ones.
type Builder struct {
	t     Type
	block Block // what was appended and not taken; Def is nil while every entry has a value
}

// NewBuilder begins an empty block of a column with so many structural layers.
func NewBuilder(t Type, layers int) *Builder {
	b := &Builder{t: t}
	b.reset(slices.Repeat([]Layer{AllValidItem}, layers))
	return b
}

func (b *Builder) reset(layers []Layer) {
	b.block = Block{Layers: layers}
	if b.t.Kind == Bytes {
		b.block.Values.Offsets = []int{0}
	}
}

// reserve makes room for the values of a block.
func (b *Builder) reserve(block *Block) {
	out, in := &b.block.Values, &block.Values
	out.Fixed = slices.Grow(out.Fixed, len(in.Fixed))
	out.Offsets = slices.Grow(out.Offsets, len(in.Offsets))
	out.Data = slices.Grow(out.Data, len(in.Data))
}

// Append adds all rows of a block, whose nulls and empty lists may be numbered differently from those before it. It keeps no
// part of the block.
func (b *Builder) Append(block *Block) error { return b.AppendRows(block, 0, block.Rows) }

// AppendRows adds rows [first, last) of a block as Append does.
func (b *Builder) AppendRows(block *Block, first, last int) error {
	if first < 0 || first > last || last > block.Rows {
		return lance.Corrupt("", "rows %d to %d of %d", first, last, block.Rows)
	}
	from, err := newCursor(block)
	if err != nil {
		return err
	}
	if first > 0 {
		from.skip(first)
	}
	to := *from
	to.skip(last - first)
	return b.add(from, &to)
}

// add appends what lies between two places of a block.
func (b *Builder) add(from, to *cursor) error {
	if from.row == to.row {
		return nil
	}
	out, in := &b.block, from.b
	layers := in.Layers
	if out.Rows > 0 || len(out.Layers) != len(layers) {
		var err error
		if layers, err = unite(out.Layers, in.Layers); err != nil {
			return err
		}
	}
	if out.Def != nil && !slices.Equal(layers, out.Layers) {
		replace(out.Def, renumber(out.Layers, layers))
	}
	b.addLevels(from, to, layers)
	out.Layers = layers
	b.addValues(&in.Values, from.slot, to.slot)
	out.Rows += to.row - from.row
	return nil
}

func replace(def, numbers []uint16) {
	for i, d := range def {
		def[i] = numbers[d]
	}
}

// addLevels appends the levels of entries; layers are those of the result.
func (b *Builder) addLevels(from, to *cursor, layers []Layer) {
	out, in := &b.block, from.b
	before := out.Rows
	if from.lists > 0 {
		before = len(out.Rep)
		out.Rep = append(out.Rep, in.Rep[from.entry:to.entry]...)
	}
	n := to.entry - from.entry
	var def []uint16
	if in.Def != nil {
		def = in.Def[from.entry:to.entry]
	}
	if out.Def == nil {
		if !slices.ContainsFunc(def, func(d uint16) bool { return d > 0 }) {
			return
		}
		out.Def = make([]uint16, before, before+n)
	}
	if def == nil {
		out.Def = append(out.Def, make([]uint16, n)...)
		return
	}
	out.Def = append(out.Def, def...)
	if !slices.Equal(layers, in.Layers) {
		replace(out.Def[before:], renumber(in.Layers, layers))
	}
}

// addValues appends slots [from, to).
func (b *Builder) addValues(v *Values, from, to int) {
	out := &b.block.Values
	if b.t.Kind == Bytes {
		shift := len(out.Data) - v.Offsets[from]
		out.Data = append(room(out.Data, v.Offsets[to]-v.Offsets[from]), v.Data[v.Offsets[from]:v.Offsets[to]]...)
		out.Offsets = room(out.Offsets, to-from)
		for _, at := range v.Offsets[from+1 : to+1] {
			out.Offsets = append(out.Offsets, at+shift)
		}
	} else {
		width := b.t.Width()
		out.Fixed = append(room(out.Fixed, (to-from)*width), v.Fixed[from*width:to*width]...)
		b.addItems(v.ItemValid, from, to)
	}
	out.N += to - from
}

// room makes room for n more elements: twice what there is when it has to grow, since it grows to a page's size.
func room[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return slices.Grow(s, max(n, len(s)))
}

// addItems joins the validity of items; where one side has none, all its items are valid.
func (b *Builder) addItems(valid []byte, from, to int) {
	out, items := &b.block.Values, b.t.Items()
	if valid == nil && out.ItemValid == nil {
		return
	}
	if out.ItemValid == nil {
		out.ItemValid = slices.Repeat([]byte{1}, out.N*items)
	}
	if valid == nil {
		out.ItemValid = append(out.ItemValid, slices.Repeat([]byte{1}, (to-from)*items)...)
		return
	}
	out.ItemValid = append(out.ItemValid, valid[from*items:to*items]...)
}

// Rows is how many rows were appended and not taken.
func (b *Builder) Rows() int { return b.block.Rows }

// Bytes is the memory that they take, about.
func (b *Builder) Bytes() int { return b.block.Bytes() }

// Take removes the first rows and returns them as a block of its own.
func (b *Builder) Take(rows int) (*Block, error) {
	if rows < 0 || rows > b.block.Rows {
		return nil, lance.Corrupt("", "%d rows are asked of %d", rows, b.block.Rows)
	}
	whole := b.block
	if rows == whole.Rows {
		b.reset(whole.Layers)
		return &whole, nil
	}
	start, err := newCursor(&whole)
	if err != nil {
		return nil, err
	}
	middle := *start
	middle.skip(rows)
	end := middle
	end.skip(whole.Rows - rows)
	first := NewBuilder(b.t, len(whole.Layers))
	if err := first.add(start, &middle); err != nil {
		return nil, err
	}
	if rows == 0 {
		first.reset(whole.Layers)
	}
	b.reset(whole.Layers)
	if err := b.add(&middle, &end); err != nil {
		return nil, err
	}
	return &first.block, nil
}
