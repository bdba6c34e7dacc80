// Package schema says which columns a table has and how their values are stored.
package schema

import (
	"fmt"
	"strconv"
	"strings"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb"
)

// blobKey marks a binary column whose bytes lie outside its pages (lance-arrow src/lib.rs:BLOB_META_KEY).
const blobKey = "lance-encoding:blob"

// Column is one leaf column of a table.
type Column struct {
	Field    int32  // id of the field
	Name     string // dotted path from the top
	Type     encoding.Type
	Nullable bool
}

// Columns lists the columns of a schema in the order of its fields. ErrUnsupported, naming column and type, for the first
// one of a type that can't be rewritten here.
func Columns(fields []*lancepb.Field) ([]Column, error) {
	columns := make([]Column, 0, len(fields))
	seen := make(map[int32]struct{}, len(fields))
	for _, f := range fields {
		if f.GetId() < 0 {
			return nil, lance.Corrupt("", "column %q has id %d", f.GetName(), f.GetId())
		}
		if _, twice := seen[f.GetId()]; twice {
			return nil, lance.Corrupt("", "two columns have id %d", f.GetId())
		}
		seen[f.GetId()] = struct{}{}
		t, err := columnType(f)
		if err != nil {
			return nil, err
		}
		columns = append(columns, Column{Field: f.GetId(), Name: f.GetName(), Type: t, Nullable: f.GetNullable()})
	}
	if len(columns) == 0 {
		return nil, lance.Unsupported("schema", "without columns", "")
	}
	return columns, nil
}

func columnType(f *lancepb.Field) (encoding.Type, error) {
	refused := func() (encoding.Type, error) {
		return encoding.Type{}, lance.Unsupported("column type", f.GetLogicalType(), "column "+f.GetName())
	}
	if _, blob := f.GetMetadata()[blobKey]; blob {
		return encoding.Type{}, lance.Unsupported("column type", "blob", "column "+f.GetName())
	}
	if f.GetParentId() >= 0 {
		return refused()
	}
	t, ok := parse(f.GetLogicalType())
	if !ok {
		return refused()
	}
	return t, nil
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
	if len(dims) == 0 || bits < 8 {
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
