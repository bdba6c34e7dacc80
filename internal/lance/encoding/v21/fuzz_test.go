package v21

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// fuzzRoom is what a page may decode to in the fuzz test, beyond a multiple of its input.
const fuzzRoom = 1 << 20

// fuzzTypes are what a fuzzed page may be taken for.
func fuzzTypes() []encoding.Type {
	return []encoding.Type{
		{Bits: 1},
		{Bits: 8},
		{Bits: 16},
		{Bits: 32},
		{Bits: 64},
		{Bits: 128},
		{Kind: encoding.Bytes, OffsetBits: 32, Text: true},
		{Kind: encoding.Bytes, OffsetBits: 64},
		{Kind: encoding.Vector, Bits: 32, Dims: []int{4}},
		{Kind: encoding.Vector, Bits: 1, Dims: []int{11}},
		{Kind: encoding.Vector, Bits: 16, Dims: []int{3, 2}},
	}
}

// FuzzDecode takes pages apart into their layout and buffers. Whatever they are, decoding must not panic, must not take more
// memory than its limit, and what it gives must survive encoding.
func FuzzDecode(f *testing.F) {
	for i, typ := range fuzzTypes() {
		for _, c := range goldens(f) {
			if c.Rows > 1100 || !sameType(typ, c.Type) || len(c.Pages) != 1 {
				continue
			}
			f.Add(byte(i), byte(c.Minor), c.Rows, c.Pages[0].Layout, joinBuffers(c.Pages[0].Buffers))
		}
	}
	f.Fuzz(func(t *testing.T, kind, minor byte, rows int, body, joined []byte) {
		types := fuzzTypes()
		typ := types[int(kind)%len(types)]
		var layout enc21pb.PageLayout
		buffers, ok := splitBuffers(joined)
		if !ok || proto.Unmarshal(body, &layout) != nil {
			return
		}
		p := page{buffers: buffers, rows: rows, minor: int(minor), limit: fuzzRoom + perInput*len(joined)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b, err := decode(typ, &layout, p)
		runtime.ReadMemStats(&after)
		// Streams are held in more than one form while they are decoded, and compression has fixed working memory.
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20+24*p.limit))
		if err != nil {
			require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "%v", err)
			return
		}
		require.Equal(t, rows, b.Rows)
		if rows == 0 {
			return
		}
		encodesBack(t, typ, b)
	})
}

func encodesBack(t *testing.T, typ encoding.Type, b *encoding.Block) {
	t.Helper()
	want := encoding.NewHasher(typ)
	want.Add(b)
	for minor := 1; minor <= 2; minor++ {
		layout, buffers, err := Encode(typ, b, minor)
		if errors.Is(err, lance.ErrUnsupported) {
			continue // boolean vectors below more levels than a chunk can have
		}
		require.NoError(t, err)
		again, err := Decode(typ, layout, buffers, b.Rows, minor)
		require.NoError(t, err)
		got := encoding.NewHasher(typ)
		got.Add(again)
		require.Equal(t, want.Sum(), got.Sum(), "%s\n%s", encodingtest.Describe(b), encodingtest.Describe(again))
	}
}

func sameType(a, b encoding.Type) bool {
	return a.Kind == b.Kind && a.Bits == b.Bits && a.OffsetBits == b.OffsetBits && a.Items() == b.Items() && len(a.Dims) == len(b.Dims)
}

func joinBuffers(buffers [][]byte) []byte {
	var out []byte
	for _, b := range buffers {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(b)))
		out = append(out, b...)
	}
	return out
}

func splitBuffers(joined []byte) (buffers [][]byte, ok bool) {
	for len(joined) > 0 && len(buffers) < 8 {
		if len(joined) < 4 {
			return nil, false
		}
		n := binary.LittleEndian.Uint32(joined)
		if uint64(n) > uint64(len(joined)-4) {
			return nil, false
		}
		buffers = append(buffers, bytes.Clone(joined[4:4+n]))
		joined = joined[4+n:]
	}
	return buffers, true
}
