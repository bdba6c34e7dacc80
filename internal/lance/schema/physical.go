package schema

import (
	"fmt"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
)

// Physical is which columns a data file of some file version has for a schema.
type Physical struct {
	Fields []int32 // the field that each column is of
	Leaves [][]int // for each leaf column of the schema the columns that hold it, outermost first
}

// Stored are the fields whose columns hold a leaf in a file of version 2.minor, outermost first: all from the top to the leaf
// in 2.0, the leaf alone later (lance-file src/versions/v2_0/mod.rs:append_physical_fields, src/reader/structural.rs).
func (c Column) Stored(minor int) []int32 {
	if minor == 0 {
		return c.Path
	}
	return []int32{c.Field}
}

// CanBeNull says whether a file of version 2.minor can tell that the top-level field of a column is null: in 2.0 there are no
// null structs (lance-encoding src/encodings/logical/struct.rs).
func (c Column) CanBeNull(minor int) bool {
	if len(c.Layers) == 1 {
		return minor > 0 || c.Type.Kind != encoding.Void
	}
	return minor > 0 || c.Layers[len(c.Layers)-1].List()
}

// Lay gives the columns of a file of version 2.minor: fields in the order of the schema, parents before children.
// ErrUnsupported, naming the column, where the version cannot hold one.
func Lay(columns []Column, minor int) (Physical, error) {
	var p Physical
	column := map[int32]int{}
	for _, c := range columns {
		if c.Since > minor {
			return Physical{}, lance.Unsupported("column type", fmt.Sprintf("of file version 2.%d in 2.%d", c.Since, minor), "column "+c.Name)
		}
		if c.Type.Kind == encoding.Void && minor > 0 { // with such a column official readers mix up the others
			return Physical{}, lance.Unsupported("column type", fmt.Sprintf("struct without fields in file version 2.%d", minor), "column "+c.Name)
		}
		var leaf []int
		for _, field := range c.Stored(minor) {
			at, known := column[field]
			if !known {
				at = len(p.Fields)
				column[field] = at
				p.Fields = append(p.Fields, field)
			}
			leaf = append(leaf, at)
		}
		p.Leaves = append(p.Leaves, leaf)
	}
	return p, nil
}
