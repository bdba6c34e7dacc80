// Package deletion reads deletion files: which physical rows of a fragment are deleted.
package deletion

import (
	"bytes"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
)

// Folder is where deletion files lie, below the dataset's root.
const Folder = "_deletions/"

// Key is the object key of a fragment's deletion file (lance-table src/io/deletion.rs:relative_deletion_file_path).
func Key(fragment uint64, f *lancepb.DeletionFile) string {
	extension := "arrow"
	if f.GetFileType() == lancepb.DeletionFile_BITMAP {
		extension = "bin"
	}
	return fmt.Sprintf("%s%d-%d-%d.%s", Folder, fragment, f.GetReadVersion(), f.GetId(), extension)
}

// Decode returns the deleted row offsets, counted from 0 within the fragment. Every offset is below physicalRows, and there
// are as many as the manifest says where it says so (recorded > 0). ErrCorrupt otherwise.
func Decode(object string, kind lancepb.DeletionFile_DeletionFileType, data []byte, physicalRows, recorded uint64) (*roaring.Bitmap, error) {
	var rows *roaring.Bitmap
	var err error
	switch kind {
	case lancepb.DeletionFile_ARROW_ARRAY:
		rows, err = decodeArrow(object, data)
	case lancepb.DeletionFile_BITMAP:
		rows, err = decodeBitmap(object, data)
	default:
		return nil, lance.Unsupported("deletion file type", fmt.Sprint(int(kind)), object)
	}
	if err != nil {
		return nil, err
	}
	if !rows.IsEmpty() && uint64(rows.Maximum()) >= physicalRows {
		return nil, lance.Corrupt(object, "row %d is deleted in a fragment of %d rows", rows.Maximum(), physicalRows)
	}
	if recorded > 0 && rows.GetCardinality() != recorded {
		return nil, lance.Corrupt(object, "%d rows are deleted, the manifest says %d", rows.GetCardinality(), recorded)
	}
	return rows, nil
}

// decodeBitmap reads the portable format of a 32-bit roaring bitmap.
func decodeBitmap(object string, data []byte) (rows *roaring.Bitmap, err error) {
	defer recovered(object, &err)
	rows = roaring.New()
	n, err := rows.ReadFrom(bytes.NewReader(data))
	if err != nil {
		return nil, lance.Corrupt(object, "roaring bitmap: %v", err)
	}
	if n != int64(len(data)) {
		return nil, lance.Corrupt(object, "%d bytes behind the roaring bitmap", int64(len(data))-n)
	}
	if err := rows.Validate(); err != nil {
		return nil, lance.Corrupt(object, "roaring bitmap: %v", err)
	}
	return rows, nil
}

// decodeArrow reads an Arrow IPC file of one batch with one column of unsigned 32-bit row offsets, in any order.
func decodeArrow(object string, data []byte) (rows *roaring.Bitmap, err error) {
	defer recovered(object, &err)
	reader, err := ipc.NewFileReader(bytes.NewReader(data), ipc.WithAllocator(memory.NewGoAllocator()))
	if err != nil {
		return nil, lance.Corrupt(object, "arrow file: %v", err)
	}
	defer func() { _ = reader.Close() }()
	if reader.NumRecords() != 1 {
		return nil, lance.Corrupt(object, "arrow file of %d batches, not one", reader.NumRecords())
	}
	batch, err := reader.RecordBatchAt(0)
	if err != nil {
		return nil, lance.Corrupt(object, "arrow batch: %v", err)
	}
	defer batch.Release()
	if batch.NumCols() != 1 {
		return nil, lance.Corrupt(object, "arrow batch of %d columns, not one", batch.NumCols())
	}
	offsets, ok := batch.Column(0).(*array.Uint32)
	if !ok {
		return nil, lance.Corrupt(object, "arrow column of type %s, not uint32", batch.Column(0).DataType())
	}
	if offsets.NullN() > 0 {
		return nil, lance.Corrupt(object, "null row offsets")
	}
	rows = roaring.New()
	rows.AddMany(offsets.Uint32Values())
	if rows.GetCardinality() != uint64(offsets.Len()) {
		return nil, lance.Corrupt(object, "a row is deleted twice")
	}
	return rows, nil
}

// recovered turns a panic of a decoding library on damaged bytes into an error.
func recovered(object string, err *error) {
	if r := recover(); r != nil {
		*err = lance.Corrupt(object, "decoding panicked: %v", r)
	}
}
