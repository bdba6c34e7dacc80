package compact

import (
	"fmt"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/rowid"
)

// firstVersion is when rows were made of which nothing says when (lance-table src/rowids/version.rs).
const firstVersion = 1

// lineage is what live rows carry through a rewrite in a table with stable row ids: their ids, and the versions in which they
// were made and last changed.
type lineage struct {
	ids, created, updated []uint64
}

// lineageOf reads a task's sources, in order, without deleted rows.
func lineageOf(sources []*source) (*lineage, error) {
	out := &lineage{}
	for _, s := range sources {
		ids, created, updated, err := sequences(s.fragment)
		if err != nil {
			return nil, &FragmentError{Fragment: s.fragment.GetId(), Err: err}
		}
		for row := range ids {
			if s.deleted != nil && s.deleted.Contains(uint32(row)) {
				continue
			}
			out.ids = append(out.ids, ids[row])
			out.created = append(out.created, created[row])
			out.updated = append(out.updated, updated[row])
		}
	}
	return out, nil
}

// sequences are those of a fragment, one value for each physical row. A row of which nothing says when it was changed was last changed
// when it was made.
func sequences(f *lancepb.DataFragment) (ids, created, updated []uint64, err error) {
	rows := f.GetPhysicalRows()
	if ids, err = rowid.Decode(f.GetInlineRowIds(), rows); err != nil {
		return nil, nil, nil, fmt.Errorf("row ids: %w", err)
	}
	if f.GetCreatedAtVersionSequence() == nil {
		created = make([]uint64, rows)
		for i := range created {
			created[i] = firstVersion
		}
	} else if created, err = rowid.DecodeVersions(f.GetInlineCreatedAtVersions(), rows); err != nil {
		return nil, nil, nil, fmt.Errorf("versions in which rows were made: %w", err)
	}
	updated = created
	if f.GetLastUpdatedAtVersionSequence() != nil {
		if updated, err = rowid.DecodeVersions(f.GetInlineLastUpdatedAtVersions(), rows); err != nil {
			return nil, nil, nil, fmt.Errorf("versions in which rows were changed: %w", err)
		}
	}
	return ids, created, updated, nil
}

// attach gives a new fragment the lineage of live rows [skip, skip+rows).
func (l *lineage) attach(f *lancepb.DataFragment, skip, rows uint64) error {
	if skip+rows > uint64(len(l.ids)) {
		return lance.Corrupt("", "%d row ids for %d rows", len(l.ids), skip+rows)
	}
	ids, err := rowid.Encode(l.ids[skip : skip+rows])
	if err != nil {
		return fmt.Errorf("encode row ids: %w", err)
	}
	created, err := rowid.EncodeVersions(l.created[skip : skip+rows])
	if err != nil {
		return fmt.Errorf("encode row versions: %w", err)
	}
	updated, err := rowid.EncodeVersions(l.updated[skip : skip+rows])
	if err != nil {
		return fmt.Errorf("encode row versions: %w", err)
	}
	f.RowIdSequence = &lancepb.DataFragment_InlineRowIds{InlineRowIds: ids}
	f.CreatedAtVersionSequence = &lancepb.DataFragment_InlineCreatedAtVersions{InlineCreatedAtVersions: created}
	f.LastUpdatedAtVersionSequence = &lancepb.DataFragment_InlineLastUpdatedAtVersions{InlineLastUpdatedAtVersions: updated}
	return nil
}
