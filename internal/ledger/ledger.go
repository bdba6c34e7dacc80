// Package ledger keeps what past passes did, one entry a dataset.
//
// Without it a keeper could neither say how far behind it is, nor finish what a killed pass began. Only the pass that holds
// the lock writes an entry, and only until the next pass has begun: the lock's generation is the fence.
package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrFenced is the class of errors about an entry that a later pass has taken over.
var ErrFenced = errors.New("a later pass has begun")

// Limits of an entry.
const (
	keptOutcomes = 20
	// MaxBytes is the size of an encoded entry that is still stored. DynamoDB takes items of 400 KB (409,600 bytes), names
	// and other attributes included.
	MaxBytes = 390 << 10
)

// TooLargeError says that an entry does not fit; the one that was stored before is still there.
type TooLargeError struct {
	Dataset string
	Bytes   int
	Names   int // in the journal
}

// Error gives both sizes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("ledger entry of %s has %d bytes with %d names in its journal: the limit is %d", e.Dataset, e.Bytes, e.Names, MaxBytes)
}

// Entry is what is known of one dataset. Its methods return changed copies and leave the entry as it was.
type Entry struct {
	Dataset    string `json:"dataset,omitempty"`
	Generation uint64 `json:"generation,omitempty"` // of the lease under which the last pass began

	FirstSeen     time.Time `json:"firstSeen,omitzero"`      // when the first pass began
	LastSuccess   *Success  `json:"lastSuccess,omitempty"`   // nil before any success
	LastVersion   uint64    `json:"lastVersion,omitempty"`   // latest version when it was last measured; 0 if never
	OldestVersion uint64    `json:"oldestVersion,omitempty"` // lowest version that was listed last; 0 if never
	Manifests     int64     `json:"manifests,omitempty"`     // how many were listed last
	MeasuredAt    time.Time `json:"measuredAt,omitzero"`     // when LastVersion was measured

	ConsecutiveFailures int       `json:"consecutiveFailures,omitempty"`
	Failures            int       `json:"failures,omitempty"` // since FirstSeen
	ConsecutiveSkips    int       `json:"consecutiveSkips,omitempty"`
	LastSkip            *Skip     `json:"lastSkip,omitempty"`
	Started             *Started  `json:"started,omitempty"`    // the pass under way; nil when it has been recorded
	Unfinished          *Started  `json:"unfinished,omitempty"` // the pass before it, if it began and never finished
	Outcomes            []Outcome `json:"outcomes,omitempty"`   // newest first

	Attempts   []Attempt              `json:"attempts,omitempty"`   // rewrites whose end is not known yet; several may be open at once
	Sweep      []string               `json:"sweep,omitempty"`      // journal: keys of objects that are owed a deletion
	Quarantine map[string]Quarantined `json:"quarantine,omitempty"` // by the fragment ids, as FragmentSet.String writes them

	// How many fragments a rewrite may take at most, learned from races that were lost; 0: any number.
	TaskFragments int `json:"taskFragments,omitempty"`

	Idle *Idle `json:"idle,omitempty"` // nil where something was left to do
}

// Idle is a dataset as a pass left it that had nothing more to do. As long as all of it is the same, nothing can go before Until.
type Idle struct {
	Version  uint64    `json:"version"` // the latest
	ETag     string    `json:"etag"`    // of its manifest
	Refs     string    `json:"refs"`    // digest of tags and branches
	Policy   string    `json:"policy"`  // digest of the settings
	ListedAt time.Time `json:"listedAt"`
	Until    time.Time `json:"until"` // both by the store's clock
}

// Success is the last pass that did all it should.
type Success struct {
	Version uint64    `json:"version"` // the latest version when it ended
	At      time.Time `json:"at"`
}

// Started is a pass that began.
type Started struct {
	At         time.Time `json:"at"`
	Owner      string    `json:"owner"`
	Generation uint64    `json:"generation"`
}

// Skip is a pass that found the lock held.
type Skip struct {
	At     time.Time `json:"at"`
	Holder string    `json:"holder"`
}

// Outcomes that a pass can have in the ledger.
const (
	OutcomeOK      = "ok"
	OutcomePartial = "partial"
	OutcomeFailed  = "failed"
)

// ClassDied is the class of failure of a pass that began and was never recorded.
const ClassDied = "died"

// Outcome is how one pass ended.
type Outcome struct {
	At          time.Time `json:"at"`
	Outcome     string    `json:"outcome"`
	Reason      string    `json:"reason,omitempty"`
	Class       string    `json:"class,omitempty"`       // of the error
	Version     uint64    `json:"version,omitempty"`     // latest version at the end; 0 if not known
	Unreclaimed *uint64   `json:"unreclaimed,omitempty"` // nil if not known
	DurationMs  int64     `json:"durationMs"`
	Drained     bool      `json:"drained,omitempty"`
}

// Measured notes the latest version, the lowest listed one and how many were listed. Zero for the last two: not listed.
func (e Entry) Measured(now time.Time, latest, oldest uint64, manifests int64) Entry {
	e.LastVersion, e.MeasuredAt = latest, now.UTC()
	if oldest != 0 {
		e.OldestVersion, e.Manifests = oldest, manifests
	}
	return e
}

// Succeeded records a pass that did all it should, and left the dataset at o.Version.
func (e Entry) Succeeded(o Outcome) Entry {
	o.Outcome = OutcomeOK
	e.ConsecutiveFailures = 0
	e.LastSuccess = &Success{Version: o.Version, At: o.At.UTC()}
	return e.finished(o)
}

// Failed records a failure: one more in a row, one more in all.
func (e Entry) Failed(o Outcome) Entry {
	o.Outcome = OutcomeFailed
	e.ConsecutiveFailures++
	e.Failures++
	return e.finished(o)
}

// Partial records a pass that ran out of time. It is neither success nor failure: the count of failures in a row and the last
// success stay, so that a dataset whose passes never come to their end shows a growing gap.
func (e Entry) Partial(o Outcome) Entry {
	o.Outcome = OutcomePartial
	return e.finished(o)
}

func (e Entry) finished(o Outcome) Entry {
	e.Started, e.Unfinished = nil, nil
	return e.noted(o)
}

func (e Entry) noted(o Outcome) Entry {
	o.At = o.At.UTC()
	outcomes := slices.Concat([]Outcome{o}, e.Outcomes)
	e.Outcomes = outcomes[:min(len(outcomes), keptOutcomes)]
	return e
}

// Died records the pass before this one as failed, if it began and never finished, and counts a death against the fragments
// of its attempts: those that began when it did, or later. Attempts stay: what they wrote has to be looked after.
func (e Entry) Died(now time.Time) Entry {
	if e.Unfinished == nil {
		return e
	}
	before := *e.Unfinished
	e.Unfinished = nil
	e.ConsecutiveFailures++
	e.Failures++
	reason := fmt.Sprintf("the pass of %s, begun at %s, never finished", before.Owner, before.At.UTC().Format(time.RFC3339))
	var touched []uint64
	for _, a := range e.Attempts {
		if !a.At.Before(before.At) {
			touched = append(touched, a.Fragments...)
		}
	}
	if len(touched) > 0 {
		e = e.count(touched, "the pass ended while they were rewritten", func(q *Quarantined) { q.Deaths++ }, now)
	}
	return e.noted(Outcome{At: before.At, Outcome: OutcomeFailed, Class: ClassDied, Reason: reason})
}

// Unreclaimed is the gauge to alert on: how many versions were committed since the last successful pass. Before any success
// it is the whole backlog: all versions that were listed, or, where nothing was, the number of the latest. A dataset whose
// versions restarted below that of the last success was made anew, and counts as never done.
//
// latest and oldest are what was measured just now (oldest 0: not listed); where measured is false the last known values
// stand in. It is not known (false) where nothing is, and where only a 0 could be given that nobody measured.
func (e Entry) Unreclaimed(latest, oldest uint64, measured bool) (n uint64, known bool) {
	if !measured {
		latest, oldest = e.LastVersion, e.OldestVersion
	}
	switch {
	case latest == 0:
		return 0, false
	case e.LastSuccess != nil && e.LastSuccess.Version <= latest:
		n = latest - e.LastSuccess.Version
	case oldest != 0 && oldest <= latest:
		n = latest - oldest + 1
	default:
		n = latest
	}
	return n, measured || n > 0
}

// SinceSuccess is the age of the last success; before any, the time since the first pass began. Not known (false) for a
// dataset that no pass has seen.
func (e Entry) SinceSuccess(now time.Time) (time.Duration, bool) {
	since := e.FirstSeen
	if e.LastSuccess != nil {
		since = e.LastSuccess.At
	}
	if since.IsZero() {
		return 0, false
	}
	return max(0, now.Sub(since)), true
}
