package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Input is what all sources say.
type Input struct {
	Environ  []string          // KEY=value, as os.Environ has it
	Event    []byte            // JSON; nil or empty: none
	Flags    map[string]string // of Command; by the key of the setting
	Datasets []string          // of Command: the arguments that are no flags

	Function         bool          // run as a function, not as a command
	FunctionMemoryMB int           // the function's memory; 0: not known
	FunctionTimeout  time.Duration // until the function's deadline; 0: none
}

const prefix = "LANCEKEEPER_"

// given is one value as a source has it.
type given struct {
	name   string // as the source spells the setting
	text   string
	list   []string // instead of text
	source Source
}

// resolver applies sources, weakest first, and remembers who said what.
type resolver struct {
	config Config
	said   map[string]given
}

// Resolve asks the sources, weakest first: defaults, function, environment, event, flags. A value of a later one replaces that
// of an earlier one; lists are not merged. What is unknown or can't be used is a *Error, also where a stronger source would
// have replaced it.
func Resolve(in Input) (Config, error) {
	r := resolver{config: defaults(in.Function), said: map[string]given{}}
	if in.FunctionMemoryMB > 0 {
		r.config.MemoryBytes = int64(in.FunctionMemoryMB) << 20
		r.config.Sources[keyMemory] = Function
	}
	if in.FunctionTimeout > 0 {
		r.config.Timeout = in.FunctionTimeout
		r.config.Sources[keyTimeout] = Function
	}
	if err := r.environment(in.Environ); err != nil {
		return Config{}, err
	}
	if err := r.event(in.Event); err != nil {
		return Config{}, err
	}
	if err := r.flags(in); err != nil {
		return Config{}, err
	}
	if err := r.check(in.Function); err != nil {
		return Config{}, err
	}
	return r.config, nil
}

// environment takes variables that begin with the prefix. One that is set to nothing counts as not set: templates pass empty
// parameters on that way.
func (r *resolver) environment(environ []string) error {
	byName, names := map[string]setting{}, []string{}
	for _, s := range settings() {
		if s.environment != "" {
			byName[s.environment] = s
			names = append(names, s.environment)
		}
	}
	for _, line := range environ {
		name, text, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, prefix) || name == prefix+"CACHE" || strings.HasPrefix(name, prefix+"TEST_") {
			continue
		}
		s, found := byName[name]
		if !found {
			return notFromEnvironment(name, names)
		}
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := r.take(s, given{name: name, text: text, source: Environment}); err != nil {
			return err
		}
	}
	return nil
}

// notFromEnvironment tells a setting that has no variable from one that nobody knows.
func notFromEnvironment(name string, names []string) *Error {
	plain := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "_", "-")
	for _, s := range settings() {
		if s.environment == "" && "--"+plain == s.flag {
			return &Error{Setting: name, Source: Environment, Detail: "can't be set by the environment, only by " + s.others()}
		}
	}
	return unknown(Environment, name, names)
}

// others says where else a setting may be given.
func (s setting) others() string {
	ways := []string{"the flag " + s.flag}
	if s.environment != "" {
		ways = append(ways, "the variable "+s.environment)
	}
	if s.event {
		ways = append(ways, "the event key "+s.key)
	}
	return strings.Join(ways, " or ")
}

func (r *resolver) flags(in Input) error {
	known := map[string]setting{}
	for _, s := range settings() {
		known[s.key] = s
	}
	for key := range in.Flags {
		if _, found := known[key]; !found {
			return unknown(Flag, key, nil)
		}
	}
	for _, s := range settings() {
		text, found := in.Flags[s.key]
		if !found {
			continue
		}
		if err := r.take(s, given{name: s.flag, text: text, source: Flag}); err != nil {
			return err
		}
	}
	if len(in.Datasets) > 0 {
		return r.take(known[keyDatasets], given{name: "URI", list: in.Datasets, source: Flag})
	}
	return nil
}

// take applies one value, and turns what is wrong with it into an *Error that names it.
func (r *resolver) take(s setting, g given) error {
	var err error
	if g.list != nil {
		err = setDatasets(&r.config, g.list)
	} else {
		err = s.parse(&r.config, g.text)
	}
	if err != nil {
		wrong := &Error{Setting: g.name, Value: g.text, Source: g.source, Detail: err.Error()}
		var choice *choiceError
		if errors.As(err, &choice) {
			wrong.Nearest = choice.nearest
		}
		return wrong
	}
	r.said[s.key] = g
	r.config.Sources[s.key] = g.source
	return nil
}

// check is about settings that depend on each other.
func (r *resolver) check(function bool) error {
	c := r.config
	for _, age := range []struct {
		key  string
		time time.Duration
	}{{keyGrace, c.Grace}, {keyUnverifiedAge, c.UnverifiedAge}} {
		if age.time < ShortestGrace && !c.AllowShortGrace {
			return r.wrong(age.key, fmt.Sprintf("must be at least %s: what is slower than that loses what it works on; "+
				"to go below, run it by hand with --allow-short-grace (event key %s)", FormatDuration(ShortestGrace), keyAllowShortGrace))
		}
	}
	for _, rule := range c.Rules {
		scratch := resolver{config: defaults(false), said: map[string]given{}}
		scratch.config.AllowShortGrace = c.AllowShortGrace
		if err := scratch.rule(rule); err != nil {
			return err
		}
		if err := scratch.floor(); err != nil {
			return r.wrong(keyPolicies, fmt.Sprintf("rule for %s: %v", rule.Pattern, err))
		}
	}
	if c.KMSKey != "" && !strings.HasPrefix(c.Encryption, "aws:kms") {
		return r.wrong(keyKMSKey, "needs --encryption aws:kms or aws:kms:dsse beside it")
	}
	if !c.Compact && !c.Prune {
		return r.wrong(keyPrune, "nothing is left to do: compact and prune are both off")
	}
	if function && c.Table == "" && c.State == "" {
		return &Error{Setting: "LANCEKEEPER_TABLE", Source: c.Sources[keyTable], Detail: "must name the DynamoDB table of lock and ledger: " +
			"a function keeps nothing itself (LANCEKEEPER_STATE: a folder on a file system that outlives it)"}
	}
	if len(c.Datasets) == 0 {
		name := "URI"
		if function {
			name = "LANCEKEEPER_DATASETS"
		}
		return &Error{Setting: name, Source: c.Sources[keyDatasets], Detail: "must name at least one dataset, or a folder of datasets"}
	}
	return nil
}

// wrong is an error about a value by what was said of it.
func (r *resolver) wrong(key, detail string) *Error {
	g := r.said[key]
	if g.name == "" {
		g.name, g.source = key, r.config.Sources[key]
	}
	return &Error{Setting: g.name, Value: g.text, Source: g.source, Detail: detail}
}

// StateFolder is where a command keeps lock and ledger when neither table nor folder is set: the user's folder for state.
func StateFolder(environ []string) (string, error) {
	values := map[string]string{}
	for _, line := range environ {
		name, text, _ := strings.Cut(line, "=")
		values[name] = text
	}
	if base := values["XDG_STATE_HOME"]; filepath.IsAbs(base) {
		return filepath.Join(base, "lancekeeper"), nil
	}
	if home := values["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "lancekeeper"), nil
	}
	return "", &Error{Setting: "--state", Source: Default, Detail: "must name a folder for lock and ledger: there is neither HOME nor XDG_STATE_HOME"}
}
