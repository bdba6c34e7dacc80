package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"lancekeeper/internal/lance/datafile"
)

// InspectText writes for people what a data file says of itself.
func InspectText(w io.Writer, file string, d *datafile.Description) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  file version %s, %s rows, %s columns, %s\n", file, d.Version, humanize.Comma(int64(d.Rows)),
		humanize.Comma(int64(len(d.Columns))), size(d.Bytes))
	fmt.Fprintf(&b, "  global buffers: %s\n", extents(d.GlobalBuffers))
	for i, c := range d.Columns {
		columnText(&b, i, c)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the description of %s: %w", file, err)
	}
	return nil
}

func columnText(b *strings.Builder, i int, c datafile.ColumnDescription) {
	fmt.Fprintf(b, "\ncolumn %d", i)
	if c.Field != nil {
		fmt.Fprintf(b, "  %s  %s (field %d)", c.Name, c.Type, *c.Field)
	}
	var bytes int64
	for _, p := range c.Pages {
		for _, e := range p.Buffers {
			bytes += e.Bytes
		}
	}
	fmt.Fprintf(b, ": %d pages of %s, %s of metadata\n", len(c.Pages), size(bytes), size(c.MetadataBytes))
	if len(c.Buffers) > 0 {
		fmt.Fprintf(b, "  own buffers: %s\n", extents(c.Buffers))
	}
	for j, p := range c.Pages {
		fmt.Fprintf(b, "  page %d: %s rows, priority %d; buffers: %s\n", j, humanize.Comma(int64(p.Rows)), p.Priority, extents(p.Buffers))
		encodingText(b, *p.Encoding, 2)
	}
}

func encodingText(b *strings.Builder, e datafile.Encoding, depth int) {
	b.WriteString(strings.Repeat("  ", depth))
	if e.Role != "" {
		b.WriteString(e.Role + ": ")
	}
	b.WriteString(e.Kind)
	for _, d := range e.Details {
		b.WriteString(" " + d.Name + "=" + d.Value)
	}
	b.WriteByte('\n')
	for _, part := range e.Parts {
		encodingText(b, part, depth+1)
	}
}

func extents(all []datafile.Extent) string {
	if len(all) == 0 {
		return "none"
	}
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = fmt.Sprintf("%s at %d", size(e.Bytes), e.At)
	}
	return strings.Join(texts, ", ")
}

func size(bytes int64) string { return humanize.IBytes(uint64(max(0, bytes))) }
