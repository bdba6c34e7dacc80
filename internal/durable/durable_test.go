package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/durable"
)

func TestWriteFileReplacesAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "state.json")
	for _, text := range []string{"first", "second"} {
		require.NoError(t, durable.WriteFile(path, []byte(text)))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestWriteFileSaysWhichFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "state.json")
	require.ErrorContains(t, durable.WriteFile(path, nil), path)
}

func TestWriteFileCleansUpAfterFailure(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "taken")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "by a folder"), 0o700))
	require.Error(t, durable.WriteFile(path, []byte("x")))
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1)
}
