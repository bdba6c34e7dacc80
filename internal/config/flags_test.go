package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/config"
)

func TestParseMaintain(t *testing.T) {
	t.Parallel()
	c, err := config.ParseMaintain([]string{
		"--grace", "2h", "--keep=3", "s3://bucket/a", "--unverified-age", "2d", "--target-rows", "7", "--target-bytes", "1MiB",
		"--deletions-over", "0.5", "--index-policy", "leave", "--no-compact", "--allow-short-grace", "--dry-run", "--until", "drained",
		"--timeout", "10m", "--memory", "1GiB", "--table", "keeper", "--state", "/s", "--log-level", "debug", "--json", "--emf", "b.lance",
	})
	require.NoError(t, err)
	require.Equal(t, config.Command{
		Flags: map[string]string{
			"grace": "2h", "keep": "3", "unverifiedAge": "2d", "targetRows": "7", "targetBytes": "1MiB", "deletionsOver": "0.5",
			"indexPolicy": "leave", "compact": "false", "allowShortGrace": "true", "dryRun": "true", "until": "drained",
			"timeoutSeconds": "10m", "memory": "1GiB", "table": "keeper", "state": "/s", "logLevel": "debug",
		},
		Datasets: []string{"s3://bucket/a", "b.lance"}, JSON: true, EMF: true,
	}, c)
	resolved, err := config.Resolve(config.Input{Flags: c.Flags, Datasets: c.Datasets})
	require.NoError(t, err)
	require.Equal(t, 10*time.Minute, resolved.Timeout)
	require.False(t, resolved.Compact)
	require.True(t, resolved.Prune)
	require.Equal(t, config.Flag, resolved.Sources["compact"])
	require.Equal(t, config.Default, resolved.Sources["prune"])
}

func TestFlagsThatAreNotGivenAreNotSet(t *testing.T) {
	t.Parallel()
	c, err := config.ParseMaintain([]string{"a.lance"})
	require.NoError(t, err)
	require.Empty(t, c.Flags)

	c, err = config.ParseMaintain([]string{"--dry-run=false", "--no-prune=false", "--", "--a"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"dryRun": "false", "prune": "true"}, c.Flags)
	require.Equal(t, []string{"--a"}, c.Datasets)
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"--help", "-h"} {
		c, err := config.ParseMaintain([]string{arg})
		require.NoError(t, err)
		for _, want := range []string{"Usage: maintain", "Example: maintain --dry-run", "--grace=1h", "--no-prune", "--until=once"} {
			require.Contains(t, c.Help, want)
		}
		c, err = config.ParseReport([]string{arg})
		require.NoError(t, err)
		require.Contains(t, c.Help, "--html=FILE")
		require.NotContains(t, c.Help, "--dry-run")
		c, err = config.ParseReport([]string{"inspect", arg})
		require.NoError(t, err)
		require.Contains(t, c.Help, "Usage: report inspect")
	}
	c, err := config.ParseMaintain([]string{"--version"})
	require.NoError(t, err)
	require.True(t, c.Version)
}

func TestParseReport(t *testing.T) {
	t.Parallel()
	c, err := config.ParseReport([]string{"--html", "out.html", "--table", "keeper", "--grace", "2h", "db"})
	require.NoError(t, err)
	require.Equal(t, config.Command{
		Flags: map[string]string{"table": "keeper", "grace": "2h"}, Datasets: []string{"db"}, HTML: "out.html",
	}, c)

	c, err = config.ParseReport([]string{"inspect", "--json", "data/x.lance"})
	require.NoError(t, err)
	require.Equal(t, config.Command{Flags: map[string]string{}, JSON: true, Inspect: "data/x.lance"}, c)
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parse func([]string) (config.Command, error)
		args  []string
		want  string
	}{
		"unknown, near":           {config.ParseMaintain, []string{"--grce", "1h"}, "flag: --grce: unknown setting (did you mean --grace?)"},
		"unknown with value":      {config.ParseMaintain, []string{"--targetrow=1"}, "flag: --targetrow: unknown setting (did you mean --target-rows?)"},
		"unknown, far":            {config.ParseMaintain, []string{"--frobnicate"}, "flag: --frobnicate: unknown setting"},
		"of the other command":    {config.ParseReport, []string{"--emf"}, "flag: --emf: unknown setting"},
		"short":                   {config.ParseMaintain, []string{"-x"}, "flag: usage: unknown flag -x"},
		"without value":           {config.ParseMaintain, []string{"--keep"}, "flag: usage: --keep: expected"},
		"negative as second word": {config.ParseMaintain, []string{"--keep", "-1"}, "flag: usage: --keep: expected"},
		"neither true nor false":  {config.ParseMaintain, []string{"--dry-run=maybe"}, "flag: usage: --dry-run: bool value"},
		"two forms at once":       {config.ParseReport, []string{"--json", "--html", "x"}, `flag: --html "x": can't be used together with --json`},
		"inspect nothing":         {config.ParseReport, []string{"inspect"}, "flag: FILE: must name one file"},
		"inspect two":             {config.ParseReport, []string{"inspect", "a", "b"}, "flag: usage: unexpected argument b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.parse(c.args)
			require.ErrorContains(t, err, c.want)
			var setting *config.Error
			require.ErrorAs(t, err, &setting)
		})
	}
}
