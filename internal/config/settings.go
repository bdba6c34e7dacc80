package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keys of the settings: the names in events, in Policy and in Sources.
const (
	keyDatasets        = "datasets"
	keyGrace           = "grace"
	keyAllowShortGrace = "allowShortGrace"
	keyKeep            = "keep"
	keyUnverifiedAge   = "unverifiedAge"
	keyPolicies        = "policies"
	keyBeforeVersion   = "beforeVersion"
	keyPinVersions     = "pinVersions"
	keyHasClones       = "hasClones"
	keyErrorIfTagged   = "errorIfTagged"
	keyDeletesASecond  = "deletesPerSecond"
	keyTargetRows      = "targetRows"
	keyTargetBytes     = "targetBytes"
	keyDeletionsOver   = "deletionsOver"
	keyIndexPolicy     = "indexPolicy"
	keyCompact         = "compact"
	keyPrune           = "prune"
	keyDryRun          = "dryRun"
	keyUntil           = "until"
	keyTimeout         = "timeoutSeconds"
	keyMemory          = "memory"
	keyTable           = "table"
	keyState           = "state"
	keyLogLevel        = "logLevel"
	keyEncryption      = "encryption"
	keyKMSKey          = "kmsKey"
	keyRequesterPays   = "requesterPays"
	keyBucketOwner     = "bucketOwner"
	keyChecksums       = "checksums"
)

const (
	longestAge = 3650 * day
	longestRun = 7 * day
	mostRows   = math.MaxUint32 // a row address has 32 bits for the place inside a fragment
	mostBytes  = 1 << 40
	leastBytes = 32 << 20 // of memory
	mostKept   = 1_000_000_000
)

// setting is one line of the table of settings.
type setting struct {
	key         string
	flag        string // with dashes
	environment string // empty: never from the environment
	event       bool
	policy      bool
	list        bool // takes an array in events
	parse       func(c *Config, text string) error
	show        func(c Config) string
}

// settings is the table. Ranges are checked here, what depends on two settings in check.
func settings() []setting {
	return slices.Concat(retention(), exceptions(), compaction(), running(), surroundings(), buckets())
}

func retention() []setting {
	return []setting{
		{
			key: keyDatasets, flag: "URI", environment: "LANCEKEEPER_DATASETS", event: true, list: true,
			parse: parseDatasets,
			show:  func(c Config) string { return strings.Join(c.Datasets, ",") },
		},
		{
			key: keyGrace, flag: "--grace", environment: "LANCEKEEPER_GRACE", event: true, policy: true,
			parse: func(c *Config, text string) error { return parseAge(&c.Grace, text) },
			show:  func(c Config) string { return FormatDuration(c.Grace) },
		},
		{
			key: keyAllowShortGrace, flag: "--allow-short-grace", event: true, policy: true,
			parse: func(c *Config, text string) error { return parseBool(&c.AllowShortGrace, text) },
			show:  func(c Config) string { return strconv.FormatBool(c.AllowShortGrace) },
		},
		{
			key: keyKeep, flag: "--keep", environment: "LANCEKEEPER_KEEP", event: true, policy: true,
			parse: func(c *Config, text string) error {
				n, err := parseWhole(text, 1, mostKept)
				c.Keep = int(n) //nolint:gosec // bounded
				return err
			},
			show: func(c Config) string { return strconv.Itoa(c.Keep) },
		},
		{
			key: keyUnverifiedAge, flag: "--unverified-age", environment: "LANCEKEEPER_UNVERIFIED_AGE", event: true, policy: true,
			parse: func(c *Config, text string) error { return parseAge(&c.UnverifiedAge, text) },
			show:  func(c Config) string { return FormatDuration(c.UnverifiedAge) },
		},
	}
}

// exceptions narrow what retention lets go.
func exceptions() []setting {
	return []setting{
		{
			key: keyPolicies, flag: "--policies", environment: "LANCEKEEPER_POLICIES", event: true,
			parse: func(c *Config, text string) (err error) {
				c.Rules, err = ParseRules(text)
				return err
			},
			show: func(c Config) string {
				var patterns []string
				for _, rule := range c.Rules {
					patterns = append(patterns, rule.Pattern)
				}
				return strings.Join(patterns, ", ")
			},
		},
		{
			key: keyBeforeVersion, flag: "--before-version", environment: "LANCEKEEPER_BEFORE_VERSION", event: true, policy: true,
			parse: func(c *Config, text string) (err error) {
				c.BeforeVersion, err = parseWhole(text, 0, math.MaxInt64)
				return err
			},
			show: func(c Config) string { return strconv.FormatUint(c.BeforeVersion, 10) },
		},
		{
			key: keyPinVersions, flag: "--pin-versions", environment: "LANCEKEEPER_PIN_VERSIONS", event: true, policy: true,
			parse: func(c *Config, text string) error {
				c.PinVersions = nil
				for part := range strings.SplitSeq(text, ",") {
					n, err := parseWhole(strings.TrimSpace(part), 1, math.MaxInt64)
					if err != nil {
						return fmt.Errorf("version %q: %w", part, err)
					}
					c.PinVersions = append(c.PinVersions, n)
				}
				return nil
			},
			show: func(c Config) string {
				return strings.Trim(strings.ReplaceAll(fmt.Sprint(c.PinVersions), " ", ","), "[]")
			},
		},
		{
			key: keyHasClones, flag: "--has-clones", environment: "LANCEKEEPER_HAS_CLONES", event: true, policy: true,
			parse: func(c *Config, text string) error { return parseBool(&c.HasClones, text) },
			show:  func(c Config) string { return strconv.FormatBool(c.HasClones) },
		},
		{
			key: keyErrorIfTagged, flag: "--error-if-tagged", environment: "LANCEKEEPER_ERROR_IF_TAGGED", event: true, policy: true,
			parse: func(c *Config, text string) error { return parseBool(&c.ErrorIfTagged, text) },
			show:  func(c Config) string { return strconv.FormatBool(c.ErrorIfTagged) },
		},
		{
			key: keyDeletesASecond, flag: "--deletes-per-second", environment: "LANCEKEEPER_DELETES_PER_SECOND", event: true, policy: true,
			parse: func(c *Config, text string) error {
				n, err := parseWhole(text, 0, 1_000_000)
				c.DeletesASecond = int(n) //nolint:gosec // bounded
				return err
			},
			show: func(c Config) string { return strconv.Itoa(c.DeletesASecond) },
		},
	}
}

func compaction() []setting {
	return []setting{
		{
			key: keyTargetRows, flag: "--target-rows", environment: "LANCEKEEPER_TARGET_ROWS", event: true, policy: true,
			parse: func(c *Config, text string) (err error) {
				c.TargetRows, err = parseWhole(text, 1, mostRows)
				return err
			},
			show: func(c Config) string { return strconv.FormatUint(c.TargetRows, 10) },
		},
		{
			key: keyTargetBytes, flag: "--target-bytes", environment: "LANCEKEEPER_TARGET_BYTES", event: true, policy: true,
			parse: func(c *Config, text string) error { return parseSize(&c.TargetBytes, text, 0) },
			show:  func(c Config) string { return FormatBytes(c.TargetBytes) },
		},
		{
			key: keyDeletionsOver, flag: "--deletions-over", environment: "LANCEKEEPER_DELETIONS_OVER", event: true, policy: true,
			parse: func(c *Config, text string) error {
				share, err := strconv.ParseFloat(text, 64)
				if err != nil || !(share >= 0 && share <= 1) { // so that NaN is refused
					return errors.New("must be a share from 0 to 1")
				}
				c.DeletionsOver = share
				return nil
			},
			show: func(c Config) string { return strconv.FormatFloat(c.DeletionsOver, 'g', -1, 64) },
		},
		{
			key: keyIndexPolicy, flag: "--index-policy", environment: "LANCEKEEPER_INDEX_POLICY", event: true, policy: true,
			parse: func(c *Config, text string) error {
				return parseChoice(&c.IndexPolicy, text, "auto", "leave", "uncover", "remap", "defer")
			},
			show: func(c Config) string { return c.IndexPolicy },
		},
		{
			key: keyCompact, flag: "--no-compact", environment: "LANCEKEEPER_COMPACT", event: true, policy: true,
			parse: func(c *Config, text string) error { return parseBool(&c.Compact, text) },
			show:  func(c Config) string { return strconv.FormatBool(c.Compact) },
		},
		{
			key: keyPrune, flag: "--no-prune", environment: "LANCEKEEPER_PRUNE", event: true, policy: true,
			parse: func(c *Config, text string) error { return parseBool(&c.Prune, text) },
			show:  func(c Config) string { return strconv.FormatBool(c.Prune) },
		},
	}
}

func running() []setting {
	return []setting{
		{
			key: keyDryRun, flag: "--dry-run", event: true,
			parse: func(c *Config, text string) error { return parseBool(&c.DryRun, text) },
			show:  func(c Config) string { return strconv.FormatBool(c.DryRun) },
		},
		{
			key: keyUntil, flag: "--until", event: true,
			parse: func(c *Config, text string) error {
				var until string
				err := parseChoice(&until, text, "once", "drained")
				c.UntilDrained = until == "drained"
				return err
			},
			show: func(c Config) string {
				if c.UntilDrained {
					return "drained"
				}
				return "once"
			},
		},
		{
			key: keyTimeout, flag: "--timeout", event: true,
			parse: func(c *Config, text string) error { return parseTimeout(&c.Timeout, text) },
			show: func(c Config) string {
				if c.Timeout == 0 {
					return "none"
				}
				return FormatDuration(c.Timeout)
			},
		},
		{
			key: keyMemory, flag: "--memory",
			parse: func(c *Config, text string) error { return parseSize(&c.MemoryBytes, text, leastBytes) },
			show:  func(c Config) string { return FormatBytes(c.MemoryBytes) },
		},
	}
}

func surroundings() []setting {
	return []setting{
		{
			key: keyTable, flag: "--table", environment: "LANCEKEEPER_TABLE",
			parse: func(c *Config, text string) error {
				if !tableName.MatchString(text) {
					return errors.New("must be the name or the ARN of a DynamoDB table")
				}
				c.Table = text
				return nil
			},
			show: func(c Config) string { return c.Table },
		},
		{
			key: keyState, flag: "--state", environment: "LANCEKEEPER_STATE",
			parse: func(c *Config, text string) error {
				if text == "" || strings.ContainsRune(text, 0) {
					return errors.New("must be the path of a folder")
				}
				c.State = text
				return nil
			},
			show: func(c Config) string { return c.State },
		},
		{
			key: keyLogLevel, flag: "--log-level", environment: "LANCEKEEPER_LOG_LEVEL",
			parse: func(c *Config, text string) error {
				var level string
				if err := parseChoice(&level, strings.ToLower(text), "debug", "info", "warn", "error"); err != nil {
					return err
				}
				return c.LogLevel.UnmarshalText([]byte(level)) //nolint:wrapcheck // cannot fail for these
			},
			show: func(c Config) string { return strings.ToLower(c.LogLevel.String()) },
		},
	}
}

// buckets are settings of S3 that a bucket's owner or another maker's store may ask for.
func buckets() []setting {
	return []setting{
		{
			key: keyEncryption, flag: "--encryption", environment: "LANCEKEEPER_ENCRYPTION",
			parse: func(c *Config, text string) error {
				return parseChoice(&c.Encryption, text, "AES256", "aws:kms", "aws:kms:dsse")
			},
			show: func(c Config) string { return c.Encryption },
		},
		{
			key: keyKMSKey, flag: "--kms-key", environment: "LANCEKEEPER_KMS_KEY",
			parse: func(c *Config, text string) error {
				if !kmsKey.MatchString(text) {
					return errors.New("must be the id, the alias or the ARN of a KMS key")
				}
				c.KMSKey = text
				return nil
			},
			show: func(c Config) string { return c.KMSKey },
		},
		{
			key: keyRequesterPays, flag: "--requester-pays", environment: "LANCEKEEPER_REQUESTER_PAYS",
			parse: func(c *Config, text string) error { return parseBool(&c.RequesterPays, text) },
			show:  func(c Config) string { return strconv.FormatBool(c.RequesterPays) },
		},
		{
			key: keyBucketOwner, flag: "--bucket-owner", environment: "LANCEKEEPER_BUCKET_OWNER",
			parse: func(c *Config, text string) error {
				if !account.MatchString(text) {
					return errors.New("must be an account number of 12 digits")
				}
				c.BucketOwner = text
				return nil
			},
			show: func(c Config) string { return c.BucketOwner },
		},
		{
			key: keyChecksums, flag: "--checksums", environment: "LANCEKEEPER_CHECKSUMS",
			parse: func(c *Config, text string) error {
				return parseChoice(&c.Checksums, text, ChecksumsAuto, ChecksumsSupported, ChecksumsRequired)
			},
			show: func(c Config) string { return c.Checksums },
		},
	}
}

// When requests to S3 carry checksums: wherever the SDK can; where the request demands one; or the first on AWS and the second
// where an endpoint is set, since other makers' stores may refuse them.
const (
	ChecksumsAuto      = "auto"
	ChecksumsSupported = "supported"
	ChecksumsRequired  = "required"
)

var (
	kmsKey  = regexp.MustCompile(`^[A-Za-z0-9:/_-]{1,512}$`)
	account = regexp.MustCompile(`^[0-9]{12}$`)
)

var tableName = regexp.MustCompile(`^([A-Za-z0-9_.-]{3,255}|arn:[A-Za-z0-9_.:/-]+)$`)

func parseDatasets(c *Config, text string) error {
	var uris []string
	for uri := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if uri = strings.TrimSpace(uri); uri != "" {
			uris = append(uris, uri)
		}
	}
	return setDatasets(c, uris)
}

// setDatasets keeps the first spelling of each place.
func setDatasets(c *Config, uris []string) error {
	c.Datasets = nil
	seen := map[string]Place{}
	for _, uri := range uris {
		place, err := ParsePlace(uri)
		if err != nil {
			return fmt.Errorf("%s: %w", uri, err)
		}
		first, twice := seen[place.Key()]
		if !twice {
			seen[place.Key()] = place
			c.Datasets = append(c.Datasets, uri)
		} else if first != place {
			return fmt.Errorf("%s: the same place is named with another scheme or table: one dataset has one manifest store", uri)
		}
	}
	return nil
}

func parseAge(into *time.Duration, text string) error {
	d, err := ParseDuration(text)
	if err != nil {
		return err
	}
	if d < 0 || d > longestAge {
		return fmt.Errorf("must be from 0s to %s", FormatDuration(longestAge))
	}
	*into = d
	return nil
}

// parseTimeout reads a duration, or a plain number of seconds, as events have it.
func parseTimeout(into *time.Duration, text string) error {
	d, err := ParseDuration(text)
	if seconds, notNumber := strconv.ParseFloat(text, 64); notNumber == nil {
		if !(seconds > 0 && seconds <= longestRun.Seconds()) {
			seconds = 0 // NaN too
		}
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil {
		return err
	}
	if d <= 0 || d > longestRun {
		return fmt.Errorf("must be above 0 and at most %s (%d seconds)", FormatDuration(longestRun), int(longestRun.Seconds()))
	}
	*into = d
	return nil
}

func parseSize(into *int64, text string, least int64) error {
	n, err := ParseBytes(text)
	if err != nil {
		return err
	}
	if n < least || n > mostBytes {
		return fmt.Errorf("must be from %s to %s", FormatBytes(least), FormatBytes(mostBytes))
	}
	*into = n
	return nil
}

func parseWhole(text string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("must be a whole number from %d to %d", least, most)
	}
	return n, nil
}

func parseBool(into *bool, text string) error {
	switch strings.ToLower(text) {
	case "true":
		*into = true
	case "false":
		*into = false
	default:
		return errors.New("must be true or false")
	}
	return nil
}

// choiceError is a value that is none of those that are known.
type choiceError struct {
	nearest string
	choices []string
}

func (e *choiceError) Error() string { return "must be one of " + strings.Join(e.choices, ", ") }

func parseChoice(into *string, text string, choices ...string) error {
	if !slices.Contains(choices, text) {
		return &choiceError{nearest: nearest(text, choices), choices: choices}
	}
	*into = text
	return nil
}
