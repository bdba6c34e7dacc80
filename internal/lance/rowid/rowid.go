// Package rowid reads and writes stable row ids, and the versions in which rows were made and last changed.
//
// A fragment keeps one value for each of its physical rows, deleted ones included, as segments or runs
// (lance-format/lance protos/rowids.proto, rust/lance-table/src/rowids).
package rowid

import (
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
)

// Decode returns the row ids of a fragment of so many physical rows, in their order. ErrCorrupt where they are not as many, or a
// segment contradicts itself.
func Decode(data []byte, rows uint64) ([]uint64, error) {
	var sequence lancepb.RowIdSequence
	if err := proto.Unmarshal(data, &sequence); err != nil {
		return nil, lance.Corrupt("", "row ids: %v", err)
	}
	if len(sequence.ProtoReflect().GetUnknown()) > 0 {
		return nil, lance.Unsupported("row id sequence", "with unknown fields", "")
	}
	var ids []uint64
	for _, s := range sequence.GetSegments() {
		var err error
		if ids, err = appendSegment(ids, s, rows); err != nil {
			return nil, err
		}
	}
	if uint64(len(ids)) != rows {
		return nil, lance.Corrupt("", "%d row ids for %d rows", len(ids), rows)
	}
	return ids, nil
}

// appendSegment adds the values of a segment; there must be no more than limit in all.
func appendSegment(ids []uint64, s *lancepb.U64Segment, limit uint64) ([]uint64, error) {
	room := limit - uint64(len(ids))
	switch kind := s.GetSegment().(type) {
	case *lancepb.U64Segment_Range_:
		r := kind.Range
		if r.GetEnd() < r.GetStart() || r.GetEnd()-r.GetStart() > room {
			return nil, lance.Corrupt("", "range of row ids from %d to %d", r.GetStart(), r.GetEnd())
		}
		for id := r.GetStart(); id < r.GetEnd(); id++ {
			ids = append(ids, id)
		}
		return ids, nil
	case *lancepb.U64Segment_RangeWithHoles_:
		r := kind.RangeWithHoles
		holes, err := array(r.GetHoles())
		if err != nil {
			return nil, err
		}
		return appendHoled(ids, r.GetStart(), r.GetEnd(), holes, room)
	case *lancepb.U64Segment_RangeWithBitmap_:
		r := kind.RangeWithBitmap
		return appendBitmap(ids, r.GetStart(), r.GetEnd(), r.GetBitmap(), room)
	case *lancepb.U64Segment_SortedArray:
		values, err := array(kind.SortedArray)
		if err != nil {
			return nil, err
		}
		if !increasing(values) || uint64(len(values)) > room {
			return nil, lance.Corrupt("", "array of %d row ids that is not sorted, or too long", len(values))
		}
		return append(ids, values...), nil
	case *lancepb.U64Segment_Array:
		values, err := array(kind.Array)
		if err != nil {
			return nil, err
		}
		if uint64(len(values)) > room {
			return nil, lance.Corrupt("", "more row ids than rows")
		}
		return append(ids, values...), nil
	}
	return nil, lance.Unsupported("row id segment", "of an unknown kind", "")
}

func appendHoled(ids []uint64, start, end uint64, holes []uint64, room uint64) ([]uint64, error) {
	if end < start || end-start > room+uint64(len(holes)) || !increasing(holes) || len(holes) > 0 && (holes[0] < start || holes[len(holes)-1] >= end) {
		return nil, lance.Corrupt("", "range of row ids from %d to %d with %d holes", start, end, len(holes))
	}
	for id := start; id < end; id++ {
		if len(holes) > 0 && holes[0] == id {
			holes = holes[1:]
			continue
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// appendBitmap takes bits least significant first, whatever the comment in the format's definition says.
func appendBitmap(ids []uint64, start, end uint64, bitmap []byte, room uint64) ([]uint64, error) {
	if end < start || uint64(len(bitmap)) != (end-start)/8+min(1, (end-start)%8) {
		return nil, lance.Corrupt("", "range of row ids from %d to %d with a bitmap of %d bytes", start, end, len(bitmap))
	}
	before := len(ids)
	for i, b := range bitmap {
		for bit := range uint64(8) {
			if b>>bit&1 == 0 {
				continue
			}
			id := start + uint64(i)*8 + bit
			if id >= end {
				return nil, lance.Corrupt("", "bitmap of row ids behind the end of its range")
			}
			ids = append(ids, id)
		}
	}
	if uint64(len(ids)-before) > room {
		return nil, lance.Corrupt("", "more row ids than rows")
	}
	return ids, nil
}

func increasing(values []uint64) bool {
	for i := 1; i < len(values); i++ {
		if values[i] <= values[i-1] {
			return false
		}
	}
	return true
}

// array decodes values kept as offsets from a base, or as they are.
func array(a *lancepb.EncodedU64Array) ([]uint64, error) {
	var raw []byte
	var base uint64
	width := 8
	switch kind := a.GetArray().(type) {
	case *lancepb.EncodedU64Array_U16Array_:
		raw, base, width = kind.U16Array.GetOffsets(), kind.U16Array.GetBase(), 2
	case *lancepb.EncodedU64Array_U32Array_:
		raw, base, width = kind.U32Array.GetOffsets(), kind.U32Array.GetBase(), 4
	case *lancepb.EncodedU64Array_U64Array_:
		raw = kind.U64Array.GetValues()
	default:
		return nil, lance.Unsupported("row id array", "of an unknown kind", "")
	}
	if len(raw)%width != 0 {
		return nil, lance.Corrupt("", "array of row ids of %d bytes", len(raw))
	}
	values := make([]uint64, 0, len(raw)/width)
	for at := 0; at < len(raw); at += width {
		var offset uint64
		switch width {
		case 2:
			offset = uint64(binary.LittleEndian.Uint16(raw[at:]))
		case 4:
			offset = uint64(binary.LittleEndian.Uint32(raw[at:]))
		default:
			offset = binary.LittleEndian.Uint64(raw[at:])
		}
		if offset > math.MaxUint64-base {
			return nil, lance.Corrupt("", "row id above 2^64")
		}
		values = append(values, base+offset)
	}
	return values, nil
}

// shortRun is the length from which a run of ids pays as a range of its own.
const shortRun = 8

// Encode writes row ids: ranges where they run on, arrays between.
func Encode(ids []uint64) ([]byte, error) {
	sequence := &lancepb.RowIdSequence{}
	var loose []uint64
	flush := func() {
		if len(loose) > 0 {
			sequence.Segments = append(sequence.Segments, arraySegment(loose))
			loose = nil
		}
	}
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && ids[n] == ids[n-1]+1 {
			n++
		}
		if n >= shortRun || len(loose) == 0 && n == len(ids) {
			flush()
			sequence.Segments = append(sequence.Segments, rangeSegment(ids[0], ids[0]+uint64(n)))
		} else {
			loose = append(loose, ids[:n]...)
		}
		ids = ids[n:]
	}
	flush()
	return proto.MarshalOptions{Deterministic: true}.Marshal(sequence) //nolint:wrapcheck // never fails for such a message
}

func rangeSegment(start, end uint64) *lancepb.U64Segment {
	return &lancepb.U64Segment{Segment: &lancepb.U64Segment_Range_{Range: &lancepb.U64Segment_Range{Start: start, End: end}}}
}

func arraySegment(ids []uint64) *lancepb.U64Segment {
	base, highest := slices.Min(ids), slices.Max(ids)
	a := &lancepb.EncodedU64Array{}
	var raw []byte
	switch spread := highest - base; {
	case spread <= math.MaxUint16:
		for _, id := range ids {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(id-base))
		}
		a.Array = &lancepb.EncodedU64Array_U16Array_{U16Array: &lancepb.EncodedU64Array_U16Array{Base: base, Offsets: raw}}
	case spread <= math.MaxUint32:
		for _, id := range ids {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(id-base))
		}
		a.Array = &lancepb.EncodedU64Array_U32Array_{U32Array: &lancepb.EncodedU64Array_U32Array{Base: base, Offsets: raw}}
	default:
		for _, id := range ids {
			raw = binary.LittleEndian.AppendUint64(raw, id)
		}
		a.Array = &lancepb.EncodedU64Array_U64Array_{U64Array: &lancepb.EncodedU64Array_U64Array{Values: raw}}
	}
	if increasing(ids) {
		return &lancepb.U64Segment{Segment: &lancepb.U64Segment_SortedArray{SortedArray: a}}
	}
	return &lancepb.U64Segment{Segment: &lancepb.U64Segment_Array{Array: a}}
}

// DecodeVersions returns the version of each physical row. Of a run's span only the number of values counts.
func DecodeVersions(data []byte, rows uint64) ([]uint64, error) {
	var sequence lancepb.RowDatasetVersionSequence
	if err := proto.Unmarshal(data, &sequence); err != nil {
		return nil, lance.Corrupt("", "row versions: %v", err)
	}
	if len(sequence.ProtoReflect().GetUnknown()) > 0 {
		return nil, lance.Unsupported("row version sequence", "with unknown fields", "")
	}
	var versions []uint64
	for _, run := range sequence.GetRuns() {
		span, err := appendSegment(nil, run.GetSpan(), rows-uint64(len(versions)))
		if err != nil {
			return nil, err
		}
		versions = append(versions, slices.Repeat([]uint64{run.GetVersion()}, len(span))...)
	}
	if uint64(len(versions)) != rows {
		return nil, lance.Corrupt("", "versions of %d rows for %d", len(versions), rows)
	}
	return versions, nil
}

// EncodeVersions writes runs of rows of one version.
func EncodeVersions(versions []uint64) ([]byte, error) {
	sequence := &lancepb.RowDatasetVersionSequence{}
	for len(versions) > 0 {
		n := 1
		for n < len(versions) && versions[n] == versions[0] {
			n++
		}
		sequence.Runs = append(sequence.Runs, &lancepb.RowDatasetVersionRun{Span: rangeSegment(0, uint64(n)), Version: versions[0]})
		versions = versions[n:]
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(sequence) //nolint:wrapcheck // never fails for such a message
}
