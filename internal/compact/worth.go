package compact

import "lancekeeper/internal/lance/lancepb"

// MergeRatio is the value of Options.MergeRatio for tables that keep growing: a byte is then rewritten about three times on its way
// through each doubling.
const MergeRatio = 2

const (
	// cheapBytes is what a task may always rewrite: it costs about what its requests do.
	cheapBytes = 1 << 20
	// rowBytes stands for a row's bytes where the manifest does not say how large files are.
	rowBytes = 100
	// tailBytes is what a large file keeps in memory at most, about: its metadata is small beside its pages.
	tailBytes = 64 << 10
	// readerBytes is what any open file takes beside.
	readerBytes = 1 << 10
)

// member is a fragment in a bin.
type member struct {
	fragment *lancepb.DataFragment
	itself   bool  // worth a rewrite alone
	bytes    int64 // of its files, about
}

// worthwhile cuts neighbours into runs that are worth what their rewrite costs. Merging frees no byte, it saves fragments; so a large
// fragment is left out until what can be merged with it has come to a good part of it. Then every byte is rewritten a few times
// while a table grows, not with each pass, and the number of fragments stays within a logarithm of the size. ratio 0: everything is
// worth it.
func worthwhile(members []member, ratio int64) [][]member {
	if len(members) == 0 || len(members) == 1 && !members[0].itself {
		return nil
	}
	var total int64
	largest := -1
	for i, m := range members {
		total += m.bytes
		if !m.itself && (largest < 0 || m.bytes > members[largest].bytes) {
			largest = i
		}
	}
	if ratio == 0 || largest < 0 || total <= cheapBytes || members[largest].bytes/ratio <= total-members[largest].bytes {
		return [][]member{members}
	}
	return append(worthwhile(members[:largest], ratio), worthwhile(members[largest+1:], ratio)...)
}

func weight(f *lancepb.DataFragment) int64 {
	if n := size(f); n > 0 {
		return n
	}
	return int64(min(f.GetPhysicalRows(), 1<<40)) * rowBytes
}

// openBytes is about what a fragment's open files keep in memory.
func openBytes(f *lancepb.DataFragment) int64 {
	var n int64
	for _, file := range f.GetFiles() {
		known := int64(file.GetFileSizeBytes())
		if known == 0 || known > tailBytes {
			known = tailBytes
		}
		n += known + readerBytes
	}
	return n
}
