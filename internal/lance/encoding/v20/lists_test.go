package v20_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/encoding/v20"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

// nest draws the layers of a column, innermost first.
func nest(r *rapid.T) string {
	return "i" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"s", "l"}), 0, 4).Draw(r, "layers"), "")
}

// join is what a reader does with columns of lists and one of values: of rows [from, to), where all lists stand in one page each.
func join(t require.TestingT, typ encoding.Type, layers []encoding.Layer, lists []v20.Lists, values *encoding.Block, from, to int) *encoding.Block {
	levels := v20.NewLevels(layers, uint64(from), uint64(to))
	for _, l := range lists {
		require.NoError(t, levels.AddLists(1<<20, func(at uint64) (v20.Span, bool, error) {
			s := v20.Span{To: l.Ends[at]}
			if at > 0 {
				s.From = l.Ends[at-1]
			}
			return s, l.Null[at], nil
		}))
	}
	builder := encoding.NewBuilder(typ, 1)
	for _, s := range levels.There() {
		require.NoError(t, builder.AppendRows(values, int(s.From), int(s.To)))
	}
	there, err := builder.Take(builder.Rows())
	require.NoError(t, err)
	b, err := levels.Block(there)
	require.NoError(t, err)
	return b
}

// TestSplitBlocksJoinToTheSameRows: any nesting, written as pages and read again, whole and in part; also where null lists own
// items.
func TestSplitBlocksJoinToTheSameRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom(encodingtest.Names()).Draw(r, "type")
		typ := encodingtest.Types()[name]
		rows := rapid.IntRange(1, 20).Draw(r, "rows")
		b := encodingtest.Nested(typ, nest(r), encodingtest.Small, rows, rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1)))
		lists, values, err := v20.Split(b)
		require.NoError(r, err)
		for i := range lists {
			enc, buffers := v20.EncodeLists(lists[i])
			items, err := v20.Items(enc)
			require.NoError(r, err)
			require.Equal(r, lists[i].Items(), items)
			again, err := v20.DecodeLists(enc, buffers, len(lists[i].Ends))
			require.NoError(r, err)
			require.True(r, slices.Equal(lists[i].Ends, again.Ends) && slices.Equal(lists[i].Null, again.Null))
		}
		enc, buffers, err := v20.Encode(typ, values)
		require.NoError(r, err)
		values, err = v20.Decode(typ, enc, buffers, values.Rows)
		require.NoError(r, err)
		if len(lists) > 0 && rapid.Bool().Draw(r, "null lists own items") {
			lists[len(lists)-1], values = fill(r, typ, lists[len(lists)-1], values)
		}
		from := rapid.IntRange(0, rows).Draw(r, "from")
		to := rapid.IntRange(from, rows).Draw(r, "to")
		want, err := encoding.Drop(typ, b, func(row int) bool { return row < from || row >= to })
		require.NoError(r, err)
		require.Equal(r, hash(typ, want), hash(typ, join(r, typ, b.Layers, lists, values, from, to)))
	})
}

func hash(t encoding.Type, b *encoding.Block) uint64 {
	h := encoding.NewHasher(t)
	h.Add(b)
	return h.Sum()
}

// fill gives each null list an item.
func fill(r *rapid.T, t encoding.Type, lists v20.Lists, values *encoding.Block) (v20.Lists, *encoding.Block) {
	filler := encoding.Nulls(t, []encoding.Layer{encoding.NullableItem}, 1)
	builder := encoding.NewBuilder(t, 1)
	out := v20.Lists{Null: lists.Null}
	last, more := 0, uint64(0)
	for i, end := range lists.Ends {
		require.NoError(r, builder.AppendRows(values, last, int(end)))
		last = int(end)
		if lists.Null[i] {
			require.NoError(r, builder.Append(filler))
			more++
		}
		out.Ends = append(out.Ends, end+more)
	}
	all, err := builder.Take(builder.Rows())
	require.NoError(r, err)
	return out, all
}

func TestNullStructsAreRefused(t *testing.T) {
	t.Parallel()
	b := &encoding.Block{
		Rows: 2, Layers: []encoding.Layer{encoding.NullableItem, encoding.NullableItem}, Def: []uint16{1, 2},
		Values: encoding.Values{N: 2, Fixed: make([]byte, 2)},
	}
	_, _, err := v20.Split(b)
	require.ErrorIs(t, err, lance.ErrUnsupported)
	require.ErrorContains(t, err, "null struct")
	b.Def[1] = 0
	_, values, err := v20.Split(b)
	require.NoError(t, err)
	require.Equal(t, []uint16{1, 0}, values.Def)
	void := encoding.Nulls(encoding.Type{Kind: encoding.Void}, []encoding.Layer{encoding.NullableItem}, 1)
	_, _, err = v20.Encode(encoding.Type{Kind: encoding.Void}, void)
	require.ErrorContains(t, err, "null struct")
}

func TestDamagedListsAreCorrupt(t *testing.T) {
	t.Parallel()
	enc, buffers := v20.EncodeLists(v20.Lists{Ends: []uint64{2, 2, 5}, Null: []bool{false, true, false}})
	for name, damage := range map[string]func(l *enc20pb.List, buffer []byte) []byte{
		"cut":           func(_ *enc20pb.List, b []byte) []byte { return b[:16] },
		"backwards":     func(_ *enc20pb.List, b []byte) []byte { b[8] = 1; return b },
		"too far":       func(_ *enc20pb.List, b []byte) []byte { b[23] = 1; return b },
		"too few items": func(l *enc20pb.List, b []byte) []byte { l.NumItems = 4; return b },
		"unowned items": func(_ *enc20pb.List, b []byte) []byte { b[16] = 4; return b },
		"no adjustment": func(l *enc20pb.List, b []byte) []byte { l.NullOffsetAdjustment = 0; return b },
	} {
		damaged := &enc20pb.List{Offsets: enc.GetList().GetOffsets(), NullOffsetAdjustment: 6, NumItems: 5}
		bytes := damage(damaged, slices.Clone(buffers[0]))
		_, err := v20.DecodeLists(&enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_List{List: damaged}}, [][]byte{bytes}, 3)
		require.ErrorIs(t, err, lance.ErrCorrupt, name)
	}
	_, err := v20.Items(v20.Header())
	require.ErrorIs(t, err, lance.ErrUnsupported)
}

// TestDictionaryColumns: of every key and value type, with nulls and without.
func TestDictionaryColumns(t *testing.T) {
	t.Parallel()
	for name, typ := range encodingtest.Types() {
		if typ.Kind == encoding.Vector || typ.Bits == 1 {
			continue
		}
		for _, bits := range []int{8, 16, 32, 64} {
			typ.KeyBits, typ.MaxKeys = bits, 127
			for _, rows := range []int{0, 1, 100} {
				for _, nulls := range []float64{0, 0.3, 1} {
					b := encodingtest.Block(typ, encodingtest.Few, rows, nulls, false, 1)
					enc, buffers, err := v20.Encode(typ, b)
					require.NoError(t, err, name)
					require.Len(t, buffers[0], rows*bits/8)
					got, err := v20.Decode(typ, enc, buffers, rows)
					require.NoError(t, err, name)
					require.Equal(t, hash(typ, b), hash(typ, got), name)
				}
			}
		}
	}
	typ := encoding.Type{Bits: 64, KeyBits: 8, MaxKeys: 50}
	b := encodingtest.Block(typ, encodingtest.Random, 50, 0, false, 1)
	_, _, err := v20.Encode(typ, b)
	require.NoError(t, err)
	b.Layers[0], b.Def = encoding.NullableItem, make([]uint16, 51)
	b.Rows, b.Values.N, b.Values.Fixed, b.Def[50] = 51, 51, append(b.Values.Fixed, make([]byte, 8)...), 1
	_, _, err = v20.Encode(typ, b)
	require.ErrorIs(t, err, encoding.ErrKeys, "the null item needs a key too")
}
