// Package encoding holds the decoded form of a column's rows, common to all file versions; v20 and v21 below it turn
// pages into it and back.
package encoding

import (
	"errors"
	"fmt"

	"lancekeeper/internal/lance"
)

// Kind is the physical shape of one leaf value.
type Kind int

// Kinds of leaf value.
const (
	Fixed  Kind = iota // Bits wide; booleans (Bits 1) stand as one byte 0 or 1 each
	Bytes              // utf8 and binary, with 32 or 64 bit offsets
	Vector             // fixed-size list of fixed-width items, any number of dimensions
	Void               // struct without fields: nothing but its being there
)

// Type is what the codecs need to know of a leaf column. Signedness, units and zones do not matter to a rewrite.
type Type struct {
	Kind       Kind
	Bits       int   // Fixed: bits of a value (1, or a multiple of 8); Vector: bits of one item
	Dims       []int // Vector: dimensions, outermost first; the product is the number of items per value
	OffsetBits int   // Bytes: 32 or 64
	Text       bool  // Bytes: utf8
	KeyBits    int   // of the keys of an Arrow dictionary column, whose pages each have a dictionary; 0: it is none
	MaxKeys    int   // distinct values that such keys can tell apart
}

// ErrKeys says that a page of a dictionary column has more distinct values than its keys can tell apart. With fewer rows it has
// fewer.
var ErrKeys = errors.New("more distinct values than the dictionary's keys can tell apart")

// Items is the number of items in one value: the product of Dims, 1 for other kinds.
func (t Type) Items() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Width is the bytes that one value takes in Values.Fixed; 0 for Bytes and Void.
func (t Type) Width() int {
	if t.Kind == Bytes || t.Kind == Void {
		return 0
	}
	return t.Items() * max(1, t.Bits/8)
}

// maxWidth bounds the bytes of one fixed-width value, so that products with counts cannot overflow.
const maxWidth = 1 << 24

// Check refuses types that no column can have or that the codecs do not take. The error is of class lance.ErrUnsupported.
func (t Type) Check() error {
	if t.KeyBits != 0 && (t.Kind == Vector || t.Kind == Void || t.MaxKeys < 1 || t.KeyBits != 8 && t.KeyBits != 16 && t.KeyBits != 32 && t.KeyBits != 64) {
		return lance.Unsupported("column type", fmt.Sprintf("dictionary with keys of %d bits", t.KeyBits), "")
	}
	width := int64(1)
	switch t.Kind {
	case Bytes:
		if t.OffsetBits != 32 && t.OffsetBits != 64 {
			return lance.Unsupported("column type", fmt.Sprintf("bytes with %d-bit offsets", t.OffsetBits), "")
		}
		return nil
	case Vector:
		for _, d := range t.Dims {
			if d <= 0 || d > maxWidth {
				return lance.Unsupported("column type", fmt.Sprintf("vector of %v", t.Dims), "")
			}
			width = min(width*int64(d), maxWidth+1)
		}
		if len(t.Dims) == 0 {
			return lance.Unsupported("column type", "vector without dimension", "")
		}
	case Void:
		return nil
	case Fixed:
	default:
		return lance.Unsupported("column type", fmt.Sprintf("kind %d", t.Kind), "")
	}
	if t.Bits != 1 && (t.Bits <= 0 || t.Bits%8 != 0) || t.Bits > 8*maxWidth || width*int64(max(1, t.Bits/8)) > maxWidth {
		return lance.Unsupported("column type", fmt.Sprintf("%v items of %d bits", t.Dims, t.Bits), "")
	}
	return nil
}

// Layer is one structural layer of a leaf column, innermost first in Block.Layers. Numbers are those of
// lance-format/lance protos/encodings_v2_1.proto:RepDefLayer.
type Layer int

// Layers. An item layer is the leaf or a struct around it, a list layer a list or map around it.
const (
	AllValidItem     Layer = 1
	AllValidList     Layer = 2
	NullableItem     Layer = 3
	NullableList     Layer = 4
	EmptyableList    Layer = 5
	NullAndEmptyList Layer = 6
)

// Block is a run of whole, consecutive rows of one leaf column: values with their repetition and definition levels.
// Levels count from the leaf outwards (file format 2.1, lance-encoding src/repdef.rs). Without a list layer each row has
// one entry and one value slot, Rep is nil, and Def is nil when every value is there.
type Block struct {
	Rows   int
	Layers []Layer
	Rep    []uint16 // per entry; nil without list layers
	Def    []uint16 // per entry; 0 = value present; nil = all 0
	Values Values   // one slot per entry whose level leaves a slot, null slots included
}

// Bytes is the memory that the rows take, about.
func (b *Block) Bytes() int {
	v := &b.Values
	return len(v.Fixed) + len(v.Data) + 8*len(v.Offsets) + len(v.ItemValid) + 2*len(b.Def) + 2*len(b.Rep)
}

// Values are the slots of a Block. Bytes under null slots are zero (Fixed) or empty (Bytes), whatever the file held.
type Values struct {
	N         int
	Fixed     []byte // Fixed, Vector: N * Type.Width() bytes, little-endian
	Offsets   []int  // Bytes: N+1 positions in Data, Offsets[0] = 0
	Data      []byte // Bytes
	ItemValid []byte // Vector: one byte 0 or 1 per item of every slot, or nil when all items are valid
}
