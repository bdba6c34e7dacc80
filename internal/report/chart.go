package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// bars draws counts as blocks of eight heights, one character each. What is not 0 is seen.
func bars(counts []int) string {
	const heights = "▁▂▃▄▅▆▇█"
	blocks := []rune(heights)
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range counts {
		if n == 0 {
			b.WriteByte('.')
			continue
		}
		b.WriteRune(blocks[(n*len(blocks)-1)/most])
	}
	return b.String()
}

func counts[T any](all []T, of func(T) int) []int {
	out := make([]int, len(all))
	for i, x := range all {
		out[i] = of(x)
	}
	return out
}

// shapeText writes what the latest manifest and the list of versions tell, with small charts.
func (r Report) shapeText(line func(name, value string)) {
	if n := len(r.History); n > 1 {
		line("versions over time", fmt.Sprintf("%s  since %s", bars(counts(r.History, func(p Period) int { return p.Versions })), r.History[0].From.UTC().Format(time.RFC3339)))
	}
	count := func(b Bin) int { return b.Count }
	if n := len(r.FragmentsByRows); n > 0 {
		line("fragments by rows", fmt.Sprintf("%s  0 to %s rows, in powers of 4", bars(counts(r.FragmentsByRows, count)), humanize.Comma(int64(r.FragmentsByRows[n-1].Below))))
	}
	if r.DeletedRows != nil && *r.DeletedRows > 0 {
		line("fragments by deletions", bars(counts(r.FragmentsByDeleted, count))+"  none, then in tenths of their rows")
	}
	for _, c := range r.Coverage {
		covered := "not known"
		if c.Covered != nil {
			covered = fmt.Sprintf("%s of %s fragments", humanize.Comma(int64(*c.Covered)), humanize.Comma(int64(c.Fragments)))
		}
		line("covered by "+c.Index, covered)
	}
	for _, f := range r.Features {
		if f.Understood {
			line("feature flag", f.Name)
			continue
		}
		line("feature flag", f.Name+": not understood, so the dataset is left alone")
	}
}
