// Package indexmeta says what the index entries of a manifest cover.
package indexmeta

import (
	"bytes"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
)

// Names of the system indices, to which no rule for data indices applies (lance-index src/lib.rs).
const (
	ReuseIndexName  = "__lance_frag_reuse"
	MemWALIndexName = "__lance_mem_wal"
)

// Folder is where index files lie, below the dataset's root: a folder each uuid.
const Folder = "_indices/"

// IsSystem says whether an entry is one of the format's own.
func IsSystem(index *lancepb.IndexMetadata) bool {
	return index.GetName() == ReuseIndexName || index.GetName() == MemWALIndexName
}

// ID is the uuid of an entry as its folder is named: lower case with hyphens. ErrCorrupt for anything but 16 bytes.
func ID(index *lancepb.IndexMetadata) (string, error) {
	id, err := uuid.FromBytes(index.GetUuid().GetUuid())
	if err != nil {
		return "", lance.Corrupt("", "uuid of index %q: %v", index.GetName(), err)
	}
	return id.String(), nil
}

// Kind is the index type: what stands behind the last slash of the details' type URL, without package and "IndexDetails";
// "unknown" where there are no details, as old tables have it.
func Kind(index *lancepb.IndexMetadata) string {
	url := index.GetIndexDetails().GetTypeUrl()
	if url == "" {
		return "unknown"
	}
	name := url[strings.LastIndexByte(url, '/')+1:]
	name = name[strings.LastIndexByte(name, '.')+1:]
	return strings.TrimSuffix(name, "IndexDetails")
}

// Coverage is the set of fragment ids that an entry names; known is false where the entry does not say (an empty byte
// string, which is not the empty set).
func Coverage(index *lancepb.IndexMetadata) (ids *roaring.Bitmap, known bool, err error) {
	data := index.GetFragmentBitmap()
	if len(data) == 0 {
		return nil, false, nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = lance.Corrupt("", "fragment bitmap of index %q: decoding panicked: %v", index.GetName(), r)
		}
	}()
	ids = roaring.New()
	if _, err := ids.ReadFrom(bytes.NewReader(data)); err != nil {
		return nil, false, lance.Corrupt("", "fragment bitmap of index %q: %v", index.GetName(), err)
	}
	return ids, true, nil
}

// Covering are the names of the user indices of which some segment covers the fragment, or may cover it: an entry without a
// bitmap is taken to cover everything.
func Covering(indices []*lancepb.IndexMetadata, fragment uint64) ([]string, error) {
	var names []string
	for _, index := range indices {
		if IsSystem(index) {
			continue
		}
		ids, known, err := Coverage(index)
		if err != nil {
			return nil, err
		}
		if !known || (fragment <= 1<<32-1 && ids.Contains(uint32(fragment))) {
			names = append(names, index.GetName())
		}
	}
	return names, nil
}

// System returns the entry of a system index, nil if there is none.
func System(indices []*lancepb.IndexMetadata, name string) *lancepb.IndexMetadata {
	for _, index := range indices {
		if index.GetName() == name {
			return index
		}
	}
	return nil
}
