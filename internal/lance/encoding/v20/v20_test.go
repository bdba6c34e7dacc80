package v20_test

import (
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
					if rows*typ.Width() > 4<<20 || shape.Heavy() && rows > 1000 {
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
