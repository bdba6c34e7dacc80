// Package deletion reads deletion files: which physical rows of a fragment are deleted.
package deletion

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

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
		rows, err = decodeArrow(object, data, physicalRows)
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
func decodeArrow(object string, data []byte, physicalRows uint64) (rows *roaring.Bitmap, err error) {
	defer recovered(object, &err)
	if err := checkFooter(data); err != nil {
		return nil, lance.Corrupt(object, "arrow file: %v", err)
	}
	reader, err := ipc.NewFileReader(bytes.NewReader(data), ipc.WithAllocator(newBounded(len(data), physicalRows)))
	if err != nil {
		return nil, lance.Corrupt(object, "arrow file: %v", err)
	}
	defer func() { _ = reader.Close() }()
	if t := reader.Schema().Field(0).Type; t.ID() != arrow.UINT32 {
		return nil, lance.Corrupt(object, "arrow column of type %s, not uint32", t)
	}
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

// Slots of the tables in an Arrow file's footer (arrow format/File.fbs, Schema.fbs): 4, and 2 for each field before it.
const (
	slotSchema         = 6
	slotFields         = 6
	slotSchemaMetadata = 8
	slotChildren       = 14
	slotFieldMetadata  = 16
	slotBatches        = 10
	slotBatchMetadata  = 12 // of the message around a batch (Message.fbs)
)

// checkFooter verifies the counts in the footer of an Arrow file: the library makes room for as many things as it is told, without a
// look at what is there.
func checkFooter(data []byte) error {
	const magic, lengthSize = "ARROW1", 4
	end := len(data) - len(magic) - lengthSize
	if end < 0 || string(data[len(data)-len(magic):]) != magic {
		return errFooter
	}
	length := int(int32(binary.LittleEndian.Uint32(data[end:])))
	if length < lengthSize || length > end {
		return errFooter
	}
	footer := data[end-length : end : end]
	table := flatbuffers.Table{Bytes: footer, Pos: flatbuffers.GetUOffsetT(footer)}
	schema, ok := child(table, slotSchema)
	if !ok || count(schema, slotFields) != 1 || count(schema, slotSchemaMetadata) > len(footer) {
		return errFooter
	}
	first := schema.Vector(flatbuffers.UOffsetT(schema.Offset(slotFields)))
	field := flatbuffers.Table{Bytes: footer, Pos: schema.Indirect(first)}
	if count(field, slotChildren) != 0 || count(field, slotFieldMetadata) > len(footer) || count(table, slotBatches) != 1 {
		return errFooter
	}
	// The batch's place: i64 offset, i32 length of its message, which begins with a marker and its length again.
	place := table.Vector(flatbuffers.UOffsetT(table.Offset(slotBatches)))
	offset, size := table.GetInt64(place), int64(table.GetInt32(place+8))
	const prefix = 8
	if offset < 0 || size <= prefix || offset > int64(len(data))-size {
		return errFooter
	}
	body := data[offset+prefix : offset+size]
	if count(flatbuffers.Table{Bytes: body, Pos: flatbuffers.GetUOffsetT(body)}, slotBatchMetadata) > len(body) {
		return errFooter
	}
	return nil
}

var errFooter = errors.New("the footer is not that of a file of one column")

// child is a table that another refers to.
func child(t flatbuffers.Table, slot flatbuffers.VOffsetT) (flatbuffers.Table, bool) {
	at := flatbuffers.UOffsetT(t.Offset(slot))
	if at == 0 {
		return t, false
	}
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + at)}, true
}

// count is the length of a vector, 0 where there is none.
func count(t flatbuffers.Table, slot flatbuffers.VOffsetT) int {
	at := flatbuffers.UOffsetT(t.Offset(slot))
	if at == 0 {
		return 0
	}
	return t.VectorLen(at)
}

// bounded allocates no more than a deletion file can need: a few hostile bytes may ask for any size, and memory that is not there ends
// the process.
type bounded struct {
	memory.Allocator
	left int
}

// newBounded allows for offsets of all rows, twice, and for what the file itself holds.
func newBounded(file int, physicalRows uint64) *bounded {
	const overhead, most = 1 << 20, 1 << 32 // bytes; fragments have fewer than 2^32 rows, and lists of that many are written as bitmaps
	return &bounded{Allocator: memory.NewGoAllocator(), left: overhead + 4*file + int(min(8*min(physicalRows, most), most))}
}

// Allocate panics where it would be too much; recovered makes an error of it.
func (b *bounded) Allocate(size int) []byte {
	if b.left -= size; size < 0 || b.left < 0 {
		panic("more memory asked for than a deletion file can need") //nolint:forbidigo // the interface has no error; see recovered
	}
	return b.Allocator.Allocate(size)
}

// Reallocate is bounded likewise.
func (b *bounded) Reallocate(size int, old []byte) []byte {
	if b.left -= size - len(old); size < 0 || b.left < 0 {
		panic("more memory asked for than a deletion file can need") //nolint:forbidigo // the interface has no error; see recovered
	}
	return b.Allocator.Reallocate(size, old)
}

// recovered turns a panic of a decoding library on damaged bytes into an error.
func recovered(object string, err *error) {
	if r := recover(); r != nil {
		*err = lance.Corrupt(object, "decoding panicked: %v", r)
	}
}
