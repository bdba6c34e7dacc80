package compact

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/schema"
	"lancekeeper/internal/objstore"
)

// pipeBytes is handed to the store's upload at once.
const pipeBytes = 256 << 10

// errUploadEnded: the store gave up, for a reason of its own.
var errUploadEnded = errors.New("the upload has ended")

// Output is rewritten fragments, stored but not committed.
type Output struct {
	Group        commit.Group
	Keys         []string // of the data files
	BytesRead    int64
	BytesWritten int64
	RowsDropped  uint64

	columns [][][]segment // for each new fragment, what each column should be
	memory  int64         // for pages read ahead
}

// RewriteOptions bound a rewrite.
type RewriteOptions struct {
	MemoryBytes int64 // to stay under, roughly
	CopyBytes   int64 // the least size of a page that is copied as it is where all of its rows stay; 0: none is
}

// Rewrite reads the live rows of a task's fragments, column by column, and writes them to new data files with the given names,
// one for each of task.OutputRows. *FragmentError where one fragment's files are at fault.
func Rewrite(ctx context.Context, store objstore.Store, m *manifest.Manifest, task Task, names []string, o RewriteOptions) (*Output, error) {
	columns, err := schema.Columns(m.GetFields())
	if err != nil {
		return nil, fmt.Errorf("rewrite %d fragments: %w", len(task.Fragments), err)
	}
	_, minor, known := manifest.FileVersion(m)
	if !known || len(names) != len(task.OutputRows) {
		return nil, lance.Corrupt("", "no file version for %d new fragments with %d names", len(task.OutputRows), len(names))
	}
	layout, err := schema.Lay(columns, minor)
	if err != nil {
		return nil, fmt.Errorf("rewrite %d fragments: %w", len(task.Fragments), err)
	}
	out := &Output{Group: commit.Group{Old: task.Fragments}, memory: o.MemoryBytes / 4}
	for _, f := range task.Fragments {
		out.RowsDropped += f.GetDeletionFile().GetNumDeletedRows()
	}
	if len(names) == 0 {
		return out, nil
	}
	sources, err := openSources(ctx, store, task, columns, minor, out.memory)
	if err != nil {
		return nil, err
	}
	w := &rewriter{
		store: store, sources: sources, columns: columns, layout: layout, minor: minor, memory: out.memory, copyBytes: o.CopyBytes,
		schema: &lancepb.Schema{Fields: m.GetFields(), Metadata: m.GetSchemaMetadata()},
	}
	var rowIDs *lineage
	if manifest.StableRowIDs(m) {
		if rowIDs, err = lineageOf(sources); err != nil {
			return nil, err
		}
	}
	var skip uint64
	for i, rows := range task.OutputRows {
		if err := w.fragment(ctx, out, names[i], skip, rows); err != nil {
			return out, err
		}
		if rowIDs != nil {
			if err := rowIDs.attach(out.Group.New[i], skip, rows); err != nil {
				return out, err
			}
		}
		skip += rows
	}
	out.BytesRead = w.read.Load()
	return out, nil
}

type rewriter struct {
	store   objstore.Store
	sources []*source
	columns []schema.Column
	layout  schema.Physical
	schema  *lancepb.Schema
	minor   int
	memory  int64 // for pages read ahead
	read    atomic.Int64

	copyBytes int64 // see RewriteOptions
}

// fragment writes the live rows [skip, skip+rows) as one data file.
func (w *rewriter) fragment(ctx context.Context, out *Output, name string, skip, rows uint64) error {
	key := dataset.DataFolder + name
	reader, pipe := io.Pipe()
	segments := make([][]segment, len(w.columns))
	wrote := make(chan error, 1)
	go func() {
		buffered := bufio.NewWriterSize(pipe, pipeBytes)
		err := w.columnsTo(ctx, buffered, segments, skip, rows)
		if err == nil {
			err = buffered.Flush()
		}
		_ = pipe.CloseWithError(err) // never fails; nil is the end of the file
		wrote <- err
	}()
	size, err := w.store.Upload(ctx, key, reader)
	_ = reader.CloseWithError(errUploadEnded) // so that the writer never waits
	if inner := <-wrote; inner != nil && !errors.Is(inner, errUploadEnded) {
		err = inner // the cause, whatever the store made of it
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	file := &lancepb.DataFile{Path: name, FileMajorVersion: 2, FileMinorVersion: uint32(w.minor), FileSizeBytes: uint64(size)}
	for i, field := range w.layout.Fields {
		file.Fields = append(file.Fields, field)
		file.ColumnIndices = append(file.ColumnIndices, int32(i))
	}
	out.Group.New = append(out.Group.New, &lancepb.DataFragment{Files: []*lancepb.DataFile{file}, PhysicalRows: rows})
	out.Keys = append(out.Keys, key)
	out.BytesWritten += size
	out.columns = append(out.columns, segments)
	return nil
}

func (w *rewriter) columnsTo(ctx context.Context, to io.Writer, segments [][]segment, skip, rows uint64) error {
	file, err := datafile.NewWriter(to, w.minor, proto.CloneOf(w.schema), w.layout.Leaves)
	if err != nil {
		return fmt.Errorf("begin the file: %w", err)
	}
	for i, c := range w.columns {
		if segments[i], err = w.column(ctx, file, i, skip, rows); err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	if _, err := file.Close(); err != nil {
		return fmt.Errorf("end the file: %w", err)
	}
	return nil
}

// column writes one column.
func (w *rewriter) column(ctx context.Context, file *datafile.Writer, column int, skip, rows uint64) ([]segment, error) {
	t, layers := w.columns[column].Type, w.columns[column].Layers
	to := newColumnWriter(file, column, t, len(layers))
	err := inOrder(ctx, pieces(w.sources, column, skip, rows), w.memory, func(ctx context.Context, p piece) (chunk, error) {
		w.read.Add(p.bytes())
		if w.copyBytes > 0 && p.bytes() >= w.copyBytes && p.movable(w.minor) {
			return p.copy(ctx)
		}
		block, err := p.read(ctx, t, layers)
		return chunk{block: block}, err
	}, to.add)
	if err != nil {
		return nil, err
	}
	return to.close(rows)
}
