package prune

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancekeeper/internal/lance/dataset"
)

// versionsAt are versions with the given numbers, stored so many hours after a fixed moment.
func versionsAt(start time.Time, numbers []uint64, hours []int) []dataset.Version {
	var out []dataset.Version
	for i, n := range numbers {
		out = append(out, dataset.Version{Number: n, Modified: start.Add(time.Duration(hours[i]) * time.Hour)})
	}
	return out
}

func numbersOf(versions []dataset.Version) []uint64 {
	var out []uint64
	for _, v := range versions {
		out = append(out, v.Number)
	}
	return out
}

func TestRetention(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		numbers []uint64
		hours   []int
		pinned  map[uint64][]string
		policy  Policy
		after   time.Duration // now, after start
		expired []uint64
		reasons map[uint64]string
	}{
		"one version stays": {numbers: []uint64{1}, hours: []int{0}, policy: Policy{Keep: 1}, after: 1000 * time.Hour},
		"without grace all but the latest": {
			numbers: []uint64{1, 2, 3}, hours: []int{0, 1, 2}, policy: Policy{Keep: 1}, after: 2 * time.Hour, expired: []uint64{1, 2},
		},
		"the latest stays even if none is to be kept": {
			numbers: []uint64{1, 2}, hours: []int{0, 1}, policy: Policy{}, after: 1000 * time.Hour, expired: []uint64{1},
		},
		"a nanosecond before the end of the grace": {
			numbers: []uint64{1, 2}, hours: []int{0, 5}, policy: Policy{Grace: time.Hour, Keep: 1}, after: 6*time.Hour - 1,
			reasons: map[uint64]string{1: "superseded less than 1h0m0s ago"},
		},
		"at the end of the grace": {
			numbers: []uint64{1, 2}, hours: []int{0, 5}, policy: Policy{Grace: time.Hour, Keep: 1}, after: 6 * time.Hour, expired: []uint64{1},
		},
		"age from supersession": {
			numbers: []uint64{1, 2, 3}, hours: []int{0, 1, 240}, policy: Policy{Grace: 2 * time.Hour, Keep: 1}, after: 241 * time.Hour,
			expired: []uint64{1}, reasons: map[uint64]string{2: "superseded less than 2h0m0s ago"},
		},
		"keep the newest three": {
			numbers: []uint64{1, 2, 3, 4, 5}, hours: []int{0, 1, 2, 3, 4}, policy: Policy{Keep: 3}, after: 1000 * time.Hour,
			expired: []uint64{1, 2}, reasons: map[uint64]string{3: "one of the newest 3", 4: "one of the newest 3"},
		},
		"keep more than there are": {
			numbers: []uint64{4, 5}, hours: []int{0, 1}, policy: Policy{Keep: 9}, after: 1000 * time.Hour,
			reasons: map[uint64]string{4: "one of the newest 9"},
		},
		"newest counts what is listed, not numbers": {
			numbers: []uint64{1, 2, 9, 40}, hours: []int{0, 1, 2, 3}, policy: Policy{Keep: 2}, after: 1000 * time.Hour,
			expired: []uint64{1, 2}, reasons: map[uint64]string{9: "one of the newest 2"},
		},
		"over a gap the next listed one supersedes": {
			numbers: []uint64{1, 2, 9}, hours: []int{0, 1, 100}, policy: Policy{Grace: 3 * time.Hour, Keep: 1}, after: 102 * time.Hour,
			expired: []uint64{1}, reasons: map[uint64]string{2: "superseded less than 3h0m0s ago"},
		},
		"tagged and branched from": {
			numbers: []uint64{1, 2, 3, 4, 5}, hours: []int{0, 1, 2, 3, 4}, policy: Policy{Keep: 1}, after: 1000 * time.Hour,
			pinned:  map[uint64][]string{2: {"tag a", "tag b"}, 4: {"branch dev starts here"}, 77: {"tag of what is gone"}},
			expired: []uint64{1, 3}, reasons: map[uint64]string{2: "tag a, tag b", 4: "branch dev starts here"},
		},
		"a tag is the reason before the others": {
			numbers: []uint64{1, 2}, hours: []int{0, 1}, policy: Policy{Keep: 2, Grace: time.Hour}, after: time.Hour,
			pinned: map[uint64][]string{1: {"tag a"}}, reasons: map[uint64]string{1: "tag a"},
		},
		"stored in the future, by a clock that was ahead": {
			numbers: []uint64{1, 2}, hours: []int{0, 10}, policy: Policy{Keep: 1}, after: 9 * time.Hour,
			reasons: map[uint64]string{1: "superseded less than 0s ago"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			versions := versionsAt(start, c.numbers, c.hours)
			kept, retained, expired := retention(versions, c.pinned, c.policy, start.Add(c.after))
			require.Equal(t, c.expired, numbersOf(expired))
			reasons := map[uint64]string{}
			for _, k := range kept {
				reasons[k.Version] = k.Reason
			}
			if c.reasons == nil {
				c.reasons = map[uint64]string{}
			}
			require.Equal(t, c.reasons, reasons)
			require.Len(t, retained, len(versions)-len(expired))
			require.Equal(t, c.numbers[len(c.numbers)-1], retained[len(retained)-1].Number)
		})
	}
}

// Whatever the times and pins are: each version is retained or expired, once; nothing that has a reason to stay has expired.
func TestRetentionAnywhere(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "versions")
		var versions []dataset.Version
		number := uint64(0)
		pinned := map[uint64][]string{}
		for range n {
			number += rapid.Uint64Range(1, 3).Draw(t, "step")
			versions = append(versions, dataset.Version{Number: number, Modified: start.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "hour")) * time.Hour)})
			if rapid.IntRange(0, 4).Draw(t, "tagged") == 0 {
				pinned[number] = []string{"tag"}
			}
		}
		policy := Policy{Grace: time.Duration(rapid.IntRange(0, 50).Draw(t, "grace")) * time.Hour, Keep: rapid.IntRange(0, 5).Draw(t, "keep")}
		now := start.Add(time.Duration(rapid.IntRange(0, 150).Draw(t, "now")) * time.Hour)
		kept, retained, expired := retention(versions, pinned, policy, now)
		if len(retained)+len(expired) != n || len(kept) != len(retained)-1 {
			t.Fatalf("%d retained, %d kept, %d expired of %d", len(retained), len(kept), len(expired), n)
		}
		gone := map[uint64]bool{}
		for _, v := range expired {
			gone[v.Number] = true
		}
		for i, v := range versions {
			newest := n-i <= max(1, policy.Keep)
			young := i+1 < n && versions[i+1].Modified.Add(policy.Grace).After(now)
			if stays := newest || young || pinned[v.Number] != nil; stays == gone[v.Number] {
				t.Fatalf("version %d: newest %t, young %t, expired %t", v.Number, newest, young, gone[v.Number])
			}
		}
	})
}
