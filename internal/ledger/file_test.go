package ledger_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/ledger"
)

func TestFile(t *testing.T) {
	t.Parallel()
	testBook(t, func(t *testing.T) book {
		t.Helper()
		return ledger.NewFile(filepath.Join(t.TempDir(), "made", "when needed"))
	})
}

func TestFileReadsWithoutWriting(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	b := ledger.NewFile(dir)
	_, _, err := b.Load(t.Context(), dataset)
	require.NoError(t, err)
	_, err = b.List(t.Context())
	require.NoError(t, err)
	require.NoDirExists(t, dir)
}

func TestFileThatIsDamagedOrNewerIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not JSON":            `{`,
		"state is not JSON":   `{"dataset":"d","state":"{"}`,
		"newer format":        `{"dataset":"d","state":"{\"format\":2}"}`,
		"journal is not zstd": `{"dataset":"d","state":"{\"format\":1}","sweep":"AAAA"}`,
		"quarantine":          `{"dataset":"d","state":"{\"format\":1,\"quarantine\":{\"9-1\":{\"reason\":\"\"}}}"}`,
		"huge range":          `{"dataset":"d","state":"{\"format\":1,\"quarantine\":{\"0-18446744073709551615\":{\"reason\":\"\"}}}"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b := ledger.NewFile(dir)
			_, err := b.Begin(t.Context(), dataset, 1, noon, "a")
			require.NoError(t, err)
			files, err := filepath.Glob(filepath.Join(dir, "*.ledger.json"))
			require.NoError(t, err)
			require.Len(t, files, 1)
			require.NoError(t, os.WriteFile(files[0], []byte(text), 0o600))

			_, found, err := b.Load(t.Context(), dataset)
			require.Error(t, err)
			require.False(t, found)
			_, err = b.Begin(t.Context(), dataset, 2, noon, "b")
			require.Error(t, err)
			after, err := os.ReadFile(files[0])
			require.NoError(t, err)
			require.Equal(t, text, string(after))
		})
	}
}
