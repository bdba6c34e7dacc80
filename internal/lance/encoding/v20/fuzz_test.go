package v20

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

// fuzzRoom is what a page may decode to in the fuzz test, beyond a multiple of its input.
const fuzzRoom = 1 << 20

// fuzzTypes are what a fuzzed page may be taken for.
func fuzzTypes() []encoding.Type {
	return []encoding.Type{
		{Bits: 1},
		{Bits: 16},
		{Bits: 64},
		{Bits: 128},
		{Kind: encoding.Bytes, OffsetBits: 32, Text: true},
		{Kind: encoding.Bytes, OffsetBits: 64},
		{Kind: encoding.Vector, Bits: 32, Dims: []int{4}},
		{Kind: encoding.Vector, Bits: 1, Dims: []int{11}},
		{Kind: encoding.Vector, Bits: 16, Dims: []int{3, 2}},
		{Bits: 32, KeyBits: 16, MaxKeys: 1 << 15},
		{Kind: encoding.Bytes, OffsetBits: 32, Text: true, KeyBits: 8, MaxKeys: 1 << 7},
		{Kind: encoding.Void},
	}
}

// FuzzDecode takes pages apart into their encoding and buffers. Whatever they are, decoding must not panic, must not take more
// memory than its limit, and what it gives must survive encoding.
func FuzzDecode(f *testing.F) {
	for i, typ := range fuzzTypes() {
		for _, c := range encodingtest.LoadGolden(f, "testdata/pages.zip") {
			same := typ.Kind == c.Type.Kind && typ.Bits == c.Type.Bits && typ.OffsetBits == c.Type.OffsetBits && len(typ.Dims) == len(c.Type.Dims)
			if c.Rows <= 1100 && same && typ.Items() == c.Type.Items() && len(c.Pages) == 1 {
				f.Add(byte(i), c.Rows, c.Pages[0].Layout, joinBuffers(c.Pages[0].Buffers))
			}
		}
	}
	for i, p := range oldPages() {
		body, err := proto.Marshal(p.enc)
		require.NoError(f, err, i)
		for kind, typ := range fuzzTypes() {
			if typ.Kind == p.typ.Kind && typ.Bits == p.typ.Bits && typ.OffsetBits == p.typ.OffsetBits {
				f.Add(byte(kind), p.rows, body, joinBuffers(p.buffers))
			}
		}
	}
	for kind, typ := range fuzzTypes() {
		if typ.KeyBits == 0 && typ.Kind != encoding.Void {
			continue
		}
		for _, nulls := range []float64{0, 0.5, 1} {
			b := encodingtest.Block(typ, encodingtest.Few, 9, nulls, false, 1)
			if typ.Kind == encoding.Void {
				b = &encoding.Block{Rows: 9, Layers: b.Layers, Values: encoding.Values{N: 9}}
			}
			enc, buffers, err := Encode(typ, b)
			require.NoError(f, err)
			body, err := proto.Marshal(enc)
			require.NoError(f, err)
			f.Add(byte(kind), 9, body, joinBuffers(buffers))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, rows int, body, joined []byte) {
		types := fuzzTypes()
		typ := types[int(kind)%len(types)]
		var enc enc20pb.ArrayEncoding
		buffers, ok := splitBuffers(joined)
		if !ok || proto.Unmarshal(body, &enc) != nil {
			return
		}
		d := &decoder{buffers: buffers, limit: fuzzRoom + perInput*len(joined)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b, err := decode(typ, &enc, d, rows)
		runtime.ReadMemStats(&after)
		// Values are held in more than one form while they are decoded, and decompression has fixed working memory.
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20+24*d.limit))
		if err != nil {
			require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "%v", err)
			return
		}
		if rows == 0 {
			return
		}
		fuzzRows(t, typ, &enc, buffers, b)
		want, got := encoding.NewHasher(typ), encoding.NewHasher(typ)
		want.Add(b)
		ours, encoded, err := Encode(typ, b)
		if typ.KeyBits > 0 && errors.Is(err, encoding.ErrKeys) {
			return // the page's keys are more than the type has
		}
		require.NoError(t, err)
		again, err := Decode(typ, ours, encoded, rows)
		require.NoError(t, err)
		got.Add(again)
		require.Equal(t, want.Sum(), got.Sum(), "%s\n%s", encodingtest.Describe(b), encodingtest.Describe(again))
	})
}

// fuzzRows decodes some rows by themselves. What reads well as a whole does so in part, or says what is wrong.
func fuzzRows(t *testing.T, typ encoding.Type, enc *enc20pb.ArrayEncoding, buffers [][]byte, whole *encoding.Block) {
	t.Helper()
	b := Buffers{Read: func(ranges []Range) ([][]byte, error) {
		var out [][]byte
		for _, r := range ranges {
			require.True(t, r.From >= 0 && r.From <= r.To && r.To <= int64(len(buffers[r.Buffer])))
			out = append(out, buffers[r.Buffer][r.From:r.To])
		}
		return out, nil
	}}
	for _, buffer := range buffers {
		b.Sizes = append(b.Sizes, int64(len(buffer)))
	}
	from, to := whole.Rows/3, whole.Rows-whole.Rows/4
	got, err := DecodeRows(typ, enc, b, whole.Rows, from, to)
	if err != nil {
		require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "%v", err)
		return
	}
	builder := encoding.NewBuilder(typ, 1)
	require.NoError(t, builder.AppendRows(whole, from, to))
	want, err := builder.Take(to - from)
	require.NoError(t, err)
	first, second := encoding.NewHasher(typ), encoding.NewHasher(typ)
	first.Add(want)
	second.Add(got)
	require.Equal(t, first.Sum(), second.Sum(), "%v\n%s\n%s", enc, encodingtest.Describe(want), encodingtest.Describe(got))
}

// FuzzLists decodes pages of lists: no panic, no more memory than the limit; and what it gives must survive encoding.
func FuzzLists(f *testing.F) {
	for _, l := range []Lists{{}, {Ends: []uint64{3}, Null: []bool{false}}, {Ends: []uint64{0, 2, 2, 9}, Null: []bool{true, false, false, true}}} {
		enc, buffers := EncodeLists(l)
		body, err := proto.Marshal(enc)
		require.NoError(f, err)
		f.Add(len(l.Ends), body, joinBuffers(buffers))
	}
	f.Fuzz(func(t *testing.T, rows int, body, joined []byte) {
		var enc enc20pb.ArrayEncoding
		buffers, ok := splitBuffers(joined)
		if !ok || proto.Unmarshal(body, &enc) != nil {
			return
		}
		lists, err := decodeLists(&enc, &decoder{buffers: buffers, limit: fuzzRoom + perInput*len(joined)}, rows)
		if err != nil {
			require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "%v", err)
			return
		}
		if lists.Items() > math.MaxInt64 {
			return // sums of so many do not fit
		}
		ours, encoded := EncodeLists(lists)
		again, err := DecodeLists(ours, encoded, rows)
		require.NoError(t, err)
		require.Equal(t, lists, again)
	})
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
