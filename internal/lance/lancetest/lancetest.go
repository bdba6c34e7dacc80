// Package lancetest loads golden tables of the official engine into memory and looks at tables for tests.
package lancetest

import (
	"archive/tar"
	"compress/gzip"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/rowid"
	"lancekeeper/internal/lance/schema"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/memstore"
)

//go:embed testdata/*.tar.gz
var golden embed.FS

// Names are the golden tables.
func Names(t testing.TB) []string {
	t.Helper()
	entries, err := golden.ReadDir("testdata")
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".tar.gz"))
	}
	return names
}

// Load returns a golden table in a store of its own, whose clock is now. All objects are age old, a version each second
// between the versions.
func Load(t testing.TB, name string, now func() time.Time, age time.Duration) *memstore.Store {
	t.Helper()
	file, err := golden.Open("testdata/" + name + ".tar.gz")
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // embedded
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	store := memstore.New("mem://"+name+".lance", now)
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(archive)
		require.NoError(t, err)
		key := strings.TrimPrefix(header.Name, "./")
		require.NoError(t, store.Put(t.Context(), key, data))
		store.SetModified(key, now().Add(-age))
	}
	l, err := dataset.List(t.Context(), store)
	require.NoError(t, err)
	for i, v := range l.Versions {
		store.SetModified(v.Key, now().Add(-age).Add(time.Duration(i-len(l.Versions)+1)*time.Second))
	}
	return store
}

// Rows are the rows of a version in scan order, each as text. Only columns that schema.Columns knows can be read.
func Rows(t testing.TB, store objstore.Store, v dataset.Version) []string {
	t.Helper()
	m, err := dataset.ReadManifest(t.Context(), store, v)
	require.NoError(t, err)
	columns, err := schema.Columns(m.GetFields())
	require.NoError(t, err)
	var rows []string
	for _, f := range m.GetFragments() {
		rows = append(rows, fragmentRows(t, store, f, columns)...)
	}
	return rows
}

// Latest are the rows of the latest version.
func Latest(t testing.TB, store objstore.Store) []string {
	t.Helper()
	v, _, err := dataset.Latest(t.Context(), store)
	require.NoError(t, err)
	return Rows(t, store, v)
}

func fragmentRows(t testing.TB, store objstore.Store, f *lancepb.DataFragment, columns []schema.Column) []string {
	t.Helper()
	deleted, err := dataset.ReadDeletions(t.Context(), store, f)
	require.NoError(t, err)
	cells := make([][]string, f.GetPhysicalRows())
	for _, c := range columns {
		values := columnValues(t, store, f, c)
		require.Len(t, values, len(cells))
		for i, value := range values {
			cells[i] = append(cells[i], value)
		}
	}
	if data := f.GetInlineRowIds(); data != nil {
		ids, err := rowid.Decode(data, f.GetPhysicalRows())
		require.NoError(t, err)
		for i, id := range ids {
			cells[i] = append(cells[i], fmt.Sprintf("row id %d", id))
		}
	}
	var rows []string
	for i, row := range cells {
		if deleted == nil || !deleted.Contains(uint32(i)) {
			rows = append(rows, strings.Join(row, " | "))
		}
	}
	return rows
}

func columnValues(t testing.TB, store objstore.Store, f *lancepb.DataFragment, c schema.Column) []string {
	t.Helper()
	for _, file := range f.GetFiles() {
		for _, field := range file.GetFields() {
			if field != c.Field {
				continue
			}
			r, err := datafile.Open(t.Context(), store, dataset.DataFolder+file.GetPath(), int64(file.GetFileSizeBytes()))
			require.NoError(t, err)
			var columns []int
			for _, stored := range c.Stored(r.Minor()) {
				columns = append(columns, int(file.GetColumnIndices()[slices.Index(file.GetFields(), stored)]))
			}
			leaf, err := r.Leaf(t.Context(), columns, c.Type, c.Layers)
			require.NoError(t, err)
			var values []string
			for part := range leaf.Parts() {
				block, err := leaf.Read(t.Context(), part)
				require.NoError(t, err)
				values = append(values, texts(t, c, block)...)
			}
			return values
		}
	}
	values := make([]string, f.GetPhysicalRows())
	for i := range values {
		values[i] = "null"
		if c.Nested() {
			values[i] = "~" // as texts has it
		}
	}
	return values
}

// texts are the rows of a block, each as text.
func texts(t testing.TB, c schema.Column, b *encoding.Block) []string {
	t.Helper()
	if !c.Nested() {
		return Texts(c.Type, b)
	}
	return strings.Split(strings.TrimSuffix(encodingtest.RowText(t, c.Type, b), "\n"), "\n")
}

// Texts are the values of a block of a column without lists and structs, each as text.
func Texts(t encoding.Type, b *encoding.Block) []string {
	out := make([]string, b.Rows)
	width, items := t.Width(), t.Items()
	for i := range out {
		switch {
		case b.Def != nil && b.Def[i] != 0:
			out[i] = "null"
		case t.Kind == encoding.Bytes:
			out[i] = fmt.Sprintf("%q", b.Values.Data[b.Values.Offsets[i]:b.Values.Offsets[i+1]])
		default:
			out[i] = hex.EncodeToString(b.Values.Fixed[i*width : (i+1)*width])
			if b.Values.ItemValid != nil {
				out[i] += fmt.Sprintf("/%v", b.Values.ItemValid[i*items:(i+1)*items])
			}
		}
	}
	return out
}

// Whole requires that every listed version can be read: manifest, and all files that it names are there.
func Whole(t testing.TB, store objstore.Store) {
	t.Helper()
	there := map[string]struct{}{}
	for o, err := range store.List(t.Context(), "", "") {
		require.NoError(t, err)
		there[o.Key] = struct{}{}
		if id, ok := dataset.IndexID(o.Key); ok {
			there[indexmeta.Folder+id] = struct{}{}
		}
	}
	l, err := dataset.List(t.Context(), store)
	require.NoError(t, err)
	for _, v := range l.Versions {
		files := named(t, store, v)
		for key := range files.Keys {
			if dataset.Classify(key) == dataset.Transaction {
				continue // the inline copy is enough
			}
			require.Contains(t, there, key, "version %d names it", v.Number)
		}
		for id := range files.Indices {
			require.Contains(t, there, indexmeta.Folder+id, "version %d names it", v.Number)
		}
	}
}

// Dead are the files of the format that no listed version, attached or detached, of the table or its branches names.
func Dead(t testing.TB, store objstore.Store) []string {
	t.Helper()
	l, err := dataset.List(t.Context(), store)
	require.NoError(t, err)
	branches, err := dataset.BranchManifests(t.Context(), store)
	require.NoError(t, err)
	keys, indices := map[string]struct{}{}, map[string]struct{}{}
	for _, v := range append(append(l.Versions, l.Detached...), branches...) {
		for files := named(t, store, v); files != nil; files = files.Elsewhere {
			for key := range files.Keys {
				keys[key] = struct{}{}
			}
			for id := range files.Indices {
				indices[id] = struct{}{}
			}
		}
	}
	var dead []string
	for o, err := range store.List(t.Context(), "", "") {
		require.NoError(t, err)
		id, _ := dataset.IndexID(o.Key)
		_, isNamed := keys[o.Key]
		_, isIndex := indices[id]
		switch dataset.Classify(o.Key) {
		case dataset.Data, dataset.DeletionFile, dataset.Transaction, dataset.IndexFile, dataset.Temporary:
			if !isNamed && !isIndex {
				dead = append(dead, o.Key)
			}
		default:
		}
	}
	sort.Strings(dead)
	return dead
}

func named(t testing.TB, store objstore.Store, v dataset.Version) *dataset.Files {
	t.Helper()
	m, err := dataset.ReadManifest(t.Context(), store, v)
	require.NoError(t, err)
	files := dataset.NewFiles()
	require.NoError(t, files.Add(v.Key, m))
	return files
}

// Rewrite changes the manifest of a version in place.
func Rewrite(t testing.TB, store *memstore.Store, v dataset.Version, change func(m *manifest.Manifest)) {
	t.Helper()
	m, err := dataset.ReadManifest(t.Context(), store, v)
	require.NoError(t, err)
	change(m)
	data, err := manifest.Encode(m)
	require.NoError(t, err)
	require.NoError(t, store.Put(t.Context(), v.Key, data))
	store.SetModified(v.Key, v.Modified)
}
