package ledger_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancekeeper/internal/ledger"
)

// dies is what a ledger shows after a pass was killed while it rewrote the fragments.
func dies(e ledger.Entry, fragments ...uint64) ledger.Entry {
	e.Attempt = &ledger.Attempt{Fragments: fragments}
	e.Unfinished = &ledger.Started{At: noon, Owner: "a"}
	return e.Died(noon)
}

// J5: a fragment that kills the process is set aside after two deaths, and nothing else is.
func TestQuarantineFollowsTheFragment(t *testing.T) {
	t.Parallel()
	e := dies(ledger.Entry{}, 1, 2, 3)
	_, aside := e.SetAside(2, noon)
	require.False(t, aside, "one death may have had another cause")

	e = dies(e, 2, 3, 4, 5)
	for id, want := range map[uint64]bool{1: false, 2: true, 3: true, 4: false, 5: false, 6: false} {
		q, aside := e.SetAside(id, noon)
		require.Equal(t, want, aside, "fragment %d", id)
		if want {
			require.Equal(t, 2, q.Deaths)
			require.Equal(t, noon.Add(24*time.Hour), q.Until)
		}
	}
	require.Len(t, e.Quarantine, 3)

	_, aside = e.SetAside(2, noon.Add(24*time.Hour))
	require.False(t, aside, "tried once more after a day")
	again := dies(e, 2)
	q, aside := again.SetAside(2, noon)
	require.True(t, aside)
	require.Equal(t, 3, q.Deaths)

	e = e.Forget(func(id uint64) bool { return id == 3 })
	require.Len(t, e.Quarantine, 1)
	_, aside = e.SetAside(3, noon)
	require.True(t, aside)
}

func TestQuarantineOfFailures(t *testing.T) {
	t.Parallel()
	e := ledger.Entry{}.AttemptFailed(noon, []uint64{7}, "first")
	require.Len(t, e.Quarantine, 1)
	e = dies(e, 7)
	_, aside := e.SetAside(7, noon)
	require.False(t, aside, "one of each is not two of one")
	e = e.AttemptFailed(noon, []uint64{7}, "second")
	q, aside := e.SetAside(7, noon)
	require.True(t, aside)
	require.Equal(t, "second", q.Reason)
}

// A death without an attempt under way says nothing about any fragment.
func TestDeathOutsideARewrite(t *testing.T) {
	t.Parallel()
	e := ledger.Entry{Unfinished: &ledger.Started{At: noon}}.Died(noon)
	require.Empty(t, e.Quarantine)
}

func TestFragmentSetTextRoundTrip(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1-3,7,9-10", ledger.FragmentSet{10, 9, 1, 2, 3, 7, 7}.String())
	rapid.Check(t, func(t *rapid.T) {
		set := ledger.FragmentSet(rapid.SliceOfDistinct(rapid.Uint64Range(0, 60), rapid.ID).Draw(t, "set"))
		data, err := json.Marshal(set)
		require.NoError(t, err)
		var back ledger.FragmentSet
		require.NoError(t, json.Unmarshal(data, &back))
		require.ElementsMatch(t, set, back)
		require.IsIncreasing(t, append(ledger.FragmentSet{}, append(back, 1<<63)...))
	})
	for _, bad := range []string{"x", "1-", "-1", "5-3", "1,,2", "0-99999999"} {
		var set ledger.FragmentSet
		require.Error(t, set.UnmarshalText([]byte(bad)), bad)
	}
}

// Counts are right whatever sets were tried in whatever order.
func TestQuarantineCountsEachFragment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var e ledger.Entry
		deaths := map[uint64]int{}
		for range rapid.IntRange(0, 6).Draw(t, "deaths") {
			set := rapid.SliceOfNDistinct(rapid.Uint64Range(0, 9), 1, 6, rapid.ID).Draw(t, "fragments")
			for _, id := range set {
				deaths[id]++
			}
			e = dies(e, set...)
		}
		for id := range uint64(10) {
			q, aside := e.SetAside(id, noon)
			require.Equal(t, deaths[id] >= 2, aside)
			if aside {
				require.Equal(t, deaths[id], q.Deaths)
			}
		}
	})
}
