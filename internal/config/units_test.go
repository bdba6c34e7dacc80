package config_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lancekeeper/internal/config"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * day, "1d12h": 36 * time.Hour, "-1d1h": -25 * time.Hour,
		"36h": 36 * time.Hour, "1d0s": day, "0d": 0,
	} {
		got, err := config.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, bad := range []string{"", "d", "7", "1.5d", "1d-2h", "1d+2h", "--1d", "1h1d", "1dd", "1d48h", "9999999d", "week", "1d "} {
		_, err := config.ParseDuration(bad)
		require.Error(t, err, bad)
	}
	require.Equal(t, "1d", config.FormatDuration(day))
	require.Equal(t, "1h30m", config.FormatDuration(90*time.Minute))
	require.Equal(t, "1d12h", config.FormatDuration(36*time.Hour))
	require.Equal(t, "0s", config.FormatDuration(0))
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(-int64(10_000*day), int64(10_000*day)).Draw(t, "duration"))
		got, err := config.ParseDuration(config.FormatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, got)
	})
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "64KiB": 64 << 10, "64MiB": 64 << 20, "2GiB": 2 << 30, "2 GiB": 2 << 30, "1.5GiB": 3 << 29, "-1MiB": -1 << 20,
	} {
		got, err := config.ParseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, bad := range []string{"", "MiB", "1MB", "1M", "1mib", "NaNMiB", "InfGiB", "1e30GiB", "9999999999999GiB", "0x1MiBMiB"} {
		_, err := config.ParseBytes(bad)
		require.Error(t, err, bad)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(math.MinInt64, math.MaxInt64).Draw(t, "bytes") >> rapid.IntRange(0, 40).Draw(t, "shift")
		got, err := config.ParseBytes(config.FormatBytes(n))
		require.NoError(t, err)
		require.Equal(t, n, got)
	})
}
