package datafile

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancepb/filepb"
	"lancekeeper/internal/objstore"
)

const (
	// WholeBytes is the size up to which a file is read in one request and kept.
	WholeBytes = 256 << 10
	tailBytes  = 64 << 10 // first read of a larger one; the official block size on cloud stores
	// maxMetadata bounds what is read behind the pages: some hundred bytes a page.
	maxMetadata = 256 << 20
	// maxGap is the most unneeded bytes between two buffers of a page that are still read in one request.
	maxGap = 64 << 10
	// maxLength bounds the values of a column, so that sums and products of them cannot overflow.
	maxLength = 1 << 40
)

// Reader gives the pages of one data file. Its methods may be called concurrently.
type Reader struct {
	store   objstore.Store
	key     string
	size    int64
	minor   int
	rows    uint64
	columns [][]page
	whole   []byte // nil unless the file is small
	cost    int64  // bytes held
}

// page is one page's place.
type page struct {
	rows     int
	buffers  []span
	encoding []byte // a google.protobuf.Any
}

// Open reads what stands behind the pages of the file at key: all of it for a small file. size is what the manifest says, 0 if
// it says nothing; another size is corrupt. ErrUnsupported for file versions other than 2.0, 2.1 and 2.2 and for global
// buffers that are not known.
func Open(ctx context.Context, store objstore.Store, key string, size int64) (*Reader, error) {
	r, f, tail, err := openTail(ctx, store, key, size)
	if err != nil {
		return nil, err
	}
	if err := r.decode(ctx, f, tail); err != nil {
		return nil, err
	}
	if r.whole != nil {
		r.cost += r.size
	}
	return r, nil
}

// openTail reads the footer and all that stands behind the pages, which is not decoded yet.
func openTail(ctx context.Context, store objstore.Store, key string, size int64) (r *Reader, f footer, tail []byte, err error) {
	r = &Reader{store: store, key: key}
	if tail, err = r.readTail(ctx, size); err != nil {
		return nil, f, nil, err
	}
	if f, err = readFooter(key, tail, r.size); err != nil {
		return nil, f, nil, err
	}
	if r.minor, err = f.version(key); err != nil {
		return nil, f, nil, err
	}
	tail, err = r.extend(ctx, tail, f.metas)
	return r, f, tail, err
}

func (r *Reader) readTail(ctx context.Context, recorded int64) ([]byte, error) {
	n := int64(tailBytes)
	if recorded > 0 && recorded <= WholeBytes {
		n = WholeBytes
	}
	tail, size, err := r.store.GetTail(ctx, r.key, n)
	if err != nil {
		return nil, fmt.Errorf("read data file %s: %w", r.key, err)
	}
	if recorded > 0 && size != recorded {
		return nil, lance.Corrupt(r.key, "it has %d bytes, the manifest says %d", size, recorded)
	}
	r.size = size
	if int64(len(tail)) == size {
		r.whole = tail
	}
	return tail, nil
}

// extend reads more of the end of the file, so that it begins at or before position.
func (r *Reader) extend(ctx context.Context, tail []byte, position int64) ([]byte, error) {
	have := r.size - int64(len(tail))
	if position >= have {
		return tail, nil
	}
	if r.size-position > maxMetadata {
		return nil, lance.Unsupported("file metadata", fmt.Sprintf("of %d bytes", r.size-position), r.key)
	}
	more, err := r.store.GetRange(ctx, r.key, position, have-position)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of %s: %w", r.key, err)
	}
	return append(more, tail...), nil
}

// decode reads column metadata and tables from the end of the file, and the file descriptor.
func (r *Reader) decode(ctx context.Context, f footer, tail []byte) error {
	base := r.size - int64(len(tail))
	columns, err := readTable(r.key, "metadata of column", tail[f.columnTable-base:], int(f.columns), f.metas, f.columnTable)
	if err != nil {
		return err
	}
	globals, err := readTable(r.key, "global buffer", tail[f.bufferTable-base:], int(f.buffers), 0, f.metas)
	if err != nil {
		return err
	}
	if len(globals) != 1 {
		return lance.Unsupported("data file", fmt.Sprintf("with %d global buffers", len(globals)), r.key)
	}
	descriptor, err := r.descriptor(ctx, globals[0], base, tail)
	if err != nil {
		return err
	}
	r.rows = descriptor.GetLength()
	for i, c := range columns {
		pages, err := r.pages(tail[c.at-base:c.end()-base], globals[0].at)
		if err != nil {
			return fmt.Errorf("column %d of %s: %w", i, r.key, err)
		}
		r.columns = append(r.columns, pages)
		r.cost += 2 * c.size
	}
	return nil
}

// descriptor reads the file's own schema and row count.
func (r *Reader) descriptor(ctx context.Context, s span, base int64, tail []byte) (*lancepb.FileDescriptor, error) {
	var body []byte
	if s.at >= base {
		body = tail[s.at-base : s.end()-base]
	} else {
		if s.size > maxMetadata {
			return nil, lance.Unsupported("file descriptor", fmt.Sprintf("of %d bytes", s.size), r.key)
		}
		var err error
		if body, err = r.store.GetRange(ctx, r.key, s.at, s.size); err != nil {
			return nil, fmt.Errorf("read the descriptor of %s: %w", r.key, err)
		}
	}
	var d lancepb.FileDescriptor
	if err := proto.Unmarshal(body, &d); err != nil {
		return nil, lance.Corrupt(r.key, "file descriptor: %v", err)
	}
	return &d, nil
}

// pages decodes a column's metadata; every buffer must lie before the limit.
func (r *Reader) pages(body []byte, limit int64) ([]page, error) {
	var meta filepb.ColumnMetadata
	if err := proto.Unmarshal(body, &meta); err != nil {
		return nil, lance.Corrupt(r.key, "column metadata: %v", err)
	}
	if len(meta.GetBufferOffsets()) > 0 {
		return nil, lance.Unsupported("encoding", "column buffers", r.key)
	}
	pages := make([]page, 0, len(meta.GetPages()))
	var rows uint64
	for i, p := range meta.GetPages() {
		if len(p.GetBufferOffsets()) != len(p.GetBufferSizes()) {
			return nil, lance.Corrupt(r.key, "page %d has %d buffer positions and %d sizes", i, len(p.GetBufferOffsets()), len(p.GetBufferSizes()))
		}
		out := page{encoding: p.GetEncoding().GetDirect().GetEncoding(), rows: int(p.GetLength())}
		for j, at := range p.GetBufferOffsets() {
			s := span{int64(at), int64(p.GetBufferSizes()[j])}
			if !s.within(limit) {
				return nil, lance.Corrupt(r.key, "buffer %d of page %d (%d bytes at %d) lies outside the data area", j, i, s.size, s.at)
			}
			out.buffers = append(out.buffers, s)
		}
		if p.GetLength() > maxLength-rows {
			return nil, lance.Corrupt(r.key, "pages of more than %d values", uint64(maxLength))
		}
		rows += p.GetLength()
		pages = append(pages, out)
	}
	return pages, nil
}

// Rows is the number of rows of the file.
func (r *Reader) Rows() uint64 { return r.rows }

// Columns is the number of columns.
func (r *Reader) Columns() int { return len(r.columns) }

// Minor is n of the file version 2.n.
func (r *Reader) Minor() int { return r.minor }

// Held is the bytes of memory that the reader keeps.
func (r *Reader) Held() int64 { return r.cost }

// Shed drops the content of a small file; pages are then read from the store.
func (r *Reader) Shed() {
	if r.whole != nil {
		r.cost -= r.size
		r.whole = nil
	}
}

// read fetches buffers: neighbours in one request.
func (r *Reader) read(ctx context.Context, spans []span) ([][]byte, error) {
	out := make([][]byte, len(spans))
	for i := 0; i < len(spans); {
		first, last := spans[i], spans[i].end()
		j := i + 1
		for ; j < len(spans) && spans[j].at >= last && spans[j].at-last <= maxGap; j++ {
			last = spans[j].end()
		}
		data, err := r.bytes(ctx, span{first.at, last - first.at})
		if err != nil {
			return nil, err
		}
		for ; i < j; i++ {
			from := spans[i].at - first.at
			out[i] = data[from : from+spans[i].size : from+spans[i].size]
		}
	}
	return out, nil
}

func (r *Reader) bytes(ctx context.Context, s span) ([]byte, error) {
	if s.size == 0 {
		return nil, nil
	}
	if r.whole != nil {
		return r.whole[s.at:s.end()], nil
	}
	return r.store.GetRange(ctx, r.key, s.at, s.size) //nolint:wrapcheck // wrapped by the caller
}
