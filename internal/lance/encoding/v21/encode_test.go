package v21_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/encoding/v21"
)

func TestEncodedPagesDecodeToTheSameRows(t *testing.T) {
	t.Parallel()
	for name, typ := range encodingtest.Types() {
		for _, shape := range encodingtest.Shapes() {
			t.Run(fmt.Sprintf("%s/%s", name, shape), func(t *testing.T) {
				t.Parallel()
				for _, rows := range []int{1, 2, 3, 7, 64, 1000, 1025, 9000} {
					if rows*typ.Width() > 1<<20 || shape.Heavy() && (typ.Kind != encoding.Bytes || rows > 1025) {
						continue
					}
					for _, nulls := range []float64{0, 0.1, 0.9, 1} {
						if rows == 9000 && nulls != 0.1 {
							continue
						}
						roundTrip(t, typ, encodingtest.Block(typ, shape, rows, nulls, rows%2 == 1, uint64(rows)))
					}
				}
			})
		}
	}
}

func roundTrip(t testing.TB, typ encoding.Type, b *encoding.Block) {
	t.Helper()
	for minor := 1; minor <= 2; minor++ {
		layout, buffers, err := v21.Encode(typ, b, minor)
		require.NoError(t, err)
		got, err := v21.Decode(typ, layout, buffers, b.Rows, minor)
		require.NoError(t, err, "2.%d: %v", minor, layout)
		encodingtest.Equal(t, typ, b, got)
	}
}

// TestNestedColumnsSurvive covers definition levels of structs, repetition levels, empty and null lists.
func TestNestedColumnsSurvive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		typ := encodingtest.Types()[rapid.SampledFrom(encodingtest.Names()).Draw(rt, "type")]
		nest := rapid.SampledFrom(encodingtest.Nests()).Draw(rt, "nest")
		shape := rapid.SampledFrom(encodingtest.Shapes()).Draw(rt, "shape")
		rows := rapid.IntRange(1, max(2, 200_000/max(typ.Width(), 100))).Draw(rt, "rows")
		if shape.Heavy() {
			rows = min(rows, 100)
		}
		b := encodingtest.Nested(typ, nest, shape, rows, rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)))
		want := encodingtest.RowText(t, typ, b)
		for minor := 1; minor <= 2; minor++ {
			layout, buffers, err := v21.Encode(typ, b, minor)
			require.NoError(rt, err)
			got, err := v21.Decode(typ, layout, buffers, b.Rows, minor)
			require.NoError(rt, err, "2.%d", minor)
			require.Equal(rt, want, encodingtest.RowText(t, typ, got), "2.%d", minor)
		}
	})
}

// TestLongListsSurvive covers lists that cross chunks, and more empty lists before a value than a chunk can count.
func TestLongListsSurvive(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]struct {
		empty, items, rows int
		mini               bool
	}{
		"lists over many chunks":             {0, 30_000, 3, true},
		"many short lists":                   {2, 3, 5000, true},
		"some empty lists before each value": {40, 1, 3000, true},
		"more empty lists than a chunk has":  {70_000, 2, 1, false},
	} {
		for _, typ := range []encoding.Type{{Bits: 64}, {Bits: 1}, {Kind: encoding.Bytes, OffsetBits: 32}} {
			b := encodingtest.Lists(typ, list.empty, list.items, list.rows)
			want := encodingtest.RowText(t, typ, b)
			for minor := 1; minor <= 2; minor++ {
				layout, buffers, err := v21.Encode(typ, b, minor)
				require.NoError(t, err, name)
				require.Equal(t, list.mini, layout.GetMiniBlockLayout() != nil, "%s, %v, 2.%d", name, typ, minor)
				got, err := v21.Decode(typ, layout, buffers, b.Rows, minor)
				require.NoError(t, err, "%s, %v, 2.%d", name, typ, minor)
				require.Equal(t, want, encodingtest.RowText(t, typ, got), "%s, %v, 2.%d", name, typ, minor)
			}
		}
	}
}

// TestManyRows is one page of a size that rewrites make.
func TestManyRows(t *testing.T) {
	t.Parallel()
	for name, typ := range encodingtest.Types() {
		if typ.Width() > 16 {
			continue
		}
		for _, shape := range []encodingtest.Shape{encodingtest.Mixed, encodingtest.Few} {
			t.Run(fmt.Sprintf("%s/%s", name, shape), func(t *testing.T) {
				t.Parallel()
				b := encodingtest.Block(typ, shape, 100_000, 0.1, false, 1)
				roundTrip(t, typ, b)
				for minor := 1; minor <= 2; minor++ {
					layout, _, err := v21.Encode(typ, b, minor)
					require.NoError(t, err)
					require.NotNil(t, layout.GetMiniBlockLayout())
				}
			})
		}
	}
}

func TestBlocksThatDisagreeWithThemselvesAreRefused(t *testing.T) {
	t.Parallel()
	typ := encoding.Type{Bits: 32}
	whole := encodingtest.Block(typ, encodingtest.Random, 10, 0, false, 1)
	for name, damage := range map[string]func(b *encoding.Block){
		"no rows":        func(b *encoding.Block) { b.Rows = 0 },
		"too few values": func(b *encoding.Block) { b.Values.N = 9 },
		"too few bytes":  func(b *encoding.Block) { b.Values.Fixed = b.Values.Fixed[:39] },
		"level too high": func(b *encoding.Block) { b.Def = []uint16{1, 0, 0, 0, 0, 0, 0, 0, 0, 0} },
		"no layers":      func(b *encoding.Block) { b.Layers = nil },
	} {
		b := *whole
		damage(&b)
		_, _, err := v21.Encode(typ, &b, 2)
		require.Error(t, err, name)
	}
	_, _, err := v21.Encode(typ, whole, 3)
	require.Error(t, err)
}

// TestPagesAreSmall keeps the encoder from falling back to plain values where it pays not to.
func TestPagesAreSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		typ   encoding.Type
		shape encodingtest.Shape
		share float64 // of the plain size, at most
	}{
		{"small numbers are bit-packed", encoding.Type{Bits: 64}, encodingtest.Small, 0.16},
		{"runs are run-length encoded or packed", encoding.Type{Bits: 64}, encodingtest.Runs, 0.18},
		{"few strings get a dictionary", encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}, encodingtest.Few, 0.05},
		{"words are compressed", encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}, encodingtest.Words, 0.35},
		{"a stretch of longer text does not make all chunks small", encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}, encodingtest.Mixed, 0.62},
		{"wide text is compressed one by one", encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}, encodingtest.Wide, 0.6},
		{"long text is compressed in chunks", encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}, encodingtest.Long, 0.4},
		{"random numbers cost nothing more", encoding.Type{Bits: 64}, encodingtest.Random, 1.01},
	} {
		b := encodingtest.Block(c.typ, c.shape, 9000, 0, false, 3)
		for minor := 1; minor <= 2; minor++ {
			_, buffers, err := v21.Encode(c.typ, b, minor)
			require.NoError(t, err)
			n := 0
			for _, buffer := range buffers {
				n += len(buffer)
			}
			require.LessOrEqual(t, float64(n), c.share*float64(encodingtest.Size(c.typ, b)), "%s, 2.%d", c.name, minor)
		}
	}
}

// TestDictionaryColumns: each page has a dictionary, with indices of the keys' width, and no more items than keys.
func TestDictionaryColumns(t *testing.T) {
	t.Parallel()
	text := encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true, KeyBits: 8, MaxKeys: 128}
	number := encoding.Type{Bits: 64, KeyBits: 32, MaxKeys: 1 << 31}
	for name, typ := range map[string]encoding.Type{"text": text, "number": number} {
		for _, shape := range []encodingtest.Shape{encodingtest.Few, encodingtest.Constant, encodingtest.Runs} {
			for _, rows := range []int{1, 2, 300, 9000} {
				for _, nulls := range []float64{0, 0.3, 1} {
					b := encodingtest.Block(typ, shape, rows, nulls, false, uint64(rows))
					for minor := 1; minor <= 2; minor++ {
						layout, buffers, err := v21.Encode(typ, b, minor)
						require.NoError(t, err, "%s %s", name, shape)
						if nulls < 1 && encodingtest.RowText(t, typ, b) != encodingtest.RowText(t, typ, encoding.Nulls(typ, b.Layers[:1], rows)) {
							require.NotNil(t, layout.GetMiniBlockLayout().GetDictionary(), "%s %s: %v", name, shape, layout)
						}
						got, err := v21.Decode(typ, layout, buffers, rows, minor)
						require.NoError(t, err)
						require.Equal(t, encodingtest.RowText(t, typ, b), encodingtest.RowText(t, typ, got))
					}
				}
			}
		}
	}
	_, _, err := v21.Encode(text, encodingtest.Block(text, encodingtest.Random, 1000, 0, false, 1), 2)
	require.ErrorIs(t, err, encoding.ErrKeys)
}
