package report

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
)

// Bin is one bar of a histogram: how many are below a limit and not in the bin before.
type Bin struct {
	Below float64 `json:"below"`
	Count int     `json:"count"`
}

// Period counts the versions that were stored from a moment on, until the next period.
type Period struct {
	From     time.Time `json:"from"`
	Versions int       `json:"versions"`
}

// Coverage is how many fragments of the latest version an index covers. Covered is left out where the index does not say.
type Coverage struct {
	Index     string `json:"index"`
	Covered   *int   `json:"covered,omitempty"`
	Fragments int    `json:"fragments"`
}

// periods is how many bars the history of versions has.
const periods = 24

// history divides the time from the first listed version to the last into equal periods.
func history(versions []dataset.Version) []Period {
	times := make([]time.Time, len(versions))
	for i, v := range versions {
		times[i] = v.Modified
	}
	slices.SortFunc(times, time.Time.Compare)
	first, last := times[0], times[len(times)-1]
	step := last.Sub(first)/periods + 1 // so that the last one is within
	if last.Equal(first) {
		return []Period{{From: first, Versions: len(times)}}
	}
	out := make([]Period, periods)
	for i := range out {
		out[i].From = first.Add(time.Duration(i) * step)
	}
	for _, t := range times {
		out[t.Sub(first)/step].Versions++
	}
	return out
}

// bySize counts fragments by their live rows, in powers of four.
func bySize(fragments []*lancepb.DataFragment) []Bin {
	var bins []Bin
	for _, f := range fragments {
		live := f.GetPhysicalRows() - min(f.GetDeletionFile().GetNumDeletedRows(), f.GetPhysicalRows())
		i := (bits.Len64(live) + 1) / 2
		for len(bins) <= i {
			bins = append(bins, Bin{Below: float64(uint64(1) << min(2*len(bins), 63))})
		}
		bins[i].Count++
	}
	return bins
}

// byDeleted counts fragments by the share of their rows that is deleted: none, then tenths.
func byDeleted(fragments []*lancepb.DataFragment) []Bin {
	const tenths = 10
	bins := make([]Bin, tenths+1)
	for i := range bins {
		bins[i].Below = float64(i) / tenths
	}
	for _, f := range fragments {
		deleted := f.GetDeletionFile().GetNumDeletedRows()
		if deleted == 0 || f.GetPhysicalRows() == 0 {
			bins[0].Count++
			continue
		}
		share := float64(deleted) / float64(f.GetPhysicalRows())
		bins[1+min(tenths-1, int(share*tenths))].Count++
	}
	return bins
}

// coverage counts for each index, all its segments taken together, the fragments of the latest version that it covers.
func coverage(m *manifest.Manifest) ([]Coverage, error) {
	covered := map[string]map[uint64]struct{}{}
	unknown := map[string]bool{}
	var names []string
	for _, segment := range m.Indices {
		if indexmeta.IsSystem(segment) {
			continue
		}
		name := segment.GetName()
		if covered[name] == nil {
			covered[name] = map[uint64]struct{}{}
			names = append(names, name)
		}
		ids, known, err := indexmeta.Coverage(segment)
		if err != nil {
			return nil, fmt.Errorf("coverage of index %s: %w", name, err)
		}
		if !known {
			unknown[name] = true
			continue
		}
		for _, f := range m.GetFragments() {
			if f.GetId() <= 1<<32-1 && ids.Contains(uint32(f.GetId())) {
				covered[name][f.GetId()] = struct{}{}
			}
		}
	}
	var out []Coverage
	for _, name := range names {
		c := Coverage{Index: name, Fragments: len(m.GetFragments())}
		if n := len(covered[name]); !unknown[name] {
			c.Covered = &n
		}
		out = append(out, c)
	}
	return out, nil
}
