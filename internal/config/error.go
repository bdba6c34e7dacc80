package config

import (
	"fmt"
	"strings"
)

// Source says where a value came from.
type Source string

// Sources, weakest first: a value from a later one replaces one from an earlier one.
const (
	Default     Source = "default"
	Function    Source = "function" // the function's own memory size or deadline
	Environment Source = "environment"
	Table       Source = "table configuration" // of the dataset itself
	Policy      Source = "policy"              // a rule for some datasets
	Event       Source = "event"
	Flag        Source = "flag"
)

// Error is a setting that can't be used: unknown, out of range, or given where it may not be. Nothing was done yet.
type Error struct {
	Setting string // as its source spells it: --grace, LANCEKEEPER_GRACE, grace
	Value   string // as given; empty for a setting that is not known
	Source  Source // empty where it is not known
	Nearest string // the known name that is most like an unknown one; empty if none is like it
	Detail  string // what is wrong, and what is allowed
}

// Error names setting, value and source, and what would be right.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Source != "" {
		fmt.Fprintf(&b, "%s: ", e.Source)
	}
	b.WriteString(e.Setting)
	if e.Value != "" {
		fmt.Fprintf(&b, " %q", e.Value)
	}
	fmt.Fprintf(&b, ": %s", e.Detail)
	if e.Nearest != "" {
		fmt.Fprintf(&b, " (did you mean %s?)", e.Nearest)
	}
	return b.String()
}

// unknown is the error for a name that no setting has, among names that some have.
func unknown(source Source, name string, names []string) *Error {
	return &Error{Setting: name, Source: source, Nearest: nearestBehind(name, names), Detail: "unknown setting"}
}

// nearestBehind is nearest by what stands behind the prefix that names of a source share, which says nothing of likeness.
func nearestBehind(name string, names []string) string {
	for _, shared := range []string{prefix, tablePrefix} {
		rest, ok := strings.CutPrefix(name, shared)
		if !ok {
			continue
		}
		short := make([]string, len(names))
		for i, candidate := range names {
			short[i] = strings.TrimPrefix(candidate, shared)
		}
		if best := nearest(rest, short); best != "" {
			return shared + best
		}
		return ""
	}
	return nearest(name, names)
}

// nearest returns the name most like the given one, or nothing if none is near: at most a third of it may differ, where
// case and separators do not count.
func nearest(name string, names []string) string {
	plain := func(s string) string {
		return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
	}
	wanted := plain(name)
	best, least := "", len(wanted)/3+1
	for _, candidate := range names {
		if d := distance(wanted, plain(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the bytes to insert, remove or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
