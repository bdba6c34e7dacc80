package encodingtest

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/encoding"
)

// Golden is one leaf column written by the official engine; see the README beside the archives.
type Golden struct {
	Name  string        `json:"name"`
	Minor int           `json:"minor"`
	Rows  int           `json:"rows"`
	Nulls bool          `json:"nulls"`
	Type  encoding.Type `json:"type"`
	Want  string        `json:"want"` // SHA-256 of RowText of all pages
	Pages []GoldenPage  `json:"pages"`
}

// GoldenPage is one page: the message that describes it, and its buffers.
type GoldenPage struct {
	Layout  []byte `json:"layout"`
	Rows    int    `json:"rows"`
	Sizes   []int  `json:"buffers"`
	Buffers [][]byte
}

// String names the column.
func (g Golden) String() string {
	return fmt.Sprintf("%s/2.%d/rows=%d/nulls=%t", g.Name, g.Minor, g.Rows, g.Nulls)
}

// LoadGolden reads archives of official pages.
func LoadGolden(t testing.TB, paths ...string) []Golden {
	t.Helper()
	var all []Golden
	for _, path := range paths {
		all = append(all, loadGolden(t, path)...)
	}
	return all
}

func loadGolden(t testing.TB, path string) []Golden {
	t.Helper()
	archive, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer archive.Close()
	read := func(name string) []byte {
		f, err := archive.Open(name)
		require.NoError(t, err)
		defer f.Close()
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		return b
	}
	var index struct {
		Columns []Golden `json:"columns"`
	}
	require.NoError(t, json.Unmarshal(read("index.json"), &index))
	blob := read("pages.bin")
	for _, c := range index.Columns {
		for i := range c.Pages {
			p := &c.Pages[i]
			for _, n := range p.Sizes {
				p.Buffers = append(p.Buffers, blob[:n:n])
				blob = blob[n:]
			}
		}
	}
	require.Empty(t, blob)
	return index.Columns
}
