package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Prefixes of keys in a dataset's own configuration: ours, and those by which official writers clean up after their commits.
const (
	tablePrefix    = "lancekeeper."
	officialPrefix = "lance.auto_cleanup."
)

// ForDataset returns the configuration of one dataset, by its canonical name. Its own configuration, kept in its manifest, has a
// say above the environment; the most specific of the rules above that; event and flags have the last word. Keys
// `lancekeeper.<event key>` are settings, and replace what the official keys `lance.auto_cleanup.older_than` and
// `….retain_versions` say of grace and keep. Both half-passes off means that the dataset is only reported. What is unknown or
// out of range is a *Error; nothing here goes below the shortest grace, unless that was allowed by hand. notes say what the
// owner of the dataset should know.
func ForDataset(c Config, dataset string, table map[string]string) (tuned Config, notes []string, err error) {
	c.Sources, c.PinVersions = maps.Clone(c.Sources), slices.Clone(c.PinVersions)
	r := resolver{config: c, said: map[string]given{}}
	if notes, err = r.official(table); err != nil {
		return Config{}, nil, err
	}
	if err := r.table(table); err != nil {
		return Config{}, nil, err
	}
	if rule, found := ruleFor(c.Rules, dataset); found {
		if err := r.rule(rule); err != nil {
			return Config{}, nil, err
		}
	}
	if err := r.floor(); err != nil {
		return Config{}, nil, err
	}
	if !r.config.Compact && !r.config.Prune {
		notes = append(notes, fmt.Sprintf("its %s leaves nothing to do: the dataset is only reported", r.config.Sources[keyPrune]))
	}
	return r.config, notes, nil
}

// floor is that no age of a dataset's own goes below what is safe, whoever set it, but by hand.
func (r *resolver) floor() error {
	for key, age := range map[string]time.Duration{keyGrace: r.config.Grace, keyUnverifiedAge: r.config.UnverifiedAge} {
		source := r.config.Sources[key]
		if (source == Table || source == Policy) && age < ShortestGrace && !r.config.AllowShortGrace {
			return r.wrong(key, fmt.Sprintf("must be at least %s: only --allow-short-grace, by hand, goes below", FormatDuration(ShortestGrace)))
		}
	}
	return nil
}

// mayTune says whether a dataset's own configuration counts for a setting: not where this run was told by hand or event.
func (r *resolver) mayTune(key string) bool {
	source := r.config.Sources[key]
	return source != Event && source != Flag
}

// official takes what the official writers' own clean-up goes by.
func (r *resolver) official(table map[string]string) (notes []string, err error) {
	if text, found := table[officialPrefix+"older_than"]; found {
		age, err := parseOfficialDuration(text)
		if err != nil {
			return nil, &Error{Setting: officialPrefix + "older_than", Value: text, Source: Table, Detail: err.Error()}
		}
		if age < ShortestGrace && !r.config.AllowShortGrace {
			notes = append(notes, fmt.Sprintf("%solder_than is %s; here %s counts, the least that is safe beside slow writers and readers", officialPrefix, text, FormatDuration(ShortestGrace)))
			age = ShortestGrace
		}
		if r.mayTune(keyGrace) {
			r.config.Grace, r.config.Sources[keyGrace] = age, Table
		}
	}
	if text, found := table[officialPrefix+"retain_versions"]; found {
		n, err := parseWhole(text, 1, mostKept)
		if err != nil {
			return nil, &Error{Setting: officialPrefix + "retain_versions", Value: text, Source: Table, Detail: err.Error()}
		}
		if r.mayTune(keyKeep) {
			r.config.Keep, r.config.Sources[keyKeep] = int(n), Table //nolint:gosec // bounded
		}
	}
	if interval, found := table[officialPrefix+"interval"]; found {
		notes = append(notes, fmt.Sprintf("official writers clean this dataset up too, every %s commits (%sinterval), by their own rules: of both policies the shorter one wins", interval, officialPrefix))
	}
	return notes, nil
}

// table takes our own keys.
func (r *resolver) table(table map[string]string) error {
	byKey, names := map[string]setting{}, []string{}
	for _, s := range settings() {
		if s.policy && s.key != keyAllowShortGrace {
			byKey[tablePrefix+s.key] = s
			names = append(names, tablePrefix+s.key)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if !strings.HasPrefix(name, tablePrefix) {
			continue
		}
		s, found := byKey[name]
		if !found {
			return unknown(Table, name, names)
		}
		g := given{name: name, text: strings.TrimSpace(table[name]), source: Table}
		if !r.mayTune(s.key) {
			other := resolver{config: r.config, said: map[string]given{}} // it must be right all the same
			other.config.Sources = maps.Clone(r.config.Sources)
			if err := other.take(s, g); err != nil {
				return err
			}
			continue
		}
		if err := r.take(s, g); err != nil {
			return err
		}
	}
	return nil
}

var (
	officialPart    = regexp.MustCompile(`^\s*(\d+)\s*([a-zA-Z]+)`)
	errOfficialTime = errors.New("must be a duration such as 14d, 3600s or 1h 30m")
)

// parseOfficialDuration reads durations as official writers do (crate humantime): numbers with units, added up.
func parseOfficialDuration(text string) (time.Duration, error) {
	rest, sum, parts := text, time.Duration(0), 0
	for strings.TrimSpace(rest) != "" {
		match := officialPart.FindStringSubmatch(rest)
		if match == nil {
			return 0, errOfficialTime
		}
		unit, known := officialUnit(match[2])
		n, err := strconv.ParseInt(match[1], 10, 64)
		if !known || err != nil || n > int64(longestAge/unit) {
			return 0, errOfficialTime
		}
		if sum += time.Duration(n) * unit; sum > longestAge {
			return 0, fmt.Errorf("must be at most %s", FormatDuration(longestAge))
		}
		rest = rest[len(match[0]):]
		parts++
	}
	if parts == 0 {
		return 0, errOfficialTime
	}
	return sum, nil
}

func officialUnit(name string) (time.Duration, bool) {
	days := func(n float64) time.Duration { return time.Duration(math.Round(n * float64(day))) }
	switch name {
	case "nanos", "nsec", "ns":
		return time.Nanosecond, true
	case "usec", "us":
		return time.Microsecond, true
	case "millis", "msec", "ms":
		return time.Millisecond, true
	case "seconds", "second", "secs", "sec", "s":
		return time.Second, true
	case "minutes", "minute", "min", "mins", "m":
		return time.Minute, true
	case "hours", "hour", "hrs", "hr", "h":
		return time.Hour, true
	case "days", "day", "d":
		return day, true
	case "weeks", "week", "wks", "wk", "w":
		return 7 * day, true
	case "months", "month", "M":
		return days(30.44), true
	case "years", "year", "yrs", "yr", "y":
		return days(365.25), true
	}
	return 0, false
}
