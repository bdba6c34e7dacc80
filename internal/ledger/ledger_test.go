package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/ledger"
)

func TestFailuresAccumulateAndASuccessResetsThoseInARow(t *testing.T) {
	t.Parallel()
	var e ledger.Entry
	for range 3 {
		e = e.Failed(ledger.Outcome{At: noon, Class: "other", Reason: "no"})
	}
	require.Equal(t, 3, e.ConsecutiveFailures)
	require.Nil(t, e.LastSuccess)

	e = e.Partial(ledger.Outcome{At: noon})
	require.Equal(t, 3, e.ConsecutiveFailures, "running out of time is neither")
	require.Nil(t, e.LastSuccess)

	before := e
	e = e.Succeeded(ledger.Outcome{At: noon, Version: 9})
	require.Zero(t, e.ConsecutiveFailures)
	require.Equal(t, 3, e.Failures)
	require.Equal(t, &ledger.Success{Version: 9, At: noon}, e.LastSuccess)
	require.Nil(t, before.LastSuccess, "methods change copies")

	e = e.Failed(ledger.Outcome{At: noon})
	require.Equal(t, 1, e.ConsecutiveFailures)
	require.Equal(t, 4, e.Failures)
	for i := range 30 {
		e = e.Partial(ledger.Outcome{At: noon, DurationMs: int64(i)})
	}
	require.Len(t, e.Outcomes, 20)
	require.Equal(t, int64(29), e.Outcomes[0].DurationMs, "newest first")
}

func TestUnreclaimed(t *testing.T) {
	t.Parallel()
	succeeded := ledger.Entry{}.Measured(noon, 100, 90, 11).Succeeded(ledger.Outcome{At: noon, Version: 100})
	for name, c := range map[string]struct {
		entry          ledger.Entry
		latest, oldest uint64
		measured       bool
		want           uint64
		known          bool
	}{
		"gap since success":                    {entry: succeeded, latest: 130, oldest: 90, measured: true, want: 30, known: true},
		"just succeeded":                       {entry: succeeded, latest: 100, measured: true, known: true},
		"never a success, listed":              {latest: 130, oldest: 90, measured: true, want: 41, known: true},
		"never a success, not listed":          {latest: 130, measured: true, want: 130, known: true},
		"made anew below the last success":     {entry: succeeded, latest: 7, oldest: 1, measured: true, want: 7, known: true},
		"nothing measured, ever":               {},
		"not measured, nothing known to grow":  {entry: succeeded},
		"not measured, grew since the success": {entry: succeeded.Measured(noon, 120, 0, 0), want: 20, known: true},
		"not measured, never a success":        {entry: ledger.Entry{}.Measured(noon, 120, 21, 100), want: 100, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, known := c.entry.Unreclaimed(c.latest, c.oldest, c.measured)
			require.Equal(t, c.known, known)
			require.Equal(t, c.want, got)
		})
	}
}

func TestSinceSuccess(t *testing.T) {
	t.Parallel()
	_, known := ledger.Entry{}.SinceSuccess(noon)
	require.False(t, known)

	age, known := ledger.Entry{FirstSeen: noon}.SinceSuccess(noon.Add(time.Hour))
	require.True(t, known)
	require.Equal(t, time.Hour, age, "before any success it grows from the first pass on")

	e := ledger.Entry{FirstSeen: noon}.Succeeded(ledger.Outcome{At: noon.Add(time.Hour), Version: 1})
	age, known = e.SinceSuccess(noon.Add(3 * time.Hour))
	require.True(t, known)
	require.Equal(t, 2*time.Hour, age)
	age, _ = e.SinceSuccess(noon)
	require.Zero(t, age, "a clock that is behind makes no negative age")
}

func TestPassThatNeverFinishedIsAFailure(t *testing.T) {
	t.Parallel()
	e := ledger.Entry{}.Died(noon)
	require.Empty(t, e.Outcomes)

	e.Unfinished = &ledger.Started{At: noon, Owner: "a"}
	e = e.Died(noon.Add(time.Hour))
	require.Equal(t, 1, e.ConsecutiveFailures)
	require.Equal(t, 1, e.Failures)
	require.Nil(t, e.Unfinished)
	require.Len(t, e.Outcomes, 1)
	require.Equal(t, ledger.ClassDied, e.Outcomes[0].Class)
	require.Equal(t, noon, e.Outcomes[0].At)
	require.Contains(t, e.Outcomes[0].Reason, "the pass of a, begun at 2026-12-01T12:00:00Z")
	require.Equal(t, e, e.Died(noon), "counted once")
}
