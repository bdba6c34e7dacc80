package v20

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/bitpack"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

// oldPage is a page in an encoding that only old writers emit, made by hand from the format's description.
type oldPage struct {
	name    string
	typ     encoding.Type
	enc     *enc20pb.ArrayEncoding
	buffers [][]byte
	rows    int
	want    string
}

func flatOf(bits, buffer int) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Flat{Flat: &enc20pb.Flat{
		BitsPerValue: uint64(bits), Buffer: &enc20pb.Buffer{BufferIndex: uint32(buffer)},
	}}}
}

func oldPages() []oldPage {
	group := make([]byte, 2*bitpack.Group)
	for i := range 3 {
		binary.LittleEndian.PutUint16(group[2*i:], uint16(300*i))
	}
	packed := make([]byte, bitpack.Size(10))
	if err := bitpack.Pack(packed, group, 16, 10); err != nil {
		panic(err)
	}
	// 3 bits a value: 1, -1, 3, -4 are 001, 111, 011, 100, the first in the lowest bits.
	signed := binary.LittleEndian.AppendUint16(nil, 0b100_011_111_001)
	text := encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}
	bitpacked := func(signed bool) *enc20pb.ArrayEncoding {
		return noNulls(&enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Bitpacked{Bitpacked: &enc20pb.Bitpacked{
			CompressedBitsPerValue: 3, UncompressedBitsPerValue: 16, Buffer: &enc20pb.Buffer{}, Signed: signed,
		}}})
	}
	return []oldPage{
		{"bit string, signed", encoding.Type{Bits: 16}, bitpacked(true), [][]byte{signed}, 4, "0100\nffff\n0300\nfcff\n"},
		{"bit string, unsigned", encoding.Type{Bits: 16}, bitpacked(false), [][]byte{signed}, 4, "0100\n0700\n0300\n0400\n"},
		{
			"groups of 1024",
			encoding.Type{Bits: 16},
			noNulls(&enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_BitpackedForNonNeg{BitpackedForNonNeg: &enc20pb.BitpackedForNonNeg{
				CompressedBitsPerValue: 10, UncompressedBitsPerValue: 16, Buffer: &enc20pb.Buffer{},
			}}}),
			[][]byte{packed},
			3,
			"0000\n2c01\n5802\n",
		},
		{
			"text of one length",
			text,
			&enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_FixedSizeBinary{FixedSizeBinary: &enc20pb.FixedSizeBinary{ByteWidth: 2, Bytes: flatOf(8, 0)}}},
			[][]byte{[]byte("abcd")},
			2,
			"6162\n6364\n",
		},
		{
			"all null",
			text,
			nullable(&enc20pb.Nullable{Nullability: &enc20pb.Nullable_AllNulls{AllNulls: &enc20pb.Nullable_AllNull{}}}),
			nil,
			2,
			"~\n~\n",
		},
		{
			"dictionary with a null item",
			text,
			&enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Dictionary{Dictionary: &enc20pb.Dictionary{
				Indices: noNulls(flatOf(8, 0)), NumDictionaryItems: 2,
				Items: &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Binary{Binary: &enc20pb.Binary{
					Indices: noNulls(flatOf(64, 1)), Bytes: flatOf(8, 2), NullAdjustment: 2,
				}}},
			}}},
			[][]byte{{0, 1, 2}, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1), 3), []byte("x")},
			3,
			"~\n78\n~\n",
		},
	}
}

func TestDecodeOldEncodings(t *testing.T) {
	t.Parallel()
	for _, p := range oldPages() {
		b, err := Decode(p.typ, p.enc, p.buffers, p.rows)
		require.NoError(t, err, p.name)
		require.Equal(t, p.want, encodingtest.RowText(t, p.typ, b), p.name)
	}
}
