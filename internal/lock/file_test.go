package lock_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lock"
)

func fileLocker(dir, owner string) *lock.FileLocker {
	return lock.NewFile(lock.FileOptions{Dir: dir, Owner: owner, Now: time.Now})
}

func TestFileLocker(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "when needed")
	testLocker(t, func(_ *testing.T, owner string) locker { return fileLocker(dir, owner) })
}

func TestFileLockEndsWithItsProcess(t *testing.T) {
	if dir := os.Getenv("LOCK_TEST_HOLD"); dir != "" {
		holdUntilKilled(t, dir)
	}
	t.Parallel()
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFileLockEndsWithItsProcess$")
	command.Env = append(os.Environ(), "LOCK_TEST_HOLD="+dir)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	_, err = bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)

	k := fileLocker(dir, "second")
	_, err = k.Acquire(t.Context(), dataset, time.Time{})
	var held *lock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, "first", held.Owner)
	require.ErrorContains(t, err, "the lock ends with process")
	require.ErrorAs(t, k.Break(t.Context(), dataset, ""), &held, "what a living process holds can't be broken")

	require.NoError(t, command.Process.Kill())
	require.Error(t, command.Wait())
	require.NoError(t, k.Break(t.Context(), dataset, ""))
	lease, err := k.Acquire(t.Context(), dataset, time.Time{})
	require.NoError(t, err)
	require.Equal(t, held.Generation+1, lease.Generation())
	require.NoError(t, lease.Release(t.Context()))
}

func holdUntilKilled(t *testing.T, dir string) {
	t.Helper()
	_, err := fileLocker(dir, "first").Acquire(t.Context(), dataset, time.Time{})
	require.NoError(t, err)
	_, err = os.Stdout.WriteString("held\n")
	require.NoError(t, err)
	select {}
}

func TestFileLeaseIsLostWithItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lease, err := fileLocker(dir, "first").Acquire(t.Context(), dataset, time.Time{})
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.lock"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Remove(files[0]))

	other, err := fileLocker(dir, "second").Acquire(t.Context(), dataset, time.Time{})
	require.NoError(t, err)
	require.Greater(t, other.Generation(), lease.Generation())
	require.ErrorIs(t, lease.Check(t.Context()), lock.ErrLost)
	require.ErrorIs(t, lease.Release(t.Context()), lock.ErrLost)
	require.NoError(t, other.Check(t.Context()), "the release touched nothing of the other's")

	_, err = fileLocker(dir, "third").Acquire(t.Context(), dataset, time.Time{})
	var held *lock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, "second", held.Owner)
	require.NoError(t, other.Release(t.Context()))
}

func TestFileGenerationDoesNotFallWhenTheRecordIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	k := lock.NewFile(lock.FileOptions{Dir: dir, Owner: "a", Now: func() time.Time { return now }})
	var last uint64
	for range 3 {
		lease, err := k.Acquire(t.Context(), dataset, time.Time{})
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
		require.Greater(t, lease.Generation(), last)
		last = lease.Generation()

		records, err := filepath.Glob(filepath.Join(dir, "*.json"))
		require.NoError(t, err)
		require.Len(t, records, 1)
		require.NoError(t, os.Remove(records[0]))
		now = now.Add(time.Minute)
	}
}

func TestFileRecordThatCannotBeReadStopsTheLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := fileLocker(dir, "a")
	lease, err := k.Acquire(t.Context(), dataset, time.Time{})
	require.NoError(t, err)
	require.NoError(t, lease.Release(t.Context()))
	records, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(records[0], []byte("{"), 0o600))

	_, err = k.Acquire(t.Context(), dataset, time.Time{})
	require.ErrorContains(t, err, records[0])
	require.NoError(t, os.Remove(records[0]))
	lease, err = k.Acquire(t.Context(), dataset, time.Time{})
	require.NoError(t, err, "the failure before did not keep the lock")
	require.NoError(t, lease.Release(t.Context()))
}
