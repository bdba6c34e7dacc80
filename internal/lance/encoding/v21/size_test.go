package v21

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/encoding/encodingtest"
)

func bytesOf(buffers [][]byte) int {
	n := 0
	for _, b := range buffers {
		n += len(b)
	}
	return n
}

// TestPagesAreNotLargerThanOfficialOnes encodes the rows of each official page again.
func TestPagesAreNotLargerThanOfficialOnes(t *testing.T) {
	t.Parallel()
	asked := []string{"zstd_int/", "lz4_int64/", "split/"} // compression on request, which is not done here
	ours, official := 0, 0
	for _, c := range encodingtest.LoadGolden(t, "testdata/pages.zip") {
		if slices.ContainsFunc(asked, func(name string) bool { return strings.HasPrefix(c.String(), name) }) {
			continue
		}
		our, theirs := 0, 0
		for _, p := range c.Pages {
			b, err := Decode(c.Type, layoutOf(t, p), p.Buffers, p.Rows, c.Minor)
			require.NoError(t, err)
			_, buffers, err := Encode(c.Type, b, c.Minor)
			require.NoError(t, err)
			our += bytesOf(buffers)
			theirs += bytesOf(p.Buffers)
		}
		ours += our
		official += theirs
		if our > theirs*12/10+64 {
			t.Logf("%s: %d bytes, official %d", c, our, theirs)
		}
	}
	t.Logf("%d bytes, official %d", ours, official)
	require.LessOrEqual(t, ours, official)
}
