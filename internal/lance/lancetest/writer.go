package lancetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/deletion"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/schema"
	"lancekeeper/internal/lance/txn"
	"lancekeeper/internal/objstore"
)

// This file is a small writer for tests: it commits versions as others do while a keeper is at work. Each has its transaction,
// inline and as a file.

// nullEvery: of the rows that Append writes, each whose id divides by it is null in the columns that may be.
const nullEvery = 5

// Create makes an empty table of three columns in file version 2.1: id, a text that may be null, and a vector.
func Create(t testing.TB, store objstore.Store) dataset.Version {
	t.Helper()
	fields := []*lancepb.Field{
		{Id: 0, Name: "id", LogicalType: "int64", ParentId: -1},
		{Id: 1, Name: "text", LogicalType: "string", ParentId: -1, Nullable: true},
		{Id: 2, Name: "vector", LogicalType: "fixed_size_list:float:4", ParentId: -1, Nullable: true},
	}
	m := &manifest.Manifest{Manifest: &lancepb.Manifest{
		Fields: fields, DataFormat: &lancepb.Manifest_DataStorageFormat{FileFormat: "lance", Version: "2.1"},
		WriterVersion: &lancepb.Manifest_WriterVersion{Library: "test", Version: "1"},
	}}
	v, err := commit(t, store, manifest.V2, m, &lancepb.Transaction{Operation: &lancepb.Transaction_Overwrite_{
		Overwrite: &lancepb.Transaction_Overwrite{Schema: fields},
	}})
	require.NoError(t, err)
	return v
}

// Commit makes the version behind the latest one. change gets the latest one's manifest, changes it, and returns the operation.
func Commit(t testing.TB, store objstore.Store, change func(m *manifest.Manifest) *lancepb.Transaction) dataset.Version {
	t.Helper()
	latest, _, err := dataset.Latest(t.Context(), store)
	require.NoError(t, err)
	v, err := CommitOn(t, store, latest, change)
	require.NoError(t, err)
	return v
}

// CommitOn makes the version behind another, which need not be the latest one any more: ErrExists if its number is taken.
func CommitOn(t testing.TB, store objstore.Store, base dataset.Version, change func(m *manifest.Manifest) *lancepb.Transaction) (dataset.Version, error) {
	t.Helper()
	m, err := dataset.ReadManifest(t.Context(), store, base)
	require.NoError(t, err)
	return commit(t, store, manifest.ParseName(base.Key[len(manifest.Folder):]).Scheme, m, change(m))
}

// commit makes the version behind that of m.
func commit(t testing.TB, store objstore.Store, scheme manifest.Scheme, m *manifest.Manifest, transaction *lancepb.Transaction) (dataset.Version, error) {
	t.Helper()
	transaction.ReadVersion, transaction.Uuid = m.GetVersion(), uuid.NewString()
	m.Version++
	m.VersionAuxData, m.Tag = 0, ""
	now, err := store.Now(t.Context())
	require.NoError(t, err)
	m.Timestamp = timestamppb.New(now)
	m.Transaction, m.TransactionFile = transaction, txn.FileName(transaction.GetReadVersion(), transaction.GetUuid())
	manifest.RecomputeFlags(m)
	body, err := proto.Marshal(transaction)
	require.NoError(t, err)
	require.NoError(t, store.Put(t.Context(), dataset.TransactionFolder+m.GetTransactionFile(), body))
	data, err := manifest.Encode(m)
	require.NoError(t, err)
	v := dataset.Version{Number: m.GetVersion(), Key: manifest.Key(m.GetVersion(), scheme), Size: int64(len(data)), Modified: now}
	return v, store.PutIfAbsent(t.Context(), v.Key, data) //nolint:wrapcheck // the caller looks at the class
}

// Append commits one fragment with a row for each id; all values follow from the id.
func Append(t testing.TB, store objstore.Store, ids ...int64) dataset.Version {
	t.Helper()
	return Commit(t, store, func(m *manifest.Manifest) *lancepb.Transaction { return AddFragment(t, store, m, ids...) })
}

// AddFragment writes a data file with a row for each id and adds it to a manifest as a fragment.
func AddFragment(t testing.TB, store objstore.Store, m *manifest.Manifest, ids ...int64) *lancepb.Transaction {
	t.Helper()
	file := WriteData(t, store, m, ids...)
	f := &lancepb.DataFragment{Id: nextFragment(m), Files: []*lancepb.DataFile{file}, PhysicalRows: uint64(len(ids))}
	highest := uint32(f.GetId())
	m.MaxFragmentId = &highest
	m.Fragments = append(m.GetFragments(), f)
	added := proto.CloneOf(f)
	added.Id = 0
	return &lancepb.Transaction{Operation: &lancepb.Transaction_Append_{
		Append: &lancepb.Transaction_Append{Fragments: []*lancepb.DataFragment{added}},
	}}
}

func nextFragment(m *manifest.Manifest) uint64 {
	if m.MaxFragmentId != nil {
		return uint64(m.GetMaxFragmentId()) + 1
	}
	next := uint64(0)
	for _, f := range m.GetFragments() {
		next = max(next, f.GetId()+1)
	}
	return next
}

// WriteData writes a data file that no version names yet.
func WriteData(t testing.TB, store objstore.Store, m *manifest.Manifest, ids ...int64) *lancepb.DataFile {
	t.Helper()
	columns, err := schema.Columns(m.GetFields())
	require.NoError(t, err)
	_, minor, known := manifest.FileVersion(m)
	require.True(t, known)
	layout, err := schema.Lay(columns, minor)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := datafile.NewWriter(&out, minor, &lancepb.Schema{Fields: m.GetFields()}, layout.Leaves)
	require.NoError(t, err)
	file := &lancepb.DataFile{Path: uuid.NewString() + ".lance", FileMajorVersion: 2, FileMinorVersion: uint32(minor)}
	for i, c := range columns {
		require.NoError(t, w.WritePage(i, c.Type, block(c, ids)))
	}
	for i, field := range layout.Fields {
		file.Fields = append(file.Fields, field)
		file.ColumnIndices = append(file.ColumnIndices, int32(i))
	}
	size, err := w.Close()
	require.NoError(t, err)
	file.FileSizeBytes = uint64(size)
	require.NoError(t, store.Put(t.Context(), dataset.DataFolder+file.GetPath(), out.Bytes()))
	return file
}

// Row is how Rows shows the row that Append writes for an id in a table made by Create.
func Row(t testing.TB, id int64) string {
	t.Helper()
	var cells []byte
	for i, c := range []schema.Column{
		{Type: encoding.Type{Kind: encoding.Fixed, Bits: 64}},
		{Type: encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}, Nullable: true},
		{Type: encoding.Type{Kind: encoding.Vector, Bits: 32, Dims: []int{4}}, Nullable: true},
	} {
		if i > 0 {
			cells = append(cells, " | "...)
		}
		cells = append(cells, Texts(c.Type, block(c, []int64{id}))[0]...)
	}
	return string(cells)
}

// block is the values of a column for some ids.
func block(c schema.Column, ids []int64) *encoding.Block {
	b := &encoding.Block{Rows: len(ids), Layers: []encoding.Layer{encoding.AllValidItem}}
	b.Values = encoding.Values{N: len(ids)}
	if c.Type.Kind == encoding.Bytes {
		b.Values.Offsets = []int{0}
	}
	for i, id := range ids {
		null := c.Nullable && id%nullEvery == 0
		if null {
			if b.Def == nil {
				b.Def, b.Layers = make([]uint16, len(ids)), []encoding.Layer{encoding.NullableItem}
			}
			b.Def[i] = 1
		}
		b.Values.Fixed = append(b.Values.Fixed, fixed(c.Type, id, null)...)
		if c.Type.Kind == encoding.Bytes {
			if !null {
				b.Values.Data = fmt.Appendf(b.Values.Data, "row %d", id)
			}
			b.Values.Offsets = append(b.Values.Offsets, len(b.Values.Data))
		}
	}
	return b
}

func fixed(t encoding.Type, id int64, null bool) []byte {
	out := make([]byte, t.Width())
	switch {
	case null:
	case t.Bits == 1:
		for i := range out {
			out[i] = byte(id+int64(i)) & 1
		}
	default:
		var number [8]byte
		binary.LittleEndian.PutUint64(number[:], uint64(id))
		copy(out, number[:])
	}
	return out
}

// Delete commits the deletion of rows of the latest version, by their places in scan order.
func Delete(t testing.TB, store objstore.Store, rows ...int) dataset.Version {
	t.Helper()
	return Commit(t, store, func(m *manifest.Manifest) *lancepb.Transaction { return DeleteRows(t, store, m, rows...) })
}

// DeleteRows deletes rows of a manifest, by their places in scan order. A fragment that loses all of them goes.
func DeleteRows(t testing.TB, store objstore.Store, m *manifest.Manifest, rows ...int) *lancepb.Transaction {
	t.Helper()
	op := &lancepb.Transaction_Delete{Predicate: "test"}
	var kept []*lancepb.DataFragment
	place, deleted := 0, 0
	for _, f := range m.GetFragments() {
		gone, err := dataset.ReadDeletions(t.Context(), store, f)
		require.NoError(t, err)
		if gone == nil {
			gone = roaring.New()
		}
		before := gone.GetCardinality()
		for row := range uint32(f.GetPhysicalRows()) {
			if gone.Contains(row) {
				continue
			}
			if slices.Contains(rows, place) {
				gone.Add(row)
				deleted++
			}
			place++
		}
		switch gone.GetCardinality() {
		case before:
			kept = append(kept, f)
		case f.GetPhysicalRows():
			op.DeletedFragmentIds = append(op.DeletedFragmentIds, f.GetId())
		default:
			changed := proto.CloneOf(f)
			changed.DeletionFile = &lancepb.DeletionFile{
				FileType: lancepb.DeletionFile_BITMAP, ReadVersion: m.GetVersion(), Id: rand.Uint64(), NumDeletedRows: gone.GetCardinality(),
			}
			data, err := gone.ToBytes()
			require.NoError(t, err)
			require.NoError(t, store.Put(t.Context(), deletion.Key(f.GetId(), changed.GetDeletionFile()), data))
			op.UpdatedFragments = append(op.UpdatedFragments, changed)
			kept = append(kept, changed)
		}
	}
	require.Equal(t, len(rows), deleted, "rows to delete that are not there")
	m.Fragments = kept
	return &lancepb.Transaction{Operation: &lancepb.Transaction_Delete_{Delete: op}}
}

// Restore commits what an earlier version held as the newest one.
func Restore(t testing.TB, store objstore.Store, earlier dataset.Version) dataset.Version {
	t.Helper()
	old, err := dataset.ReadManifest(t.Context(), store, earlier)
	require.NoError(t, err)
	return Commit(t, store, func(m *manifest.Manifest) *lancepb.Transaction {
		m.Fields, m.Fragments = old.GetFields(), old.GetFragments()
		return &lancepb.Transaction{Operation: &lancepb.Transaction_Restore_{Restore: &lancepb.Transaction_Restore{Version: earlier.Number}}}
	})
}

// Tag has a name point to a version of the main branch.
func Tag(t testing.TB, store objstore.Store, name string, version uint64) {
	t.Helper()
	require.NoError(t, store.Put(t.Context(), TagKey(name), fmt.Appendf(nil, `{"branch":null,"version":%d,"manifestSize":1}`, version)))
}

// TagKey is the object of a tag.
func TagKey(name string) string { return dataset.RefsFolder + "tags/" + name + ".json" }
