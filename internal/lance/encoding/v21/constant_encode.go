package v21

import (
	"encoding/binary"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// inlineMax is the bytes of the widest value that stands in the layout message (lance-arrow src/scalar.rs).
const inlineMax = 32

func constantLayout(l *enc21pb.ConstantLayout) *enc21pb.PageLayout {
	return &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_ConstantLayout{ConstantLayout: l}}
}

// nullPage writes a page without any value: the layers alone when rows are plain nulls, else both level streams, which 2.2
// may pack.
func (w *writer) nullPage() (*enc21pb.PageLayout, [][]byte, error) {
	l := &enc21pb.ConstantLayout{Layers: w.sh.proto()}
	if len(w.sh.layers) == 1 {
		return constantLayout(l), nil, nil
	}
	if w.minor < 2 {
		return constantLayout(l), w.rawLevels(), nil
	}
	var rep, def []byte
	if len(w.rep) > 0 {
		lw := newLevelWriter(w.rep)
		l.RepCompression, l.NumRepValues, rep = lw.encoding(), uint64(len(w.rep)), lw.pack(w.rep)
	}
	if len(w.def) > 0 {
		lw := newLevelWriter(w.def)
		l.DefCompression, l.NumDefValues, def = lw.encoding(), uint64(len(w.def)), lw.pack(w.def)
	}
	return constantLayout(l), [][]byte{rep, def}, nil
}

// constantPage writes a page whose valid slots all hold value, for 2.2 and later.
func (w *writer) constantPage(value []byte) (*enc21pb.PageLayout, [][]byte, error) {
	l := &enc21pb.ConstantLayout{Layers: w.sh.proto()}
	var buffers [][]byte
	if w.t.Kind == encoding.Fixed && len(value) <= inlineMax {
		l.InlineValue = append([]byte{}, value...)
	} else {
		buffers = append(buffers, w.scalarBuffer(value))
	}
	if w.rep != nil || w.def != nil {
		buffers = append(buffers, w.rawLevels()...)
	}
	return constantLayout(l), buffers, nil
}

// rawLevels are both level streams as they are; one that does not exist is empty.
func (w *writer) rawLevels() [][]byte {
	return [][]byte{appendLevels(nil, w.rep), appendLevels(nil, w.def)}
}

// scalarBuffer is the inverse of the function of that name.
func (w *writer) scalarBuffer(value []byte) []byte {
	if w.t.Kind == encoding.Fixed {
		dst := binary.LittleEndian.AppendUint32(nil, 1)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
		return append(dst, value...)
	}
	width := w.t.OffsetBits / 8
	dst := binary.LittleEndian.AppendUint32(nil, 2)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(2*width))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
	dst = appendNumber(dst, width, 0)
	dst = appendNumber(dst, width, uint64(len(value)))
	return append(dst, value...)
}
