package v21

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIndexOfOfficialPages: what official writers write is what is expected, and another byte in it is not.
func TestIndexOfOfficialPages(t *testing.T) {
	t.Parallel()
	indexed := map[string]int{}
	for _, c := range goldens(t) {
		for _, p := range c.Pages {
			layout := layoutOf(t, p)
			b, err := Decode(c.Type, layout, p.Buffers, p.Rows, c.Minor)
			require.NoError(t, err)
			require.True(t, Indexed(layout, p.Buffers, b), "%s", c)
			kind := ""
			switch {
			case layout.GetMiniBlockLayout().GetRepetitionIndexDepth() > 0:
				kind = "mini-block"
			case layout.GetFullZipLayout() != nil && len(p.Buffers) > 1:
				kind = "full-zip"
			default:
				continue
			}
			indexed[kind]++
			last := len(p.Buffers) - 1
			for at := 0; at < len(p.Buffers[last]); at += 1 + len(p.Buffers[last])/7 {
				damaged := slices.Clone(p.Buffers)
				damaged[last] = slices.Clone(damaged[last])
				damaged[last][at] ^= 4
				require.False(t, Indexed(layout, damaged, b), "%s: byte %d", c, at)
			}
		}
	}
	require.Greater(t, indexed["mini-block"], 10)
	require.Greater(t, indexed["full-zip"], 10)
}
