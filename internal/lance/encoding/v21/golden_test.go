package v21

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// goldens are all pages in testdata.
func goldens(t testing.TB) []encodingtest.Golden {
	t.Helper()
	return encodingtest.LoadGolden(t, "testdata/pages.zip", "testdata/pages-1.0.0.zip")
}

func layoutOf(t testing.TB, p encodingtest.GoldenPage) *enc21pb.PageLayout {
	t.Helper()
	layout := &enc21pb.PageLayout{}
	require.NoError(t, proto.Unmarshal(p.Layout, layout))
	return layout
}

func TestDecodeOfficialPages(t *testing.T) {
	t.Parallel()
	for _, c := range goldens(t) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			hash := sha256.New()
			for _, p := range c.Pages {
				b, err := Decode(c.Type, layoutOf(t, p), p.Buffers, p.Rows, c.Minor)
				require.NoError(t, err)
				requireNormal(t, c.Type, b)
				_, err = io.WriteString(hash, encodingtest.RowText(t, c.Type, b))
				require.NoError(t, err)
			}
			require.Equal(t, c.Want, hex.EncodeToString(hash.Sum(nil)))
		})
	}
}

// requireNormal checks that null slots and null items are zero or empty.
func requireNormal(t *testing.T, typ encoding.Type, b *encoding.Block) {
	t.Helper()
	sh, err := newShape(b.Layers)
	require.NoError(t, err)
	before := *b
	before.Values.Fixed = append([]byte(nil), b.Values.Fixed...)
	before.Values.Data = append([]byte(nil), b.Values.Data...)
	before.Values.Offsets = append([]int(nil), b.Values.Offsets...)
	clearNulls(typ, sh, &before)
	require.Equal(t, string(b.Values.Fixed), string(before.Values.Fixed))
	require.Equal(t, string(b.Values.Data), string(before.Values.Data))
	require.Equal(t, b.Values.Offsets == nil, typ.Kind != encoding.Bytes)
	if typ.Kind == encoding.Bytes {
		require.Equal(t, before.Values.Offsets, b.Values.Offsets)
	}
}
