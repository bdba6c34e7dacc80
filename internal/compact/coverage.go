package compact

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/manifest"
)

// index is a user index and the fragments that it covers.
type index struct {
	name    string
	ids     *roaring.Bitmap
	unknown bool // it may cover anything
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
		out = append(out, index{name: entry.GetName(), ids: ids, unknown: !known})
	}
	return out, nil
}
