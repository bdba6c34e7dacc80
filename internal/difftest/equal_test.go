//go:build oracle

package difftest

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/dataset"
)

// policy is one clean-up, as the official engine and as we are told it.
type policy struct {
	name           string
	official, ours []string
}

func policies() []policy {
	short := []string{"--grace", "0s", "--allow-short-grace"}
	return []policy{
		{"all but the latest", []string{"--older-than", "0"}, short},
		{"newest three", []string{"--retain", "3"}, append([]string{"--keep", "3"}, short...)},
		{"also what nothing names", []string{"--older-than", "0", "--delete-unverified"}, append([]string{"--unverified-age", "0s"}, short...)},
		{"nothing is old enough", []string{"--older-than", "8640000"}, []string{"--grace", "100d"}},
	}
}

// difference is a file that stays after one clean-up and not after the other. docs/pruning.md names each kind with its reason.
type difference struct {
	class dataset.Class
	stays string // "ours" or "theirs": after whose clean-up it is still there
}

// meant are the differences that are meant, by recipe. Whatever else differs fails the test, and so does one that is not met.
func meant() map[string][]difference {
	return map[string][]difference{
		"tags":     {{dataset.Transaction, "ours"}},
		"branches": {{dataset.Transaction, "ours"}},
		"detached": {{dataset.Data, "ours"}, {dataset.Transaction, "ours"}},
		"opentxn":  {{dataset.Transaction, "theirs"}, {dataset.DeletionFile, "theirs"}},
	}
}

// TestEqualToTheOfficialCleanUp: on two copies of a dataset, at one place and of one age, the files that stay after our pruning
// are those that stay after the official one, but for differences that are meant; and no file that a listed version, tag,
// branch or detached version needs is missing. A dry run names just what then goes.
func TestEqualToTheOfficialCleanUp(t *testing.T) {
	t.Parallel()
	for _, recipe := range []string{
		"upserts", "deletes", "updates", "emptied", "tags", "branches", "detached", "opentxn", "indexed", "reindexed", "configured", "v1names", "stableids",
		"evolved", "nested", "legacy", "blobs",
	} {
		for _, age := range []string{"30", "0"} {
			t.Run(recipe+" "+age+" days old", func(t *testing.T) {
				t.Parallel()
				made := Make(t, recipe, "--age-days", age)
				met := map[difference]bool{}
				for _, p := range policies() {
					equal(t, made.URI, p, func(d difference) bool {
						met[d] = true
						return slices.Contains(meant()[recipe], d)
					})
				}
				for _, d := range meant()[recipe] {
					assert.True(t, met[d], "%+v is no difference any more: take it off the list, here and in docs/pruning.md", d)
				}
			})
		}
	}
}

func equal(t *testing.T, uri string, p policy, isMeant func(difference) bool) {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "copy")
	replace(t, uri, kept)
	python(t, &struct{}{}, "clean.py", append([]string{uri}, p.official...)...)
	theirs := paths(t, uri)
	replace(t, kept, uri)
	rehearsed := newKeeper(t).pruned(t, uri, append([]string{"--dry-run"}, p.ours...)...)
	before := paths(t, uri)
	newKeeper(t).pruned(t, uri, p.ours...)
	ours := paths(t, uri)
	for _, f := range rehearsed.Pruning.Plan.Files {
		assert.NotEmpty(t, f.Reason, f.Path)
		assert.Contains(t, before, f.Path, "%s: named twice, or never there", p.name)
		delete(before, f.Path)
	}
	assert.Equal(t, before, ours, "%s: a dry run must name just what goes", p.name)
	require.Empty(t, Files(t, uri).Missing, p.name)
	differs := []string{}
	for _, d := range []struct {
		stays        string
		there, other map[string]struct{}
	}{{"ours", ours, theirs}, {"theirs", theirs, ours}} {
		for path := range d.there {
			if _, both := d.other[path]; both {
				continue
			}
			if !isMeant(difference{dataset.Classify(path), d.stays}) {
				differs = append(differs, path+" stays after "+d.stays+" alone")
			}
		}
	}
	assert.Empty(t, differs, p.name)
	replace(t, kept, uri)
}

// pruned runs a pass without compaction that must succeed.
func (k keeper) pruned(t *testing.T, uri string, args ...string) result {
	t.Helper()
	results, code, said := k.run(t, append([]string{"--no-compact", uri}, args...)...)
	require.Zero(t, code, said)
	require.Len(t, results, 1)
	return results[0]
}

// replace makes a folder a copy of another, with the times of its files.
func replace(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(to))
	out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput()
	require.NoError(t, err, string(out))
}

// paths are the files below a folder, but for the version hint, which each engine may write.
func paths(t *testing.T, folder string) map[string]struct{} {
	t.Helper()
	out := map[string]struct{}{}
	for path := range maps.Keys(tree(t, folder)) {
		if path = strings.TrimPrefix(path, folder+"/"); path != "_versions/latest_version_hint.json" {
			out[path] = struct{}{}
		}
	}
	return out
}

// TestBranchesUnderOtherSpellings: branches name the dataset as it was called when they were made. The official clean-up
// compares that text, and deletes the files of a branch where it is called otherwise (maintained through another spelling of
// the place); ours does not.
func TestBranchesUnderOtherSpellings(t *testing.T) {
	t.Parallel()
	for name, spell := range map[string]func(t *testing.T, path string) string{
		"as it was":      func(_ *testing.T, path string) string { return path },
		"trailing slash": func(_ *testing.T, path string) string { return path + "/" },
		"file://":        func(_ *testing.T, path string) string { return "file://" + path },
		"symbolic link": func(t *testing.T, path string) string {
			t.Helper()
			link := filepath.Join(t.TempDir(), "link.lance")
			require.NoError(t, os.Symlink(path, link))
			return link
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := Make(t, "branches")
			branchesStay(t, made.URI, spell(t, made.URI))
		})
	}
	t.Run("bucket with slashes", func(t *testing.T) {
		t.Parallel()
		made := MakeAt(t, place(t), "branches")
		branchesStay(t, made.URI, made.URI+"//")
	})
	t.Run("branched without the manifest store", func(t *testing.T) {
		t.Parallel()
		e := newExternal(t)
		made := MakeAt(t, e.out, "branches", "--branch-as", "s3://")
		branchesStay(t, made.URI, made.URI)
	})
	t.Run("manifest store with a slash", func(t *testing.T) {
		t.Parallel()
		e := newExternal(t)
		made := MakeAt(t, e.out, "branches")
		at, table, _ := strings.Cut(made.URI, "?")
		branchesStay(t, made.URI, at+"/?"+table)
	})
}

// branchesStay runs a pass over a place as it is spelled, and reads all branches as they were named before.
func branchesStay(t *testing.T, uri, spelled string) {
	t.Helper()
	before := Dump(t, uri)
	require.Len(t, only(before).Branches, 3)
	got := newKeeper(t).good(t, spelled)
	require.Positive(t, got.Compaction.FragmentsRemoved, "main must have moved on from the branches' files")
	require.Positive(t, got.Pruning.VersionsRemoved)
	Same(t, before, Dump(t, uri))
	require.Empty(t, Files(t, uri).Missing)
}

// TestBlobs: what blobs hold stays with the versions that stay, wherever it is stored, and the rest goes.
func TestBlobs(t *testing.T) {
	t.Parallel()
	for _, age := range []string{"30", "0"} {
		made := Make(t, "blobs", "--age-days", age)
		before := Dump(t, made.URI)
		require.Len(t, only(before).Blobs, 1)
		got := newKeeper(t).good(t, made.URI)
		require.Zero(t, got.Compaction.FragmentsRemoved, "rewriting blobs is not supported")
		Same(t, before, Dump(t, made.URI))
		stems := map[string]int{}
		for path := range paths(t, made.URI) {
			if parent, ok := dataset.SidecarParent(path); ok {
				stems[parent]++
			}
		}
		require.Len(t, stems, 3, "of each fragment that is left")
		for parent := range stems {
			require.FileExists(t, filepath.Join(made.URI, parent))
		}
	}
}
