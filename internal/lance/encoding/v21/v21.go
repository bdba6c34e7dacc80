// Package v21 turns pages of file versions 2.1 and 2.2 into rows and back.
//
// A page is a PageLayout message and a few buffers: repetition levels, definition levels and leaf values in one of the
// layouts mini-block, full-zip or constant (lance-format/lance protos/encodings_v2_1.proto and
// rust/lance-encoding/src/encodings/logical/primitive).
package v21

import (
	"fmt"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/general"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// Decode reads the rows of one page of a column of type t, from a file of version 2.minor (1 or 2). The block's byte slices
// may be parts of the buffers. Errors are of class lance.ErrCorrupt or lance.ErrUnsupported and name no object.
func Decode(t encoding.Type, layout *enc21pb.PageLayout, buffers [][]byte, rows, minor int) (*encoding.Block, error) {
	limit := maxAmplified
	for _, b := range buffers {
		limit += perInput * len(b)
	}
	return decode(t, layout, page{buffers: buffers, rows: rows, minor: minor, limit: limit})
}

// page is what comes with a layout.
type page struct {
	buffers [][]byte
	rows    int
	minor   int
	limit   int // bytes that it may decode to
}

func decode(t encoding.Type, layout *enc21pb.PageLayout, p page) (*encoding.Block, error) {
	if err := t.Check(); err != nil {
		return nil, err //nolint:wrapcheck // class and detail are those of the page
	}
	if err := checkVersion(t, p.minor); err != nil {
		return nil, err
	}
	if p.rows < 0 || p.rows > p.limit/2 {
		return nil, lance.Unsupported("page", fmt.Sprintf("of %d rows", p.rows), "")
	}
	codec := general.New(p.limit)
	defer codec.Close()
	switch l := layout.GetLayout().(type) {
	case *enc21pb.PageLayout_MiniBlockLayout:
		return decodeMini(t, l.MiniBlockLayout, p, codec)
	case *enc21pb.PageLayout_FullZipLayout:
		return decodeZip(t, l.FullZipLayout, p, codec)
	case *enc21pb.PageLayout_ConstantLayout:
		return decodeConstant(t, l.ConstantLayout, p, codec)
	case *enc21pb.PageLayout_BlobLayout:
		return nil, lance.Unsupported("encoding", "blob", "")
	default:
		return nil, lance.Unsupported("encoding", "page without a layout", "")
	}
}

// checkVersion refuses other file versions, and structs without fields: with one, official readers mix up the other columns.
func checkVersion(t encoding.Type, minor int) error {
	if minor != 1 && minor != 2 {
		return lance.Unsupported("file version", fmt.Sprintf("2.%d", minor), "")
	}
	if t.Kind == encoding.Void {
		return lance.Unsupported("column type", fmt.Sprintf("struct without fields in file version 2.%d", minor), "")
	}
	return nil
}
