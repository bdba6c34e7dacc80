package filestore_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// TestLinksToFiles: a link is no object; deleting its key removes the link and never what it points to.
func TestLinksToFiles(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("x"), 0o600))
	s, err := filestore.Open(root)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "data/real", []byte("x")))
	for link, target := range map[string]string{"out": outside, "in": "real", "dangling": "none"} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, "data", link)))
		key := "data/" + link
		_, err = s.Stat(t.Context(), key)
		require.ErrorIs(t, err, objstore.ErrNotExist, key)
		_, _, err = s.Get(t.Context(), key)
		require.ErrorIs(t, err, objstore.ErrNotExist, key)
		require.ErrorIs(t, s.PutIfAbsent(t.Context(), key, []byte("new")), objstore.ErrExists, "the name is taken all the same")
	}
	require.Equal(t, []string{"data/real"}, keys(t, s))
	require.NoError(t, s.Put(t.Context(), "data/out", []byte("new")), "a put replaces the link")
	failed, err := s.Delete(t.Context(), []string{"data/out", "data/in", "data/dangling"})
	require.NoError(t, err)
	require.Empty(t, failed)
	require.Equal(t, []string{"data/real"}, keys(t, s))
	content, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "x", string(content))
}

func keys(t *testing.T, s objstore.Store) []string {
	t.Helper()
	var found []string
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		found = append(found, o.Key)
	}
	return found
}

// TestLeftByACrash: a write that never ended leaves its temporary file, which is listed, so that a clean-up can take it, under
// a name that no object of a dataset has; and it is in nobody's way.
func TestLeftByACrash(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s, err := filestore.Open(root)
	require.NoError(t, err)
	broken := io.MultiReader(strings.NewReader("half"), &pausing{at: func() {
		left := keys(t, s)
		require.Len(t, left, 1)
		require.True(t, strings.HasPrefix(left[0], "data/.tmp_"), left[0])
		half, err := os.ReadFile(filepath.Join(root, left[0]))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, "data", ".tmp_0123456789abcdef"), half, 0o600))
	}})
	_, err = s.Upload(t.Context(), "data/x", broken)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"data/x", "data/.tmp_0123456789abcdef"}, keys(t, s), "only the crash's own is left")
	require.NoError(t, s.PutIfAbsent(t.Context(), "data/y", nil))
	failed, err := s.Delete(t.Context(), []string{"data/.tmp_0123456789abcdef"})
	require.NoError(t, err)
	require.Empty(t, failed)
	require.ElementsMatch(t, []string{"data/x", "data/y"}, keys(t, s))
}

// pausing calls at, and ends.
type pausing struct{ at func() }

func (p *pausing) Read([]byte) (int, error) {
	p.at()
	return 0, io.EOF
}

// TestFoldersComeAndGo: emptied folders are removed while others write into them; no write may fail for it.
func TestFoldersComeAndGo(t *testing.T) {
	t.Parallel()
	s := open(t)
	var group sync.WaitGroup
	for writer := range 8 {
		group.Go(func() {
			for i := range 200 {
				key := fmt.Sprintf("_indices/a/b/%d-%d", writer, i)
				if err := s.Put(t.Context(), key, nil); err != nil {
					t.Errorf("%s: %v", key, err)
				}
				if failed, err := s.Delete(t.Context(), []string{key}); err != nil || len(failed) > 0 {
					t.Errorf("%s: %v %v", key, failed, err)
				}
			}
		})
	}
	group.Wait()
	folders, err := s.Folders(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"_indices"}, folders, "the first level stays")
	folders, err = s.Folders(t.Context(), "_indices/")
	require.NoError(t, err)
	require.Empty(t, folders)
}

func TestDenied(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root is denied nothing: run as another user")
	}
	root := t.TempDir()
	s, err := filestore.Open(root)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "data/x", nil))
	require.NoError(t, os.Chmod(filepath.Join(root, "data"), 0o500)) //nolint:gosec // a folder
	require.ErrorIs(t, s.Put(t.Context(), "data/y", nil), objstore.ErrDenied)
	failed, err := s.Delete(t.Context(), []string{"data/x"})
	require.NoError(t, err)
	require.Len(t, failed, 1)
	require.Equal(t, "AccessDenied", failed[0].Code)
	require.ErrorIs(t, failed[0], objstore.ErrDenied)
}
