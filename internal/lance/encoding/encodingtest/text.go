package encodingtest

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/encoding"
)

// RowText renders rows as v21/testdata/make.py does: a line a row.
func RowText(t testing.TB, typ encoding.Type, b *encoding.Block) string {
	t.Helper()
	r := rowRenderer{t: typ, b: b, owner: map[uint16]int{}}
	next := uint16(1)
	for i, l := range b.Layers {
		for range levelsOf(l) {
			r.owner[next] = i
			next++
		}
		r.rank = append(r.rank, 0)
		if isList(l) {
			r.lists++
		}
		r.rank[i] = r.lists
	}
	entries := b.Rows
	if b.Rep != nil {
		entries = len(b.Rep)
	}
	for lo := 0; lo < entries; {
		hi := lo + 1
		for hi < entries && r.rep(hi) < r.lists {
			hi++
		}
		if r.lists == 0 {
			hi = lo + 1
		}
		r.render(len(b.Layers)-1, lo, hi)
		r.out.WriteByte('\n')
		lo = hi
	}
	require.Equal(t, b.Values.N, r.slot)
	return r.out.String()
}

type rowRenderer struct {
	t     encoding.Type
	b     *encoding.Block
	out   strings.Builder
	owner map[uint16]int // level to layer
	rank  []int          // list layers up to a layer
	lists int
	slot  int
}

func (r *rowRenderer) rep(i int) int {
	if r.b.Rep == nil {
		return 0
	}
	return int(r.b.Rep[i])
}

func (r *rowRenderer) def(i int) uint16 {
	if r.b.Def == nil {
		return 0
	}
	return r.b.Def[i]
}

func (r *rowRenderer) render(layer, lo, hi int) {
	level := r.def(lo)
	owner, special := r.owner[level]
	kind := r.b.Layers[layer]
	if special && owner == layer {
		// an item's only level is null; a list's first is null, unless it has but the empty one
		_, lower := r.owner[level-1]
		empty := kind == encoding.EmptyableList || kind == encoding.NullAndEmptyList && lower && r.owner[level-1] == layer
		if empty {
			r.out.WriteString("[]")
		} else {
			r.out.WriteByte('~')
		}
		if r.rank[layer] == 0 {
			r.slot++
		}
		return
	}
	if !isList(kind) {
		if layer > 0 {
			r.render(layer-1, lo, hi)
			return
		}
		r.value()
		return
	}
	r.out.WriteByte('[')
	for at := lo; at < hi; {
		end := at + 1
		for end < hi && r.rep(end) < r.rank[layer]-1 {
			end++
		}
		if at > lo {
			r.out.WriteByte(',')
		}
		r.render(layer-1, at, end)
		at = end
	}
	r.out.WriteByte(']')
}

func (r *rowRenderer) value() {
	v := r.b.Values
	i := r.slot
	r.slot++
	if r.t.Kind == encoding.Bytes {
		r.out.WriteString(hex.EncodeToString(v.Data[v.Offsets[i]:v.Offsets[i+1]]))
		return
	}
	w := r.t.Width()
	raw := v.Fixed[i*w : (i+1)*w]
	if r.t.Kind == encoding.Vector && v.ItemValid != nil {
		n := r.t.Items()
		raw = raw[:w:w]
		text, _ := vectorText(r.t.Dims, raw, v.ItemValid[i*n:(i+1)*n])
		r.out.WriteString(text)
		return
	}
	r.out.WriteString(hex.EncodeToString(raw))
}

// vectorText is plain hexadecimal, or `(x,n)` lists as soon as an item is null.
func vectorText(dims []int, raw, valid []byte) (text string, hasNull bool) {
	parts := make([]string, dims[0])
	size, items := len(raw)/dims[0], len(valid)/dims[0]
	for i := range parts {
		if len(dims) > 1 {
			var null bool
			parts[i], null = vectorText(dims[1:], raw[i*size:(i+1)*size], valid[i*items:(i+1)*items])
			hasNull = hasNull || null
			continue
		}
		parts[i] = hex.EncodeToString(raw[i*size : (i+1)*size])
		if valid[i] == 0 {
			parts[i], hasNull = "n", true
		}
	}
	if hasNull {
		return "(" + strings.Join(parts, ",") + ")", true
	}
	return strings.Join(parts, ""), false
}

func isList(l encoding.Layer) bool { return l != encoding.AllValidItem && l != encoding.NullableItem }

// levelsOf is the number of definition levels that a layer takes.
func levelsOf(l encoding.Layer) int {
	switch l {
	case encoding.NullableItem, encoding.NullableList, encoding.EmptyableList:
		return 1
	case encoding.NullAndEmptyList:
		return 2
	case encoding.AllValidItem, encoding.AllValidList:
	}
	return 0
}
