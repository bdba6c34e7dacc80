package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/config"
)

// tuned resolves the sources and then a dataset's own configuration.
func tuned(t *testing.T, in config.Input, table map[string]string) (config.Config, []string, error) {
	t.Helper()
	c, err := config.Resolve(in)
	require.NoError(t, err)
	return config.ForDataset(c, "s3://bucket/t.lance", table)
}

func TestTablesHaveASay(t *testing.T) {
	t.Parallel()
	c, notes, err := tuned(t, environ("LANCEKEEPER_GRACE=2h", "LANCEKEEPER_KEEP=3"), map[string]string{
		"lance.auto_cleanup.older_than": "14d", "lance.auto_cleanup.retain_versions": "5", "lance.compaction.target_rows_per_fragment": "x", "mine": "x",
	})
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Equal(t, 14*24*time.Hour, c.Grace)
	require.Equal(t, 5, c.Keep)
	require.Equal(t, config.Resolved{Value: "14d", Source: "table configuration"}, c.Policy()["grace"])
	require.Equal(t, config.Default, c.Sources["unverifiedAge"])

	c, notes, err = tuned(t, input(nil), map[string]string{
		"lance.auto_cleanup.older_than": "14d", "lance.auto_cleanup.interval": "20", "lancekeeper.grace": "3h", "lancekeeper.hasClones": "true", "lancekeeper.pinVersions": "3, 17",
	})
	require.NoError(t, err)
	require.Equal(t, 3*time.Hour, c.Grace, "our key is the more exact one")
	require.True(t, c.HasClones)
	require.Equal(t, []uint64{3, 17}, c.PinVersions)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "every 20 commits")

	for _, in := range []config.Input{flags("grace", "2d"), event(`{"grace":"2d"}`)} {
		c, _, err = tuned(t, in, map[string]string{"lancekeeper.grace": "3h", "lance.auto_cleanup.older_than": "9d"})
		require.NoError(t, err)
		require.Equal(t, 48*time.Hour, c.Grace, "who runs it has the last word")
	}
	c, notes, err = tuned(t, input(nil), map[string]string{"lancekeeper.compact": "false", "lancekeeper.prune": "false"})
	require.NoError(t, err)
	require.False(t, c.Compact || c.Prune)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "only reported")
}

// The configuration that all datasets share is not touched by one of them.
func TestTablesAreApart(t *testing.T) {
	t.Parallel()
	c, err := config.Resolve(input(nil))
	require.NoError(t, err)
	_, _, err = config.ForDataset(c, "s3://bucket/t.lance", map[string]string{"lancekeeper.grace": "3h", "lancekeeper.pinVersions": "1"})
	require.NoError(t, err)
	require.Equal(t, config.Default, c.Sources["grace"])
	require.Empty(t, c.PinVersions)
}

// The shortest grace is only for people to override, by hand.
func TestTablesCanNotWeakenTheFloor(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"lancekeeper.grace", "lancekeeper.unverifiedAge"} {
		_, _, err := tuned(t, input(nil), map[string]string{key: "5m"})
		require.ErrorContains(t, err, `table configuration: `+key+` "5m": must be at least 1h`)
	}
	c, notes, err := tuned(t, input(nil), map[string]string{"lance.auto_cleanup.older_than": "0s"})
	require.NoError(t, err)
	require.Equal(t, time.Hour, c.Grace)
	require.Len(t, notes, 1)
	_, _, err = tuned(t, input(nil), map[string]string{"lancekeeper.allowShortGrace": "true"})
	require.ErrorContains(t, err, "unknown setting")
	c, _, err = tuned(t, flags("allowShortGrace", "true"), map[string]string{"lancekeeper.grace": "5m"})
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, c.Grace)
}

func TestTablesThatAreWrong(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]struct{ value, why string }{
		"lancekeeper.gracee":                 {"1h", "did you mean lancekeeper.grace?"},
		"lancekeeper.keep":                   {"0", "must be a whole number from 1"},
		"lancekeeper.datasets":               {"s3://b/t", "unknown setting"},
		"lancekeeper.pinVersions":            {"1,x", `version "x"`},
		"lance.auto_cleanup.older_than":      {"soon", "must be a duration"},
		"lance.auto_cleanup.retain_versions": {"-1", "must be a whole number"},
	} {
		for _, in := range []config.Input{input(nil), flags("grace", "2h", "keep", "2", "pinVersions", "1")} {
			_, _, err := tuned(t, in, map[string]string{key: c.value})
			var setting *config.Error
			require.ErrorAs(t, err, &setting, key)
			require.Equal(t, config.Table, setting.Source)
			require.ErrorContains(t, err, c.why)
		}
	}
}

func TestOfficialDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"14d": 336 * time.Hour, "3600s": time.Hour, "1h 30m": 90 * time.Minute, "2 days": 48 * time.Hour, "1week 1hour": 169 * time.Hour,
		"90min": 90 * time.Minute, "1y": 8766 * time.Hour, "1M": 30*24*time.Hour + 38016*time.Second,
	} {
		c, _, err := tuned(t, input(nil), map[string]string{"lance.auto_cleanup.older_than": text})
		require.NoError(t, err, text)
		require.Equal(t, want, c.Grace, text)
	}
	for _, text := range []string{"", " ", "14", "d", "1h30", "-1d", "1.5d", "99999999999999999999d", "9999y", "1fortnight"} {
		_, _, err := tuned(t, input(nil), map[string]string{"lance.auto_cleanup.older_than": text})
		require.Error(t, err, text)
	}
}

func TestKeyNeedsItsEncryption(t *testing.T) {
	t.Parallel()
	_, err := config.Resolve(flags("kmsKey", "alias/mine"))
	require.ErrorContains(t, err, "needs --encryption")
	_, err = config.Resolve(flags("kmsKey", "alias/mine", "encryption", "AES256"))
	require.ErrorContains(t, err, "needs --encryption")
	_, err = config.Resolve(flags("bucketOwner", "12"))
	require.ErrorContains(t, err, "12 digits")
	_, err = config.Resolve(flags("checksums", "suported"))
	require.ErrorContains(t, err, "did you mean supported?")
}

// N2: different datasets need different retention; the most specific rule wins, and what is run by hand over all of them.
func TestRules(t *testing.T) {
	t.Parallel()
	in := environ("LANCEKEEPER_GRACE=7d", "LANCEKEEPER_POLICIES=*: keep=2; stats: grace=1h keep=5\ns3://bucket/db/audit*: never;s3://bucket//db/audit-2.lance/: grace=2h")
	c, err := config.Resolve(in)
	require.NoError(t, err)
	for dataset, want := range map[string]struct {
		grace time.Duration
		keep  int
		works bool
	}{
		"s3://bucket/db/stats.lance":    {time.Hour, 5, true},
		"s3://other/stats.lance":        {time.Hour, 5, true},
		"s3://bucket/db/stats-2.lance":  {7 * 24 * time.Hour, 2, true},
		"s3://bucket/db/audit.lance":    {7 * 24 * time.Hour, 1, false},
		"s3://bucket/db/audit/x.lance":  {7 * 24 * time.Hour, 1, false},
		"s3://bucket/db/audit-2.lance":  {2 * time.Hour, 1, true},
		"s3://bucket2/db/audit-2.lance": {7 * 24 * time.Hour, 2, true},
	} {
		got, notes, err := config.ForDataset(c, dataset, nil)
		require.NoError(t, err, dataset)
		require.Equal(t, want.grace, got.Grace, dataset)
		require.Equal(t, want.keep, got.Keep, dataset)
		require.Equal(t, want.works, got.Compact && got.Prune, dataset)
		require.Equal(t, !want.works, len(notes) == 1, dataset)
	}
	got, _, err := config.ForDataset(c, "s3://bucket/db/stats.lance", map[string]string{"lancekeeper.grace": "3h", "lancekeeper.targetRows": "9"})
	require.NoError(t, err)
	require.Equal(t, time.Hour, got.Grace, "who runs the keeper decides over who writes the dataset")
	require.Equal(t, uint64(9), got.TargetRows)
	require.Equal(t, config.Resolved{Value: "1h", Source: "policy"}, got.Policy()["grace"])

	in.Flags = map[string]string{"grace": "4d"}
	c, err = config.Resolve(in)
	require.NoError(t, err)
	got, _, err = config.ForDataset(c, "s3://bucket/db/stats.lance", nil)
	require.NoError(t, err)
	require.Equal(t, 96*time.Hour, got.Grace)
	require.Equal(t, 5, got.Keep)
}

func TestRulesThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"stats":                         "must be a pattern, a colon, a space",
		"stats: ":                       "must be a pattern, a colon, a space",
		"stats: always":                 "must be never, or a setting",
		"stats: never keep=2":           "must be never, or a setting",
		"stats: gracee=1h":              "did you mean grace?",
		"stats: datasets=x":             "unknown setting",
		"stats: allowShortGrace=true":   "unknown setting",
		"stats: keep=0":                 "must be a whole number from 1",
		"stats: grace=5m":               "must be at least 1h",
		"a: keep=1; b: unverifiedAge=0": "must be at least 1h",
	} {
		_, err := config.Resolve(flags("policies", text))
		var setting *config.Error
		require.ErrorAs(t, err, &setting, text)
		require.Equal(t, "--policies", setting.Setting)
		require.ErrorContains(t, err, why)
	}
	c, err := config.Resolve(flags("policies", "stats: grace=5m", "allowShortGrace", "true"))
	require.NoError(t, err)
	got, _, err := config.ForDataset(c, "s3://b/stats.lance", nil)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, got.Grace)
}
