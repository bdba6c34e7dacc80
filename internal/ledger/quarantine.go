package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A fragment whose rewrite died or failed this often is set aside for this long, then tried once more.
const (
	strikes      = 2
	setAsideTime = 24 * time.Hour
)

// maxFragments bounds what a stored set may unfold to.
const maxFragments = 1 << 20

// Attempt is a rewrite whose end is not known yet: noted before it begins, so that the next pass can look after what a killed
// one left.
type Attempt struct {
	TransactionUUID string      `json:"transactionUUID"`
	ReadVersion     uint64      `json:"readVersion"`
	Target          uint64      `json:"target"` // the version about to be claimed
	Files           []string    `json:"files"`  // keys written, or about to be
	Fragments       FragmentSet `json:"fragments"`
	At              time.Time   `json:"at"`
}

// Quarantined is what went wrong with rewriting some fragments.
type Quarantined struct {
	Deaths   int       `json:"deaths,omitempty"`   // passes that ended in the middle
	Failures int       `json:"failures,omitempty"` // rewrites that failed
	Reason   string    `json:"reason"`             // of the last one
	Until    time.Time `json:"until,omitzero"`     // set aside until then; zero while it has only one strike
}

// WithAttempt adds a rewrite, or replaces what is noted of the one with the same transaction.
func (e Entry) WithAttempt(a Attempt) Entry {
	a.At = a.At.UTC()
	e.Attempts = slices.Clone(e.Attempts)
	for i := range e.Attempts {
		if e.Attempts[i].TransactionUUID == a.TransactionUUID {
			e.Attempts[i] = a
			return e
		}
	}
	e.Attempts = append(e.Attempts, a)
	return e
}

// WithoutAttempt drops a rewrite whose end is known, by its transaction.
func (e Entry) WithoutAttempt(uuid string) Entry {
	var kept []Attempt
	for _, a := range e.Attempts {
		if a.TransactionUUID != uuid {
			kept = append(kept, a)
		}
	}
	e.Attempts = kept
	return e
}

// Quarantined lists all fragments that are to be left alone now, each with the reason and until when.
func (e Entry) Quarantined(now time.Time) map[uint64]string {
	out := map[uint64]string{}
	for key, q := range e.Quarantine {
		if !q.Until.After(now) {
			continue
		}
		set, err := parseFragmentSet(key)
		if err != nil {
			continue // checked when it was decoded
		}
		for _, id := range set {
			out[id] = q.String()
		}
	}
	return out
}

// String says what went wrong, how often, and until when the fragments are set aside.
func (q Quarantined) String() string {
	text := fmt.Sprintf("%s (%d failed, %d died)", q.Reason, q.Failures, q.Deaths)
	if !q.Until.IsZero() {
		text += ", set aside until " + q.Until.UTC().Format(time.RFC3339)
	}
	return text
}

// AttemptFailed counts a failed rewrite against its fragments.
func (e Entry) AttemptFailed(now time.Time, fragments []uint64, reason string) Entry {
	return e.count(fragments, reason, func(q *Quarantined) { q.Failures++ }, now)
}

// SetAside says whether a fragment is to be left alone, and why.
func (e Entry) SetAside(fragment uint64, now time.Time) (Quarantined, bool) {
	for key, q := range e.Quarantine {
		if !q.Until.After(now) {
			continue
		}
		set, err := parseFragmentSet(key)
		if err == nil && slices.Contains(set, fragment) {
			return q, true
		}
	}
	return Quarantined{}, false
}

// Forget drops what is known of fragments that do not exist any more.
func (e Entry) Forget(exists func(fragment uint64) bool) Entry {
	if len(e.Quarantine) == 0 {
		return e
	}
	kept := map[string]Quarantined{}
	for key, q := range e.Quarantine {
		set, err := parseFragmentSet(key)
		if err != nil {
			continue
		}
		set = slices.DeleteFunc(set, func(id uint64) bool { return !exists(id) })
		if len(set) > 0 {
			kept[set.String()] = q
		}
	}
	e.Quarantine = kept
	return e
}

// count adds a strike to each of the fragments. Sets that share only some of them are split, so that the count follows a
// fragment whatever it is put together with the next time.
func (e Entry) count(fragments []uint64, reason string, strike func(*Quarantined), now time.Time) Entry {
	struck := newFragmentSet(fragments)
	out := map[string]Quarantined{}
	put := func(set FragmentSet, q Quarantined) {
		if len(set) > 0 {
			out[set.String()] = q
		}
	}
	add := func(set FragmentSet, q Quarantined) {
		strike(&q)
		q.Reason = reason
		if q.Deaths >= strikes || q.Failures >= strikes {
			q.Until = now.UTC().Add(setAsideTime)
		}
		put(set, q)
	}
	for key, q := range e.Quarantine {
		set, err := parseFragmentSet(key)
		if err != nil {
			continue
		}
		common, others := set.split(struck)
		put(others, q)
		add(common, q)
		_, struck = struck.split(common)
	}
	add(struck, Quarantined{})
	e.Quarantine = out
	return e
}

// FragmentSet is fragment ids, ascending, each once. Its text form is ranges: "3-7,12".
type FragmentSet []uint64

func newFragmentSet(ids []uint64) FragmentSet {
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}

// split divides a set into what is in the other set too, and what is not.
func (s FragmentSet) split(other FragmentSet) (common, rest FragmentSet) {
	for _, id := range s {
		if _, found := slices.BinarySearch(other, id); found {
			common = append(common, id)
		} else {
			rest = append(rest, id)
		}
	}
	return common, rest
}

// String writes the ids as ranges.
func (s FragmentSet) String() string {
	var parts []string
	set := newFragmentSet(s)
	for i := 0; i < len(set); {
		j := i
		for j+1 < len(set) && set[j+1] == set[j]+1 {
			j++
		}
		part := strconv.FormatUint(set[i], 10)
		if j > i {
			part += "-" + strconv.FormatUint(set[j], 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// MarshalText writes the ids as ranges.
func (s FragmentSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *FragmentSet) UnmarshalText(text []byte) error {
	set, err := parseFragmentSet(string(text))
	if err != nil {
		return err
	}
	*s = set
	return nil
}

func parseFragmentSet(text string) (FragmentSet, error) {
	if text == "" {
		return nil, nil
	}
	var set FragmentSet
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(low, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read fragment ids %q: %w", part, err)
		}
		last := first
		if isRange {
			if last, err = strconv.ParseUint(high, 10, 64); err != nil {
				return nil, fmt.Errorf("read fragment ids %q: %w", part, err)
			}
		}
		if last < first || last-first >= maxFragments || len(set) >= maxFragments {
			return nil, fmt.Errorf("read fragment ids %q: not a range of fewer than %d", part, maxFragments)
		}
		for id := first; ; id++ {
			set = append(set, id)
			if id == last {
				break
			}
		}
	}
	return newFragmentSet(set), nil
}
