package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	var versions []dataset.Version
	for i := range 25 {
		versions = append(versions, dataset.Version{Modified: start.Add(time.Duration(i) * time.Hour)})
	}
	total := 0
	bins := history(versions)
	require.Len(t, bins, periods)
	for _, p := range bins {
		total += p.Versions
	}
	require.Equal(t, len(versions), total)
	require.Equal(t, []Period{{From: start, Versions: 1}}, history(versions[:1]))
}

func TestBins(t *testing.T) {
	t.Parallel()
	var fragments []*lancepb.DataFragment
	for _, f := range [][2]uint64{{0, 0}, {1, 0}, {3, 0}, {4, 0}, {20, 20}, {20, 1}, {20, 15}} {
		fragment := &lancepb.DataFragment{PhysicalRows: f[0]}
		if f[1] > 0 {
			fragment.DeletionFile = &lancepb.DeletionFile{NumDeletedRows: f[1]}
		}
		fragments = append(fragments, fragment)
	}
	require.Equal(t, []Bin{{1, 2}, {4, 2}, {16, 2}, {64, 1}}, bySize(fragments))
	deleted := byDeleted(fragments)
	require.Equal(t, Bin{0, 4}, deleted[0])
	require.Equal(t, 1, deleted[1].Count)
	require.Equal(t, 1, deleted[8].Count)
	require.Equal(t, 1, deleted[10].Count)
}

func TestBars(t *testing.T) {
	t.Parallel()
	require.Equal(t, ".▁█▄", bars([]int{0, 1, 100, 50}))
	require.Equal(t, "..", bars([]int{0, 0}))
	require.Empty(t, bars(nil))
}
