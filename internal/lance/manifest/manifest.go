// Package manifest turns the manifest file of a version into its parts and back, and says what in it is not understood.
package manifest

import (
	"bytes"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
)

// The footer (lance-table src/io/manifest.rs:read_manifest; lance-io src/traits.rs:WriteExt): i64 position of the message's
// length prefix, u16 major, u16 minor, magic.
const (
	FooterSize       = 16
	lengthSize       = 4
	magic            = "LANC"
	majorVersion     = 0
	minorVersion     = 2
	maxInlineTxnSize = 20 << 20 // larger transactions are not inlined (lance-table src/io/manifest.rs)
)

// Manifest is the content of a manifest file. The embedded message keeps all fields as read, unknown ones included.
type Manifest struct {
	*lancepb.Manifest
	Indices     []*lancepb.IndexMetadata
	Transaction *lancepb.Transaction // the inline copy; nil if there is none or it can't be decoded
	// Dictionaries are the first bytes of the file where old engines keep the values of dictionary columns, whose fields give
	// their positions (lance-core src/datatypes/schema.rs, up to 0.2x). Newer ones neither write nor read them, but with the
	// fields and without the bytes the old ones can't open the table.
	Dictionaries []byte
}

// Footer is the position of the manifest message's length prefix, from the last 16 bytes of the file.
func Footer(object string, tail []byte, size int64) (int64, error) {
	if size == 0 {
		return 0, lance.Corrupt(object, "manifest of 0 bytes")
	}
	if len(tail) < FooterSize || size < FooterSize+lengthSize {
		return 0, lance.Corrupt(object, "manifest of %d bytes is too short for a footer", size)
	}
	footer := tail[len(tail)-FooterSize:]
	if string(footer[12:]) != magic {
		return 0, lance.Corrupt(object, "manifest of %d bytes does not end in %s: it may be cut", size, magic)
	}
	position := int64(binary.LittleEndian.Uint64(footer))
	if position < 0 || position > size-FooterSize-lengthSize {
		return 0, lance.Corrupt(object, "manifest position %d lies outside the %d bytes of the file", position, size)
	}
	return position, nil
}

// Decode reads a whole manifest file. ErrCorrupt on any break; it does not judge whether all of it is understood (Check).
func Decode(object string, data []byte) (*Manifest, error) {
	position, err := Footer(object, data, int64(len(data)))
	if err != nil {
		return nil, err
	}
	body, ok := section(data, uint64(position))
	if !ok || uint64(position)+lengthSize+uint64(len(body)) != uint64(len(data)-FooterSize) {
		return nil, lance.Corrupt(object, "the length of the manifest message at %d does not fit the %d bytes of the file", position, len(data))
	}
	m := &Manifest{Manifest: &lancepb.Manifest{}}
	if err := proto.Unmarshal(body, m.Manifest); err != nil {
		return nil, lance.Corrupt(object, "manifest message: %v", err)
	}
	m.Dictionaries = dictionaries(data, uint64(position), m.Manifest)
	if m.IndexSection != nil {
		body, ok := section(data, m.GetIndexSection())
		if !ok {
			return nil, lance.Corrupt(object, "index section at %d lies outside the file", m.GetIndexSection())
		}
		var s lancepb.IndexSection
		if err := proto.Unmarshal(body, &s); err != nil {
			return nil, lance.Corrupt(object, "index section: %v", err)
		}
		if len(s.ProtoReflect().GetUnknown()) > 0 {
			return nil, lance.Unsupported("field", "in the index section", object)
		}
		m.Indices = s.GetIndices()
	}
	m.Transaction = inline(data, m.Manifest)
	return m, nil
}

// dictionaries are the bytes in front of all sections, if a field says that a dictionary stands there.
func dictionaries(data []byte, end uint64, m *lancepb.Manifest) []byte {
	for _, section := range []*uint64{m.IndexSection, m.TransactionSection, m.TransactionSectionDeprecated} {
		if section != nil {
			end = min(end, *section)
		}
	}
	for _, f := range m.GetFields() {
		d := f.GetDictionary()
		if d.GetLength() > 0 && d.GetOffset() >= 0 && uint64(d.GetOffset()) < end {
			return bytes.Clone(data[:end])
		}
	}
	return nil
}

// inline decodes the inline transaction. It must never make opening fail.
func inline(data []byte, m *lancepb.Manifest) *lancepb.Transaction {
	position := m.TransactionSection
	if position == nil {
		position = m.TransactionSectionDeprecated
	}
	if position == nil {
		return nil
	}
	body, ok := section(data, *position)
	if !ok {
		return nil
	}
	var t lancepb.Transaction
	if proto.Unmarshal(body, &t) != nil {
		return nil
	}
	return &t
}

// section is the length-prefixed message at a position.
func section(data []byte, position uint64) ([]byte, bool) {
	size := uint64(len(data))
	if position > size || size-position < lengthSize {
		return nil, false
	}
	length := uint64(binary.LittleEndian.Uint32(data[position:]))
	start := position + lengthSize
	if length > size-start {
		return nil, false
	}
	return data[start : start+length], true
}

// Encode lays out a manifest file: dictionaries, index section, inline transaction, message, footer. It sets the positions of the
// sections in the message (and clears those that it does not write), and is deterministic.
func Encode(m *Manifest) ([]byte, error) {
	options := proto.MarshalOptions{Deterministic: true}
	out := bytes.Clone(m.Dictionaries) // they hold positions: they stay where they are
	add := func(message proto.Message) (uint64, error) {
		position := uint64(len(out))
		body, err := options.Marshal(message)
		if err != nil {
			return 0, err //nolint:wrapcheck // wrapped below
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
		out = append(out, body...)
		return position, nil
	}
	m.IndexSection, m.TransactionSection, m.TransactionSectionDeprecated = nil, nil, nil
	if len(m.Indices) > 0 {
		position, err := add(&lancepb.IndexSection{Indices: m.Indices})
		if err != nil {
			return nil, lance.Corrupt("", "encode index section: %v", err)
		}
		m.IndexSection = &position
	}
	if m.Transaction != nil && proto.Size(m.Transaction) <= maxInlineTxnSize {
		position, err := add(m.Transaction)
		if err != nil {
			return nil, lance.Corrupt("", "encode transaction: %v", err)
		}
		m.TransactionSection = &position
	}
	position, err := add(m.Manifest)
	if err != nil {
		return nil, lance.Corrupt("", "encode manifest: %v", err)
	}
	out = binary.LittleEndian.AppendUint64(out, position)
	out = binary.LittleEndian.AppendUint16(out, majorVersion)
	out = binary.LittleEndian.AppendUint16(out, minorVersion)
	return append(out, magic...), nil
}
