package filestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/filestore"
	"lancekeeper/internal/objstore/storetest"
)

func open(t *testing.T) objstore.Store {
	t.Helper()
	s, err := filestore.Open(t.TempDir())
	require.NoError(t, err)
	return s
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

func TestNothingIsMadeWhereNothingIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none")
	_, err := filestore.Open(path)
	require.ErrorIs(t, err, objstore.ErrNotExist)
	require.NoDirExists(t, path)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = filestore.Open(file)
	require.Error(t, err)
}

// TestSymbolicLinksLeadNowhere: what a link points to is not the dataset's own, and must not be read or deleted through it.
func TestSymbolicLinksLeadNowhere(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("x"), 0o600))
	root := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "data")))
	s, err := filestore.Open(root)
	require.NoError(t, err)
	for _, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		require.Fail(t, "a link is listed")
	}
	_, _, err = s.Get(t.Context(), "data/secret")
	require.Error(t, err)
	_, _ = s.Delete(t.Context(), []string{"data/secret"})
	require.FileExists(t, secret)
	require.Error(t, s.Put(t.Context(), "data/new", []byte("x")))
	require.NoFileExists(t, filepath.Join(outside, "new"))
}
