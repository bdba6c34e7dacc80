//go:build oracle

package difftest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// result is the part of the result document that these tests judge.
type result struct {
	Dataset string `json:"dataset"`
	Outcome string `json:"outcome"`
	Error   *struct {
		Class, Message, Object string
	} `json:"error"`
	Before     state `json:"before"`
	After      state `json:"after"`
	Compaction struct {
		FragmentsRemoved int    `json:"fragmentsRemoved"`
		FragmentsAdded   int    `json:"fragmentsAdded"`
		RowsDropped      uint64 `json:"rowsDropped"`
		Skipped          []struct {
			Fragment uint64 `json:"fragment"`
			Reason   string `json:"reason"`
		} `json:"skipped"`
	} `json:"compaction"`
	Pruning struct {
		VersionsRemoved int              `json:"versionsRemoved"`
		FilesRemoved    map[string]int64 `json:"filesRemoved"`
		Kept            []struct {
			Version uint64 `json:"version"`
			Reason  string `json:"reason"`
		} `json:"kept"`
		Left []struct {
			Path   string `json:"path"`
			Reason string `json:"reason"`
		} `json:"left"`
		Plan struct {
			Versions  []uint64 `json:"versions"`
			StaleRows []uint64 `json:"staleRows"`
			Files     []struct {
				Path    string `json:"path"`
				Kind    string `json:"kind"`
				Bytes   int64  `json:"bytes"`
				Reason  string `json:"reason"`
				Version uint64 `json:"version"`
			} `json:"files"`
		} `json:"plan"`
	} `json:"pruning"`
	Findings []struct {
		Kind, Detail string
	} `json:"findings"`
	Policy map[string]struct {
		Value, Source string
	} `json:"policy"`
	UnreclaimedVersions *uint64 `json:"unreclaimedVersions"`
	ConsecutiveFailures int     `json:"consecutiveFailures"`
}

type state struct {
	Version     uint64 `json:"version"`
	Manifests   int    `json:"manifests"`
	Fragments   int    `json:"fragments"`
	Rows        uint64 `json:"rows"`
	DeletedRows uint64 `json:"deletedRows"`
}

// keeper runs the built command with a state folder of its own.
type keeper struct{ state string }

func newKeeper(t *testing.T) keeper {
	t.Helper()
	return keeper{state: t.TempDir()}
}

// command prepares `maintain --json`.
func (k keeper) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary := filepath.Join(Env(t, "LANCEKEEPER_TEST_BIN"), "maintain")
	return exec.CommandContext(t.Context(), binary, append([]string{"--json", "--state", k.state}, args...)...)
}

// run runs a pass and returns its results, exit code, and what it said on standard error.
func (k keeper) run(t *testing.T, args ...string) (results []result, code int, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := k.command(t, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		require.NoError(t, err)
	}
	if stdout.Len() > 0 {
		var doc struct{ Results []result }
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &doc), stdout.String())
		results = doc.Results
	}
	return results, code, stderr.String()
}

// good runs a pass without grace that must succeed, over one dataset.
func (k keeper) good(t *testing.T, uri string) result {
	t.Helper()
	results, code, said := k.run(t, "--grace", "0s", "--allow-short-grace", uri)
	require.Zero(t, code, "%+v\n%s", results, said)
	require.Len(t, results, 1)
	require.Equal(t, "ok", results[0].Outcome)
	require.Nil(t, results[0].Error)
	return results[0]
}

// tree is every file below a folder with its bytes, to show that nothing was touched.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	}))
	return out
}
