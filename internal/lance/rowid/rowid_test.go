package rowid_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/rowid"
)

func TestWhatIsEncodedDecodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var ids []uint64
		for range rapid.IntRange(0, 8).Draw(rt, "parts") {
			start := rapid.OneOf(rapid.Uint64Range(0, 1000), rapid.Uint64Range(0, 1<<40), rapid.Uint64Range(1<<63, 1<<63+1<<50)).Draw(rt, "start")
			step := rapid.Uint64Range(1, 3).Draw(rt, "step")
			for i := range rapid.Uint64Range(1, 40).Draw(rt, "length") {
				ids = append(ids, start+i*step)
			}
		}
		data, err := rowid.Encode(ids)
		require.NoError(rt, err)
		got, err := rowid.Decode(data, uint64(len(ids)))
		require.NoError(rt, err)
		require.Equal(rt, ids, got)
		_, err = rowid.Decode(data, uint64(len(ids))+1)
		require.ErrorIs(rt, err, lance.ErrCorrupt)
		if len(ids) > 0 {
			_, err = rowid.Decode(data, uint64(len(ids))-1)
			require.ErrorIs(rt, err, lance.ErrCorrupt)
		}
	})
}

func TestVersionsEncodeAndDecode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		versions := rapid.SliceOf(rapid.Uint64Range(1, 4)).Draw(rt, "versions")
		data, err := rowid.EncodeVersions(versions)
		require.NoError(rt, err)
		got, err := rowid.DecodeVersions(data, uint64(len(versions)))
		require.NoError(rt, err)
		require.Len(rt, got, len(versions))
		for i := range versions {
			require.Equal(rt, versions[i], got[i])
		}
		_, err = rowid.DecodeVersions(data, uint64(len(versions))+1)
		require.ErrorIs(rt, err, lance.ErrCorrupt)
	})
}

func u16(base uint64, offsets ...uint16) *lancepb.EncodedU64Array {
	var raw []byte
	for _, o := range offsets {
		raw = binary.LittleEndian.AppendUint16(raw, o)
	}
	return &lancepb.EncodedU64Array{Array: &lancepb.EncodedU64Array_U16Array_{U16Array: &lancepb.EncodedU64Array_U16Array{Base: base, Offsets: raw}}}
}

func sequence(t testing.TB, segments ...*lancepb.U64Segment) []byte {
	t.Helper()
	data, err := proto.Marshal(&lancepb.RowIdSequence{Segments: segments})
	require.NoError(t, err)
	return data
}

// TestEachKindOfSegment that official writers use.
func TestEachKindOfSegment(t *testing.T) {
	t.Parallel()
	holes := &lancepb.U64Segment{Segment: &lancepb.U64Segment_RangeWithHoles_{RangeWithHoles: &lancepb.U64Segment_RangeWithHoles{Start: 10, End: 15, Holes: u16(10, 1, 3)}}}
	// 0x69: the first byte of a real sequence, for ids 0, 3, 5 and 6.
	bitmap := &lancepb.U64Segment{Segment: &lancepb.U64Segment_RangeWithBitmap_{RangeWithBitmap: &lancepb.U64Segment_RangeWithBitmap{Start: 0, End: 8, Bitmap: []byte{0x69}}}}
	unsorted := &lancepb.U64Segment{Segment: &lancepb.U64Segment_Array{Array: u16(100, 7, 2)}}
	ids, err := rowid.Decode(sequence(t, holes, bitmap, unsorted), 9)
	require.NoError(t, err)
	require.Equal(t, []uint64{10, 12, 14, 0, 3, 5, 6, 107, 102}, ids)
}

func TestDamagedSegments(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*lancepb.U64Segment{
		"backwards":       {Segment: &lancepb.U64Segment_Range_{Range: &lancepb.U64Segment_Range{Start: 5, End: 4}}},
		"endless":         {Segment: &lancepb.U64Segment_Range_{Range: &lancepb.U64Segment_Range{Start: 0, End: 1 << 60}}},
		"hole outside":    {Segment: &lancepb.U64Segment_RangeWithHoles_{RangeWithHoles: &lancepb.U64Segment_RangeWithHoles{Start: 0, End: 4, Holes: u16(0, 9)}}},
		"holes unsorted":  {Segment: &lancepb.U64Segment_RangeWithHoles_{RangeWithHoles: &lancepb.U64Segment_RangeWithHoles{Start: 0, End: 4, Holes: u16(0, 2, 1)}}},
		"short bitmap":    {Segment: &lancepb.U64Segment_RangeWithBitmap_{RangeWithBitmap: &lancepb.U64Segment_RangeWithBitmap{Start: 0, End: 9, Bitmap: []byte{1}}}},
		"bit behind":      {Segment: &lancepb.U64Segment_RangeWithBitmap_{RangeWithBitmap: &lancepb.U64Segment_RangeWithBitmap{Start: 0, End: 3, Bitmap: []byte{0x0f}}}},
		"not sorted":      {Segment: &lancepb.U64Segment_SortedArray{SortedArray: u16(0, 2, 1, 3)}},
		"half an element": {Segment: &lancepb.U64Segment_Array{Array: &lancepb.EncodedU64Array{Array: &lancepb.EncodedU64Array_U64Array_{U64Array: &lancepb.EncodedU64Array_U64Array{Values: make([]byte, 7)}}}}},
		"above 2^64":      {Segment: &lancepb.U64Segment_Array{Array: u16(1<<64-1, 1)}},
		"no kind":         {},
		"array of none":   {Segment: &lancepb.U64Segment_Array{Array: &lancepb.EncodedU64Array{}}},
	} {
		_, err := rowid.Decode(sequence(t, s), 3)
		require.Error(t, err, name)
	}
	_, err := rowid.Decode([]byte{0xff}, 3)
	require.ErrorIs(t, err, lance.ErrCorrupt)
	_, err = rowid.DecodeVersions([]byte{0xff}, 3)
	require.ErrorIs(t, err, lance.ErrCorrupt)
}

// TestOfficialSequences: all of the golden table decode, and ids are never given twice.
func TestOfficialSequences(t *testing.T) {
	t.Parallel()
	store := lancetest.Load(t, "stableids", time.Now, time.Hour)
	v, _, err := dataset.Latest(t.Context(), store)
	require.NoError(t, err)
	m, err := dataset.ReadManifest(t.Context(), store, v)
	require.NoError(t, err)
	require.NotEmpty(t, m.GetFragments())
	for _, f := range m.GetFragments() {
		ids, err := rowid.Decode(f.GetInlineRowIds(), f.GetPhysicalRows())
		require.NoError(t, err)
		for _, id := range ids {
			require.Less(t, id, m.GetNextRowId())
		}
		_, err = rowid.DecodeVersions(f.GetInlineCreatedAtVersions(), f.GetPhysicalRows())
		require.NoError(t, err)
	}
}

func FuzzDecode(f *testing.F) {
	data, err := rowid.Encode([]uint64{1, 2, 3, 9, 4, 1 << 40})
	require.NoError(f, err)
	f.Add(data, uint64(6))
	f.Fuzz(func(t *testing.T, data []byte, rows uint64) {
		ids, err := rowid.Decode(data, rows%10000)
		if err != nil {
			return
		}
		again, err := rowid.Encode(ids)
		require.NoError(t, err)
		got, err := rowid.Decode(again, uint64(len(ids)))
		require.NoError(t, err)
		require.Len(t, got, len(ids))
	})
}
