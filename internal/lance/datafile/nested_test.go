package datafile_test

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/lancepb"
)

func columnsOf(path []int32) []int {
	var out []int
	for _, id := range path {
		out = append(out, int(id))
	}
	return out
}

// writeTree writes leaves to a file of version 2.0, each in pages of up to so many rows.
func writeTree(t require.TestingT, fields []*lancepb.Field, leaves []encodingtest.TreeLeaf, pageRows func() int) []byte {
	var paths [][]int
	for _, l := range leaves {
		paths = append(paths, columnsOf(l.Path))
	}
	var out bytes.Buffer
	w, err := datafile.NewWriter(&out, 0, &lancepb.Schema{Fields: fields}, paths)
	require.NoError(t, err)
	for i, l := range leaves {
		rest := encoding.NewBuilder(l.Type, len(l.Layers))
		require.NoError(t, rest.Append(l.Block))
		for rest.Rows() > 0 {
			b, err := rest.Take(min(rest.Rows(), pageRows()))
			require.NoError(t, err)
			require.NoError(t, w.WritePage(i, l.Type, b))
		}
	}
	_, err = w.Close()
	require.NoError(t, err)
	return out.Bytes()
}

// readLeaf gives the hash and the number of the rows that a file has of a leaf.
func readLeaf(t testing.TB, r *datafile.Reader, columns []int, l encodingtest.TreeLeaf) (sum uint64, rows int, err error) {
	t.Helper()
	leaf, err := r.Leaf(t.Context(), columns, l.Type, l.Layers)
	if err != nil {
		return 0, 0, err
	}
	h := encoding.NewHasher(l.Type)
	for i := range leaf.Parts() {
		b, err := leaf.Read(t.Context(), i)
		if err != nil {
			return 0, 0, err
		}
		if b.Rows != leaf.Rows(i) {
			return 0, 0, lance.Corrupt(key, "%d rows in a part of %d", b.Rows, leaf.Rows(i))
		}
		h.Add(b)
		rows += b.Rows
	}
	return h.Sum(), rows, nil
}

func hashOf(l encodingtest.TreeLeaf) uint64 {
	h := encoding.NewHasher(l.Type)
	h.Add(l.Block)
	return h.Sum()
}

// TestNestedFilesReadBack: any nesting with any cuts into pages, which differ from leaf to leaf; also without the columns of structs.
func TestNestedFilesReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		tree, fields := encodingtest.NewTree(r, rapid.IntRange(1, 5).Draw(rt, "depth"))
		rows := rapid.IntRange(1, 60).Draw(rt, "rows")
		most := rapid.IntRange(1, 60).Draw(rt, "rows in a page")
		leaves := tree.Leaves(rows, r)
		data := writeTree(rt, fields, leaves, func() int { return 1 + r.IntN(most) })
		file, err := datafile.Open(t.Context(), stored(t, data), key, int64(len(data)))
		require.NoError(rt, err)
		require.Equal(rt, len(fields), file.Columns())
		for _, l := range leaves {
			columns := columnsOf(l.Path)
			for range 2 {
				sum, n, err := readLeaf(t, file, columns, l)
				require.NoError(rt, err)
				require.Equal(rt, rows, n)
				require.Equal(rt, hashOf(l), sum)
				for i := range columns[:len(columns)-1] {
					if !l.Layers[len(l.Layers)-1-i].List() {
						columns[i] = -1
					}
				}
			}
		}
	})
}

// TestManyItemsAreReadInParts: a page of lists owns more than fits in memory, spread evenly or not.
func TestManyItemsAreReadInParts(t *testing.T) {
	t.Parallel()
	typ := encoding.Type{Bits: 8}
	const rows, wanted = 3000, 24 << 20
	for name, length := range map[string]func(row int) int{
		"even":           func(int) int { return 1200 },
		"one long":       func(row int) int { return 10 + row/(rows-1)*3_000_000 },
		"one long first": func(row int) int { return 1 + 3_000_000*(1-min(row, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &encoding.Block{Rows: rows, Layers: []encoding.Layer{encoding.AllValidItem, encoding.AllValidList}}
			longest := 0
			for row := range rows {
				n := length(row)
				longest = max(longest, n)
				for i := range n {
					b.Rep = append(b.Rep, uint16(1-min(i, 1)))
				}
				b.Values.N += n
			}
			b.Values.Fixed = make([]byte, b.Values.N)
			for i := range b.Values.Fixed {
				b.Values.Fixed[i] = byte(i * i >> 8)
			}
			l := encodingtest.TreeLeaf{Path: []int32{0, 1}, Type: typ, Layers: b.Layers, Block: b}
			data := writeTree(t, nil, []encodingtest.TreeLeaf{l}, func() int { return rows })
			file, err := datafile.Open(t.Context(), stored(t, data), key, 0)
			require.NoError(t, err)
			leaf, err := file.Leaf(t.Context(), []int{0, 1}, typ, b.Layers)
			require.NoError(t, err)
			require.Greater(t, leaf.Parts(), 1)
			require.Less(t, leaf.Parts(), 6)
			for i := range leaf.Parts() {
				if leaf.Rows(i) > 1 {
					require.Less(t, leaf.Weight(i), int64(wanted))
				}
			}
			sum, n, err := readLeaf(t, file, []int{0, 1}, l)
			require.NoError(t, err)
			require.Equal(t, rows, n)
			require.Equal(t, hashOf(l), sum)
		})
	}
}

// TestListsOfAStructMustAgree: leaves of one list cannot say different things of it.
func TestListsOfAStructMustAgree(t *testing.T) {
	t.Parallel()
	typ := encoding.Type{Bits: 8}
	layers := []encoding.Layer{encoding.NullableItem, encoding.AllValidItem, encoding.NullAndEmptyList}
	block := func(rep, def []uint16, slots int) *encoding.Block {
		return &encoding.Block{Rows: 2, Layers: layers, Rep: rep, Def: def, Values: encoding.Values{N: slots, Fixed: make([]byte, slots)}}
	}
	first := block([]uint16{1, 0, 1}, []uint16{0, 0, 2}, 2) // [_, _], null
	for want, second := range map[string]*encoding.Block{
		"":       block([]uint16{1, 0, 1}, []uint16{1, 0, 2}, 2), // items may be null
		"null":   block([]uint16{1, 0, 1}, []uint16{0, 0, 3}, 2), // [_, _], []
		"length": block([]uint16{1, 1, 0}, []uint16{2, 0, 0}, 2), // null, [_, _]
		"items":  block([]uint16{1, 1}, []uint16{0, 2}, 1),       // [_], null
	} {
		var out bytes.Buffer
		w, err := datafile.NewWriter(&out, 0, &lancepb.Schema{}, [][]int{{0, 1, 2}, {0, 1, 3}})
		require.NoError(t, err)
		require.NoError(t, w.WritePage(0, typ, first))
		require.NoError(t, w.WritePage(1, typ, second))
		_, err = w.Close()
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "below column 0 differ", want)
		}
	}
}

// TestTooManyKeysLeaveNothingBehind: a block with more distinct values than a dictionary's keys can tell apart can be written in
// halves.
func TestTooManyKeysLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	typ := encoding.Type{Bits: 16, KeyBits: 8, MaxKeys: 128}
	b := &encoding.Block{Rows: 2, Layers: []encoding.Layer{encoding.AllValidItem, encoding.AllValidList}, Values: encoding.Values{N: 200}}
	for i := range 200 {
		b.Rep = append(b.Rep, uint16(1-min(i%100, 1)))
		b.Values.Fixed = append(b.Values.Fixed, byte(i), 1)
	}
	var out bytes.Buffer
	w, err := datafile.NewWriter(&out, 0, &lancepb.Schema{}, [][]int{{0, 1}})
	require.NoError(t, err)
	require.ErrorIs(t, w.WritePage(0, typ, b), encoding.ErrKeys)
	halves := encoding.NewBuilder(typ, 2)
	require.NoError(t, halves.Append(b))
	for range 2 {
		half, err := halves.Take(1)
		require.NoError(t, err)
		require.NoError(t, w.WritePage(0, typ, half))
	}
	_, err = w.Close()
	require.NoError(t, err)
	l := encodingtest.TreeLeaf{Path: []int32{0, 1}, Type: typ, Layers: b.Layers, Block: b}
	file, err := datafile.Open(t.Context(), stored(t, out.Bytes()), key, 0)
	require.NoError(t, err)
	sum, rows, err := readLeaf(t, file, []int{0, 1}, l)
	require.NoError(t, err)
	require.Equal(t, 2, rows)
	require.Equal(t, hashOf(l), sum)
}

// TestFieldsLongerThanTheirStructAreRefused: an old engine wrote such files, of which nobody can tell the right rows.
func TestFieldsLongerThanTheirStructAreRefused(t *testing.T) {
	t.Parallel()
	typ := encoding.Type{Bits: 8}
	lists := []encoding.Layer{encoding.AllValidItem, encoding.AllValidList}
	b := &encoding.Block{Rows: 2, Layers: lists, Rep: []uint16{1, 0, 0, 1}, Values: encoding.Values{N: 4, Fixed: make([]byte, 4)}}
	data := writeTree(t, nil, []encodingtest.TreeLeaf{{Path: []int32{0, 1}, Type: typ, Layers: lists, Block: b}}, func() int { return 2 })
	file, err := datafile.Open(t.Context(), stored(t, data), key, 0)
	require.NoError(t, err)
	_, err = file.Leaf(t.Context(), []int{-1, 1}, typ, []encoding.Layer{encoding.AllValidItem, encoding.AllValidItem})
	require.ErrorIs(t, err, lance.ErrUnsupported)
	require.ErrorContains(t, err, "more values (4 in column 1) than it has rows (2)")
	_, err = file.Leaf(t.Context(), []int{1}, typ, []encoding.Layer{encoding.AllValidItem})
	require.ErrorIs(t, err, lance.ErrCorrupt)
}

// nestedFile is a small file with lists in lists and structs.
func nestedFile(t testing.TB) ([]byte, []encodingtest.TreeLeaf) {
	t.Helper()
	for seed := uint64(0); ; seed++ {
		r := rand.New(rand.NewPCG(seed, 2))
		tree, fields := encodingtest.NewTree(r, 4)
		leaves := tree.Leaves(5, r)
		if len(leaves) > 1 && slices.ContainsFunc(leaves, func(l encodingtest.TreeLeaf) bool { return len(l.Block.Rep) > 8 && len(l.Path) > 4 }) {
			return writeTree(t, fields, leaves, func() int { return 3 }), leaves
		}
	}
}

// readTree reads all leaves of whatever a file is.
func readTree(t testing.TB, data []byte, leaves []encodingtest.TreeLeaf) error {
	t.Helper()
	file, err := datafile.Open(t.Context(), stored(t, data), key, 0)
	if err != nil {
		return err
	}
	for _, l := range leaves {
		if _, _, err := readLeaf(t, file, columnsOf(l.Path), l); err != nil {
			return err
		}
	}
	return nil
}

func TestDamagedNestedFiles(t *testing.T) {
	t.Parallel()
	data, leaves := nestedFile(t)
	for n := range data {
		damaged := bytes.Clone(data)
		damaged[n] ^= 0xff
		if err := readTree(t, damaged, leaves); err != nil {
			require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "byte %d: %v", n, err)
			require.ErrorContains(t, err, key)
		}
	}
}

// FuzzNested takes any bytes for a file with one of the columns of the golden files.
func FuzzNested(f *testing.F) {
	golden := goldenLeaves(f)
	names := slices.Sorted(maps.Keys(golden))
	for i, name := range names {
		if l := golden[name]; l.Rows <= 5 && strings.Contains(name, "14.0.2") {
			f.Add(uint16(i), l.data)
		}
	}
	f.Fuzz(func(t *testing.T, which uint16, data []byte) {
		l := golden[names[int(which)%len(names)]]
		file, err := datafile.Open(t.Context(), stored(t, data), key, 0)
		if err == nil {
			_, _, err = readLeaf(t, file, l.Columns, encodingtest.TreeLeaf{Type: l.Type, Layers: l.layers()})
		}
		if err != nil {
			require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "%v", err)
		}
	})
}
