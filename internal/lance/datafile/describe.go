package datafile

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancepb/enc20pb"
	"lancekeeper/internal/lance/lancepb/enc21pb"
	"lancekeeper/internal/lance/lancepb/filepb"
	"lancekeeper/internal/objstore"
)

// Description is what a data file says of itself, for people who look into one.
type Description struct {
	Version       string              `json:"version"` // 2.0, 2.1 or 2.2
	Bytes         int64               `json:"bytes"`
	Rows          uint64              `json:"rows"`
	GlobalBuffers []Extent            `json:"globalBuffers"`
	Columns       []ColumnDescription `json:"columns"`
}

// ColumnDescription is one column. Field, Name and Type are left out where the file's schema does not tell which field it holds.
type ColumnDescription struct {
	Field         *int32            `json:"field,omitempty"`
	Name          string            `json:"name,omitempty"` // dotted path from the top
	Type          string            `json:"type,omitempty"` // logical type
	MetadataBytes int64             `json:"metadataBytes"`
	Buffers       []Extent          `json:"buffers,omitempty"` // that belong to no page
	Pages         []PageDescription `json:"pages"`
}

// PageDescription is one page. Priority is the row at which the page begins.
type PageDescription struct {
	Rows     uint64    `json:"rows"`
	Priority uint64    `json:"priority"`
	Buffers  []Extent  `json:"buffers"`
	Encoding *Encoding `json:"encoding"`
}

// Extent is a place in the file.
type Extent struct {
	At    int64 `json:"at"`
	Bytes int64 `json:"bytes"`
}

// Encoding is one node of an encoding tree, in the format's own words.
type Encoding struct {
	Role    string     `json:"role,omitempty"` // what it is for in the node above
	Kind    string     `json:"kind"`
	Details []Detail   `json:"details,omitempty"`
	Parts   []Encoding `json:"parts,omitempty"`
}

// Detail is one member of a node.
type Detail struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Describe reads what stands behind the pages of a file, and none of the pages. It takes files that can't be rewritten too, such as
// those of indices. ErrCorrupt; ErrUnsupported for legacy and unknown file versions and for encodings that are not known.
func Describe(ctx context.Context, store objstore.Store, key string) (*Description, error) {
	r, f, tail, err := openTail(ctx, store, key, 0)
	if err != nil {
		return nil, err
	}
	return r.description(ctx, f, tail)
}

func (r *Reader) description(ctx context.Context, f footer, tail []byte) (*Description, error) {
	base := r.size - int64(len(tail))
	globals, err := readTable(r.key, "global buffer", tail[f.bufferTable-base:], int(f.buffers), 0, f.metas)
	if err != nil {
		return nil, err
	}
	if len(globals) == 0 {
		return nil, lance.Corrupt(r.key, "no file descriptor")
	}
	columns, err := readTable(r.key, "metadata of column", tail[f.columnTable-base:], int(f.columns), f.metas, f.columnTable)
	if err != nil {
		return nil, err
	}
	descriptor, err := r.descriptor(ctx, globals[0], base, tail)
	if err != nil {
		return nil, err
	}
	d := &Description{Version: fmt.Sprintf("2.%d", r.minor), Bytes: r.size, Rows: descriptor.GetLength(), Columns: []ColumnDescription{}}
	for _, g := range globals {
		d.GlobalBuffers = append(d.GlobalBuffers, Extent{g.at, g.size})
	}
	named := stored(descriptor.GetSchema().GetFields(), r.minor)
	for i, s := range columns {
		c, err := r.column(tail[s.at-base : s.end()-base])
		if err != nil {
			return nil, fmt.Errorf("column %d of %s: %w", i, r.key, err)
		}
		if len(named) == len(columns) {
			c.Field, c.Name, c.Type = named[i].Field, named[i].Name, named[i].Type
		}
		d.Columns = append(d.Columns, c)
	}
	return d, nil
}

// stored lists the fields that have a column, in the order of the columns: all of them in 2.0, later those without fields of their own,
// and structs that are packed.
func stored(fields []*lancepb.Field, minor int) []ColumnDescription {
	parents, paths, within := map[int32]bool{}, map[int32]string{}, map[int32]bool{}
	for _, f := range fields {
		parents[f.GetParentId()] = true
	}
	var out []ColumnDescription
	for _, f := range fields {
		path := f.GetName()
		if above, ok := paths[f.GetParentId()]; ok {
			path = above + "." + path
		}
		paths[f.GetId()] = path
		_, packed := f.GetMetadata()["lance-encoding:packed"]
		inside := within[f.GetParentId()]
		within[f.GetId()] = inside || packed
		if inside || minor > 0 && parents[f.GetId()] && !packed {
			continue
		}
		id := f.GetId()
		out = append(out, ColumnDescription{Field: &id, Name: path, Type: f.GetLogicalType()})
	}
	return out
}

func (r *Reader) column(body []byte) (ColumnDescription, error) {
	var meta filepb.ColumnMetadata
	if err := proto.Unmarshal(body, &meta); err != nil {
		return ColumnDescription{}, lance.Corrupt(r.key, "column metadata: %v", err)
	}
	c := ColumnDescription{MetadataBytes: int64(len(body)), Pages: []PageDescription{}}
	var err error
	if c.Buffers, err = r.extents(meta.GetBufferOffsets(), meta.GetBufferSizes()); err != nil {
		return ColumnDescription{}, err
	}
	for i, p := range meta.GetPages() {
		d := PageDescription{Rows: p.GetLength(), Priority: p.GetPriority()}
		if d.Buffers, err = r.extents(p.GetBufferOffsets(), p.GetBufferSizes()); err != nil {
			return ColumnDescription{}, fmt.Errorf("page %d: %w", i, err)
		}
		if d.Encoding, err = layout(p.GetEncoding().GetDirect().GetEncoding()); err != nil {
			return ColumnDescription{}, fmt.Errorf("page %d: %w", i, err)
		}
		c.Pages = append(c.Pages, d)
	}
	return c, nil
}

func (r *Reader) extents(offsets, sizes []uint64) ([]Extent, error) {
	if len(offsets) != len(sizes) {
		return nil, lance.Corrupt(r.key, "%d buffer positions and %d sizes", len(offsets), len(sizes))
	}
	out := make([]Extent, len(offsets))
	for i, at := range offsets {
		s := span{int64(at), int64(sizes[i])}
		if !s.within(r.size) {
			return nil, lance.Corrupt(r.key, "buffer %d (%d bytes at %d) lies outside the file", i, s.size, s.at)
		}
		out[i] = Extent{s.at, s.size}
	}
	return out, nil
}

// layout decodes the description of a page.
func layout(raw []byte) (*Encoding, error) {
	var wrapped anypb.Any
	if err := proto.Unmarshal(raw, &wrapped); err != nil {
		return nil, lance.Corrupt("", "encoding: %v", err)
	}
	var message proto.Message
	switch wrapped.GetTypeUrl() {
	case urlPageLayout:
		message = &enc21pb.PageLayout{}
	case urlArrayEncoding:
		message = &enc20pb.ArrayEncoding{}
	default:
		return nil, lance.Unsupported("encoding", wrapped.GetTypeUrl(), "")
	}
	if err := proto.Unmarshal(wrapped.GetValue(), message); err != nil {
		return nil, lance.Corrupt("", "encoding: %v", err)
	}
	e := node("", message.ProtoReflect())
	return &e, nil
}

// node walks a message: members that are messages become parts, the others details. A message that only chooses among kinds is passed
// over for the one it holds.
func node(role string, m protoreflect.Message) Encoding {
	e := Encoding{Role: role, Kind: string(m.Descriptor().Name())}
	if oneofs := m.Descriptor().Oneofs(); oneofs.Len() == 1 && oneofs.Get(0).Fields().Len() == m.Descriptor().Fields().Len() && !oneofs.Get(0).IsSynthetic() {
		chosen := m.WhichOneof(oneofs.Get(0))
		if chosen == nil || chosen.Message() == nil {
			e.Kind = "unknown"
			return e
		}
		return node(role, m.Get(chosen).Message())
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name, value := string(f.Name()), m.Get(f)
		switch {
		case !m.Has(f):
		case f.IsList():
			e.list(f, value.List())
		case f.Message() != nil:
			e.Parts = append(e.Parts, node(name, value.Message()))
		default:
			e.Details = append(e.Details, Detail{name, text(f, value)})
		}
	}
	if len(m.GetUnknown()) > 0 {
		e.Details = append(e.Details, Detail{"unknown", fmt.Sprintf("%d bytes", len(m.GetUnknown()))})
	}
	return e
}

func (e *Encoding) list(f protoreflect.FieldDescriptor, values protoreflect.List) {
	var texts []string
	for i := range values.Len() {
		if f.Message() != nil {
			e.Parts = append(e.Parts, node(fmt.Sprintf("%s %d", f.Name(), i), values.Get(i).Message()))
			continue
		}
		texts = append(texts, text(f, values.Get(i)))
	}
	if f.Message() == nil {
		e.Details = append(e.Details, Detail{string(f.Name()), strings.Join(texts, ",")})
	}
}

// longestHex is how many bytes are shown; of more than these only the number.
const longestHex = 16

func text(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch f.Kind() {
	case protoreflect.EnumKind:
		if known := f.Enum().Values().ByNumber(v.Enum()); known != nil {
			return string(known.Name())
		}
		return fmt.Sprintf("unknown (%d)", v.Enum())
	case protoreflect.BytesKind:
		if b := v.Bytes(); len(b) > longestHex {
			return fmt.Sprintf("%d bytes", len(b))
		}
		return "0x" + hex.EncodeToString(v.Bytes())
	default:
		return v.String()
	}
}
