package v21

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// goldenColumn is one leaf column written by the official engine; see testdata/README.md.
type goldenColumn struct {
	Name  string        `json:"name"`
	Minor int           `json:"minor"`
	Rows  int           `json:"rows"`
	Nulls bool          `json:"nulls"`
	Type  encoding.Type `json:"type"`
	Want  string        `json:"want"`
	Pages []goldenPage  `json:"pages"`
}

type goldenPage struct {
	Layout  []byte `json:"layout"`
	Rows    int    `json:"rows"`
	Buffers []int  `json:"buffers"`

	parsed  *enc21pb.PageLayout
	buffers [][]byte
}

func (c goldenColumn) String() string {
	return fmt.Sprintf("%s/2.%d/rows=%d/nulls=%t", c.Name, c.Minor, c.Rows, c.Nulls)
}

func loadGolden(t testing.TB, path string) []goldenColumn {
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
		Columns []goldenColumn `json:"columns"`
	}
	require.NoError(t, json.Unmarshal(read("index.json"), &index))
	blob := read("pages.bin")
	for _, c := range index.Columns {
		for i := range c.Pages {
			p := &c.Pages[i]
			p.parsed = &enc21pb.PageLayout{}
			require.NoError(t, proto.Unmarshal(p.Layout, p.parsed))
			for _, n := range p.Buffers {
				p.buffers = append(p.buffers, blob[:n:n])
				blob = blob[n:]
			}
		}
	}
	require.Empty(t, blob)
	return index.Columns
}

// goldens are all pages in testdata.
func goldens(t testing.TB) []goldenColumn {
	t.Helper()
	return append(loadGolden(t, "testdata/pages.zip"), loadGolden(t, "testdata/pages-1.0.0.zip")...)
}

func TestDecodeOfficialPages(t *testing.T) {
	t.Parallel()
	for _, c := range goldens(t) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			hash := sha256.New()
			for _, p := range c.Pages {
				b, err := Decode(c.Type, p.parsed, p.buffers, p.Rows, c.Minor)
				require.NoError(t, err, p.parsed)
				requireNormal(t, c.Type, b)
				_, err = io.WriteString(hash, rowText(t, c.Type, b))
				require.NoError(t, err)
			}
			require.Equal(t, c.Want, hex.EncodeToString(hash.Sum(nil)), c.Pages[0].parsed)
		})
	}
}

// requireNormal checks that null slots and null items are zero or empty.
func requireNormal(t *testing.T, typ encoding.Type, b *encoding.Block) {
	t.Helper()
	sh, err := newShape(b.Layers)
	require.NoError(t, err)
	before := *b
	before.Values.Fixed = append([]byte(nil), b.Values.Fixed...)
	before.Values.Data = append([]byte(nil), b.Values.Data...)
	before.Values.Offsets = append([]int(nil), b.Values.Offsets...)
	clearNulls(typ, sh, &before)
	require.Equal(t, string(b.Values.Fixed), string(before.Values.Fixed))
	require.Equal(t, string(b.Values.Data), string(before.Values.Data))
	require.Equal(t, b.Values.Offsets == nil, typ.Kind != encoding.Bytes)
	if typ.Kind == encoding.Bytes {
		require.Equal(t, before.Values.Offsets, b.Values.Offsets)
	}
}

// rowText renders rows as testdata/make.py does.
func rowText(t *testing.T, typ encoding.Type, b *encoding.Block) string {
	t.Helper()
	r := rowRenderer{t: typ, b: b, owner: map[uint16]int{}}
	next := uint16(1)
	for i, l := range b.Layers {
		for range levelsOf(l) {
			r.owner[next] = i
			next++
		}
		r.rank = append(r.rank, 0)
		if isList(l) {
			r.lists++
		}
		r.rank[i] = r.lists
	}
	entries := b.Rows
	if b.Rep != nil {
		entries = len(b.Rep)
	}
	for lo := 0; lo < entries; {
		hi := lo + 1
		for hi < entries && r.rep(hi) < r.lists {
			hi++
		}
		if r.lists == 0 {
			hi = lo + 1
		}
		r.render(len(b.Layers)-1, lo, hi)
		r.out.WriteByte('\n')
		lo = hi
	}
	require.Equal(t, b.Values.N, r.slot)
	return r.out.String()
}

type rowRenderer struct {
	t     encoding.Type
	b     *encoding.Block
	out   strings.Builder
	owner map[uint16]int // level to layer
	rank  []int          // list layers up to a layer
	lists int
	slot  int
}

func (r *rowRenderer) rep(i int) int {
	if r.b.Rep == nil {
		return 0
	}
	return int(r.b.Rep[i])
}

func (r *rowRenderer) def(i int) uint16 {
	if r.b.Def == nil {
		return 0
	}
	return r.b.Def[i]
}

func (r *rowRenderer) render(layer, lo, hi int) {
	level := r.def(lo)
	owner, special := r.owner[level]
	kind := r.b.Layers[layer]
	if special && owner == layer {
		// an item's only level is null; a list's first is null, unless it has but the empty one
		_, lower := r.owner[level-1]
		empty := kind == encoding.EmptyableList || kind == encoding.NullAndEmptyList && lower && r.owner[level-1] == layer
		if empty {
			r.out.WriteString("[]")
		} else {
			r.out.WriteByte('~')
		}
		if r.rank[layer] == 0 {
			r.slot++
		}
		return
	}
	if !isList(kind) {
		if layer > 0 {
			r.render(layer-1, lo, hi)
			return
		}
		r.value()
		return
	}
	r.out.WriteByte('[')
	for at := lo; at < hi; {
		end := at + 1
		for end < hi && r.rep(end) < r.rank[layer]-1 {
			end++
		}
		if at > lo {
			r.out.WriteByte(',')
		}
		r.render(layer-1, at, end)
		at = end
	}
	r.out.WriteByte(']')
}

func (r *rowRenderer) value() {
	v := r.b.Values
	i := r.slot
	r.slot++
	if r.t.Kind == encoding.Bytes {
		r.out.WriteString(hex.EncodeToString(v.Data[v.Offsets[i]:v.Offsets[i+1]]))
		return
	}
	w := r.t.Width()
	raw := v.Fixed[i*w : (i+1)*w]
	if r.t.Kind == encoding.Vector && v.ItemValid != nil {
		n := r.t.Items()
		raw = raw[:w:w]
		text, _ := vectorText(r.t.Dims, raw, v.ItemValid[i*n:(i+1)*n])
		r.out.WriteString(text)
		return
	}
	r.out.WriteString(hex.EncodeToString(raw))
}

// vectorText is plain hexadecimal, or `(x,n)` lists as soon as an item is null.
func vectorText(dims []int, raw, valid []byte) (text string, hasNull bool) {
	parts := make([]string, dims[0])
	size, items := len(raw)/dims[0], len(valid)/dims[0]
	for i := range parts {
		if len(dims) > 1 {
			var null bool
			parts[i], null = vectorText(dims[1:], raw[i*size:(i+1)*size], valid[i*items:(i+1)*items])
			hasNull = hasNull || null
			continue
		}
		parts[i] = hex.EncodeToString(raw[i*size : (i+1)*size])
		if valid[i] == 0 {
			parts[i], hasNull = "n", true
		}
	}
	if hasNull {
		return "(" + strings.Join(parts, ",") + ")", true
	}
	return strings.Join(parts, ""), false
}
