// Package schema says which columns a table has and how their values are stored.
package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb"
)

// blobKey marks a binary column whose bytes lie outside its pages (lance-arrow src/lib.rs:BLOB_META_KEY).
const blobKey = "lance-encoding:blob"

// Metadata and names that mark what can't be rewritten as plain columns.
const (
	packedKey    = "lance-encoding:packed"
	extensionKey = "ARROW:extension:name"
	blobV2       = "lance.blob.v2"
)

// Column is one leaf column of a table.
type Column struct {
	Field    int32  // id of the field
	Name     string // dotted path from the top
	Type     encoding.Type
	Layers   []encoding.Layer // structural layers, innermost first, each without nulls: the leaf, then lists and structs around it
	Top      int32            // id of the top-level field
	Nullable bool             // of the top-level field
	Path     []int32          // ids of the fields from the top-level one to the leaf
	Since    int              // the first n of the file versions 2.n that can hold it
}

// Nested says whether a column lies within lists or structs.
func (c Column) Nested() bool { return len(c.Layers) > 1 }

// Columns lists the leaf columns of a schema in the order of its fields. ErrUnsupported, naming column and type, for the
// first one of a type that can't be rewritten here.
func Columns(fields []*lancepb.Field) ([]Column, error) {
	t := &tree{children: map[int32][]*lancepb.Field{}, seen: map[int32]struct{}{}}
	for _, f := range fields {
		if err := t.add(f); err != nil {
			return nil, err
		}
	}
	for _, f := range t.children[noParent] {
		if err := t.walk(f, Column{Top: f.GetId(), Nullable: f.GetNullable()}, 0); err != nil {
			return nil, err
		}
	}
	if t.walked != len(fields) {
		return nil, lance.Corrupt("", "%d of %d fields hang together", t.walked, len(fields))
	}
	if len(t.columns) == 0 {
		return nil, lance.Unsupported("schema", "without columns", "")
	}
	return t.columns, nil
}

const (
	noParent  = -1
	maxDepth  = 100
	mapsSince = 2 // lance-file src/versions: a map's fields have an encoding from 2.2 on
)

type tree struct {
	children map[int32][]*lancepb.Field
	seen     map[int32]struct{}
	columns  []Column
	walked   int
}

func (t *tree) add(f *lancepb.Field) error {
	if f.GetId() < 0 {
		return lance.Corrupt("", "column %q has id %d", f.GetName(), f.GetId())
	}
	if _, twice := t.seen[f.GetId()]; twice {
		return lance.Corrupt("", "two columns have id %d", f.GetId())
	}
	t.seen[f.GetId()] = struct{}{}
	t.children[max(f.GetParentId(), noParent)] = append(t.children[max(f.GetParentId(), noParent)], f)
	return nil
}

// walk adds the leaves below a field. above holds what the fields around it say.
func (t *tree) walk(f *lancepb.Field, above Column, depth int) error {
	t.walked++
	c := above
	c.Field, c.Name = f.GetId(), f.GetName()
	if above.Name != "" {
		c.Name = above.Name + "." + f.GetName()
	}
	layer, children, err := t.structure(f, c.Name)
	if err != nil {
		return err
	}
	c.Layers = append([]encoding.Layer{layer}, above.Layers...)
	c.Path = append(slices.Clone(above.Path), f.GetId())
	if f.GetLogicalType() == "map" {
		c.Since = max(c.Since, mapsSince)
	}
	if len(children) == 0 {
		var ok bool
		if c.Type, ok = parse(f.GetLogicalType()); !ok {
			return refused(f, c.Name)
		}
		t.columns = append(t.columns, c)
		return nil
	}
	if depth == maxDepth {
		return lance.Unsupported("schema", fmt.Sprintf("nested deeper than %d", maxDepth), "column "+c.Name)
	}
	for _, child := range children {
		if err := t.walk(child, c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func refused(f *lancepb.Field, name string) error {
	return lance.Unsupported("column type", f.GetLogicalType(), "column "+name)
}

// structure is the layer that a field makes, and what lies below it.
func (t *tree) structure(f *lancepb.Field, name string) (encoding.Layer, []*lancepb.Field, error) {
	children := t.children[f.GetId()]
	if _, blob := f.GetMetadata()[blobKey]; blob || f.GetExtensionName() == blobV2 || string(f.GetMetadata()[extensionKey]) == blobV2 {
		return 0, nil, lance.Unsupported("column type", "blob", "column "+name)
	}
	if _, packed := f.GetMetadata()[packedKey]; packed {
		return 0, nil, lance.Unsupported("column type", "packed struct", "column "+name)
	}
	switch f.GetLogicalType() {
	case "struct":
		return encoding.AllValidItem, children, nil
	case "list", "large_list", "list.struct", "large_list.struct", "map":
		if len(children) != 1 {
			return 0, nil, lance.Corrupt("", "column %q is a %s of %d fields", name, f.GetLogicalType(), len(children))
		}
		return encoding.AllValidList, children, nil
	}
	if len(children) > 0 {
		return 0, nil, refused(f, name)
	}
	return encoding.AllValidItem, nil, nil
}

// fixed is the bits of the types that have no parameter of their own (lance-core src/datatypes.rs:LogicalType).
func fixed(name string) int {
	switch name {
	case "bool":
		return 1
	case "int8", "uint8":
		return 8
	case "int16", "uint16", "halffloat", "lance.bfloat16":
		return 16
	case "int32", "uint32", "float", "date32:day", "time32:s", "time32:ms":
		return 32
	case "int64", "uint64", "double", "date64:ms", "time64:us", "time64:ns",
		"duration:s", "duration:ms", "duration:us", "duration:ns":
		return 64
	}
	switch parts := strings.SplitN(name, ":", 3); {
	case len(parts) == 3 && parts[0] == "timestamp" && timeUnit(parts[1]):
		return 64
	case len(parts) == 3 && parts[0] == "decimal" && parts[1] == "128":
		return 128
	case len(parts) == 3 && parts[0] == "decimal" && parts[1] == "256":
		return 256
	}
	return 0
}

func timeUnit(unit string) bool {
	return unit == "s" || unit == "ms" || unit == "us" || unit == "ns"
}

// parse turns a logical type into how its values are stored; ok is false for types that can't be rewritten here.
func parse(name string) (t encoding.Type, ok bool) {
	switch name {
	case "string", "large_string":
		return encoding.Type{Kind: encoding.Bytes, OffsetBits: offsetBits(name), Text: true}, true
	case "binary", "large_binary":
		return encoding.Type{Kind: encoding.Bytes, OffsetBits: offsetBits(name)}, true
	case "json": // stored as binary
		return encoding.Type{Kind: encoding.Bytes, OffsetBits: 64}, true
	case "struct": // without fields: others have children
		return encoding.Type{Kind: encoding.Void}, true
	case "null": // every page is all null, so the width does not matter
		return encoding.Type{Kind: encoding.Fixed, Bits: 8}, true
	}
	if parts := strings.Split(name, ":"); parts[0] == "dict" {
		return dictionary(parts)
	}
	if bits := fixed(name); bits > 0 {
		return encoding.Type{Kind: encoding.Fixed, Bits: bits}, true
	}
	if width, found := strings.CutPrefix(name, "fixed_size_binary:"); found {
		n, ok := positive(width)
		return encoding.Type{Kind: encoding.Fixed, Bits: 8 * n}, ok
	}
	return vector(name)
}

// dictionary parses `dict:<value>:<key>:<ordered>`, of which the parts have no colon of their own.
func dictionary(parts []string) (t encoding.Type, ok bool) {
	if len(parts) != 4 {
		return t, false
	}
	t, ok = parse(parts[1])
	signed := strings.HasPrefix(parts[2], "int")
	if t.KeyBits > 0 || t.Kind == encoding.Vector || !signed && !strings.HasPrefix(parts[2], "uint") || parts[1] == "null" || parts[1] == "bool" {
		return t, false
	}
	t.KeyBits = fixed(parts[2])
	usable := t.KeyBits
	if signed {
		usable--
	}
	t.MaxKeys = 1 << min(usable, 31)
	return t, ok
}

func offsetBits(name string) int {
	if strings.HasPrefix(name, "large_") {
		return 64
	}
	return 32
}

// vector parses `fixed_size_list:<item>:<dimension>`, where an item may be a list again; the outermost stands last.
func vector(name string) (t encoding.Type, ok bool) {
	var dims []int
	for {
		rest, found := strings.CutPrefix(name, "fixed_size_list:")
		if !found {
			break
		}
		at := strings.LastIndexByte(rest, ':')
		if at < 0 {
			return t, false
		}
		n, ok := positive(rest[at+1:])
		if !ok {
			return t, false
		}
		dims = append(dims, n)
		name = rest[:at]
	}
	bits := fixed(name)
	if len(dims) == 0 || bits == 0 {
		return t, false
	}
	return encoding.Type{Kind: encoding.Vector, Bits: bits, Dims: dims}, true
}

// largest bounds widths and dimensions, so that products of them cannot overflow.
const largest = 1 << 20

func positive(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0 && n <= largest && fmt.Sprint(n) == s
}
