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
	e.Attempts = []ledger.Attempt{{TransactionUUID: "t", Fragments: fragments, At: noon}}
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

func TestAttemptsAreAddedReplacedAndDropped(t *testing.T) {
	t.Parallel()
	empty := ledger.Entry{}
	one := empty.WithAttempt(ledger.Attempt{TransactionUUID: "a", Target: 5, At: noon})
	two := one.WithAttempt(ledger.Attempt{TransactionUUID: "b", Target: 5, At: noon})
	again := two.WithAttempt(ledger.Attempt{TransactionUUID: "a", Target: 6, At: noon})
	require.Empty(t, empty.Attempts)
	require.Len(t, one.Attempts, 1)
	require.Len(t, two.Attempts, 2)
	require.Equal(t, uint64(5), two.Attempts[0].Target, "methods change copies")
	require.Len(t, again.Attempts, 2)
	require.Equal(t, uint64(6), again.Attempts[0].Target)

	left := again.WithoutAttempt("a")
	require.Len(t, left.Attempts, 1)
	require.Equal(t, "b", left.Attempts[0].TransactionUUID)
	require.Len(t, again.Attempts, 2)
	require.Empty(t, left.WithoutAttempt("b").Attempts)
	require.Equal(t, left, left.WithoutAttempt("of another"))
}

// Only what the dead pass itself had begun counts; an attempt of an earlier one waits there for its end to be known.
func TestDeathCountsAgainstAllAttemptsOfThatPass(t *testing.T) {
	t.Parallel()
	e := ledger.Entry{Unfinished: &ledger.Started{At: noon, Owner: "a"}}
	e = e.WithAttempt(ledger.Attempt{TransactionUUID: "earlier", Fragments: []uint64{1}, At: noon.Add(-time.Second)})
	e = e.WithAttempt(ledger.Attempt{TransactionUUID: "first", Fragments: []uint64{2, 3}, At: noon})
	e = e.WithAttempt(ledger.Attempt{TransactionUUID: "second", Fragments: []uint64{3, 4}, At: noon.Add(time.Second)})
	e = e.Died(noon.Add(time.Minute))
	require.Len(t, e.Attempts, 3, "what they wrote has to be looked after")
	require.Len(t, e.Quarantine, 1)
	require.Equal(t, 1, e.Quarantine["2-4"].Deaths, "one death is one strike, however many attempts a fragment is in")
}

func TestQuarantinedSaysWhyAndUntilWhen(t *testing.T) {
	t.Parallel()
	e := ledger.Entry{}.AttemptFailed(noon, []uint64{1, 2, 3}, "first").AttemptFailed(noon, []uint64{2, 3}, "bad page")
	aside := e.Quarantined(noon)
	why := "bad page (2 failed, 0 died), set aside until 2026-12-02T12:00:00Z"
	require.Equal(t, map[uint64]string{2: why, 3: why}, aside)
	require.Empty(t, e.Quarantined(noon.Add(24*time.Hour)))
	require.Empty(t, ledger.Entry{}.Quarantined(noon))
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
