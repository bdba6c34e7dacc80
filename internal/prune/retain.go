package prune

import (
	"fmt"
	"strings"
	"time"

	"lancekeeper/internal/lance/dataset"
)

// Policy says what must stay.
type Policy struct {
	Grace         time.Duration // a version stays this long after it was superseded, by the store's clock
	Keep          int           // so many of the newest versions stay
	UnverifiedAge time.Duration // a file that no version names stays until it is so old
	Before        uint64        // versions from this one on stay; 0: none for that reason
	Pinned        []uint64      // versions that stay
	Clones        bool          // other datasets may name data, deletion and index files of any version: they stay
	FailIfTagged  bool          // a tagged version that would expire otherwise makes the plan fail: *TaggedError
}

// TaggedError says that a tagged version would have expired, where that is asked to be an error.
type TaggedError struct {
	Version uint64
	Reason  string
}

// Error names the version and its tags.
func (e *TaggedError) Error() string {
	return fmt.Sprintf("version %d would expire and has a tag (%s): nothing is removed, as the setting errorIfTagged asks", e.Version, e.Reason)
}

// pins are the versions that references and the policy hold, with the reasons.
func (p Policy) pins(refs *dataset.Refs) map[uint64][]string {
	pinned := refs.Pinned()
	for _, version := range p.Pinned {
		pinned[version] = append(pinned[version], "pinned by the settings")
	}
	return pinned
}

// tagged finds a tagged version that would expire without its tag.
func (p Policy) tagged(versions []dataset.Version, refs *dataset.Refs, now time.Time) error {
	if !p.FailIfTagged {
		return nil
	}
	others := p.pins(&dataset.Refs{Branches: refs.Branches})
	tags := (&dataset.Refs{Tags: refs.Tags}).Pinned()
	_, _, expired := retention(versions, others, p, now)
	for _, v := range expired {
		if reasons := tags[v.Number]; len(reasons) > 0 {
			return &TaggedError{Version: v.Number, Reason: strings.Join(reasons, ", ")}
		}
	}
	return nil
}

// Kept is a version that stays although it is not the latest.
type Kept struct {
	Version uint64
	Reason  string
	Until   time.Time // when the reason ends by itself; zero if it does not
}

// retention divides the versions of a listing, ascending, into what stays and what has expired. A version is superseded when
// the next listed one was stored.
func retention(versions []dataset.Version, pinned map[uint64][]string, p Policy, now time.Time) (kept []Kept, retained, expired []dataset.Version) {
	last := len(versions) - 1
	for i, v := range versions {
		if i == last {
			retained = append(retained, v)
			break
		}
		k := Kept{Version: v.Number}
		until := versions[i+1].Modified.Add(p.Grace)
		switch reasons := pinned[v.Number]; {
		case len(reasons) > 0:
			k.Reason = strings.Join(reasons, ", ")
		case last-i < p.Keep:
			k.Reason = fmt.Sprintf("one of the newest %d", p.Keep)
		case p.Before != 0 && v.Number >= p.Before:
			k.Reason = fmt.Sprintf("not before version %d", p.Before)
		case until.After(now):
			k.Reason, k.Until = fmt.Sprintf("superseded less than %s ago", p.Grace), until
		default:
			expired = append(expired, v)
			continue
		}
		kept = append(kept, k)
		retained = append(retained, v)
	}
	return kept, retained, expired
}
