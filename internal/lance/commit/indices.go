package commit

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
)

// indices are the index entries of a rewrite's manifest: all as they were, but for the bitmaps that the rewrite changes
// (lance-table src/transaction/index_maintenance.rs).
func (c *committer) indices(entries []*lancepb.IndexMetadata, groups []*lancepb.Transaction_Rewrite_RewriteGroup) ([]*lancepb.IndexMetadata, error) {
	out := make([]*lancepb.IndexMetadata, len(entries))
	for i, entry := range entries {
		out[i] = entry
		if indexmeta.IsSystem(entry) {
			continue
		}
		id, err := indexmeta.ID(entry)
		if err != nil {
			return nil, fmt.Errorf("index %q: %w", entry.GetName(), err)
		}
		change := c.rewrite.Indices[id]
		if change != Shrink && change != Swap {
			continue
		}
		ids, known, err := indexmeta.Coverage(entry)
		if err != nil || !known {
			return nil, lance.Corrupt("", "index %q does not say what it covers: %v", entry.GetName(), err)
		}
		if err := edit(ids, groups, change); err != nil {
			return nil, fmt.Errorf("index %q: %w", entry.GetName(), err)
		}
		ids.RunOptimize()
		bitmap, err := ids.ToBytes()
		if err != nil {
			return nil, fmt.Errorf("index %q: encode its coverage: %w", entry.GetName(), err)
		}
		out[i] = proto.CloneOf(entry)
		out[i].FragmentBitmap = bitmap
	}
	return out, nil
}

// edit changes a coverage. A group of which it has only some fragments is a mistake of the plan: the new fragments would be covered
// by half.
func edit(ids *roaring.Bitmap, groups []*lancepb.Transaction_Rewrite_RewriteGroup, change Change) error {
	for _, g := range groups {
		covered := 0
		for _, f := range g.GetOldFragments() {
			if ids.Contains(uint32(f.GetId())) {
				covered++
				ids.Remove(uint32(f.GetId()))
			}
		}
		if covered > 0 && covered < len(g.GetOldFragments()) {
			return lance.Corrupt("", "it covers %d of %d fragments that are rewritten together", covered, len(g.GetOldFragments()))
		}
		if change == Swap && covered > 0 {
			for _, f := range g.GetNewFragments() {
				ids.Add(uint32(f.GetId()))
			}
		}
	}
	return nil
}
