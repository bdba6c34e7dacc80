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
