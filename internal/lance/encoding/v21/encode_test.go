package v21_test

import (
	"fmt"
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
					if rows*typ.Width() > 4<<20 || shape == encodingtest.Wide && rows > 1025 {
						continue
					}
					for _, nulls := range []float64{0, 0.1, 0.9, 1} {
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

// TestListsSurvive covers repetition levels, empty and null lists, and lists that cross chunks.
func TestListsSurvive(t *testing.T) {
	t.Parallel()
	typ := encoding.Type{Bits: 64}
	rapid.Check(t, func(rt *rapid.T) {
		b := &encoding.Block{Layers: []encoding.Layer{encoding.NullableItem, encoding.NullAndEmptyList}}
		rows := rapid.IntRange(1, 40).Draw(rt, "rows")
		long := rapid.IntRange(0, 3000).Draw(rt, "long")
		for range rows {
			b.Rows++
			switch rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0: // null list
				b.Rep, b.Def = append(b.Rep, 1), append(b.Def, 2)
			case 1: // empty list
				b.Rep, b.Def = append(b.Rep, 1), append(b.Def, 3)
			default:
				for i := range rapid.IntRange(1, 1+long).Draw(rt, "items") {
					rep := uint16(0)
					if i == 0 {
						rep = 1
					}
					def := uint16(0)
					value := make([]byte, 8)
					if i%7 == 3 {
						def = 1
					} else {
						value[0], value[1] = byte(i), byte(i>>8)
					}
					b.Rep, b.Def = append(b.Rep, rep), append(b.Def, def)
					b.Values.Fixed = append(b.Values.Fixed, value...)
					b.Values.N++
				}
			}
		}
		for minor := 1; minor <= 2; minor++ {
			layout, buffers, err := v21.Encode(typ, b, minor)
			require.NoError(rt, err)
			got, err := v21.Decode(typ, layout, buffers, b.Rows, minor)
			require.NoError(rt, err, "2.%d: %v", minor, layout)
			require.Equal(rt, b.Rep, got.Rep)
			require.Equal(rt, b.Values.N, got.Values.N)
			require.Equal(rt, string(b.Values.Fixed), string(got.Values.Fixed))
		}
	})
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
		{"wide text is compressed or plain", encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}, encodingtest.Wide, 1.05},
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
