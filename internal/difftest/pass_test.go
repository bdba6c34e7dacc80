//go:build oracle

package difftest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// passCase is a dataset and what one pass without grace must make of it.
type passCase struct {
	name      string
	recipe    string
	args      []string
	fragments int  // after the pass; -1: as before
	ordered   bool // the rows keep their order as a whole
	kept      int  // listed versions after the pass, the latest among them
	untouched bool // compaction leaves everything alone and says why
	readOnly  bool // the official engines do not go on using it: too many rows to do so in good time, or they cannot
}

func passCases() []passCase {
	cases := []passCase{
		{name: "2,000 upserts", recipe: "upserts", args: []string{"--count", "2000", "--keys", "40"}, fragments: 1, ordered: true, kept: 1},
		{name: "cleared", recipe: "cleared", fragments: 0, ordered: true, kept: 1},
		{name: "columns added, renamed, dropped", recipe: "evolved", fragments: 1, ordered: true, kept: 1},
		{name: "version 1 names", recipe: "v1names", fragments: 1, ordered: true, kept: 1},
		{name: "configured", recipe: "configured", fragments: 1, ordered: true, kept: 1},
		{name: "struct added later in file version 2.0", recipe: "latestruct", fragments: -1, ordered: true, kept: 1, untouched: true, readOnly: true},
		{name: "legacy files", recipe: "legacy", fragments: -1, ordered: true, kept: 1, untouched: true},
		{name: "stable row ids", recipe: "stableids", fragments: 1, ordered: true, kept: 1},
		{name: "index built three times", recipe: "reindexed", fragments: -1, ordered: true, kept: 1, untouched: true},
		{name: "index over some fragments", recipe: "indexed", fragments: -2, kept: 1},
	}
	for _, version := range []string{"2.0", "2.1", "2.2"} {
		at := []string{"--storage", version}
		cases = append(cases,
			passCase{name: "40 upserts " + version, recipe: "upserts", args: at, fragments: 1, ordered: true, kept: 1},
			passCase{name: "deletions of both kinds " + version, recipe: "deletes", args: at, fragments: 1, ordered: true, kept: 1},
			passCase{name: "updates and merge-inserts " + version, recipe: "updates", args: at, fragments: 1, ordered: true, kept: 1},
			passCase{name: "fields of structs dropped, added, rewritten " + version, recipe: "reshaped", args: at, fragments: 1, ordered: true, kept: 1},
			passCase{name: "pages large enough to copy " + version, recipe: "large", args: at, fragments: 1, ordered: true, kept: 1},
			passCase{name: "emptied fragment " + version, recipe: "emptied", args: at, fragments: 1, ordered: true, kept: 1})
		for _, rows := range []string{"1", "1000"} {
			args := append([]string{"--rows", rows}, at...)
			cases = append(cases,
				passCase{name: "nested, " + rows + " rows, " + version, recipe: "nested", args: args, fragments: 1, ordered: true, kept: 1},
				passCase{name: "types, " + rows + " rows, " + version, recipe: "types", args: args, fragments: 1, ordered: true, kept: 1},
				passCase{name: "types without nulls, " + rows + " rows, " + version, recipe: "types", args: append([]string{"--no-nulls"}, args...), fragments: 1, ordered: true, kept: 1})
		}
		cases = append(cases, passCase{
			name: "types, 100,000 rows, " + version, recipe: "types",
			args: append([]string{"--rows", "100000"}, at...), fragments: 1, ordered: true, kept: 1, readOnly: true,
		})
	}
	return cases
}

// TestPass: the same rows, schema and tags; every listed version reads whole; no named file missing, no dead file left; the
// official engines go on; and a second pass finds nothing to do.
func TestPass(t *testing.T) {
	t.Parallel()
	for _, c := range passCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			passOver(t, c)
		})
	}
}

func passOver(t *testing.T, c passCase) {
	t.Helper()
	made := Make(t, c.recipe, c.args...)
	before := Dump(t, made.URI)
	keep := newKeeper(t)
	got := keep.good(t, made.URI)

	after := Dump(t, made.URI)
	Same(t, before, after)
	if c.ordered {
		SameOrder(t, before, after)
	}
	NoMissingNoDead(t, made.URI)
	b, a := only(before), only(after)
	require.Len(t, a.Versions, c.kept)
	require.Equal(t, b.Rows, got.Before.Rows)
	require.Equal(t, a.Version, got.After.Version)
	require.Equal(t, a.Rows, got.After.Rows)
	require.Len(t, a.Fragments, got.After.Fragments)
	wasListed, commits := len(b.Versions), int(a.Version-b.Version)
	require.Equal(t, wasListed+commits-c.kept, got.Pruning.VersionsRemoved)
	switch {
	case c.fragments >= 0:
		require.Len(t, a.Fragments, c.fragments)
		require.Zero(t, got.After.DeletedRows)
	case c.untouched:
		require.Equal(t, b.Fragments, a.Fragments)
		require.NotEmpty(t, got.Compaction.Skipped, "left alone without a word")
	default:
		require.Less(t, len(a.Fragments), len(b.Fragments))
		require.NotEmpty(t, got.Compaction.Skipped, "left alone without a word")
	}

	again := keep.good(t, made.URI)
	require.Equal(t, a.Version, again.After.Version, "an idle pass commits nothing")
	require.Zero(t, again.Pruning.VersionsRemoved)
	if !c.readOnly {
		Use(t, made.URI)
	}
}

// TestUncover: fragments that an index covers are rewritten on request, every answer stays right, and it is said which index to
// optimize; after that it covers everything again.
func TestUncover(t *testing.T) {
	t.Parallel()
	made := Make(t, "indexed")
	before := Dump(t, made.URI)
	require.NotEmpty(t, only(before).Answers)
	keep := newKeeper(t)
	results, code, said := keep.run(t, "--grace", "0s", "--allow-short-grace", "--index-policy", "uncover", made.URI)
	require.Zero(t, code, said)
	after := Dump(t, made.URI)
	Same(t, before, after)
	NoMissingNoDead(t, made.URI)
	require.Empty(t, results[0].Compaction.Skipped)
	require.Len(t, only(after).Fragments, 2, "the covered ones, and the others: fragments of two index sets do not mix")
	require.NotEmpty(t, results[0].Findings)
	Use(t, made.URI)
}

// only returns the one table of a dump.
func only(tables map[string]Table) Table {
	for _, table := range tables {
		return table
	}
	return Table{}
}

func TestTagsAndBranchesStay(t *testing.T) {
	t.Parallel()
	made := Make(t, "tags")
	before := Dump(t, made.URI)
	got := newKeeper(t).good(t, made.URI)
	after := Dump(t, made.URI)
	Same(t, before, after)
	account := Files(t, made.URI)
	require.Empty(t, account.Missing)
	require.Empty(t, account.Unnamed)
	kept := map[uint64]bool{}
	for _, v := range only(after).Versions {
		kept[v.Number] = true
	}
	// tagged: 2 and the newest; 4 is where the branch begins; and the latest
	require.True(t, kept[2] && kept[4] && kept[only(before).Version] && kept[got.After.Version], "%v", kept)
	require.Len(t, kept, 4)
	require.Len(t, got.Pruning.Kept, 3)
	Use(t, made.URI)
}

func TestDetachedStays(t *testing.T) {
	t.Parallel()
	made := Make(t, "detached")
	before := Dump(t, made.URI)
	newKeeper(t).good(t, made.URI)
	Same(t, before, Dump(t, made.URI))
	require.Empty(t, Files(t, made.URI).Missing, "what the detached version names must stay")
	detached, err := filepath.Glob(filepath.Join(made.URI, "_versions", "d*.manifest"))
	require.NoError(t, err)
	require.Len(t, detached, 1)
}

func TestOpenTransactionStays(t *testing.T) {
	t.Parallel()
	made := Make(t, "opentxn")
	var notes struct{ Old, Young, Foreign []string }
	decode(t, made.Notes, &notes)
	before := Dump(t, made.URI)
	got := newKeeper(t).good(t, made.URI)
	Same(t, before, Dump(t, made.URI))
	for _, path := range append(notes.Young, notes.Foreign...) {
		require.FileExists(t, filepath.Join(made.URI, path))
	}
	for _, path := range notes.Old {
		require.NoFileExists(t, filepath.Join(made.URI, path), "past the unverified limit")
	}
	require.NotEmpty(t, got.Pruning.Left)
	Use(t, made.URI)
}

func TestRootOfDatasets(t *testing.T) {
	t.Parallel()
	made := Make(t, "root")
	before := Dump(t, made.URI)
	results, code, said := newKeeper(t).run(t, "--grace", "0s", "--allow-short-grace", made.URI)
	require.Zero(t, code, said)
	require.Len(t, results, len(before))
	after := Dump(t, made.URI)
	Same(t, before, after)
	for name, table := range after {
		require.Len(t, table.Versions, 1, name)
		NoMissingNoDead(t, filepath.Join(made.URI, name))
	}
	Use(t, made.URI)
}

func TestWideGraceRemovesNothing(t *testing.T) {
	t.Parallel()
	made := Make(t, "upserts")
	before := Dump(t, made.URI)
	results, code, said := newKeeper(t).run(t, "--grace", "60d", made.URI)
	require.Zero(t, code, said)
	require.Zero(t, results[0].Pruning.VersionsRemoved)
	require.Empty(t, Files(t, made.URI).Missing)
	after := Dump(t, made.URI)
	Same(t, before, after)
	require.Len(t, only(after).Versions, len(only(before).Versions)+int(only(after).Version-only(before).Version))
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	made := Make(t, "upserts")
	before, keep := tree(t, made.URI), newKeeper(t)
	_, code, said := keep.run(t, "--dry-run", made.URI)
	require.Zero(t, code, said)
	require.Equal(t, before, tree(t, made.URI))
	require.Empty(t, tree(t, keep.state))
}

// TestFailuresAccumulate: a failure before any success reports the whole backlog, failures add up, a success resets.
func TestFailuresAccumulate(t *testing.T) {
	t.Parallel()
	made := Make(t, "upserts")
	newest := newestManifest(t, made.URI)
	whole, err := os.ReadFile(newest)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(newest, int64(len(whole)/2)))
	damaged, keep := tree(t, made.URI), newKeeper(t)
	for failures := 1; failures <= 3; failures++ {
		results, code, _ := keep.run(t, made.URI)
		require.Equal(t, 1, code)
		require.Len(t, results, 1)
		require.Equal(t, "corrupt", results[0].Error.Class)
		require.Contains(t, results[0].Error.Message, filepath.Base(newest))
		require.Equal(t, failures, results[0].ConsecutiveFailures)
		require.NotNil(t, results[0].UnreclaimedVersions)
		require.GreaterOrEqual(t, *results[0].UnreclaimedVersions, uint64(40), "the whole backlog")
		require.Equal(t, damaged, tree(t, made.URI), "nothing is written or deleted")
	}
	require.NoError(t, os.WriteFile(newest, whole, 0o600))
	got := keep.good(t, made.URI)
	require.Zero(t, got.ConsecutiveFailures)
	require.Zero(t, *got.UnreclaimedVersions)
}

// newestManifest returns the manifest that stands first by name: the newest, in the second naming scheme.
func newestManifest(t *testing.T, uri string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(uri, "_versions", "*.manifest"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names[0]
}
