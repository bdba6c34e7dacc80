package compact

import (
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
)

// index is a segment of a user index and the fragments that it covers.
type index struct {
	name    string
	id      string
	ids     *roaring.Bitmap
	unknown bool          // it may cover anything
	change  commit.Change // what a rewrite of covered fragments makes of its entry
	bound   string        // why they can't be rewritten at all; empty if they can
}

func (i index) covers(fragment uint64) bool {
	return i.unknown || (fragment <= 1<<32-1 && i.ids.Contains(uint32(fragment)))
}

func coverage(m *manifest.Manifest) ([]index, error) {
	var out []index
	for _, entry := range m.Indices {
		if indexmeta.IsSystem(entry) {
			continue
		}
		ids, known, err := indexmeta.Coverage(entry)
		if err != nil {
			return nil, fmt.Errorf("plan a compaction of version %d: %w", m.GetVersion(), err)
		}
		id, err := indexmeta.ID(entry)
		if err != nil {
			return nil, fmt.Errorf("plan a compaction of version %d: %w", m.GetVersion(), err)
		}
		i := index{name: entry.GetName(), id: id, ids: ids, unknown: !known}
		i.change, i.bound = change(m, entry, known)
		out = append(out, i)
	}
	return out, nil
}

// change says what becomes of an index entry when fragments that it covers are rewritten, or why they can't be
// (lance-table src/format/index.rs:results_are_row_addrs). Row addresses of fragments that are gone are passed over by readers, which
// scan what is not covered. Stable row ids stay valid, so that an index of them covers the new fragments instead; in such a table an
// index of addresses must lose the old ones. The kinds are those of which the official reader was seen to take it so.
func change(m *manifest.Manifest, entry *lancepb.IndexMetadata, known bool) (commit.Change, string) {
	switch {
	case !known:
		return 0, "it does not say what it covers"
	case len(entry.GetCoveringFields()) > 0:
		return 0, "it has covering fields"
	case indexmeta.System(m.Indices, indexmeta.MemWALIndexName) != nil:
		return 0, "the table has a write-ahead log that counts on it"
	}
	kind, stable := indexmeta.Kind(entry), manifest.StableRowIDs(m)
	switch kind {
	case "Bitmap", "Inverted", "NGram", "Vector", "LabelList":
		if stable {
			return commit.Swap, ""
		}
		return commit.Keep, ""
	case "BTree":
		switch {
		case stable && entry.GetIndexVersion() == 0:
			return commit.Swap, ""
		case stable:
			return commit.Shrink, ""
		}
		return commit.Keep, ""
	case "ZoneMap", "BloomFilter":
		if stable {
			return commit.Shrink, ""
		}
		return commit.Keep, ""
	}
	return 0, fmt.Sprintf("its kind (%s) is not known to allow it", kind)
}

// covering are the segments that cover a fragment.
func covering(all []index, fragment uint64) []index {
	var out []index
	for _, i := range all {
		if i.covers(fragment) {
			out = append(out, i)
		}
	}
	return out
}

// indexSet names the segments that cover a fragment: only fragments of one set are rewritten together.
func indexSet(segments []index) string {
	var ids []string
	for _, s := range segments {
		ids = append(ids, s.id)
	}
	return strings.Join(ids, " ")
}
