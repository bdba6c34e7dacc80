//go:build oracle

package difftest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBadInput: a clear error that names the object; nothing written, nothing deleted.
func TestBadInput(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		damage func(t *testing.T, uri string) (names string)
		class  string
	}{
		"cut manifest":   {func(t *testing.T, uri string) string { return truncate(t, newestManifest(t, uri), 40) }, "corrupt"},
		"empty manifest": {func(t *testing.T, uri string) string { return truncate(t, newestManifest(t, uri), 0) }, "corrupt"},
		"garbage in a manifest": {func(t *testing.T, uri string) string {
			path := newestManifest(t, uri)
			require.NoError(t, os.WriteFile(path, []byte("no manifest at all, but long enough to hold one"), 0o600))
			return filepath.Base(path)
		}, "corrupt"},
		"no dataset": {func(t *testing.T, uri string) string {
			require.NoError(t, os.RemoveAll(filepath.Join(uri, "_versions")))
			return filepath.Base(uri)
		}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri := Make(t, "upserts", "--count", "4").URI
			named := c.damage(t, uri)
			before := tree(t, uri)
			results, code, said := newKeeper(t).run(t, "--grace", "0s", "--allow-short-grace", uri)
			require.NotZero(t, code)
			require.Equal(t, before, tree(t, uri))
			if c.class == "" {
				if len(results) > 0 {
					said += results[0].Error.Message
				}
				require.Contains(t, said, named)
				return
			}
			require.Equal(t, c.class, results[0].Error.Class)
			require.Contains(t, results[0].Error.Message, named)
		})
	}
}

// TestDamagedFilesAreSetAside: a data or deletion file that cannot be read fails the pass by name. Its fragment stays as it is,
// and the others are compacted around it.
func TestDamagedFilesAreSetAside(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"data", "_deletions"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			uri := Make(t, "deletes").URI
			named := truncate(t, current(t, filepath.Join(uri, folder)), 10)
			results, code, said := newKeeper(t).run(t, "--no-prune", uri)
			require.Equal(t, 1, code, said)
			require.NotNil(t, results[0].Error)
			require.Contains(t, results[0].Error.Message+results[0].Error.Object, named)
			require.Len(t, results[0].Compaction.Skipped, 1)
			require.Contains(t, results[0].Compaction.Skipped[0].Reason, named)
			require.Less(t, results[0].After.Fragments, results[0].Before.Fragments)
			require.FileExists(t, filepath.Join(uri, folder, named))
			require.Empty(t, Files(t, uri).Missing)
		})
	}
}

// current returns a file of a folder that the latest version names: none of the recipe's data files is superseded, and the
// bitmap is its last deletion file.
func current(t *testing.T, folder string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.lance"))
	require.NoError(t, err)
	bitmaps, err := filepath.Glob(filepath.Join(folder, "*.bin"))
	require.NoError(t, err)
	names = append(names, bitmaps...)
	require.NotEmpty(t, names)
	return names[0]
}

// truncate cuts a file to n bytes and returns its base name.
func truncate(t *testing.T, path string, n int64) string {
	t.Helper()
	require.NoError(t, os.Truncate(path, n))
	return filepath.Base(path)
}

func TestUnknownFlagIsUsageError(t *testing.T) {
	t.Parallel()
	_, code, said := newKeeper(t).run(t, "--grase", "2h", t.TempDir())
	require.Equal(t, 2, code)
	require.Contains(t, said, "--grace", "the nearest known name")
}

func TestShortGraceNeedsItsOverride(t *testing.T) {
	t.Parallel()
	uri := Make(t, "upserts", "--count", "4").URI
	before := tree(t, uri)
	_, code, _ := newKeeper(t).run(t, "--grace", "59m", uri)
	require.Equal(t, 2, code)
	require.Equal(t, before, tree(t, uri))
}
