package encoding

import "lancekeeper/internal/lance"

// traits says what a layer is and which definition levels it has.
func (l Layer) traits() (list, null, empty bool) {
	switch l {
	case AllValidItem:
	case NullableItem:
		null = true
	case AllValidList:
		list = true
	case NullableList:
		list, null = true, true
	case EmptyableList:
		list, empty = true, true
	case NullAndEmptyList:
		list, null, empty = true, true, true
	}
	return list, null, empty
}

// List says whether a layer is one of lists.
func (l Layer) List() bool {
	list, _, _ := l.traits()
	return list
}

func layerOf(list, null, empty bool) Layer {
	switch {
	case !list && null:
		return NullableItem
	case !list:
		return AllValidItem
	case null && empty:
		return NullAndEmptyList
	case null:
		return NullableList
	case empty:
		return EmptyableList
	}
	return AllValidList
}

// unite returns layers that have the levels of both.
func unite(a, b []Layer) ([]Layer, error) {
	if len(a) != len(b) {
		return nil, lance.Corrupt("", "%d structural layers in a column of %d", len(b), len(a))
	}
	out := make([]Layer, len(a))
	for i := range a {
		listA, nullA, emptyA := a[i].traits()
		listB, nullB, emptyB := b[i].traits()
		if listA != listB {
			return nil, lance.Corrupt("", "structural layer %d is a list in some pages only", i)
		}
		out[i] = layerOf(listA, nullA || nullB, emptyA || emptyB)
	}
	return out, nil
}

// Meanings lists what each definition level says, whatever others a page has: 0 for a value, then two for each layer, that it
// is null and that it is empty.
func Meanings(layers []Layer) []uint16 {
	out := []uint16{0}
	for i, l := range layers {
		_, null, empty := l.traits()
		if null {
			out = append(out, uint16(2*i+1))
		}
		if empty {
			out = append(out, uint16(2*i+2))
		}
	}
	return out
}

// renumber gives for each definition level of some layers that of others, which have all of them.
func renumber(from, to []Layer) []uint16 {
	target := make([]uint16, 2*len(to)+1)
	for level, meaning := range Meanings(to) {
		target[meaning] = uint16(level)
	}
	out := Meanings(from)
	for level, meaning := range out {
		out[level] = target[meaning]
	}
	return out
}

// cursor walks the rows of a block.
type cursor struct {
	b                *Block
	lists            uint16 // repetition level of a row's first entry
	visible          uint16 // highest definition level whose entry has a slot
	row, entry, slot int    // the next ones
}

func newCursor(b *Block) (*cursor, error) {
	c := &cursor{b: b}
	for _, l := range b.Layers {
		list, null, _ := l.traits()
		if list {
			c.lists++
		} else if c.lists == 0 && null {
			c.visible++
		}
	}
	if len(b.Layers) == 0 || (c.lists > 0) != (b.Rep != nil) && b.Rows > 0 {
		return nil, lance.Corrupt("", "%d list layers, repetition levels: %t", c.lists, b.Rep != nil)
	}
	return c, nil
}

// skip moves over so many rows.
func (c *cursor) skip(rows int) {
	c.row += rows
	if c.lists == 0 {
		c.entry += rows
		c.slot += rows
		return
	}
	for ; c.entry < len(c.b.Rep); c.entry++ {
		if c.b.Rep[c.entry] == c.lists {
			if rows == 0 {
				return
			}
			rows--
		}
		if c.b.Def == nil || c.b.Def[c.entry] <= c.visible {
			c.slot++
		}
	}
}
