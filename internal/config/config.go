// Package config resolves every setting to one value that knows where it came from.
package config

import (
	"log/slog"
	"time"
)

// Defaults, as the table of settings in the README says them.
const (
	DefaultGrace         = time.Hour
	DefaultKeep          = 1
	DefaultUnverifiedAge = 7 * day
	DefaultTargetRows    = 1 << 20
	DefaultMemoryBytes   = 256 << 20
	DefaultIndexPolicy   = "auto"

	// ShortestGrace is the shortest time that versions, and files that no version names, are kept without an explicit
	// override: a writer or reader that is slower than that loses what it works on.
	ShortestGrace = time.Hour
)

// Config is every setting, resolved.
type Config struct {
	Datasets        []string // as given, each place once
	Grace           time.Duration
	AllowShortGrace bool
	Keep            int
	UnverifiedAge   time.Duration
	BeforeVersion   uint64   // only versions below it may go; 0: any
	Rules           []Rule   // for some of the datasets
	PinVersions     []uint64 // versions that stay
	HasClones       bool     // other datasets may name files of this one
	ErrorIfTagged   bool     // refuse to prune where a tagged version would expire
	DeletesASecond  int      // objects; 0: as many as the store takes
	TargetRows      uint64
	TargetBytes     int64 // 0: off
	DeletionsOver   float64
	IndexPolicy     string
	Compact         bool
	Prune           bool
	DryRun          bool
	UntilDrained    bool
	Timeout         time.Duration // 0: none
	MemoryBytes     int64
	Table           string // empty: none
	State           string // empty: StateFolder
	LogLevel        slog.Level
	Encryption      string // of objects that are written, as S3 names it; empty: as the bucket has it
	KMSKey          string // empty: the bucket's
	RequesterPays   bool
	BucketOwner     string            // account that must own the bucket; empty: any
	Checksums       string            // auto, supported or required
	Sources         map[string]Source // by the key of the setting; each setting has one
}

// Resolved is the value of one setting as people write it, and where it came from.
type Resolved struct {
	Value  string `json:"value"`
	Source Source `json:"source"`
}

// Policy is what a pass goes by, by the key of the setting: everything that changes what a pass does to a dataset, and
// nothing that differs from one invocation to the next with the same settings.
func (c Config) Policy() map[string]Resolved {
	policy := map[string]Resolved{}
	for _, s := range settings() {
		if s.policy {
			policy[s.key] = Resolved{Value: s.show(c), Source: c.Sources[s.key]}
		}
	}
	return policy
}

// Effective is every setting, for a log line or a person who asks where a value comes from.
func (c Config) Effective() map[string]Resolved {
	all := map[string]Resolved{}
	for _, s := range settings() {
		all[s.key] = Resolved{Value: s.show(c), Source: c.Sources[s.key]}
	}
	return all
}

// defaults is the configuration before any source was asked. A function logs each step, a command only what needs attention.
func defaults(function bool) Config {
	level := slog.LevelWarn
	if function {
		level = slog.LevelInfo
	}
	c := Config{
		Grace: DefaultGrace, Keep: DefaultKeep, UnverifiedAge: DefaultUnverifiedAge, TargetRows: DefaultTargetRows,
		IndexPolicy: DefaultIndexPolicy, Compact: true, Prune: true, MemoryBytes: DefaultMemoryBytes, LogLevel: level, Checksums: ChecksumsAuto,
		Sources: map[string]Source{},
	}
	for _, s := range settings() {
		c.Sources[s.key] = Default
	}
	return c
}
