//go:build oracle

package encoding_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/encoding/v20"
	"lancekeeper/internal/lance/encoding/v21"
	"lancekeeper/internal/lance/lancepb"
)

// officialCase is one file to be read by the official engine.
type officialCase struct {
	name       string
	Path       string   `json:"path"`
	Leaf       []string `json:"leaf"`
	Take       []int    `json:"take"`
	want, some string   // hashes of all rows and of the taken ones
}

// TestOfficialReaderReadsOurPages has pylance scan files made of our pages, and look rows up in them.
func TestOfficialReaderReadsOurPages(t *testing.T) {
	folder := t.TempDir()
	var cases []*officialCase
	r := rand.New(rand.NewPCG(1, 2))
	add := func(name string, minor int, typ encoding.Type, lists string, b *encoding.Block) {
		if typ.Text {
			printable(b)
		}
		c := &officialCase{name: name}
		c.write(t, filepath.Join(folder, fmt.Sprintf("%d.lance", len(cases))), minor, typ, fieldsOf(typ, lists), b)
		cases = append(cases, c)
	}
	for name, typ := range encodingtest.Types() {
		for _, shape := range encodingtest.Shapes() {
			for _, rows := range []int{1, 1025} {
				if rows*typ.Width() > 1<<18 || shape.Heavy() && (typ.Kind != encoding.Bytes || rows > 1025) {
					continue
				}
				nulls := []float64{0, 0.1, 0.9, 1}[r.IntN(4)]
				b := encodingtest.Block(typ, shape, rows, nulls, rows%2 == 1, uint64(rows))
				for minor := range 3 {
					add(fmt.Sprintf("%s/%s/2.%d/rows=%d/nulls=%g", name, shape, minor, rows, nulls), minor, typ, "", b)
				}
			}
		}
	}
	for _, name := range []string{"int64", "utf8"} {
		typ := encodingtest.Types()[name]
		b := encodingtest.Block(typ, encodingtest.Mixed, 30_000, 0.1, false, 1)
		for minor := range 3 {
			add(fmt.Sprintf("%s/mixed/2.%d/rows=%d", name, minor, b.Rows), minor, typ, "", b)
		}
	}
	for minor := 1; minor <= 2; minor++ {
		for _, name := range []string{"int64", "bool", "utf8", "vector3"} {
			typ := encodingtest.Types()[name]
			for i, nest := range []string{"il", "ill", "il", "ill", "il", "ill"} {
				b := encodingtest.Nested(typ, nest, encodingtest.Small, 1+i*i*100, r)
				add(fmt.Sprintf("%s/%s/2.%d/rows=%d", name, nest, minor, b.Rows), minor, typ, nest[1:], b)
			}
			add(name+"/long lists", minor, typ, "l", encodingtest.Lists(typ, 1, 20_000, 3))
			add(name+"/empty lists", minor, typ, "l", encodingtest.Lists(typ, 40, 1, 1000))
			add(name+"/very many empty lists", minor, typ, "l", encodingtest.Lists(typ, 20_000, 2, 1))
		}
	}
	judge(t, cases)
}

// TestOfficialReaderReadsOurNestedFiles has pylance scan files of version 2.0 with any nesting of lists and structs.
func TestOfficialReaderReadsOurNestedFiles(t *testing.T) {
	folder := t.TempDir()
	var cases []*officialCase
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		tree, fields := encodingtest.NewTree(r, 1+r.IntN(4))
		leaves := tree.Leaves(1+r.IntN(300), r)
		path := filepath.Join(folder, fmt.Sprintf("%d.lance", seed))
		f, err := os.Create(path) //nolint:gosec // a temporary file
		require.NoError(t, err)
		var columns [][]int
		for _, l := range leaves {
			var way []int
			for _, id := range l.Path {
				way = append(way, int(id))
			}
			columns = append(columns, way)
		}
		w, err := datafile.NewWriter(f, 0, &lancepb.Schema{Fields: fields}, columns)
		require.NoError(t, err)
		for i, l := range leaves {
			c := &officialCase{name: fmt.Sprintf("%d/%v", seed, l.Names), Path: path, Leaf: l.Names}
			require.NoError(t, w.WritePage(i, l.Type, l.Block))
			require.NoError(t, w.WritePage(i, l.Type, l.Block))
			text := encodingtest.RowText(t, l.Type, l.Block)
			c.expect(text+text, l.Block.Rows)
			cases = append(cases, c)
		}
		_, err = w.Close()
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	judge(t, cases)
}

// printable makes text of a block's bytes, so that it is UTF-8.
func printable(b *encoding.Block) {
	for i, c := range b.Values.Data {
		b.Values.Data[i] = ' ' + c%64
	}
}

func (c *officialCase) write(t *testing.T, path string, minor int, typ encoding.Type, fields []*lancepb.Field, b *encoding.Block) {
	t.Helper()
	page := encodingtest.Page{Rows: b.Rows}
	var err error
	if minor == 0 {
		page.URL = "/lance.encodings.ArrayEncoding"
		page.Layout, page.Buffers, err = v20.Encode(typ, b)
	} else {
		page.URL = "/lance.encodings21.PageLayout"
		page.Layout, page.Buffers, err = v21.Encode(typ, b, minor)
	}
	require.NoError(t, err, c.name)
	encodingtest.WriteFile(t, path, minor, fields, []encodingtest.Page{page, page})
	c.Path = path
	text := encodingtest.RowText(t, typ, b)
	c.expect(text+text, b.Rows)
}

// expect is what the reader must find: twice so many rows.
func (c *officialCase) expect(text string, rows int) {
	c.want = sum(text)
	lines := strings.SplitAfter(text, "\n")
	var some strings.Builder
	for row := 0; row < 2*rows; row += 1 + row%17*row/7 {
		c.Take = append(c.Take, row)
		some.WriteString(lines[row])
	}
	c.some = sum(some.String())
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// judge runs the official reader over all files at once.
func judge(t *testing.T, cases []*officialCase) {
	t.Helper()
	python := os.Getenv("LANCEKEEPER_TEST_PYTHON")
	require.NotEmpty(t, python, "LANCEKEEPER_TEST_PYTHON is not set: run this through make oracle")
	var input bytes.Buffer
	for _, c := range cases {
		require.NoError(t, json.NewEncoder(&input).Encode(c))
	}
	command := exec.CommandContext(t.Context(), python, "testdata/read.py")
	command.Stdin, command.Stderr = &input, nil
	output, err := command.Output()
	require.NoError(t, err)
	answers := json.NewDecoder(bytes.NewReader(output))
	for _, c := range cases {
		var got struct{ Want, Take, Error string }
		require.NoError(t, answers.Decode(&got))
		if got.Error != "" || got.Want != c.want || got.Take != c.some {
			t.Errorf("%s: read %t, looked up %t, %s", c.name, got.Want == c.want, got.Take == c.some, got.Error)
		}
	}
	t.Logf("%d files", len(cases))
}

// fieldsOf is the schema of a file with one column, within so many lists.
func fieldsOf(typ encoding.Type, lists string) []*lancepb.Field {
	var fields []*lancepb.Field
	name, parent := "c", int32(-1)
	for range lists {
		fields = append(fields, &lancepb.Field{
			Type: lancepb.Field_REPEATED, Name: name, Id: parent + 1, ParentId: parent, LogicalType: "list", Nullable: true,
		})
		name, parent = "item", parent+1
	}
	return append(fields, &lancepb.Field{
		Type: lancepb.Field_LEAF, Name: name, Id: parent + 1, ParentId: parent, LogicalType: logicalType(typ), Nullable: true,
	})
}

func logicalType(typ encoding.Type) string {
	switch typ.Kind {
	case encoding.Bytes:
		name := "binary"
		if typ.Text {
			name = "string"
		}
		if typ.OffsetBits == 64 {
			name = "large_" + name
		}
		return name
	case encoding.Vector:
		logical := map[int]string{8: "uint8", 16: "int16", 32: "float", 64: "int64"}[typ.Bits]
		for _, d := range slices.Backward(typ.Dims) {
			logical = fmt.Sprintf("fixed_size_list:%s:%d", logical, d)
		}
		return logical
	case encoding.Fixed:
	}
	if name, ok := map[int]string{
		1: "bool", 8: "int8", 16: "int16", 32: "int32", 64: "int64", 128: "decimal:128:30:2", 256: "decimal:256:60:2",
	}[typ.Bits]; ok {
		return name
	}
	return fmt.Sprintf("fixed_size_binary:%d", typ.Bits/8)
}
