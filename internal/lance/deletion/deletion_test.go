package deletion_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/deletion"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
)

const (
	arrowFile  = lancepb.DeletionFile_ARROW_ARRAY
	bitmapFile = lancepb.DeletionFile_BITMAP
)

func TestKey(t *testing.T) {
	t.Parallel()
	require.Equal(t, "_deletions/3-7-99.arrow", deletion.Key(3, &lancepb.DeletionFile{ReadVersion: 7, Id: 99}))
	require.Equal(t, "_deletions/3-7-99.bin", deletion.Key(3, &lancepb.DeletionFile{FileType: bitmapFile, ReadVersion: 7, Id: 99}))
}

func arrowOf(t testing.TB, values ...uint32) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "row_id", Type: arrow.PrimitiveTypes.Uint32}}, nil)
	b := array.NewUint32Builder(memory.NewGoAllocator())
	b.AppendValues(values, nil)
	column := b.NewArray()
	batch := array.NewRecordBatch(schema, []arrow.Array{column}, int64(len(values)))
	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&out, ipc.WithSchema(schema), ipc.WithZstd())
	require.NoError(t, err)
	require.NoError(t, w.Write(batch))
	require.NoError(t, w.Close())
	return out.Bytes()
}

func bitmapOf(t testing.TB, values ...uint32) []byte {
	t.Helper()
	data, err := roaring.BitmapOf(values...).ToBytes()
	require.NoError(t, err)
	return data
}

func TestBothKinds(t *testing.T) {
	t.Parallel()
	for kind, data := range map[lancepb.DeletionFile_DeletionFileType][]byte{arrowFile: arrowOf(t, 9, 0, 4), bitmapFile: bitmapOf(t, 9, 0, 4)} {
		rows, err := deletion.Decode("key", kind, data, 10, 3)
		require.NoError(t, err)
		require.Equal(t, []uint32{0, 4, 9}, rows.ToArray())
		_, err = deletion.Decode("key", kind, data, 10, 0)
		require.NoError(t, err, "0 recorded: not known")
		_, err = deletion.Decode("key", kind, data, 9, 3)
		require.ErrorIs(t, err, lance.ErrCorrupt, "a row beyond the fragment")
		_, err = deletion.Decode("key", kind, data, 10, 2)
		require.ErrorIs(t, err, lance.ErrCorrupt, "another number than recorded")
		for n := range data {
			if _, err := deletion.Decode("key", kind, data[:n], 10, 3); err != nil {
				require.ErrorIs(t, err, lance.ErrCorrupt)
				require.ErrorContains(t, err, "key")
			}
		}
	}
	_, err := deletion.Decode("key", bitmapFile, append(bitmapOf(t, 1), 0), 10, 1)
	require.ErrorIs(t, err, lance.ErrCorrupt, "bytes behind the bitmap")
	_, err = deletion.Decode("key", arrowFile, arrowOf(t, 1, 1), 10, 2)
	require.ErrorIs(t, err, lance.ErrCorrupt, "a row twice")
	_, err = deletion.Decode("key", 7, nil, 10, 0)
	require.ErrorIs(t, err, lance.ErrUnsupported)
}

// TestOfficialFiles: every deletion file of the golden tables decodes.
func TestOfficialFiles(t *testing.T) {
	t.Parallel()
	decoded := 0
	for _, name := range lancetest.Names(t) {
		store := lancetest.Load(t, name, time.Now, time.Hour)
		for _, key := range store.Keys() {
			if !strings.HasPrefix(key, deletion.Folder) {
				continue
			}
			kind := arrowFile
			if strings.HasSuffix(key, ".bin") {
				kind = bitmapFile
			}
			data, _, err := store.Get(t.Context(), key)
			require.NoError(t, err)
			rows, err := deletion.Decode(key, kind, data, 1<<31, 0)
			require.NoError(t, err, "%s %s", name, key)
			require.False(t, rows.IsEmpty())
			decoded++
		}
	}
	require.Greater(t, decoded, 10)
}

func FuzzDecode(f *testing.F) {
	f.Add(0, arrowOf(f, 1, 2, 3))
	f.Add(1, bitmapOf(f, 1, 2, 3))
	f.Fuzz(func(t *testing.T, kind int, data []byte) {
		rows, err := deletion.Decode("key", lancepb.DeletionFile_DeletionFileType(kind&1), data, 1000, 0)
		if err != nil {
			require.True(t, is(err), "%v", err)
			return
		}
		require.LessOrEqual(t, rows.GetCardinality(), uint64(1000))
	})
}

func is(err error) bool {
	return errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported)
}
