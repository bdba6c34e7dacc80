// Package encodingtest makes blocks of values for the tests of encodings and compares them.
package encodingtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/encoding"
)

// Shape is what values look like.
type Shape string

// Shapes of values.
const (
	Random   Shape = "random"
	Small    Shape = "small"    // numbers below 500, short text
	Few      Shape = "few"      // four distinct values
	Runs     Shape = "runs"     // the same value many times
	Constant Shape = "constant" // one value
	Wide     Shape = "wide"     // text of some hundred bytes, some of 40 KiB
	Long     Shape = "long"     // text of up to some thousand bytes
	Words    Shape = "words"    // text of words
	Mixed    Shape = "mixed"    // long runs, then random numbers; short text, then longer
)

// Heavy is true where a row of text takes much memory.
func (s Shape) Heavy() bool { return s == Wide || s == Long }

// Shapes are all of them.
func Shapes() []Shape { return []Shape{Random, Small, Few, Runs, Constant, Wide, Long, Words, Mixed} }

// Types are types of every kind and width.
func Types() map[string]encoding.Type {
	return map[string]encoding.Type{
		"bool": {Bits: 1}, "int8": {Bits: 8}, "int16": {Bits: 16}, "int32": {Bits: 32}, "int64": {Bits: 64}, "decimal128": {Bits: 128}, "decimal256": {Bits: 256},
		"fixed24": {Bits: 24}, "fixed2400": {Bits: 2400},
		"utf8": {Kind: encoding.Bytes, OffsetBits: 32, Text: true}, "large_utf8": {Kind: encoding.Bytes, OffsetBits: 64, Text: true},
		"binary": {Kind: encoding.Bytes, OffsetBits: 32}, "large_binary": {Kind: encoding.Bytes, OffsetBits: 64},
		"vector3": {Kind: encoding.Vector, Bits: 32, Dims: []int{3}}, "vector384": {Kind: encoding.Vector, Bits: 32, Dims: []int{384}},
		"vector16": {Kind: encoding.Vector, Bits: 16, Dims: []int{5}}, "matrix": {Kind: encoding.Vector, Bits: 64, Dims: []int{2, 3}},
	}
}

// Block makes rows of which the given share is null. With itemNulls some items of vectors are null.
func Block(t encoding.Type, shape Shape, rows int, nulls float64, itemNulls bool, seed uint64) *encoding.Block {
	r := rand.New(rand.NewPCG(seed, 1))
	b := &encoding.Block{Rows: rows, Layers: []encoding.Layer{encoding.AllValidItem}, Values: encoding.Values{N: rows}}
	if nulls > 0 {
		b.Layers[0] = encoding.NullableItem
		b.Def = make([]uint16, rows)
		for i := range b.Def {
			if r.Float64() < nulls {
				b.Def[i] = 1
			}
		}
	}
	v := &b.Values
	if t.Kind == encoding.Bytes {
		v.Offsets = []int{0}
	}
	for i := range rows {
		null := b.Def != nil && b.Def[i] == 1
		if t.Kind == encoding.Bytes {
			if !null {
				v.Data = append(v.Data, text(r, shape, i)...)
			}
			v.Offsets = append(v.Offsets, len(v.Data))
			continue
		}
		for range t.Items() {
			item := number(r, shape, i, max(1, t.Bits/8))
			if null {
				clear(item)
			}
			if t.Bits == 1 {
				item[0] &= 1
			}
			v.Fixed = append(v.Fixed, item...)
		}
	}
	if t.Kind == encoding.Vector && itemNulls {
		nullItems(r, t, b)
	}
	return b
}

func nullItems(r *rand.Rand, t encoding.Type, b *encoding.Block) {
	width, items := t.Bits/8, t.Items()
	some := false
	valid := make([]byte, b.Rows*items)
	for i := range valid {
		valid[i] = 1
		if r.IntN(4) == 0 && (b.Def == nil || b.Def[i/items] == 0) {
			valid[i], some = 0, true
			clear(b.Values.Fixed[i*width : (i+1)*width])
		}
	}
	if some {
		b.Values.ItemValid = valid
	}
}

func number(r *rand.Rand, shape Shape, row, width int) []byte {
	out := make([]byte, max(width, 8))
	var v uint64
	if shape == Mixed {
		shape = Random
		if row < 40000 && row%9000 < 7000 {
			shape = Runs
		}
	}
	switch shape {
	case Random, Wide, Long, Words, Mixed:
		for i := 0; i+8 <= len(out); i += 8 {
			binary.LittleEndian.PutUint64(out[i:], r.Uint64())
		}
		return out[:width]
	case Small:
		v = r.Uint64N(500)
	case Few:
		v = r.Uint64N(4) * 0x0101010101
	case Runs:
		v = uint64(row/300) * 77
	case Constant:
		v = 42
	}
	binary.LittleEndian.PutUint64(out, v)
	return out[:width]
}

func text(r *rand.Rand, shape Shape, row int) []byte {
	switch shape {
	case Random:
		out := make([]byte, r.IntN(40))
		for i := range out {
			out[i] = byte(r.IntN(256))
		}
		return out
	case Small:
		return fmt.Appendf(nil, "%d", r.IntN(50000))
	case Few:
		return fmt.Appendf(nil, "state-%d", r.IntN(4))
	case Runs:
		return fmt.Appendf(nil, "run-%d", row/300)
	case Constant:
		return []byte("constant")
	case Mixed:
		if row%1000 < 900 {
			return fmt.Appendf(nil, "%x", r.Uint32())
		}
		return bytes.Repeat(fmt.Appendf(nil, "%08x", r.Uint32()), 1+r.IntN(30))
	case Wide, Long:
		n := 200 + r.IntN(400)
		if shape == Wide && r.IntN(200) == 0 {
			n = 40 << 10
		}
		if shape == Long {
			n = r.IntN(3000)
		}
		out := make([]byte, n)
		for i := range out {
			out[i] = 'a' + byte(r.IntN(4))
		}
		return out
	case Words:
	}
	var out []byte
	for range 6 {
		out = append(out, []string{"alpha ", "beta ", "gamma ", "delta ", "epsilon "}[r.IntN(5)]...)
	}
	return out
}

// Equal fails unless two blocks hold the same rows.
func Equal(t testing.TB, typ encoding.Type, want, got *encoding.Block) {
	t.Helper()
	require.Equal(t, want.Rows, got.Rows)
	require.Equal(t, want.Values.N, got.Values.N)
	require.Equal(t, levels(want), levels(got))
	if typ.Kind == encoding.Bytes {
		require.Equal(t, want.Values.Offsets, got.Values.Offsets)
		require.Equal(t, string(want.Values.Data), string(got.Values.Data))
		return
	}
	require.Equal(t, string(want.Values.Fixed), string(got.Values.Fixed))
	require.Equal(t, want.Values.ItemValid, got.Values.ItemValid)
}

// levels are definition levels, nil where all are 0.
func levels(b *encoding.Block) []uint16 {
	for _, d := range b.Def {
		if d != 0 {
			return b.Def
		}
	}
	return nil
}

// Size is the bytes that the values of a block take as they are.
func Size(t encoding.Type, b *encoding.Block) int {
	if t.Kind == encoding.Bytes {
		return len(b.Values.Data) + b.Rows*t.OffsetBits/8
	}
	return int(math.Ceil(float64(b.Rows*t.Items()*t.Bits) / 8))
}
