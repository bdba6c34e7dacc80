package config

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Rule is a policy for the datasets that a pattern fits.
type Rule struct {
	Pattern string // with * for anything and ? for one character
	Never   bool   // neither compact nor prune: only report
	Values  map[string]string
}

// never is what a rule says instead of settings.
const never = "never"

// ParseRules reads rules such as `stats: grace=1h keep=5; s3://bucket/db/audit*: never`, separated by semicolons or new lines.
// A pattern fits a dataset's whole address, or the name of its folder with or without `.lance`.
func ParseRules(text string) ([]Rule, error) {
	var rules []Rule
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		rule, err := parseRule(line)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", line, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseRule(line string) (Rule, error) {
	at := strings.LastIndex(line, ": ") // an address has a colon of its own, without a space behind
	if at <= 0 {
		return Rule{}, errors.New("must be a pattern, a colon, a space, and never or settings such as grace=1h")
	}
	rule := Rule{Pattern: strings.TrimSpace(line[:at]), Values: map[string]string{}}
	if place, err := ParsePlace(rule.Pattern); err == nil && place.Kind != Local {
		rule.Pattern = place.Key()
	}
	words := strings.Fields(line[at+2:])
	if slices.Equal(words, []string{never}) {
		rule.Never = true
		return rule, nil
	}
	names := ruleKeys()
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return Rule{}, fmt.Errorf("%q must be never, or a setting such as grace=1h", word)
		}
		if !slices.Contains(names, key) {
			return Rule{}, unknown("", key, names)
		}
		rule.Values[key] = value
	}
	if len(rule.Values) == 0 {
		return Rule{}, errors.New("says nothing: never, or settings such as grace=1h")
	}
	// Whatever dataset it will be for: its values must be right now.
	scratch := resolver{config: defaults(false), said: map[string]given{}}
	return rule, scratch.rule(rule)
}

// ruleKeys are the settings that a rule, or a dataset's own configuration, may set.
func ruleKeys() []string {
	var names []string
	for _, s := range settings() {
		if s.policy && s.key != keyAllowShortGrace {
			names = append(names, s.key)
		}
	}
	return names
}

// rule takes the values of a rule, where this run was not told otherwise by event or flag.
func (r *resolver) rule(rule Rule) error {
	values := rule.Values
	if rule.Never {
		values = map[string]string{keyCompact: "false", keyPrune: "false"}
	}
	for _, s := range settings() {
		text, found := values[s.key]
		if !found || !r.mayTune(s.key) {
			continue
		}
		if err := r.take(s, given{name: s.key, text: text, source: Policy}); err != nil {
			return err
		}
	}
	return nil
}

// ruleFor is the most specific rule for a dataset: the one whose pattern has the most literal characters, of equals the first;
// one without wildcards before all others.
func ruleFor(rules []Rule, dataset string) (best Rule, found bool) {
	most := -1
	for _, rule := range rules {
		if literal := rule.literal(); literal > most && rule.fits(dataset) {
			best, found, most = rule, true, literal
		}
	}
	return best, found
}

func (r Rule) literal() int {
	plain := strings.NewReplacer("*", "", "?", "").Replace(r.Pattern)
	if plain == r.Pattern {
		return len(plain) + 1<<20
	}
	return len(plain)
}

func (r Rule) fits(dataset string) bool {
	pattern := regexp.QuoteMeta(r.Pattern)
	pattern = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(pattern)
	whole, err := regexp.Compile(`^` + pattern + `$`)
	if err != nil {
		return false // cannot be: everything is quoted
	}
	name := path.Base(dataset)
	return slices.ContainsFunc([]string{dataset, name, strings.TrimSuffix(name, ".lance")}, whole.MatchString)
}
