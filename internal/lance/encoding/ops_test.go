package encoding_test

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
)

// column is a drawn column: its type, its nest of layers and where its values come from.
type column struct {
	typ   encoding.Type
	nest  string
	shape encodingtest.Shape
	r     *rand.Rand
}

func drawColumn(t *rapid.T) column {
	return column{
		typ:   encodingtest.Types()[rapid.SampledFrom([]string{"bool", "int64", "fixed24", "utf8", "large_binary", "vector3", "matrix"}).Draw(t, "type")],
		nest:  rapid.SampledFrom(encodingtest.Nests()).Draw(t, "nest"),
		shape: rapid.SampledFrom([]encodingtest.Shape{encodingtest.Random, encodingtest.Few, encodingtest.Constant}).Draw(t, "shape"),
		r:     rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
	}
}

func (c column) block(rows int) *encoding.Block {
	return encodingtest.Nested(c.typ, c.nest, c.shape, rows, c.r)
}

func (c column) lines(t testing.TB, b *encoding.Block) []string {
	t.Helper()
	if b.Rows == 0 {
		return nil
	}
	lines := strings.SplitAfter(encodingtest.RowText(t, c.typ, b), "\n")
	require.Len(t, lines, b.Rows+1)
	return lines[:b.Rows]
}

func (c column) hash(blocks ...*encoding.Block) uint64 {
	h := encoding.NewHasher(c.typ)
	for _, b := range blocks {
		h.Add(b)
	}
	return h.Sum()
}

func TestDropKeepsTheOthers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := drawColumn(rt)
		b := c.block(rapid.IntRange(0, 30).Draw(rt, "rows"))
		dead := rapid.SliceOfN(rapid.Bool(), b.Rows, b.Rows).Draw(rt, "dead")
		var want []string
		for i, line := range c.lines(t, b) {
			if !dead[i] {
				want = append(want, line)
			}
		}
		asked := 0
		got, err := encoding.Drop(c.typ, b, func(row int) bool {
			require.Equal(rt, asked, row)
			asked++
			return dead[row]
		})
		require.NoError(rt, err)
		require.Equal(rt, len(want), got.Rows)
		require.Equal(rt, want, c.lines(t, got), encodingtest.Describe(b))
	})
}

func TestBuilderJoinsAndCuts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := drawColumn(rt)
		builder := encoding.NewBuilder(c.typ, len(c.nest))
		var want, got []string
		var in, out []*encoding.Block
		take := func(n int) {
			b, err := builder.Take(n)
			require.NoError(rt, err)
			require.Equal(rt, n, b.Rows)
			require.Len(rt, b.Layers, len(c.nest))
			out = append(out, b)
		}
		for range rapid.IntRange(1, 6).Draw(rt, "blocks") {
			b := c.block(rapid.IntRange(0, 9).Draw(rt, "rows"))
			in = append(in, b)
			want = append(want, c.lines(t, b)...)
			require.NoError(rt, builder.Append(b))
			if rapid.Bool().Draw(rt, "cut") {
				take(rapid.IntRange(0, builder.Rows()).Draw(rt, "take"))
			}
		}
		take(builder.Rows())
		require.Zero(rt, builder.Rows())
		for _, b := range out { // after all of them, so that shared memory would show
			got = append(got, c.lines(t, b)...)
		}
		require.Equal(rt, want, got)
		require.Equal(rt, c.hash(in...), c.hash(out...))
	})
}

// TestHashTellsRowsApart compares the hash with the rows as text: rows that differ in it have another hash. The text does not say
// which of two layers is null, so that equal text means equal hashes only where but one can be.
func TestHashTellsRowsApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := drawColumn(rt)
		rows := rapid.IntRange(0, 4).Draw(rt, "rows")
		a, b := c.block(rows), c.block(rapid.IntRange(rows, rows+1).Draw(rt, "others"))
		same := slices.Equal(c.lines(t, a), c.lines(t, b))
		if same && strings.Count(c.nest, "i") > 1 {
			return
		}
		require.Equal(rt, same, c.hash(a) == c.hash(b), "%s\n%s", encodingtest.Describe(a), encodingtest.Describe(b))
	})
}

func TestHashOfOneChange(t *testing.T) {
	t.Parallel()
	text := func(values ...string) *encoding.Block {
		b := &encoding.Block{Rows: len(values), Layers: []encoding.Layer{encoding.NullableItem}}
		b.Values = encoding.Values{N: len(values), Offsets: []int{0}}
		for _, v := range values {
			var def uint16
			if v == "null" {
				def, v = 1, ""
			}
			b.Def = append(b.Def, def)
			b.Values.Data = append(b.Values.Data, v...)
			b.Values.Offsets = append(b.Values.Offsets, len(b.Values.Data))
		}
		return b
	}
	typ := encoding.Type{Kind: encoding.Bytes, OffsetBits: 32}
	hashes := map[uint64]string{}
	for _, values := range [][]string{
		{},
		{""},
		{"null"},
		{"", ""},
		{"", "null"},
		{"null", ""},
		{"a", "b"},
		{"ab", ""},
		{"", "ab"},
		{"b", "a"},
		{"a", "null", "b"},
		{"a", "b", "null"},
		{"null", "a", "b"},
		{"a", "", "b"},
		{"null", "null"},
		{"null", "null", "null"},
	} {
		h := encoding.NewHasher(typ)
		h.Add(text(values...))
		require.NotContains(t, hashes, h.Sum(), "%q", values)
		hashes[h.Sum()] = strings.Join(values, ",")
	}
	filler := text("a", "null")
	filler.Values = encoding.Values{N: 2, Offsets: []int{0, 1, 9}, Data: []byte("a-filler-")}
	h, plain := encoding.NewHasher(typ), encoding.NewHasher(typ)
	h.Add(filler)
	plain.Add(text("a", "null"))
	require.Equal(t, plain.Sum(), h.Sum(), "bytes under a null count")
}

func TestItemValidityAppearsAndCounts(t *testing.T) {
	t.Parallel()
	typ := encoding.Type{Kind: encoding.Vector, Bits: 8, Dims: []int{2}}
	layers := []encoding.Layer{encoding.AllValidItem}
	whole := &encoding.Block{Rows: 1, Layers: layers, Values: encoding.Values{N: 1, Fixed: []byte{1, 0}}}
	holed := &encoding.Block{Rows: 1, Layers: layers, Values: encoding.Values{N: 1, Fixed: []byte{1, 0}, ItemValid: []byte{1, 0}}}
	builder := encoding.NewBuilder(typ, 1)
	for _, b := range []*encoding.Block{whole, holed, whole} {
		require.NoError(t, builder.Append(b))
	}
	require.Equal(t, 3*2*2, builder.Bytes())
	got, err := builder.Take(3)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 1, 1, 0, 1, 1}, got.Values.ItemValid)
	a, b := encoding.NewHasher(typ), encoding.NewHasher(typ)
	a.Add(whole)
	b.Add(holed)
	require.NotEqual(t, a.Sum(), b.Sum())
	_, err = builder.Take(1)
	require.ErrorIs(t, err, lance.ErrCorrupt)
}

func TestOtherLayersAreRefused(t *testing.T) {
	t.Parallel()
	typ := encoding.Type{Bits: 8}
	list := &encoding.Block{Rows: 1, Layers: []encoding.Layer{encoding.AllValidItem, encoding.AllValidList}, Rep: []uint16{1}, Values: encoding.Values{N: 1, Fixed: []byte{1}}}
	structs := &encoding.Block{Rows: 1, Layers: []encoding.Layer{encoding.AllValidItem, encoding.AllValidItem}, Values: encoding.Values{N: 1, Fixed: []byte{1}}}
	builder := encoding.NewBuilder(typ, 2)
	require.NoError(t, builder.Append(list))
	require.ErrorIs(t, builder.Append(structs), lance.ErrCorrupt)
	require.ErrorIs(t, encoding.NewBuilder(typ, 1).Append(list), lance.ErrCorrupt)
	broken := *list
	broken.Rep = nil
	require.ErrorIs(t, builder.Append(&broken), lance.ErrCorrupt)
	require.Equal(t, 1, builder.Rows())
}

func TestNullsAreNull(t *testing.T) {
	t.Parallel()
	for name, typ := range encodingtest.Types() {
		for _, layers := range [][]encoding.Layer{
			{encoding.AllValidItem},
			{encoding.AllValidItem, encoding.AllValidItem},
			{encoding.AllValidItem, encoding.AllValidList},
			{encoding.AllValidItem, encoding.AllValidList, encoding.AllValidItem},
			{encoding.AllValidItem, encoding.AllValidList, encoding.AllValidList},
		} {
			nulls := encoding.Nulls(typ, layers, 3)
			require.Equal(t, "~\n~\n~\n", encodingtest.RowText(t, typ, nulls), "%s %v", name, layers)
			builder := encoding.NewBuilder(typ, len(layers))
			require.NoError(t, builder.Append(nulls), "%s %v", name, layers)
			require.Equal(t, 3, builder.Rows())
		}
	}
}

func BenchmarkRewriteSteps(b *testing.B) {
	for _, name := range []string{"int64", "utf8", "vector384"} {
		typ := encodingtest.Types()[name]
		block := encodingtest.Block(typ, encodingtest.Random, 9000, 0.1, false, 1)
		size := int64(encodingtest.Size(typ, block))
		b.Run("drop every tenth/"+name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if _, err := encoding.Drop(typ, block, func(row int) bool { return row%10 == 0 }); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("hash/"+name, func(b *testing.B) {
			b.SetBytes(size)
			h := encoding.NewHasher(typ)
			for b.Loop() {
				h.Add(block)
			}
		})
		b.Run("join/"+name, func(b *testing.B) {
			b.SetBytes(size)
			builder := encoding.NewBuilder(typ, 1)
			for b.Loop() {
				if err := builder.Append(block); err != nil {
					b.Fatal(err)
				}
				if builder.Bytes() > 8<<20 {
					if _, err := builder.Take(builder.Rows()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
