package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/datafile"
)

var update = flag.Bool("update", false, "rewrite the expected texts") //nolint:gochecknoglobals // a flag of the test binary

func inspect(args ...string) (code int, stdout, stderr string) {
	var out, complaints bytes.Buffer
	code = command{stdout: &out, stderr: &complaints}.run(append([]string{"inspect"}, args...))
	return code, out.String(), complaints.String()
}

// dataFiles are those of a golden table, by name.
func dataFiles(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(golden(t, name), "data", "*.lance"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// TestInspectOfficialFiles: of each file version, with all types and with lists and structs: the whole text of one file, and all others
// describe themselves, every column by its name.
func TestInspectOfficialFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"types-2.0", "types-2.1", "types-2.2", "nested-2.0", "nested-2.1", "nested-2.2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := dataFiles(t, name)
			for _, file := range files {
				code, stdout, stderr := inspect("--json", file)
				require.Zero(t, code, stderr)
				var doc struct{ Data datafile.Description }
				require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
				require.Equal(t, name[len(name)-3:], doc.Data.Version)
				require.NotEmpty(t, doc.Data.Columns)
				for _, c := range doc.Data.Columns {
					require.NotEmpty(t, c.Name)
				}
			}
			code, stdout, stderr := inspect(files[0])
			require.Zero(t, code, stderr)
			got := bytes.ReplaceAll([]byte(stdout), []byte(files[0]), []byte("FILE"))
			path := filepath.Join("testdata", "inspect-"+name+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o700))
				require.NoError(t, os.WriteFile(path, got, 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		})
	}
}

func TestInspectRefuses(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(dataFiles(t, "tags")[0])
	require.NoError(t, err)
	write := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	newer := bytes.Clone(whole)
	newer[len(newer)-6] = 9 // of the version 2.n
	for name, c := range map[string]struct {
		file string
		code int
		says string
	}{
		"legacy":   {file: dataFiles(t, "legacy")[0], code: 1, says: "legacy"},
		"newer":    {file: write("newer.lance", newer), code: 1, says: "file version"},
		"cut":      {file: write("cut.lance", whole[:len(whole)-10]), code: 1, says: "it may be cut"},
		"empty":    {file: write("empty.lance", nil), code: 1, says: "too short"},
		"gone":     {file: filepath.Join(t.TempDir(), "gone.lance"), code: 1, says: "gone.lance"},
		"manifest": {file: "_versions/1.manifest", code: 2, says: "data file"},
		"external": {file: "s3+ddb://b/x.lance?ddbTableName=t.lance", code: 2, says: "s3://bucket/key"},
		"bucket":   {file: "s3://b.lance", code: 2, says: "no file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := inspect(c.file)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stderr, c.says)
		})
	}
}
