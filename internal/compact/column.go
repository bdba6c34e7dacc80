package compact

import (
	"errors"
	"fmt"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/encoding"
)

// A page is cut when it has this much, as official writers do with 8 MiB of a column's values
// (lance-encoding src/utils/accumulation.rs).
const pageBytes = 8 << 20

// aloneBytes is what a block has that makes a page of its own: to join it to others would copy all of it.
const aloneBytes = pageBytes / 4

// chunk is what was read of one piece: rows, or a page of them to be copied as it is; neither where no row of the piece is wanted.
type chunk struct {
	block *encoding.Block
	page  *datafile.RawPage
	sum   uint64 // of the page
}

// segment is a run of rows of a new column that is verified by itself.
type segment struct {
	rows   uint64
	copied bool   // as one page
	sum    uint64 // of the page as it is in the file, or of the values as they were read
}

// columnWriter writes one column of a new file: copied pages as they are, and the rows between them joined to pages.
type columnWriter struct {
	file    *datafile.Writer
	column  int
	t       encoding.Type
	builder *encoding.Builder
	hasher  *encoding.Hasher // of the rows since the last copied page
	rows    uint64           // how many those are

	segments []segment
}

func newColumnWriter(file *datafile.Writer, column int, t encoding.Type, layers int) *columnWriter {
	return &columnWriter{file: file, column: column, t: t, builder: encoding.NewBuilder(t, layers), hasher: encoding.NewHasher(t)}
}

// add writes the rows that follow.
func (w *columnWriter) add(c chunk) error {
	switch {
	case c.page != nil:
		if err := w.end(); err != nil {
			return err
		}
		w.segments = append(w.segments, segment{rows: uint64(c.page.Rows), copied: true, sum: c.sum})
		if err := w.file.CopyPage(w.column, c.page); err != nil {
			return fmt.Errorf("copy a page: %w", err)
		}
	case c.block != nil:
		w.hasher.Add(c.block)
		w.rows += uint64(c.block.Rows)
		if c.block.Bytes() >= aloneBytes && (w.builder.Rows() == 0 || w.builder.Bytes() >= aloneBytes) {
			if err := w.flush(); err != nil {
				return err
			}
			return w.page(c.block)
		}
		if err := w.builder.Append(c.block); err != nil {
			return fmt.Errorf("join pages: %w", err)
		}
		if w.builder.Bytes() >= pageBytes {
			return w.flush()
		}
	}
	return nil
}

// end writes what has not been written of the rows since the last copied page, and closes their segment.
func (w *columnWriter) end() error {
	if w.rows == 0 {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.segments = append(w.segments, segment{rows: w.rows, sum: w.hasher.Sum()})
	w.hasher, w.rows = encoding.NewHasher(w.t), 0
	return nil
}

func (w *columnWriter) flush() error {
	n := w.builder.Rows()
	if n == 0 {
		return nil
	}
	block, err := w.builder.Take(n)
	if err != nil {
		return fmt.Errorf("cut a page: %w", err)
	}
	return w.page(block)
}

// page writes a block as one page, or as several where a dictionary's keys would not do for one.
func (w *columnWriter) page(block *encoding.Block) error {
	err := w.file.WritePage(w.column, w.t, block)
	if !errors.Is(err, encoding.ErrKeys) || block.Rows < 2 {
		return err //nolint:wrapcheck // names the column
	}
	halves := encoding.NewBuilder(w.t, len(block.Layers))
	if err := halves.Append(block); err != nil {
		return fmt.Errorf("cut a page: %w", err)
	}
	for _, rows := range []int{block.Rows / 2, block.Rows - block.Rows/2} {
		half, err := halves.Take(rows)
		if err != nil {
			return fmt.Errorf("cut a page: %w", err)
		}
		if err := w.page(half); err != nil {
			return err
		}
	}
	return nil
}

// close ends the column, which must have so many rows.
func (w *columnWriter) close(rows uint64) ([]segment, error) {
	if err := w.end(); err != nil {
		return nil, err
	}
	var written uint64
	for _, s := range w.segments {
		written += s.rows
	}
	if written != rows {
		return nil, lance.Corrupt("", "%d live rows were read, %d planned", written, rows)
	}
	return w.segments, nil
}
