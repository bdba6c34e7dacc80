package datafile_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/memstore"
)

// column is one column of a file made for a test.
type column struct {
	typ   encoding.Type
	pages []*encoding.Block
}

func columns(rows ...int) []column {
	var out []column
	for _, typ := range []encoding.Type{{Bits: 64}, {Kind: encoding.Bytes, OffsetBits: 32, Text: true}, {Kind: encoding.Vector, Bits: 32, Dims: []int{4}}} {
		c := column{typ: typ}
		for i, n := range rows {
			c.pages = append(c.pages, encodingtest.Block(typ, encodingtest.Small, n, 0.2*float64(i%2), false, uint64(i)))
		}
		out = append(out, c)
	}
	return out
}

// alone are leaves without anything around them.
func alone(n int) [][]int {
	var leaves [][]int
	for i := range n {
		leaves = append(leaves, []int{i})
	}
	return leaves
}

// item is the layer of a leaf without anything around it.
func item() []encoding.Layer { return []encoding.Layer{encoding.AllValidItem} }

func write(t testing.TB, minor int, columns []column) []byte {
	t.Helper()
	var out bytes.Buffer
	fields := []*lancepb.Field{{Name: "a", ParentId: -1, LogicalType: "int64"}, {Id: 1, Name: "b", ParentId: -1, LogicalType: "string"}, {Id: 2, Name: "c", ParentId: -1, LogicalType: "fixed_size_list:float:4"}}
	w, err := datafile.NewWriter(&out, minor, &lancepb.Schema{Fields: fields}, alone(len(columns)))
	require.NoError(t, err)
	for i, c := range columns {
		for _, b := range c.pages {
			require.NoError(t, w.WritePage(i, c.typ, b))
		}
	}
	size, err := w.Close()
	require.NoError(t, err)
	require.EqualValues(t, out.Len(), size)
	return out.Bytes()
}

const key = "data/x.lance"

func stored(t testing.TB, data []byte) *memstore.Store {
	t.Helper()
	store := memstore.New("mem://t", time.Now)
	require.NoError(t, store.Put(t.Context(), key, data))
	return store
}

// TestWrittenFilesReadBack: small ones, which are read whole, and large ones, of which pages are fetched by themselves; also when a
// small one's content was dropped.
func TestWrittenFilesReadBack(t *testing.T) {
	t.Parallel()
	for minor := range 3 {
		for _, rows := range [][]int{{1}, {3, 5, 1}, {1000, 20000, 7}} {
			t.Run(fmt.Sprintf("2.%d/%v", minor, rows), func(t *testing.T) {
				t.Parallel()
				want := columns(rows...)
				data := write(t, minor, want)
				require.Equal(t, []byte("LANC"), data[len(data)-4:])
				for _, shed := range []bool{false, true} {
					for _, size := range []int64{0, int64(len(data))} {
						r, err := datafile.Open(t.Context(), stored(t, data), key, size)
						require.NoError(t, err)
						if shed {
							held := r.Held()
							r.Shed()
							require.LessOrEqual(t, r.Held(), held)
						}
						require.Equal(t, minor, r.Minor())
						require.Equal(t, len(want), r.Columns())
						for i, c := range want {
							leaf, err := r.Leaf(t.Context(), []int{i}, c.typ, item())
							require.NoError(t, err)
							require.Equal(t, len(rows), leaf.Parts())
							for page, b := range c.pages {
								require.Equal(t, rows[page], leaf.Rows(page))
								got, err := leaf.Read(t.Context(), page)
								require.NoError(t, err)
								require.Equal(t, encodingtest.RowText(t, c.typ, b), encodingtest.RowText(t, c.typ, got))
							}
						}
					}
				}
			})
		}
	}
}

func TestColumnsMustAgree(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := datafile.NewWriter(&out, 1, &lancepb.Schema{}, alone(2))
	require.NoError(t, err)
	typ := encoding.Type{Bits: 8}
	require.NoError(t, w.WritePage(0, typ, encodingtest.Block(typ, encodingtest.Small, 3, 0, false, 1)))
	_, err = w.Close()
	require.Error(t, err)
	_, err = datafile.NewWriter(&out, 3, &lancepb.Schema{}, alone(1))
	require.ErrorIs(t, err, lance.ErrUnsupported)
}

// full is a writer without room.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestFaultsOfTheTargetAreTold(t *testing.T) {
	t.Parallel()
	for room := 0; room < 900; room += 37 { // of somewhat more
		w, err := datafile.NewWriter(&full{room}, 1, &lancepb.Schema{}, alone(3))
		require.NoError(t, err)
		for i, c := range columns(5) {
			if err = w.WritePage(i, c.typ, c.pages[0]); err != nil {
				break
			}
		}
		if err == nil {
			_, err = w.Close()
		}
		require.ErrorIs(t, err, errFull, "room for %d", room)
	}
}

// readAll opens a file and decodes every page, of whatever type the columns are.
func readAll(t testing.TB, store objstore.Store, size int64, types []encoding.Type) error {
	t.Helper()
	r, err := datafile.Open(t.Context(), store, key, size)
	if err != nil {
		return err
	}
	for i := range min(r.Columns(), len(types)) {
		leaf, err := r.Leaf(t.Context(), []int{i}, types[i], item())
		if err != nil {
			return err
		}
		for part := range leaf.Parts() {
			if _, err := leaf.Read(t.Context(), part); err != nil {
				return err
			}
		}
	}
	return nil
}

func types() []encoding.Type {
	var out []encoding.Type
	for _, c := range columns(1) {
		out = append(out, c.typ)
	}
	return out
}

// TestDamagedFiles: cut at every byte, or with one byte changed: an error of a known class that names the file, or the right number of
// rows. Never a panic.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	for minor := range 3 {
		data := write(t, minor, columns(3, 2))
		for n := range data {
			err := readAll(t, stored(t, data[:n]), 0, types())
			require.ErrorIs(t, err, lance.ErrCorrupt, "cut to %d", n)
			require.ErrorContains(t, err, key)
			damaged := bytes.Clone(data)
			damaged[n] ^= 0xff
			if err := readAll(t, stored(t, damaged), 0, types()); err != nil {
				require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "byte %d: %v", n, err)
				require.ErrorContains(t, err, key)
			}
		}
		require.ErrorIs(t, readAll(t, stored(t, data), int64(len(data)+1), types()), lance.ErrCorrupt, "another size than recorded")
	}
}

func TestOtherVersionsAreNamed(t *testing.T) {
	t.Parallel()
	data := write(t, 2, columns(1))
	for want, version := range map[string][4]byte{"2.3": {2, 0, 3, 0}, "0.1 (legacy)": {0, 0, 2, 0}, "3.0": {3, 0, 0, 0}} {
		other := bytes.Clone(data)
		copy(other[len(other)-8:], version[:])
		err := readAll(t, stored(t, other), 0, types())
		require.ErrorIs(t, err, lance.ErrUnsupported)
		require.ErrorContains(t, err, want)
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	err := readAll(t, memstore.New("mem://t", time.Now), 0, types())
	require.ErrorIs(t, err, objstore.ErrNotExist)
	require.ErrorContains(t, err, key)
}

func TestOfficialFilesOpen(t *testing.T) {
	t.Parallel()
	opened := 0
	for _, name := range lancetest.Names(t) {
		store := lancetest.Load(t, name, time.Now, time.Hour)
		for _, key := range store.Keys() {
			if !strings.HasPrefix(key, "data/") || !strings.HasSuffix(key, ".lance") {
				continue
			}
			r, err := datafile.Open(t.Context(), store, key, 0)
			if name == "legacy" {
				require.ErrorIs(t, err, lance.ErrUnsupported)
				continue
			}
			require.NoError(t, err, "%s %s", name, key)
			require.Positive(t, r.Rows())
			opened++
		}
	}
	require.Greater(t, opened, 50)
}

func FuzzOpen(f *testing.F) {
	for minor := range 3 {
		f.Add(write(f, minor, columns(3, 2)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := readAll(t, stored(t, data), 0, types()); err != nil {
			require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "%v", err)
		}
	})
}
