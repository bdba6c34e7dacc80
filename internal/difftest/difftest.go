//go:build oracle

// Package difftest has the official engines make datasets, read them back and go on using them, as judges of what a pass did.
//
// It runs the scripts below py/ with the Python that LANCEKEEPER_TEST_PYTHON names (test/requirements.txt). Paths are
// local or, under test/services, s3://.
package difftest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Env returns an environment variable that the tagged tests need, and fails the test if it is not set.
func Env(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	require.NotEmpty(t, value, "%s is not set: run this through make test or test/run", name)
	return value
}

// Made is a dataset (or a root of datasets) that make.py wrote.
type Made struct {
	URI   string          `json:"uri"`
	Notes json.RawMessage `json:"notes"`
}

// Make writes a dataset by recipe into a folder of the test's own.
func Make(t *testing.T, recipe string, args ...string) Made {
	t.Helper()
	return MakeAt(t, t.TempDir(), recipe, args...)
}

// MakeAt writes a dataset by recipe below out, a local folder or s3://bucket/prefix.
func MakeAt(t *testing.T, out, recipe string, args ...string) Made {
	t.Helper()
	var made Made
	python(t, &made, "make.py", append([]string{recipe, "--out", out}, args...)...)
	return made
}

// Table is what the official engine read of one dataset. Hashes are over canonical values.
type Table struct {
	Version   uint64                     `json:"version"`
	Rows      uint64                     `json:"rows"`
	Ordered   string                     `json:"ordered"` // rows in scan order
	Bag       string                     `json:"bag"`     // rows in any order
	Columns   map[string]string          `json:"columns"` // values in scan order
	Schema    string                     `json:"schema"`
	Versions  []Version                  `json:"versions"`
	Tags      map[string]json.RawMessage `json:"tags"`
	Branches  map[string]json.RawMessage `json:"branches"`
	Indices   []string                   `json:"indices"`
	Blobs     map[string]string          `json:"blobs"`   // what they hold, by column
	Answers   map[string]uint64          `json:"answers"` // rows that a filter finds, through the indices where there are some
	Config    map[string]string          `json:"config"`
	Fragments [][3]uint64                `json:"fragments"` // id, physical rows, deleted rows
}

// Version is one listed version: its row count and the rows that a full scan gave; both nil where it was not scanned.
type Version struct {
	Number uint64  `json:"version"`
	Rows   *uint64 `json:"rows"`
	Scan   *uint64 `json:"scan"`
}

// Dump reads the dataset, or every dataset of a root, with the official engine; keys are folder names.
func Dump(t *testing.T, uri string) map[string]Table {
	t.Helper()
	var doc struct {
		Tables map[string]Table `json:"tables"`
	}
	python(t, &doc, "dump.py", uri)
	require.NotEmpty(t, doc.Tables, "no dataset at %s", uri)
	return doc.Tables
}

// Same requires that a pass changed nothing that a reader sees: rows, schema, tags, branches, indices, configuration; that
// versions only went away or were added at the end; and that every listed one reads whole. Rows may have moved.
func Same(t *testing.T, before, after map[string]Table) {
	t.Helper()
	for _, difference := range Differences(before, after) {
		t.Error(difference)
	}
}

// SameOrder requires that scans give the rows in the same order as before.
func SameOrder(t *testing.T, before, after map[string]Table) {
	t.Helper()
	for name, b := range before {
		require.Equal(t, b.Ordered, after[name].Ordered, "%s: rows moved", name)
	}
}

// Use goes on using a copy of the dataset with the official engines: append, delete, upsert, compact, clean up, open with
// lancedb. The dataset needs an integer column id.
func Use(t *testing.T, uri string) {
	t.Helper()
	var doc struct{ Tables map[string][]string }
	python(t, &doc, "use.py", uri)
	require.NotEmpty(t, doc.Tables)
}

// Unnamed is a file of the format that no manifest names.
type Unnamed struct {
	Path    string  `json:"path"`
	AgeDays float64 `json:"ageDays"`
}

// Account is what the manifests of a dataset name, against what is there.
type Account struct {
	Manifests int       `json:"manifests"`
	Missing   []string  `json:"missing"`
	Unnamed   []Unnamed `json:"unnamed"`
	Foreign   []string  `json:"foreign"`
}

// Files reads every manifest of one dataset by itself and accounts for every file.
func Files(t *testing.T, uri string) Account {
	t.Helper()
	var account Account
	python(t, &account, "files.py", uri)
	return account
}

// NoMissingNoDead requires that every file a manifest names is there, and that each file of the format is named.
func NoMissingNoDead(t *testing.T, uri string) {
	t.Helper()
	account := Files(t, uri)
	require.Positive(t, account.Manifests)
	require.Empty(t, account.Missing, "files that manifests of %s name are missing", uri)
	require.Empty(t, account.Unnamed, "dead files are left in %s", uri)
}

// Folder returns the local folder that holds the files of uri.
func Folder(t *testing.T, uri string) string {
	t.Helper()
	uri, _, _ = strings.Cut(uri, "?")
	if key, ok := strings.CutPrefix(strings.Replace(uri, "s3+ddb://", "s3://", 1), "s3://"); ok {
		return filepath.Join(Env(t, "LANCEKEEPER_TEST_S3_DIR"), filepath.FromSlash(key))
	}
	return uri
}

// Command prepares a run of one of the scripts.
func Command(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	_, here, _, ok := runtime.Caller(0)
	require.True(t, ok)
	path := filepath.Join(filepath.Dir(here), "py", script)
	command := exec.CommandContext(t.Context(), Env(t, "LANCEKEEPER_TEST_PYTHON"), append([]string{path}, args...)...)
	command.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "LANCE_LOG=error")
	return command
}

// python runs a script and decodes what it printed.
func python(t *testing.T, into any, script string, args ...string) {
	t.Helper()
	var stderr strings.Builder
	command := Command(t, script, args...)
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%s %s\n%s", script, strings.Join(args, " "), stderr.String())
	require.NoError(t, json.Unmarshal(out, into), "output of %s: %s", script, out)
}
