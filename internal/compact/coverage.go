package compact

import (
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
)

// index is a segment of a user index and the fragments that it covers.
type index struct {
	name    string
	id      string
	ids     *roaring.Bitmap
	unknown bool   // it may cover anything
	bound   string // why its fragments can't leave its coverage; empty if they can
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
		out = append(out, index{name: entry.GetName(), id: id, ids: ids, unknown: !known, bound: bound(m, entry, known)})
	}
	return out, nil
}

// bound says why fragments can't leave the coverage of an index by being rewritten. With row addresses, entries of fragments that
// are gone are passed over by readers, which scan what is not covered; row ids stay valid, so that readers would find rows twice.
// The kinds are those of which the official reader was seen to do so.
func bound(m *manifest.Manifest, entry *lancepb.IndexMetadata, known bool) string {
	switch {
	case manifest.StableRowIDs(m):
		return "it holds row ids"
	case !known:
		return "it does not say what it covers"
	case len(entry.GetCoveringFields()) > 0:
		return "it has covering fields"
	case indexmeta.System(m.Indices, indexmeta.MemWALIndexName) != nil:
		return "the table has a write-ahead log that counts on it"
	}
	switch kind := indexmeta.Kind(entry); kind {
	case "BTree", "Bitmap", "ZoneMap", "Inverted", "NGram", "Vector", "LabelList", "BloomFilter":
		return ""
	default:
		return fmt.Sprintf("its kind (%s) is not known to allow it", kind)
	}
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
