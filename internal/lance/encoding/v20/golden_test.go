package v20_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/encoding/v20"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

// inPart requires that rows read by themselves are those of the whole page, and that no more is read than they need.
func inPart(t *testing.T, typ encoding.Type, enc *enc20pb.ArrayEncoding, buffers [][]byte, whole *encoding.Block) {
	t.Helper()
	var size, read int64
	b := v20.Buffers{Read: func(ranges []v20.Range) ([][]byte, error) {
		var out [][]byte
		for _, r := range ranges {
			out = append(out, buffers[r.Buffer][r.From:r.To])
			read += r.To - r.From
		}
		return out, nil
	}}
	for _, buffer := range buffers {
		b.Sizes = append(b.Sizes, int64(len(buffer)))
		size += int64(len(buffer))
	}
	third := whole.Rows/3 + 1
	for from := 0; from < whole.Rows; from += third {
		to := min(from+third, whole.Rows)
		want, err := encoding.Drop(typ, whole, func(row int) bool { return row < from || row >= to })
		require.NoError(t, err)
		got, err := v20.DecodeRows(typ, enc, b, whole.Rows, from, to)
		require.NoError(t, err)
		require.Equal(t, hash(typ, want), hash(typ, got))
	}
	if v20.Partly(typ, enc) && enc.GetDictionary() == nil && whole.Rows > 100 {
		require.Less(t, read, size*5/4)
	}
}

func TestDecodeOfficialPages(t *testing.T) {
	t.Parallel()
	for _, c := range encodingtest.LoadGolden(t, "testdata/pages.zip") {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			decoded, again := sha256.New(), sha256.New()
			for _, p := range c.Pages {
				var enc enc20pb.ArrayEncoding
				require.NoError(t, proto.Unmarshal(p.Layout, &enc))
				b, err := v20.Decode(c.Type, &enc, p.Buffers, p.Rows)
				require.NoError(t, err, "%v", &enc)
				_, err = io.WriteString(decoded, encodingtest.RowText(t, c.Type, b))
				require.NoError(t, err)

				inPart(t, c.Type, &enc, p.Buffers, b)
				ours, buffers, err := v20.Encode(c.Type, b)
				require.NoError(t, err)
				b, err = v20.Decode(c.Type, ours, buffers, p.Rows)
				require.NoError(t, err, "%v", ours)
				_, err = io.WriteString(again, encodingtest.RowText(t, c.Type, b))
				require.NoError(t, err)
			}
			require.Equal(t, c.Want, hex.EncodeToString(decoded.Sum(nil)))
			require.Equal(t, c.Want, hex.EncodeToString(again.Sum(nil)))
		})
	}
}
