package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var (
	errDuration = errors.New("must be a duration such as 90s, 1h30m, 7d or 1d12h")
	errSize     = errors.New("must be a size such as 64MiB, 1GiB or a number of bytes")
)

// ParseDuration reads a Go duration that may begin with days: 7d, 1d12h, 1h30m, 0.
func ParseDuration(text string) (time.Duration, error) {
	days, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, errDuration
		}
		return d, nil
	}
	negative := strings.HasPrefix(days, "-")
	whole, err := strconv.ParseUint(strings.TrimLeft(days, "+-"), 10, 32)
	if err != nil || len(days)-len(strings.TrimLeft(days, "+-")) > 1 || whole > uint64(math.MaxInt64/day)-1 {
		return 0, errDuration
	}
	sum := time.Duration(whole) * day //nolint:gosec // bounded above
	if rest != "" {
		if strings.ContainsAny(rest[:1], "+-") {
			return 0, errDuration
		}
		part, err := time.ParseDuration(rest)
		if err != nil || part > day {
			return 0, errDuration
		}
		sum += part
	}
	if negative {
		sum = -sum
	}
	return sum, nil
}

// FormatDuration writes what ParseDuration reads, without zero parts: 7d, 1d12h, 1h30m, 0s.
func FormatDuration(d time.Duration) string {
	if d == 0 || d == math.MinInt64 {
		return d.String()
	}
	var b strings.Builder
	if d < 0 {
		b.WriteByte('-')
		d = -d
	}
	for _, part := range []struct {
		size time.Duration
		unit string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if n := d / part.size; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, part.unit)
			d %= part.size
		}
	}
	if d > 0 {
		b.WriteString(d.String())
	}
	return b.String()
}

// sizeUnits are largest first.
func sizeUnits() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
}

// ParseBytes reads a size: a number of bytes, or a number with KiB, MiB or GiB.
func ParseBytes(text string) (int64, error) {
	for _, u := range sizeUnits() {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64); err == nil {
			if n > math.MaxInt64/u.bytes || n < math.MinInt64/u.bytes {
				return 0, errSize
			}
			return n * u.bytes, nil
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(math.Abs(f) <= float64(math.MaxInt64/u.bytes/2)) {
			return 0, errSize
		}
		return int64(f * float64(u.bytes)), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errSize
	}
	return n, nil
}

// FormatBytes writes what ParseBytes reads, in the largest unit that divides it.
func FormatBytes(n int64) string {
	for _, u := range sizeUnits() {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
