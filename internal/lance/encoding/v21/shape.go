package v21

import (
	"fmt"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// shape is what the layers of a page say about its levels (lance-encoding src/repdef.rs).
type shape struct {
	layers  []encoding.Layer
	maxRep  uint16 // number of list layers: the repetition level that starts a row
	maxDef  uint16 // highest definition level
	visible uint16 // highest definition level whose entry owns a value slot
}

func isList(l encoding.Layer) bool {
	switch l {
	case encoding.AllValidList, encoding.NullableList, encoding.EmptyableList, encoding.NullAndEmptyList:
		return true
	case encoding.AllValidItem, encoding.NullableItem:
	}
	return false
}

// levelsOf is the number of definition levels that a layer takes.
func levelsOf(l encoding.Layer) uint16 {
	switch l {
	case encoding.NullableItem, encoding.NullableList, encoding.EmptyableList:
		return 1
	case encoding.NullAndEmptyList:
		return 2
	case encoding.AllValidItem, encoding.AllValidList:
	}
	return 0
}

// maxLayers bounds the nesting of a column; schemas do not come near.
const maxLayers = 1000

func newShape(layers []encoding.Layer) (shape, error) {
	s := shape{layers: layers}
	if len(layers) == 0 || len(layers) > maxLayers {
		return s, lance.Corrupt("", "page with %d structural layers", len(layers))
	}
	for i, l := range layers {
		if l < encoding.AllValidItem || l > encoding.NullAndEmptyList {
			return s, lance.Unsupported("structural layer", fmt.Sprintf("%d", l), "")
		}
		if i == 0 && isList(l) {
			return s, lance.Corrupt("", "innermost layer is a list")
		}
		if isList(l) {
			s.maxRep++
		}
		s.maxDef += levelsOf(l)
		if s.maxRep == 0 {
			s.visible = s.maxDef
		}
	}
	return s, nil
}

func shapeOf(layers []enc21pb.RepDefLayer) (shape, error) {
	out := make([]encoding.Layer, len(layers))
	for i, l := range layers {
		out[i] = encoding.Layer(l)
	}
	return newShape(out)
}

// proto returns the layers as the page layout names them.
func (s shape) proto() []enc21pb.RepDefLayer {
	out := make([]enc21pb.RepDefLayer, len(s.layers))
	for i, l := range s.layers {
		out[i] = enc21pb.RepDefLayer(l)
	}
	return out
}

// slots counts the entries of a definition stream that own a value slot.
func (s shape) slots(def []uint16) int {
	if s.maxDef == s.visible {
		return len(def)
	}
	n := 0
	for _, d := range def {
		if d <= s.visible {
			n++
		}
	}
	return n
}

// check verifies the level streams of whole rows against the layers, and returns the number of value slots. A nil stream
// is all zeros.
func (s shape) check(rep, def []uint16, rows int) (int, error) {
	entries := rows
	if s.maxRep == 0 {
		if rep != nil {
			return 0, lance.Corrupt("", "repetition levels without a list")
		}
	} else {
		entries = len(rep)
		starts := 0
		for _, r := range rep {
			if r > s.maxRep {
				return 0, lance.Corrupt("", "repetition level %d, highest is %d", r, s.maxRep)
			}
			if r == s.maxRep {
				starts++
			}
		}
		if starts != rows || (entries > 0 && rep[0] != s.maxRep) {
			return 0, lance.Corrupt("", "repetition levels start %d rows in a page of %d", starts, rows)
		}
	}
	if def == nil {
		return entries, nil
	}
	if len(def) != entries {
		return 0, lance.Corrupt("", "%d definition levels for %d entries", len(def), entries)
	}
	for _, d := range def {
		if d > s.maxDef {
			return 0, lance.Corrupt("", "definition level %d, highest is %d", d, s.maxDef)
		}
	}
	return s.slots(def), s.agree(rep, def)
}

// agree verifies that a list or struct that is not there, or is empty, has but one entry.
func (s shape) agree(rep, def []uint16) error {
	if s.maxRep == 0 {
		return nil
	}
	within := make([]uint16, 1, int(s.maxDef)+1) // for each definition level, the lists that begin where it stands
	lists := uint16(0)
	for _, l := range s.layers {
		if isList(l) {
			lists++
		}
		for range levelsOf(l) {
			within = append(within, lists)
		}
	}
	for i, d := range def {
		if d > s.visible && (rep[i] < within[d] || i+1 < len(rep) && rep[i+1] < within[d]) {
			return lance.Corrupt("", "entry %d says that a list is not there or empty, and is not its only one", i)
		}
	}
	return nil
}
