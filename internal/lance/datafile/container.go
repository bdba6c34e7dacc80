// Package datafile reads and writes data files of versions 2.0, 2.1 and 2.2: the container with footer, column metadata and pages,
// and leaf columns in it, which in 2.0 are spread over the columns of all lists and structs around them.
package datafile

import (
	"encoding/binary"
	"fmt"

	"lancekeeper/internal/lance"
)

// The container (lance-file src/reader.rs:decode_footer, src/versions/v2_2/writer.rs:finish).
const (
	footerSize = 40
	tableEntry = 16 // a position and a size
	alignment  = 64 // of page and global buffers
	padByte    = 72 // between them; never read
	magic      = "LANC"
)

// Type URLs of the messages in page and column encodings.
const (
	urlPageLayout     = "/lance.encodings21.PageLayout"
	urlArrayEncoding  = "/lance.encodings.ArrayEncoding"
	urlColumnEncoding = "/lance.encodings.ColumnEncoding"
)

// footer is the last 40 bytes of a file.
type footer struct {
	metas, columnTable, bufferTable int64 // positions
	buffers, columns                int64 // counts
	major, minor                    uint16
}

// readFooter decodes and checks a footer against the size of the file. object is for errors.
func readFooter(object string, tail []byte, size int64) (footer, error) {
	if size < footerSize || len(tail) < footerSize {
		return footer{}, lance.Corrupt(object, "data file of %d bytes is too short for a footer", size)
	}
	b := tail[len(tail)-footerSize:]
	if string(b[36:]) != magic {
		return footer{}, lance.Corrupt(object, "data file of %d bytes does not end in %s: it may be cut", size, magic)
	}
	at := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[i:])) }
	f := footer{
		metas: at(0), columnTable: at(8), bufferTable: at(16),
		buffers: int64(binary.LittleEndian.Uint32(b[24:])), columns: int64(binary.LittleEndian.Uint32(b[28:])),
		major: binary.LittleEndian.Uint16(b[32:]), minor: binary.LittleEndian.Uint16(b[34:]),
	}
	if _, err := f.version(object); err != nil {
		return footer{}, err // legacy files have another footer
	}
	end := size - footerSize
	inside := 0 <= f.metas && f.metas <= f.columnTable && f.columnTable <= f.bufferTable && f.bufferTable <= end
	if !inside || f.columns*tableEntry > f.bufferTable-f.columnTable || f.buffers*tableEntry > end-f.bufferTable {
		return footer{}, lance.Corrupt(object, "the footer's positions do not fit the %d bytes of the file", size)
	}
	return f, nil
}

// version is the file version of a footer; 2.0 files say (0,3) (lance-file src/version.rs).
func (f footer) version(object string) (minor int, err error) {
	switch {
	case f.major == 0 && f.minor == 3:
		return 0, nil
	case f.major == 2 && f.minor <= 2:
		return int(f.minor), nil
	case f.major == 0 && f.minor < 3:
		return 0, lance.Unsupported("file version", "0.1 (legacy)", object)
	}
	return 0, lance.Unsupported("file version", fmt.Sprintf("%d.%d", f.major, f.minor), object)
}

// bytes encodes the footer.
func (f footer) bytes() []byte {
	b := make([]byte, 0, footerSize)
	for _, position := range []int64{f.metas, f.columnTable, f.bufferTable} {
		b = binary.LittleEndian.AppendUint64(b, uint64(position))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(f.buffers))
	b = binary.LittleEndian.AppendUint32(b, uint32(f.columns))
	b = binary.LittleEndian.AppendUint16(b, f.major)
	b = binary.LittleEndian.AppendUint16(b, f.minor)
	return append(b, magic...)
}

// span is a position and a size in the file.
type span struct{ at, size int64 }

func (s span) end() int64 { return s.at + s.size }

// within says whether the span lies in [0, limit), where no sum can overflow.
func (s span) within(limit int64) bool {
	return s.at >= 0 && s.size >= 0 && s.at <= limit && s.size <= limit-s.at
}

// readTable decodes n entries of positions and sizes, all within [from, to).
func readTable(object, what string, b []byte, n int, from, to int64) ([]span, error) {
	spans := make([]span, n)
	for i := range spans {
		s := span{int64(binary.LittleEndian.Uint64(b[i*tableEntry:])), int64(binary.LittleEndian.Uint64(b[i*tableEntry+8:]))}
		if !s.within(to) || s.at < from {
			return nil, lance.Corrupt(object, "%s %d (%d bytes at %d) lies outside its part of the file", what, i, s.size, s.at)
		}
		spans[i] = s
	}
	return spans, nil
}
