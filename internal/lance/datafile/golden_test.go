package datafile_test

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
)

// goldenLeaf is a leaf column of a file that the official engine wrote; see testdata/README.md.
type goldenLeaf struct {
	File, Leaf string
	Columns    []int
	Lists      []bool
	Type       encoding.Type
	Rows       int
	Want       string
	data       []byte
}

func goldenLeaves(t testing.TB) map[string]goldenLeaf {
	t.Helper()
	archives, err := filepath.Glob("testdata/nested-*.zip")
	require.NoError(t, err)
	require.Len(t, archives, 3)
	out := map[string]goldenLeaf{}
	for _, path := range archives {
		archive, err := zip.OpenReader(path)
		require.NoError(t, err)
		read := func(name string) []byte {
			f, err := archive.Open(name)
			require.NoError(t, err)
			data, err := io.ReadAll(f)
			require.NoError(t, err)
			return data
		}
		var leaves []goldenLeaf
		require.NoError(t, json.Unmarshal(read("index.json"), &leaves))
		for _, l := range leaves {
			l.data = read(l.File)
			out[filepath.Base(path)+"/"+l.File+"/"+l.Leaf] = l
		}
		require.NoError(t, archive.Close())
	}
	return out
}

func (l goldenLeaf) layers() []encoding.Layer {
	out := make([]encoding.Layer, len(l.Lists))
	for i, list := range l.Lists {
		out[i] = encoding.AllValidItem
		if list {
			out[i] = encoding.AllValidList
		}
	}
	return out
}

// TestOfficialNestedFiles: lists, structs and dictionaries of file version 2.0 by new and old official engines; read, and read
// again after they were written by us.
func TestOfficialNestedFiles(t *testing.T) {
	t.Parallel()
	for name, l := range goldenLeaves(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := encoding.NewBuilder(l.Type, len(l.Lists))
			require.Equal(t, l.Want, l.text(t, l.data, l.Columns, func(b *encoding.Block) { require.NoError(t, rows.Append(b)) }))
			block, err := rows.Take(l.Rows)
			require.NoError(t, err)
			var path []int32
			var columns []int
			for i := range l.Lists {
				path, columns = append(path, int32(i)), append(columns, i)
			}
			leaf := encodingtest.TreeLeaf{Path: path, Type: l.Type, Layers: l.layers(), Block: block}
			again := writeTree(t, nil, []encodingtest.TreeLeaf{leaf}, func() int { return 90 })
			require.Equal(t, l.Want, l.text(t, again, columns, func(*encoding.Block) {}))
		})
	}
}

// text is the hash of a leaf's rows as text.
func (l goldenLeaf) text(t *testing.T, data []byte, columns []int, each func(*encoding.Block)) string {
	t.Helper()
	file, err := datafile.Open(t.Context(), stored(t, data), key, int64(len(data)))
	require.NoError(t, err)
	leaf, err := file.Leaf(t.Context(), columns, l.Type, l.layers())
	require.NoError(t, err)
	h := sha256.New()
	for i := range leaf.Parts() {
		b, err := leaf.Read(t.Context(), i)
		require.NoError(t, err)
		_, err = io.WriteString(h, encodingtest.RowText(t, l.Type, b))
		require.NoError(t, err)
		each(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}
