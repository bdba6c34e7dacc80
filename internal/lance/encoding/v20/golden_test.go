package v20_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/encoding/v20"
	"lancekeeper/internal/lance/lancepb/enc20pb"
)

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
