//go:build oracle

package difftest

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShallowClones: a pass over a clone touches no file of its source; and a pass over the source, which can't know of the clone,
// leaves the clone whole where a setting says that there is one, or holds the version that it was made of.
func TestShallowClones(t *testing.T) {
	t.Parallel()
	made := Make(t, "clone")
	var notes struct {
		Copy    string
		Version uint64
	}
	decode(t, made.Notes, &notes)
	source, clone := Dump(t, made.URI), Dump(t, notes.Copy)
	files := tree(t, made.URI)
	got := newKeeper(t).good(t, notes.Copy)
	require.Positive(t, got.Pruning.VersionsRemoved)
	require.Equal(t, files, tree(t, made.URI), "nothing outside the clone's own place is touched")
	clone2 := Dump(t, notes.Copy)
	Same(t, clone, clone2)

	for i, args := range [][]string{{"--pin-versions", strconv.FormatUint(notes.Version, 10)}, {"--has-clones"}} {
		args = append(args, "--grace", "0s", "--allow-short-grace", made.URI)
		results, code, said := newKeeper(t).run(t, args...)
		require.Zero(t, code, said)
		require.True(t, i > 0 || results[0].Pruning.VersionsRemoved > 0)
		Same(t, source, Dump(t, made.URI))
		Same(t, clone2, Dump(t, notes.Copy))
	}
}

// TestOwnPolicy: what official writers keep in a dataset's configuration for their own clean-up counts, unless the run was told
// otherwise.
func TestOwnPolicy(t *testing.T) {
	t.Parallel()
	made := Make(t, "configured", "--age-days", "3") // the clean-up of its writers is set to 14 days
	before := Dump(t, made.URI)
	results, code, said := newKeeper(t).run(t, made.URI)
	require.Zero(t, code, said)
	require.Zero(t, results[0].Pruning.VersionsRemoved)
	require.Equal(t, "14d", results[0].Policy["grace"].Value)
	require.Equal(t, "table configuration", results[0].Policy["grace"].Source)
	require.Contains(t, results[0].Findings[0].Detail, "every 50 commits")
	results, code, said = newKeeper(t).run(t, "--grace", "1d", made.URI)
	require.Zero(t, code, said)
	require.Positive(t, results[0].Pruning.VersionsRemoved)
	require.Equal(t, "flag", results[0].Policy["grace"].Source)
	Same(t, before, Dump(t, made.URI))
}
