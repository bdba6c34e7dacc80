// Package fsst decodes strings compressed with a static symbol table, in the table layout that Lance files carry.
package fsst

import (
	"encoding/binary"

	"lancekeeper/internal/lance"
)

// The serialized table (lance-format/lance rust/compression/fsst/src/fsst.rs:FsstEncoder::export): a 64-bit header, then
// 8 bytes a symbol, then one length byte a symbol, zero-filled to TableSize.
const (
	// TableSize is the bytes of every serialized table.
	TableSize = 2312

	magic      = 0x46535354 // upper half of the header
	escapeCode = 255        // the next byte stands for itself
)

// Table maps codes to byte strings of 1 to 8 bytes.
type Table struct {
	plain   bool // the strings are not compressed at all
	symbols [256]uint64
	lengths [256]uint8 // 0: no such code
}

// ParseTable reads a serialized table. The error is of class lance.ErrCorrupt.
func ParseTable(b []byte) (*Table, error) {
	if len(b) != TableSize {
		return nil, lance.Corrupt("", "fsst table of %d bytes, not %d", len(b), TableSize)
	}
	header := binary.LittleEndian.Uint64(b)
	if header>>32 != magic {
		return nil, lance.Corrupt("", "fsst table begins with %#x", header)
	}
	t := &Table{plain: header>>24&1 == 0}
	n := int(header & 255)
	lengths := b[8+8*n:][:n]
	for i, size := range lengths {
		if size == 0 || size > 8 {
			return nil, lance.Corrupt("", "fsst symbol %d of %d bytes", i, size)
		}
		t.symbols[i] = binary.LittleEndian.Uint64(b[8+8*i:])
		t.lengths[i] = size
	}
	return t, nil
}

// Decode appends the bytes that the codes in src stand for to dst, at most eight for each of src. The error is of class
// lance.ErrCorrupt.
func (t *Table) Decode(dst, src []byte) ([]byte, error) {
	if t.plain {
		return append(dst, src...), nil
	}
	for i := 0; i < len(src); i++ {
		code := src[i]
		if code == escapeCode {
			i++
			if i == len(src) {
				return nil, lance.Corrupt("", "fsst escape at the end of a value")
			}
			dst = append(dst, src[i])
			continue
		}
		size := t.lengths[code]
		if size == 0 {
			return nil, lance.Corrupt("", "fsst code %d is not in the table", code)
		}
		end := len(dst) + int(size)
		dst = binary.LittleEndian.AppendUint64(dst, t.symbols[code])[:end]
	}
	return dst, nil
}
