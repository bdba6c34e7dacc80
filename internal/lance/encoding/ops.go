package encoding

import "slices"

// Drop returns the rows that are not dead, in order; dead is asked once for each row, in order. The result shares memory with
// b only when no row is dead: then it is b.
func Drop(t Type, b *Block, dead func(row int) bool) (*Block, error) {
	builder := NewBuilder(t, len(b.Layers))
	builder.reset(b.Layers)
	from, err := newCursor(b)
	if err != nil {
		return nil, err
	}
	to := *from // rows [from, to) are live
	for row := range b.Rows {
		if !dead(row) {
			to.skip(1)
			continue
		}
		if from.row == 0 { // the first one
			builder.reserve(b)
		}
		if err := builder.add(from, &to); err != nil {
			return nil, err
		}
		to.skip(1)
		*from = to
	}
	if from.row == 0 {
		return b, nil
	}
	if err := builder.add(from, &to); err != nil {
		return nil, err
	}
	return builder.Take(builder.Rows())
}

// Nulls returns rows that are all null at the top, of a column with the given structural layers.
func Nulls(t Type, layers []Layer, rows int) *Block {
	b := &Block{Rows: rows, Layers: slices.Clone(layers), Def: slices.Repeat([]uint16{1}, rows)}
	lists, slots := uint16(0), rows
	for i, l := range layers {
		list, _, _ := l.traits()
		b.Layers[i] = layerOf(list, i == len(layers)-1, false)
		if list {
			lists++
			slots = 0 // no value lies below a list that is not there
		}
	}
	if lists > 0 {
		b.Rep = slices.Repeat([]uint16{lists}, rows)
	}
	b.Values.N = slots
	if t.Kind == Bytes {
		b.Values.Offsets = make([]int, slots+1)
	} else {
		b.Values.Fixed = make([]byte, slots*t.Width())
	}
	return b
}
