package bitpack_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding/bitpack"
)

// reference packs bit by bit, as the format's description says.
func reference(src []byte, wordBits, width int) []byte {
	out := make([]byte, bitpack.Size(width))
	order := []int{0, 4, 2, 6, 1, 5, 3, 7}
	lanes := bitpack.Group / wordBits
	for lane := range lanes {
		for row := range wordBits {
			index := order[row/8]*16 + row%8*128 + lane
			for bit := range width {
				if at := index*wordBits + bit; src[at/8]>>(at%8)&1 == 0 {
					continue
				}
				position := row*width + bit // in the lane's bit string
				at := (lanes*(position/wordBits)+lane)*wordBits + position%wordBits
				out[at/8] |= 1 << (at % 8)
			}
		}
	}
	return out
}

func TestGroupsOfEveryWidth(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for _, wordBits := range []int{8, 16, 32, 64} {
		size := wordBits / 8
		for width := range wordBits + 1 {
			src := make([]byte, bitpack.Group*size)
			for i := range bitpack.Group {
				var v uint64
				if width > 0 {
					v = r.Uint64() >> (64 - width)
				}
				for j := range size {
					src[i*size+j] = byte(v >> (8 * j))
				}
			}
			require.LessOrEqual(t, bitpack.Width(src, wordBits), width)
			packed := make([]byte, bitpack.Size(width))
			require.NoError(t, bitpack.Pack(packed, src, wordBits, width))
			require.Equal(t, reference(src, wordBits, width), packed, "%d bits in %d", width, wordBits)
			plain := make([]byte, len(src))
			require.NoError(t, bitpack.Unpack(plain, packed, wordBits, width))
			require.Equal(t, src, plain, "%d bits in %d", width, wordBits)
		}
	}
}

func TestWidthOfTheLargest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []byte
		bits   int
		want   int
	}{
		{nil, 64, 0},
		{[]byte{0, 0, 0}, 8, 0},
		{[]byte{1, 2, 4, 0, 0, 0, 0, 0, 128}, 8, 8},
		{[]byte{0, 1, 3, 0}, 16, 9},
		{[]byte{255, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0, 0}, 32, 31},
		{[]byte{0, 0, 0, 0, 0, 0, 0, 128}, 64, 64},
	} {
		require.Equal(t, c.want, bitpack.Width(c.values, c.bits), "%v", c)
	}
}

func TestSizesThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	plain := make([]byte, 2*bitpack.Group)
	require.ErrorIs(t, bitpack.Unpack(plain, make([]byte, bitpack.Size(17)), 16, 17), lance.ErrCorrupt)
	require.ErrorIs(t, bitpack.Unpack(plain, make([]byte, bitpack.Size(3)-1), 16, 3), lance.ErrCorrupt)
	require.ErrorIs(t, bitpack.Unpack(plain[1:], make([]byte, bitpack.Size(3)), 16, 3), lance.ErrCorrupt)
	require.ErrorIs(t, bitpack.Unpack(plain, make([]byte, bitpack.Size(3)), 24, 3), lance.ErrUnsupported)
	require.ErrorIs(t, bitpack.Pack(make([]byte, 5), plain, 16, 3), lance.ErrCorrupt)
}

func BenchmarkUnpack(b *testing.B) {
	plain, packed := make([]byte, 8*bitpack.Group), make([]byte, bitpack.Size(17))
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		if err := bitpack.Unpack(plain, packed, 64, 17); err != nil {
			b.Fatal(err)
		}
	}
}
