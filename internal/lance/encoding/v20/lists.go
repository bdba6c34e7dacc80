package v20

import (
	"encoding/binary"
	"slices"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

// Lists is a run of lists: where each one ends, in items counted from the first item of the run, and which are null. A null list
// may own items too.
type Lists struct {
	Ends []uint64
	Null []bool
}

// Items is the number of items that the lists own.
func (l Lists) Items() uint64 {
	if len(l.Ends) == 0 {
		return 0
	}
	return l.Ends[len(l.Ends)-1]
}

// Items is the number of items that the lists of a page own. The page's buffers are not needed for it.
func Items(enc *enc20pb.ArrayEncoding) (uint64, error) {
	if enc.GetList() == nil {
		return 0, unsupported(enc)
	}
	return enc.GetList().GetNumItems(), nil
}

// IsHeader says whether a page is one of a struct, which has no buffers.
func IsHeader(enc *enc20pb.ArrayEncoding) bool { return enc.GetStruct() != nil }

// Header describes a page of structs.
func Header() *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Struct{Struct: &enc20pb.SimpleStruct{}}}
}

// DecodeLists reads a page of lists: the ends are raised by an adjustment where a list is null (logical/list.rs). Errors are as
// those of Decode.
func DecodeLists(enc *enc20pb.ArrayEncoding, buffers [][]byte, rows int) (Lists, error) {
	return decodeLists(enc, newDecoder(buffers), rows)
}

func decodeLists(enc *enc20pb.ArrayEncoding, d *decoder, rows int) (Lists, error) {
	list := enc.GetList()
	if list == nil {
		return Lists{}, unsupported(enc)
	}
	offsets, err := decode(encoding.Type{Bits: 64}, list.GetOffsets(), d, rows)
	if err != nil {
		return Lists{}, err
	}
	out, err := listsOf(list, offsets)
	if err == nil && out.Items() != list.GetNumItems() {
		err = lance.Corrupt("", "lists own %d of %d items", out.Items(), list.GetNumItems())
	}
	return out, err
}

// listsOf makes lists of their raised ends.
func listsOf(list *enc20pb.List, offsets *encoding.Block) (Lists, error) {
	if offsets.Def != nil {
		return Lists{}, lance.Corrupt("", "null offsets of lists")
	}
	rows := offsets.Rows
	items, adjustment := list.GetNumItems(), list.GetNullOffsetAdjustment()
	if rows > 0 && adjustment <= items {
		return Lists{}, lance.Corrupt("", "null adjustment of %d for %d items", adjustment, items)
	}
	out := Lists{Ends: make([]uint64, rows), Null: make([]bool, rows)}
	var last uint64
	for i := range rows {
		v := binary.LittleEndian.Uint64(offsets.Values.Fixed[8*i:])
		end := v % adjustment
		if end < last || end > items || v/adjustment > 1 {
			return Lists{}, lance.Corrupt("", "list %d ends at item %d, after %d, of %d", i, end, last, items)
		}
		out.Ends[i], out.Null[i], last = end, v >= adjustment, end
	}
	return out, nil
}

// EncodeLists writes lists as one page.
func EncodeLists(l Lists) (*enc20pb.ArrayEncoding, [][]byte) {
	items := l.Items()
	ends := make([]byte, 0, 8*len(l.Ends))
	for i, end := range l.Ends {
		if l.Null[i] {
			end += items + 1
		}
		ends = binary.LittleEndian.AppendUint64(ends, end)
	}
	w := &writer{}
	offsets := noNulls(w.flat(64, ends))
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_List{List: &enc20pb.List{
		Offsets: offsets, NullOffsetAdjustment: items + 1, NumItems: items,
	}}}, w.buffers
}

// Span is a run of items, by their positions in a column.
type Span struct{ From, To uint64 }

// Levels are the repetition and definition levels of some rows of a nested column, built from the outermost layer inwards: a list
// layer replaces each of its lists by the items.
type Levels struct {
	layers   []encoding.Layer // as those of encoding.Block
	rank     uint16           // list layers not yet added
	rows     int
	rep, def []uint16
	there    []Span // positions of the values that the entries marked alive stand for, in order
}

// alive marks entries that the layers so far leave open.
const alive = ^uint16(0)

// NewLevels begins with rows [from, to) of a column of these layers, of which the outermost stands last.
func NewLevels(layers []encoding.Layer, from, to uint64) *Levels {
	l := &Levels{layers: slices.Clone(layers), rows: int(to - from), there: []Span{{from, to}}}
	for i, layer := range layers {
		switch {
		case layer.List():
			l.layers[i] = encoding.NullAndEmptyList
			l.rank++
		case i == 0:
			l.layers[i] = encoding.NullableItem
		default:
			l.layers[i] = encoding.AllValidItem
		}
	}
	if l.rank > 0 {
		l.rep = slices.Repeat([]uint16{l.rank}, l.rows)
		l.def = slices.Repeat([]uint16{alive}, l.rows)
	}
	return l
}

// There are the positions, in the column of the layer to be added next, of what is there.
func (l *Levels) There() []Span { return l.there }

// AddLists puts the items in the place of the lists. of gives the items of the list at a position, positions rising, and whether
// it is null. No more than limit entries are made of it: ErrUnsupported.
func (l *Levels) AddLists(limit uint64, of func(position uint64) (items Span, null bool, err error)) error {
	rep, def := make([]uint16, 0, len(l.rep)), make([]uint16, 0, len(l.def))
	var there []Span
	at := positions{spans: l.there}
	for i, d := range l.def {
		if d != alive {
			rep, def = append(rep, l.rep[i]), append(def, d)
			continue
		}
		items, null, err := of(at.next())
		if err != nil {
			return err
		}
		n := items.To - items.From
		switch {
		case null:
			rep, def = append(rep, l.rep[i]), append(def, 2*l.rank)
			continue
		case n == 0:
			rep, def = append(rep, l.rep[i]), append(def, 2*l.rank+1)
			continue
		case n > limit || uint64(len(rep)) > limit-n:
			return lance.Unsupported("page", "of too many list items", "")
		}
		rep, def = append(rep, l.rep[i]), append(def, alive)
		for range n - 1 {
			rep, def = append(rep, l.rank-1), append(def, alive)
		}
		if last := len(there) - 1; last >= 0 && there[last].To == items.From {
			there[last].To = items.To
		} else {
			there = append(there, items)
		}
	}
	l.rep, l.def, l.there = rep, def, there
	l.rank--
	return nil
}

// positions walks spans.
type positions struct {
	spans []Span
	used  uint64
}

func (p *positions) next() uint64 {
	for p.spans[0].From+p.used == p.spans[0].To {
		p.spans, p.used = p.spans[1:], 0
	}
	p.used++
	return p.spans[0].From + p.used - 1
}

// Block gives the rows, with the values at the positions There as a block of a column without lists and structs. It takes the
// memory of both.
func (l *Levels) Block(values *encoding.Block) (*encoding.Block, error) {
	out := &encoding.Block{Rows: l.rows, Layers: l.layers, Rep: l.rep, Def: values.Def, Values: values.Values}
	if l.rep == nil {
		if values.Rows != l.rows {
			return nil, lance.Corrupt("", "%d values for %d rows", values.Rows, l.rows)
		}
		return out, nil
	}
	slot, some := 0, false
	for i, d := range l.def {
		if d == alive {
			if slot == values.Rows {
				return nil, lance.Corrupt("", "only %d values in the lists of %d rows", slot, l.rows)
			}
			l.def[i] = 0
			if values.Def != nil {
				l.def[i] = values.Def[slot]
			}
			slot++
		}
		some = some || l.def[i] != 0
	}
	if slot != values.Rows {
		return nil, lance.Corrupt("", "%d values, of which lists own %d", values.Rows, slot)
	}
	out.Def = nil
	if some {
		out.Def = l.def
	}
	return out, nil
}

// Split takes a block apart: the lists of each list layer, outermost first, and the values as a block of a column without lists
// and structs, which shares memory with it. ErrUnsupported for a null struct, which this file version can't tell from one whose
// fields are null.
func Split(b *encoding.Block) ([]Lists, *encoding.Block, error) {
	s, err := newSplitter(b)
	if err != nil {
		return nil, nil, err
	}
	for i := range s.entries {
		if err := s.entry(i); err != nil {
			return nil, nil, err
		}
	}
	if s.values.Rows != b.Values.N {
		return nil, nil, lance.Corrupt("", "%d values for %d slots", b.Values.N, s.values.Rows)
	}
	if s.values.Def != nil && !slices.Contains(s.values.Def, 1) {
		s.values.Def, s.values.Layers[0] = nil, encoding.AllValidItem
	}
	slices.Reverse(s.lists)
	return s.lists, s.values, nil
}

func nullStruct() error { return lance.Unsupported("null struct", "in file version 2.0", "") }

type splitter struct {
	b        *encoding.Block
	entries  int
	meanings []uint16
	rank     []int   // for each layer, list layers up to it
	lists    []Lists // by rank, innermost first
	values   *encoding.Block
}

func newSplitter(b *encoding.Block) (*splitter, error) {
	s := &splitter{b: b, entries: b.Rows, meanings: encoding.Meanings(b.Layers)}
	for _, l := range b.Layers {
		if l.List() {
			s.lists = append(s.lists, Lists{})
		}
		s.rank = append(s.rank, len(s.lists))
	}
	if len(s.lists) > 0 {
		s.entries = len(b.Rep)
	}
	if len(b.Layers) == 0 || b.Layers[0].List() || (len(s.lists) > 0) != (b.Rep != nil) || b.Def != nil && len(b.Def) != s.entries {
		return nil, lance.Corrupt("", "%d repetition and %d definition levels in %d rows of %d layers", len(b.Rep), len(b.Def), b.Rows, len(b.Layers))
	}
	s.values = &encoding.Block{Layers: []encoding.Layer{encoding.NullableItem}, Values: b.Values}
	if b.Def != nil {
		s.values.Def = make([]uint16, 0, b.Values.N)
	}
	return s, nil
}

// entry adds what an entry says: lists that begin with it, and items that it adds to lists.
func (s *splitter) entry(i int) error {
	var meaning uint16
	if s.b.Def != nil {
		if int(s.b.Def[i]) >= len(s.meanings) {
			return lance.Corrupt("", "definition level %d of %d", s.b.Def[i], len(s.meanings))
		}
		meaning = s.meanings[s.b.Def[i]]
	}
	layer := int(meaning+1)/2 - 1 // the one that is null or empty; -1: none
	if layer > 0 && !s.b.Layers[layer].List() {
		return nullStruct()
	}
	stop := 0 // rank of the list that the entry ends at; 0: it has a slot
	if layer > 0 {
		stop = s.rank[layer]
	}
	if len(s.lists) > 0 {
		if err := s.addTo(int(s.b.Rep[i]), stop, meaning%2 == 1); err != nil {
			return err
		}
	}
	if stop == 0 {
		s.values.Rows++
		if s.b.Def != nil {
			s.values.Def = append(s.values.Def, meaning)
		}
	}
	return nil
}

// addTo begins lists of ranks up to rep, and adds an item to each list down to the rank above stop.
func (s *splitter) addTo(rep, stop int, null bool) error {
	if rep > len(s.lists) {
		return lance.Corrupt("", "repetition level %d, highest is %d", rep, len(s.lists))
	}
	for rank := rep; rank >= max(stop, 1); rank-- {
		l := &s.lists[rank-1]
		l.Ends, l.Null = append(l.Ends, l.Items()), append(l.Null, rank == stop && null)
	}
	for rank := min(rep+1, len(s.lists)); rank > stop; rank-- {
		ends := s.lists[rank-1].Ends
		if len(ends) == 0 {
			return lance.Corrupt("", "a list goes on that did not begin")
		}
		ends[len(ends)-1]++
	}
	return nil
}
