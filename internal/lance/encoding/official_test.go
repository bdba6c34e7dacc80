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

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/encodingtest"
	"lancekeeper/internal/lance/encoding/v20"
	"lancekeeper/internal/lance/encoding/v21"
	"lancekeeper/internal/lance/lancepb"
)

// officialCase is one file to be read by the official engine.
type officialCase struct {
	name       string
	file       string
	Path       string `json:"path"`
	Take       []int  `json:"take"`
	want, some string // hashes of all rows and of the taken ones
}

// TestOfficialReaderReadsOurPages has pylance scan files made of our pages, and look rows up in them.
func TestOfficialReaderReadsOurPages(t *testing.T) {
	folder := t.TempDir()
	var cases []*officialCase
	for name, typ := range encodingtest.Types() {
		for _, shape := range encodingtest.Shapes() {
			for _, rows := range []int{1, 2, 3, 7, 64, 1000, 1025, 4097, 9000} {
				if rows*typ.Width() > 1<<20 || shape == encodingtest.Wide && rows > 1025 {
					continue
				}
				nulls := []float64{0, 0.1, 0.9, 1}[len(cases)%4]
				b := encodingtest.Block(typ, shape, rows, nulls, rows%2 == 1, uint64(rows))
				if typ.Text {
					printable(b)
				}
				for minor := range 3 {
					c := &officialCase{name: fmt.Sprintf("%s/%s/2.%d/rows=%d/nulls=%g", name, shape, minor, rows, nulls)}
					c.write(t, filepath.Join(folder, fmt.Sprintf("%d.lance", len(cases))), minor, typ, logicalFields(name, typ), b)
					cases = append(cases, c)
				}
			}
		}
	}
	for seed := range uint64(60) {
		b := listBlock(seed)
		for minor := 1; minor <= 2; minor++ {
			c := &officialCase{name: fmt.Sprintf("list/2.%d/rows=%d/seed=%d", minor, b.Rows, seed)}
			c.write(t, filepath.Join(folder, fmt.Sprintf("%d.lance", len(cases))), minor, encoding.Type{Bits: 64}, listFields(), b)
			cases = append(cases, c)
		}
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
	c.want = sum(text + text)
	lines := strings.SplitAfter(text, "\n")
	lines = slices.Concat(lines[:b.Rows], lines[:b.Rows])
	var some strings.Builder
	for row := 0; row < 2*b.Rows; row += 1 + row%17*row/7 {
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

// logicalFields is the schema of a file with one column.
func logicalFields(name string, typ encoding.Type) []*lancepb.Field {
	logical := map[string]string{
		"bool": "bool", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
		"decimal128": "decimal:128:30:2", "decimal256": "decimal:256:60:2", "utf8": "string", "large_utf8": "large_string",
		"binary": "binary", "large_binary": "large_binary",
	}[name]
	if typ.Kind == encoding.Vector {
		logical = map[int]string{8: "uint8", 16: "int16", 32: "float", 64: "int64"}[typ.Bits]
		for _, d := range slices.Backward(typ.Dims) {
			logical = fmt.Sprintf("fixed_size_list:%s:%d", logical, d)
		}
	}
	if logical == "" {
		logical = fmt.Sprintf("fixed_size_binary:%d", typ.Bits/8)
	}
	return []*lancepb.Field{{Type: lancepb.Field_LEAF, Name: "c", Id: 0, ParentId: -1, LogicalType: logical, Nullable: true}}
}

func listFields() []*lancepb.Field {
	return []*lancepb.Field{
		{Type: lancepb.Field_REPEATED, Name: "c", Id: 0, ParentId: -1, LogicalType: "list", Nullable: true},
		{Type: lancepb.Field_LEAF, Name: "item", Id: 1, ParentId: 0, LogicalType: "int64", Nullable: true},
	}
}

// listBlock makes lists of numbers, some null, some empty, some long enough to cross chunks.
func listBlock(seed uint64) *encoding.Block {
	r := rand.New(rand.NewPCG(seed, 2))
	b := &encoding.Block{Rows: 1 + r.IntN(300), Layers: []encoding.Layer{encoding.NullableItem, encoding.NullAndEmptyList}}
	long := 1 << r.IntN(13)
	for range b.Rows {
		n := r.IntN(long)
		if n == 0 || r.IntN(4) == 0 {
			b.Rep, b.Def = append(b.Rep, 1), append(b.Def, uint16(2+r.IntN(2)))
			continue
		}
		for i := range n {
			var def uint16
			value := make([]byte, 8)
			if i%7 == 3 {
				def = 1
			} else {
				value[0], value[1] = byte(i), byte(i>>8)
			}
			rep := uint16(0)
			if i == 0 {
				rep = 1
			}
			b.Rep, b.Def = append(b.Rep, rep), append(b.Def, def)
			b.Values.Fixed = append(b.Values.Fixed, value...)
			b.Values.N++
		}
	}
	return b
}
