package encodingtest

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancepb/filepb"
)

// Page is one encoded page of a column.
type Page struct {
	Rows    int
	URL     string // of the type of Layout
	Layout  proto.Message
	Buffers [][]byte
}

// WriteFile writes a data file of version 2.minor with one column, for the official reader. The fields are the column's, with
// the lists and structs around it.
func WriteFile(t testing.TB, path string, minor int, fields []*lancepb.Field, pages []Page) {
	t.Helper()
	var out []byte
	align := func() {
		for len(out)%64 != 0 {
			out = append(out, 'H')
		}
	}
	columnEncoding := direct(t, "/lance.encodings.ColumnEncoding", []byte{0x0a, 0x00})
	column := &filepb.ColumnMetadata{Encoding: columnEncoding}
	rows := 0
	for _, p := range pages {
		body, err := proto.Marshal(p.Layout)
		require.NoError(t, err)
		page := &filepb.ColumnMetadata_Page{Length: uint64(p.Rows), Priority: uint64(rows), Encoding: direct(t, p.URL, body)}
		for _, b := range p.Buffers {
			align()
			page.BufferOffsets = append(page.BufferOffsets, uint64(len(out)))
			page.BufferSizes = append(page.BufferSizes, uint64(len(b)))
			out = append(out, b...)
		}
		column.Pages = append(column.Pages, page)
		rows += p.Rows
	}
	align()
	descriptor, err := proto.Marshal(&lancepb.FileDescriptor{Schema: &lancepb.Schema{Fields: fields}, Length: uint64(rows)})
	require.NoError(t, err)
	meta, err := proto.Marshal(column)
	require.NoError(t, err)
	global := len(out)
	out = append(out, descriptor...)
	metas := len(out)
	out = append(out, meta...)
	columns := len(out)
	out = appendNumbers(out, metas, len(meta), global, len(descriptor), metas, columns, columns+16)
	out = binary.LittleEndian.AppendUint32(out, 1)
	out = binary.LittleEndian.AppendUint32(out, 1)
	major := uint16(2)
	if minor == 0 {
		major, minor = 0, 3
	}
	out = binary.LittleEndian.AppendUint16(out, major)
	out = binary.LittleEndian.AppendUint16(out, uint16(minor))
	require.NoError(t, os.WriteFile(path, append(out, "LANC"...), 0o600))
}

func direct(t testing.TB, url string, body []byte) *filepb.Encoding {
	t.Helper()
	wrapped, err := proto.Marshal(&anypb.Any{TypeUrl: url, Value: body})
	require.NoError(t, err)
	return &filepb.Encoding{Location: &filepb.Encoding_Direct{Direct: &filepb.DirectEncoding{Encoding: wrapped}}}
}

func appendNumbers(dst []byte, numbers ...int) []byte {
	for _, n := range numbers {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
	}
	return dst
}
