package encodingtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"lancekeeper/internal/lance/encoding"
)

// Nests are structures of columns, innermost layer first: i is the leaf or a struct, l a list.
func Nests() []string { return []string{"i", "ii", "iii", "il", "ili", "iil", "ill", "ilil"} }

// Nested makes rows of lists and structs; s in place of i is a struct that is never null. Whether a layer can be null or empty is up to chance.
func Nested(t encoding.Type, nest string, shape Shape, rows int, r *rand.Rand) *encoding.Block {
	n := nester{t: t, shape: shape, r: r, b: &encoding.Block{Rows: rows}}
	next := uint16(1)
	level := func(has bool) (number uint16) {
		if has {
			number = next
			next++
		}
		return number
	}
	for _, kind := range nest {
		null, empty := r.IntN(2) == 0 && kind != 's', kind == 'l' && r.IntN(2) == 0
		n.layers = append(n.layers, nestLayer{list: kind == 'l', rank: n.lists, null: level(null), empty: level(empty)})
		layer := encoding.AllValidItem
		switch {
		case kind != 'l' && null:
			layer = encoding.NullableItem
		case kind != 'l':
		case null && empty:
			layer = encoding.NullAndEmptyList
		case null:
			layer = encoding.NullableList
		case empty:
			layer = encoding.EmptyableList
		default:
			layer = encoding.AllValidList
		}
		n.b.Layers = append(n.b.Layers, layer)
		if kind == 'l' {
			n.lists++
		}
	}
	if t.Kind == encoding.Bytes {
		n.b.Values.Offsets = []int{0}
	}
	for range rows {
		n.add(len(nest)-1, n.lists)
	}
	if n.lists == 0 {
		n.b.Rep = nil
	}
	if next == 1 {
		n.b.Def = nil
	}
	if t.Kind == encoding.Vector && t.Bits >= 8 && n.b.Def == nil && n.lists == 0 && r.IntN(2) == 0 {
		nullItems(r, t, n.b)
	}
	return n.b
}

type nestLayer struct {
	list        bool
	rank        uint16 // list layers inside it
	null, empty uint16 // definition levels; 0 if none
}

type nester struct {
	t      encoding.Type
	shape  Shape
	r      *rand.Rand
	layers []nestLayer
	lists  uint16
	b      *encoding.Block
}

// add makes what stands at a layer; rep is the level of its first entry.
func (n *nester) add(layer int, rep uint16) {
	if layer < 0 {
		n.entry(rep, 0, true)
		n.value(false)
		return
	}
	l := n.layers[layer]
	if l.null > 0 && n.r.IntN(4) == 0 {
		n.entry(rep, l.null, l.rank == 0 && !l.list)
		return
	}
	if !l.list {
		n.add(layer-1, rep)
		return
	}
	if l.empty > 0 && n.r.IntN(4) == 0 {
		n.entry(rep, l.empty, false)
		return
	}
	for i := range 1 + n.r.IntN(4) {
		if i > 0 {
			rep = l.rank
		}
		n.add(layer-1, rep)
	}
}

func (n *nester) entry(rep, def uint16, slot bool) {
	n.b.Rep = append(n.b.Rep, rep)
	n.b.Def = append(n.b.Def, def)
	if def > 0 && slot {
		n.value(true)
	}
}

func (n *nester) value(null bool) {
	v := &n.b.Values
	v.N++
	if n.t.Kind == encoding.Bytes {
		if !null {
			v.Data = append(v.Data, text(n.r, n.shape, v.N)...)
		}
		v.Offsets = append(v.Offsets, len(v.Data))
		return
	}
	for range n.t.Items() {
		item := number(n.r, n.shape, v.N, max(1, n.t.Bits/8))
		if null {
			clear(item)
		}
		if n.t.Bits == 1 {
			item[0] &= 1
		}
		v.Fixed = append(v.Fixed, item...)
	}
}

// Lists makes rows, each of which is so many empty lists and one list of so many items; every seventh item is null.
func Lists(t encoding.Type, empty, items, rows int) *encoding.Block {
	n := nester{t: t, shape: Small, r: rand.New(rand.NewPCG(1, 1)), b: &encoding.Block{
		Rows: rows * (empty + 1), Layers: []encoding.Layer{encoding.NullableItem, encoding.EmptyableList},
	}}
	if t.Kind == encoding.Bytes {
		n.b.Values.Offsets = []int{0}
	}
	for range rows {
		for range empty {
			n.entry(1, 2, false)
		}
		rep := uint16(1)
		for i := range items {
			if i%7 == 3 {
				n.entry(rep, 1, true)
			} else {
				n.entry(rep, 0, true)
				n.value(false)
			}
			rep = 0
		}
	}
	return n.b
}

// Names are the keys of Types, in order.
func Names() []string {
	var names []string
	for name := range Types() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Describe names a block in a failed test.
func Describe(b *encoding.Block) string {
	return fmt.Sprintf("%d rows, layers %v, rep %v, def %v", b.Rows, b.Layers, b.Rep, b.Def)
}
