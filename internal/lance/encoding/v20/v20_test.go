package v20_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/encoding/v20"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

func TestEncodedPagesDecodeToTheSameRows(t *testing.T) {
	t.Parallel()
	for name, typ := range encodingtest.Types() {
		for _, shape := range encodingtest.Shapes() {
			t.Run(name+"/"+string(shape), func(t *testing.T) {
				t.Parallel()
				for _, rows := range []int{1, 2, 7, 8, 9, 1000, 5000} {
					if rows*typ.Width() > 4<<20 || shape == encodingtest.Wide && rows > 1000 {
						continue
					}
					for _, nulls := range []float64{0, 0.1, 0.9, 1} {
						b := encodingtest.Block(typ, shape, rows, nulls, rows%2 == 1, uint64(rows))
						enc, buffers, err := v20.Encode(typ, b)
						require.NoError(t, err)
						got, err := v20.Decode(typ, enc, buffers, rows)
						require.NoError(t, err, "%v", enc)
						encodingtest.Equal(t, typ, b, got)
					}
				}
			})
		}
	}
}

func TestDamagedPagesAreCorrupt(t *testing.T) {
	t.Parallel()
	text := encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}
	b := encodingtest.Block(text, encodingtest.Random, 20, 0.3, false, 1)
	enc, buffers, err := v20.Encode(text, b)
	require.NoError(t, err)
	for name, damage := range map[string]func(e *enc20pb.ArrayEncoding, buffers [][]byte) [][]byte{
		"cut ends":      func(_ *enc20pb.ArrayEncoding, b [][]byte) [][]byte { return [][]byte{b[0][:20], b[1]} },
		"cut bytes":     func(_ *enc20pb.ArrayEncoding, b [][]byte) [][]byte { return [][]byte{b[0], b[1][:1]} },
		"no adjustment": func(e *enc20pb.ArrayEncoding, b [][]byte) [][]byte { e.GetBinary().NullAdjustment = 0; return b },
		"no buffers":    func(*enc20pb.ArrayEncoding, [][]byte) [][]byte { return nil },
	} {
		e := proto.CloneOf(enc)
		_, err := v20.Decode(text, e, damage(e, buffers), 20)
		require.ErrorIs(t, err, lance.ErrCorrupt, name)
	}
}

func TestOtherEncodingsAreNamed(t *testing.T) {
	t.Parallel()
	fixed := encoding.Type{Bits: 64}
	for _, enc := range []*enc20pb.ArrayEncoding{
		{ArrayEncoding: &enc20pb.ArrayEncoding_List{List: &enc20pb.List{}}},
		{ArrayEncoding: &enc20pb.ArrayEncoding_Struct{Struct: &enc20pb.SimpleStruct{}}},
		{ArrayEncoding: &enc20pb.ArrayEncoding_PackedStruct{PackedStruct: &enc20pb.PackedStruct{}}},
		{ArrayEncoding: &enc20pb.ArrayEncoding_Constant{Constant: &enc20pb.Constant{}}},
		{},
	} {
		_, err := v20.Decode(fixed, enc, nil, 3)
		require.ErrorIs(t, err, lance.ErrUnsupported)
	}
}

func FuzzDecode(f *testing.F) {
	types := []encoding.Type{{Bits: 64}, {Bits: 1}, {Kind: encoding.Bytes, OffsetBits: 32, Text: true}, {Kind: encoding.Vector, Bits: 32, Dims: []int{3}}}
	for i, typ := range types {
		for _, shape := range []encodingtest.Shape{encodingtest.Random, encodingtest.Few} {
			enc, buffers, err := v20.Encode(typ, encodingtest.Block(typ, shape, 150, 0.2, true, 1))
			require.NoError(f, err)
			body, err := proto.Marshal(enc)
			require.NoError(f, err)
			for len(buffers) < 3 {
				buffers = append(buffers, nil)
			}
			f.Add(i, body, buffers[0], buffers[1], buffers[2], 150)
		}
	}
	f.Fuzz(func(t *testing.T, kind int, body, b0, b1, b2 []byte, rows int) {
		var enc enc20pb.ArrayEncoding
		if proto.Unmarshal(body, &enc) != nil || rows > 1<<16 || kind < 0 {
			return
		}
		typ := types[kind%len(types)]
		b, err := v20.Decode(typ, &enc, [][]byte{b0, b1, b2}, rows)
		if err != nil {
			require.True(t, lanceClass(err), "%v", err)
			return
		}
		if rows == 0 {
			return
		}
		again, buffers, err := v20.Encode(typ, b)
		require.NoError(t, err)
		got, err := v20.Decode(typ, again, buffers, rows)
		require.NoError(t, err)
		encodingtest.Equal(t, typ, b, got)
	})
}

func lanceClass(err error) bool {
	for _, class := range []error{lance.ErrCorrupt, lance.ErrUnsupported} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}
