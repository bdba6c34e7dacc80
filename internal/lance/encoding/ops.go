package encoding

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

// Nulls returns rows that are all null, of a column without lists and structs.
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
