package v21

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/general"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// wideValue is the bytes of a value from which official writers zip instead of making mini-blocks
// (lance-encoding src/encodings/logical/primitive/structural_encoder.rs:is_narrow).
const wideValue = 256

// Encode writes a block of one row or more as one page of a file of version 2.minor (1 or 2). The buffers may share memory
// with the block. Any number of rows is taken; official readers expect pages of some MiB.
func Encode(t encoding.Type, b *encoding.Block, minor int) (*enc21pb.PageLayout, [][]byte, error) {
	w, err := newWriter(t, b, minor)
	if err != nil {
		return nil, nil, fmt.Errorf("encode %d rows: %w", b.Rows, err)
	}
	defer w.codec.Close()
	layout, buffers, err := w.page()
	if err != nil {
		return nil, nil, fmt.Errorf("encode %d rows: %w", b.Rows, err)
	}
	return layout, buffers, nil
}

// writer encodes one page.
type writer struct {
	t        encoding.Type
	minor    int
	sh       shape // with no more levels than are used
	rows     int
	entries  int
	rep, def []uint16 // def is nil when every entry has a value
	values   *encoding.Values
	null     []bool // for each slot; nil when none is
	codec    *general.Codec
}

func newWriter(t encoding.Type, b *encoding.Block, minor int) (*writer, error) {
	if err := t.Check(); err != nil {
		return nil, err //nolint:wrapcheck // class and detail are those of the page
	}
	if err := checkVersion(t, minor); err != nil {
		return nil, err
	}
	sh, err := newShape(b.Layers)
	if err != nil {
		return nil, err
	}
	if err := checkBlock(t, sh, b); err != nil {
		return nil, err
	}
	w := &writer{t: t, minor: minor, rows: b.Rows, entries: b.Rows, rep: b.Rep, values: &b.Values, codec: general.New(math.MaxInt32)}
	if sh.maxRep > 0 {
		w.entries = len(b.Rep)
	}
	if w.sh, w.def, err = tighten(sh, b.Def); err != nil {
		return nil, err
	}
	w.null = nullSlots(w.sh, w.def)
	return w, nil
}

// checkBlock verifies that a block agrees with itself, so that what is encoded can be decoded.
func checkBlock(t encoding.Type, sh shape, b *encoding.Block) error {
	if b.Rows <= 0 {
		return lance.Corrupt("", "page without rows")
	}
	slots, err := sh.check(b.Rep, b.Def, b.Rows)
	if err != nil {
		return err
	}
	v := &b.Values
	if slots != v.N {
		return lance.Corrupt("", "%d values for %d slots", v.N, slots)
	}
	if t.Kind != encoding.Bytes {
		if len(v.Fixed) != v.N*t.Width() || v.ItemValid != nil && len(v.ItemValid) != v.N*t.Items() {
			return lance.Corrupt("", "%d bytes and %d item flags for %d values of %d bytes", len(v.Fixed), len(v.ItemValid), v.N, t.Width())
		}
		return nil
	}
	if len(v.Offsets) != v.N+1 || v.Offsets[0] != 0 || v.Offsets[v.N] > len(v.Data) {
		return lance.Corrupt("", "%d offsets into %d bytes for %d values", len(v.Offsets), len(v.Data), v.N)
	}
	for i, to := range v.Offsets[1:] {
		if to < v.Offsets[i] {
			return lance.Corrupt("", "value %d ends at %d, before its start", i, to)
		}
	}
	return nil
}

// tighten drops from the layers the levels that no entry uses, and renumbers the others, as official writers derive layers
// from a page's data.
func tighten(sh shape, def []uint16) (shape, []uint16, error) {
	used := make([]bool, int(sh.maxDef)+1)
	for _, d := range def {
		used[d] = true
	}
	layers := make([]encoding.Layer, len(sh.layers))
	renumber := make([]uint16, int(sh.maxDef)+1)
	level, next := 0, uint16(0)
	take := func() bool {
		level++
		if used[level] {
			next++
			renumber[level] = next
		}
		return used[level]
	}
	for i, l := range sh.layers {
		layers[i] = l
		switch l {
		case encoding.NullableItem:
			if !take() {
				layers[i] = encoding.AllValidItem
			}
		case encoding.NullableList, encoding.EmptyableList:
			if !take() {
				layers[i] = encoding.AllValidList
			}
		case encoding.NullAndEmptyList:
			null, empty := take(), take()
			switch {
			case !null && !empty:
				layers[i] = encoding.AllValidList
			case !empty:
				layers[i] = encoding.NullableList
			case !null:
				layers[i] = encoding.EmptyableList
			}
		case encoding.AllValidItem, encoding.AllValidList:
		}
	}
	tight, err := newShape(layers)
	if err != nil || next == 0 {
		return tight, nil, err
	}
	if next == sh.maxDef {
		return tight, def, nil
	}
	out := make([]uint16, len(def))
	for i, d := range def {
		out[i] = renumber[d]
	}
	return tight, out, nil
}

// page chooses the layout.
func (w *writer) page() (*enc21pb.PageLayout, [][]byte, error) {
	if w.allNull() {
		return w.nullPage()
	}
	if w.t.KeyBits > 0 {
		return w.keyedPage()
	}
	if w.minor >= 2 && w.levelsCheap() {
		if value, ok := w.constant(); ok {
			return w.constantPage(value)
		}
	}
	wide := w.widest() >= wideValue && w.canZip()
	values, err := w.miniValues(wide)
	if err != nil {
		return nil, nil, err
	}
	if values == nil {
		return w.zipPage()
	}
	layout, buffers, err := w.miniPage(values)
	switch {
	case !errors.Is(err, errLevels):
		return layout, buffers, err
	case w.canZip():
		return w.zipPage()
	}
	return nil, nil, lance.Unsupported("page", "of boolean vectors with "+errLevels.Error(), "")
}

// keyedPage writes a page of a dictionary column, which has one form only.
func (w *writer) keyedPage() (*enc21pb.PageLayout, [][]byte, error) {
	values, err := w.keyed()
	if err != nil {
		return nil, nil, err
	}
	layout, buffers, err := w.miniPage(values)
	if errors.Is(err, errLevels) {
		return nil, nil, lance.Unsupported("page", "of a dictionary column with "+errLevels.Error(), "")
	}
	return layout, buffers, err
}

// allNull tells if no entry has a value.
func (w *writer) allNull() bool {
	return w.def != nil && !slices.Contains(w.def, 0)
}

// rawLevelsMax is the number of entries up to which a constant page's uncompressed levels are no loss.
const rawLevelsMax = 256

func (w *writer) levelsCheap() bool {
	return w.rep == nil && w.def == nil || w.entries <= rawLevelsMax
}

// widest is the bytes of the widest value.
func (w *writer) widest() int {
	switch w.t.Kind {
	case encoding.Bytes:
		most := 0
		for i, to := range w.values.Offsets[1:] {
			most = max(most, to-w.values.Offsets[i])
		}
		return most
	case encoding.Fixed, encoding.Vector, encoding.Void:
	}
	return (w.t.Items()*w.t.Bits + 7) / 8
}

// canZip is false for vectors of booleans, whose zipped form is not understood.
func (w *writer) canZip() bool { return w.t.Kind != encoding.Vector || w.t.Bits > 1 }

// constant returns the value that all valid slots share. Vectors have no constant form.
func (w *writer) constant() ([]byte, bool) {
	if w.t.Kind == encoding.Vector || w.values.N == 0 {
		return nil, false
	}
	var first []byte
	found := false
	for i := range w.values.N {
		if w.null != nil && w.null[i] {
			continue
		}
		v := w.value(i)
		if !found {
			first, found = v, true
		} else if !bytes.Equal(first, v) {
			return nil, false
		}
	}
	return first, found && len(first) < math.MaxInt32
}

// value is the bytes of slot i.
func (w *writer) value(i int) []byte {
	v := w.values
	if w.t.Kind == encoding.Bytes {
		return v.Data[v.Offsets[i]:v.Offsets[i+1]]
	}
	width := w.t.Width()
	return v.Fixed[i*width : (i+1)*width]
}
