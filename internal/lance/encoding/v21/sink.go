package v21

import (
	"fmt"
	"slices"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/general"
)

// Limits of what a page may decode to, so that a few hostile bytes cannot ask for all memory. Official writers cut pages
// at 8 MiB of Arrow memory, but one huge batch is one page.
const (
	maxAmplified = 1 << 30 // bytes that no buffer has to account for
	perInput     = 16      // and for each byte of the page's buffers
)

// sink collects the values of a page as its parts are decoded.
type sink struct {
	t      encoding.Type
	width  int // bytes of a value in values.Fixed
	values encoding.Values
	opaque []int // slots that hold a null fixed-size list inside a vector, which a Block cannot express
	room   int   // bytes that may still be added
	codec  *general.Codec
}

func newSink(t encoding.Type, limit int, codec *general.Codec) *sink {
	s := &sink{t: t, width: t.Width(), room: limit, codec: codec}
	if t.Kind == encoding.Bytes {
		s.values.Offsets = []int{0}
	}
	return s
}

// reserve prepares for n more values whose bytes come from at most input bytes; more may follow.
func (s *sink) reserve(n, input int) {
	if s.t.Kind == encoding.Bytes {
		s.values.Offsets = make([]int, 1, min(n, input)+1)
		s.values.Data = make([]byte, 0, input)
		return
	}
	if s.width > 0 {
		s.values.Fixed = make([]byte, 0, min(n, perInput*(input/s.width+1))*s.width)
	}
}

func (s *sink) take(n int) error {
	if n < 0 || n > s.room {
		return lance.Unsupported("page", "too large when decoded", "")
	}
	s.room -= n
	return nil
}

// extend adds n fixed-width values and returns their bytes, zeroed, to be filled.
func (s *sink) extend(n int) ([]byte, error) {
	if s.width > 0 && n > s.room/s.width {
		return nil, s.take(-1)
	}
	if err := s.take(n * s.width); err != nil {
		return nil, err
	}
	at := len(s.values.Fixed)
	s.values.Fixed = slices.Grow(s.values.Fixed, n*s.width)[:at+n*s.width] // zeroed: nothing was ever cut off
	s.values.N += n
	return s.values.Fixed[at:], nil
}

// extendItems adds the validity of n values, all valid so far, to be changed.
func (s *sink) extendItems(n int) ([]byte, error) {
	items := s.t.Items()
	if n > s.room/items {
		return nil, s.take(-1)
	}
	if err := s.take(n * items); err != nil {
		return nil, err
	}
	at := len(s.values.ItemValid)
	s.values.ItemValid = append(s.values.ItemValid, make([]byte, n*items)...)
	for i := at; i < len(s.values.ItemValid); i++ {
		s.values.ItemValid[i] = 1
	}
	return s.values.ItemValid[at:], nil
}

// string adds one byte string.
func (s *sink) string(b []byte) error {
	if err := s.take(len(b) + 8); err != nil {
		return err
	}
	s.values.Data = append(s.values.Data, b...)
	s.closeString()
	return nil
}

// closeString ends a byte string whose bytes were appended to values.Data by hand.
func (s *sink) closeString() {
	s.values.Offsets = append(s.values.Offsets, len(s.values.Data))
	s.values.N++
}

// markOpaque notes that a slot holds a null list; slots come in order.
func (s *sink) markOpaque(slot int) {
	if n := len(s.opaque); n == 0 || s.opaque[n-1] != slot {
		s.opaque = append(s.opaque, slot)
	}
}

// block checks levels against values and layers and returns the page, with null slots and null items normalised.
func (s *sink) block(sh shape, rep, def []uint16, rows int) (*encoding.Block, error) {
	slots, err := sh.check(rep, def, rows)
	if err != nil {
		return nil, err
	}
	if slots != s.values.N {
		return nil, lance.Corrupt("", "%d values for %d slots", s.values.N, slots)
	}
	if s.t.Kind != encoding.Bytes && s.t.Bits == 1 && slices.ContainsFunc(s.values.Fixed, func(b byte) bool { return b > 1 }) {
		return nil, lance.Corrupt("", "a boolean that is neither 0 nor 1")
	}
	b := &encoding.Block{Rows: rows, Layers: sh.layers, Rep: rep, Def: def, Values: s.values}
	if err := s.checkOpaque(sh, def); err != nil {
		return nil, err
	}
	clearNulls(s.t, sh, b)
	return b, nil
}

// checkOpaque refuses a null list inside a vector that is itself not null.
func (s *sink) checkOpaque(sh shape, def []uint16) error {
	if len(s.opaque) == 0 {
		return nil
	}
	null := nullSlots(sh, def)
	for _, slot := range s.opaque {
		if null == nil || !null[slot] {
			return lance.Unsupported("encoding", fmt.Sprintf("null fixed-size list inside a vector (slot %d)", slot), "")
		}
	}
	return nil
}

// nullSlots tells for each value slot if it is null; nil when none can be.
func nullSlots(sh shape, def []uint16) []bool {
	if def == nil || sh.maxDef == 0 {
		return nil
	}
	null := make([]bool, 0, len(def))
	for _, d := range def {
		if d <= sh.visible {
			null = append(null, d != 0)
		}
	}
	return null
}

// clearNulls brings the bytes under null slots and null items to their normal form: zero or empty. Items of null
// vectors count as valid, and ItemValid is dropped when all are.
func clearNulls(t encoding.Type, sh shape, b *encoding.Block) {
	v := &b.Values
	if t.Kind == encoding.Bytes {
		clearStrings(sh, b)
		return
	}
	width, items := t.Width(), t.Items()
	slot := 0
	for _, d := range b.Def {
		if d > sh.visible {
			continue
		}
		if d != 0 {
			clear(v.Fixed[slot*width : (slot+1)*width])
			if v.ItemValid != nil {
				valid := v.ItemValid[slot*items : (slot+1)*items]
				for i := range valid {
					valid[i] = 1
				}
			}
		}
		slot++
	}
	clearItems(t, v)
}

func clearItems(t encoding.Type, v *encoding.Values) {
	if v.ItemValid == nil {
		return
	}
	width := max(1, t.Bits/8)
	all := true
	for i, valid := range v.ItemValid {
		if valid == 0 {
			all = false
			clear(v.Fixed[i*width : (i+1)*width])
		}
	}
	if all {
		v.ItemValid = nil
	}
}

// clearStrings empties null slots. Writers leave them empty, so bytes are moved only when one is not.
func clearStrings(sh shape, b *encoding.Block) {
	v := &b.Values
	null := nullSlots(sh, b.Def)
	dirty := false
	for i, isNull := range null {
		if isNull && v.Offsets[i+1] > v.Offsets[i] {
			dirty = true
			break
		}
	}
	if !dirty {
		return
	}
	end := 0
	for i, isNull := range null {
		value := v.Data[v.Offsets[i]:v.Offsets[i+1]]
		v.Offsets[i] = end
		if !isNull {
			end += copy(v.Data[end:], value)
		}
	}
	v.Offsets[v.N] = end
	v.Data = v.Data[:end]
}
