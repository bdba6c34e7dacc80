package encodingtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb"
)

// Tree is a column of lists and structs, one in the other, with several leaves. As file version 2.0 wants it, no struct is null.
type Tree struct {
	kind     byte // 'l' list, 's' struct, 'i' leaf
	name     string
	id       int32
	parent   int32
	typ      encoding.Type
	logical  string
	children []*Tree
}

// TreeLeaf is one leaf of a Tree, with the values of some rows.
type TreeLeaf struct {
	Names  []string // of the struct fields on the way
	Path   []int32  // ids of the fields on the way, the leaf's last: also the columns, as ids count from 0 in the schema's order
	Type   encoding.Type
	Layers []encoding.Layer
	Block  *encoding.Block
}

// NewTree makes a column c of up to so many layers around its leaves, and its fields.
func NewTree(r *rand.Rand, depth int) (*Tree, []*lancepb.Field) {
	g := treeMaker{r: r}
	return g.make("c", -1, depth), g.fields
}

type treeMaker struct {
	r      *rand.Rand
	fields []*lancepb.Field
}

func (g *treeMaker) make(name string, parent int32, depth int) *Tree {
	n := &Tree{kind: 'i', name: name, id: int32(len(g.fields)), parent: parent}
	if depth > 0 {
		n.kind = "lllsssi"[g.r.IntN(7)]
	}
	field := &lancepb.Field{Name: name, Id: n.id, ParentId: parent, Nullable: true}
	g.fields = append(g.fields, field)
	switch n.kind {
	case 'l':
		n.children = append(n.children, g.make("item", n.id, depth-1))
		field.Type, n.logical = lancepb.Field_REPEATED, "list"
		if n.children[0].kind == 's' {
			n.logical = "list.struct"
		}
	case 's':
		for i := range 1 + g.r.IntN(3) {
			n.children = append(n.children, g.make(string(rune('a'+i)), n.id, depth-1))
		}
		field.Type, n.logical = lancepb.Field_PARENT, "struct"
	default:
		names := []string{"int64", "bool", "utf8", "large_binary", "vector3"}
		kind := names[g.r.IntN(len(names))]
		n.typ = Types()[kind]
		n.logical = map[string]string{"utf8": "string", "vector3": "fixed_size_list:float:3"}[kind]
		if n.logical == "" {
			n.logical = kind
		}
		field.Type = lancepb.Field_LEAF
	}
	field.LogicalType = n.logical
	return n
}

// Leaves makes rows and gives them leaf by leaf.
func (n *Tree) Leaves(rows int, r *rand.Rand) []TreeLeaf {
	var values []any
	for range rows {
		values = append(values, n.value(r))
	}
	return n.leaves(values, nil, nil)
}

// value is nil, a number for a leaf, else what stands in a list or the fields of a struct.
func (n *Tree) value(r *rand.Rand) any {
	if n.kind != 's' && r.IntN(5) == 0 {
		return nil
	}
	var out []any
	switch n.kind {
	case 'l':
		for range r.IntN(4) {
			out = append(out, n.children[0].value(r))
		}
	case 's':
		for _, child := range n.children {
			out = append(out, child.value(r))
		}
	default:
		return r.Uint64N(1000)
	}
	return out
}

func (n *Tree) leaves(rows []any, above []*Tree, names []string) []TreeLeaf {
	way := append(slices.Clone(above), n)
	if n.kind != 'i' {
		var out []TreeLeaf
		for _, child := range n.children {
			named := names
			if n.kind == 's' {
				named = append(slices.Clone(names), child.name)
			}
			out = append(out, child.leaves(rows, way, named)...)
		}
		return out
	}
	f := flattener{way: way, leaf: TreeLeaf{Names: names, Type: n.typ}, b: &encoding.Block{Rows: len(rows)}}
	for i, t := range way {
		f.leaf.Path = append(f.leaf.Path, t.id)
		layer := encoding.AllValidItem
		switch {
		case t.kind == 'l':
			layer = encoding.NullAndEmptyList
			f.lists++
		case i == len(way)-1:
			layer = encoding.NullableItem
		}
		f.leaf.Layers = append([]encoding.Layer{layer}, f.leaf.Layers...)
	}
	f.b.Layers = f.leaf.Layers
	if n.typ.Kind == encoding.Bytes {
		f.b.Values.Offsets = []int{0}
	}
	for _, row := range rows {
		f.add(0, row, f.lists, f.lists)
	}
	if f.lists == 0 {
		f.b.Rep = nil
	}
	f.leaf.Block = f.b
	return []TreeLeaf{f.leaf}
}

// flattener makes levels of values.
type flattener struct {
	way   []*Tree
	lists uint16
	leaf  TreeLeaf
	b     *encoding.Block
}

// add makes what a value says; inside is the number of lists from here inwards.
func (f *flattener) add(layer int, value any, rep, inside uint16) {
	n := f.way[layer]
	switch n.kind {
	case 'i':
		def := uint16(0)
		if value == nil {
			def = 1
		}
		f.entry(rep, def)
		f.slot(value)
	case 's':
		fields, _ := value.([]any)
		f.add(layer+1, fields[slices.Index(n.children, f.way[layer+1])], rep, inside)
	default:
		items, _ := value.([]any)
		switch {
		case value == nil:
			f.entry(rep, 2*inside)
		case len(items) == 0:
			f.entry(rep, 2*inside+1)
		}
		for _, item := range items {
			f.add(layer+1, item, rep, inside-1)
			rep = inside - 1
		}
	}
}

func (f *flattener) entry(rep, def uint16) {
	f.b.Rep = append(f.b.Rep, rep)
	f.b.Def = append(f.b.Def, def)
}

func (f *flattener) slot(value any) {
	v := &f.b.Values
	v.N++
	number, there := value.(uint64)
	if f.leaf.Type.Kind == encoding.Bytes {
		if there {
			v.Data = fmt.Appendf(v.Data, "value %d", number)
		}
		v.Offsets = append(v.Offsets, len(v.Data))
		return
	}
	item := make([]byte, f.leaf.Type.Width())
	if there {
		item[0], item[len(item)-1] = byte(number), byte(number)
		if f.leaf.Type.Bits == 1 {
			item[0] &= 1
		}
	}
	v.Fixed = append(v.Fixed, item...)
}
