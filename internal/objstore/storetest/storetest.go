// Package storetest is the contract of objstore.Store as tests, which every implementation runs.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
)

// Run checks an implementation. open returns an empty store each time.
func Run(t *testing.T, open func(t *testing.T) objstore.Store) {
	t.Helper()
	for name, check := range map[string]func(t *testing.T, s objstore.Store){
		"keys": keys, "read": read, "list": list, "many": many, "put if absent": putIfAbsent, "race": race,
		"upload": upload, "broken upload": brokenUpload, "delete": remove, "delete what is no object": removeNone, "clock": clock,
		"cancelled": cancelled, "names": names, "ownership": ownership, "order": order,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

func put(t *testing.T, s objstore.Store, key, data string) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), key, []byte(data)))
}

func listed(t *testing.T, s objstore.Store, prefix, after string) []string {
	t.Helper()
	var keys []string
	for o, err := range s.List(t.Context(), prefix, after) {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	if !s.Ordered() {
		slices.Sort(keys)
	}
	return keys
}

// keys: nothing outside the root can be named.
func keys(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	for _, key := range []string{"", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.", "a\\b", "a\x00b"} {
		require.Error(t, s.Put(ctx, key, nil), key)
		require.Error(t, s.PutIfAbsent(ctx, key, nil), key)
		_, err := s.Upload(ctx, key, strings.NewReader(""))
		require.Error(t, err, key)
		_, err = s.Stat(ctx, key)
		require.Error(t, err, key)
		_, _, err = s.Get(ctx, key)
		require.Error(t, err, key)
		_, err = s.GetRange(ctx, key, 0, 0)
		require.Error(t, err, key)
		_, _, err = s.GetTail(ctx, key, 1)
		require.Error(t, err, key)
		_, err = s.Delete(ctx, []string{"fine", key})
		require.Error(t, err, key)
	}
	for _, prefix := range []string{"a", "/", "../", "a//"} {
		failed := false
		for _, err := range s.List(ctx, prefix, "") {
			failed = failed || err != nil
		}
		require.True(t, failed, prefix)
		_, err := s.Folders(ctx, prefix)
		require.Error(t, err, prefix)
	}
	require.Empty(t, listed(t, s, "", ""))
}

func read(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	put(t, s, "f/a", "0123456789")
	put(t, s, "empty", "")
	data, o, err := s.Get(ctx, "f/a")
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(data))
	require.Equal(t, "f/a", o.Key)
	require.EqualValues(t, 10, o.Size)
	stat, err := s.Stat(ctx, "f/a")
	require.NoError(t, err)
	require.EqualValues(t, 10, stat.Size)
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, 10, "0123456789"}, {3, 4, "3456"}, {9, 1, "9"}, {10, 0, ""}, {0, 0, ""}} {
		data, err := s.GetRange(ctx, "f/a", c.offset, c.length)
		require.NoError(t, err)
		require.Equal(t, c.want, string(data))
	}
	for _, c := range [][2]int64{{0, 11}, {9, 2}, {10, 1}, {11, 1}, {100, 5}} {
		_, err := s.GetRange(ctx, "f/a", c[0], c[1])
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%v", c)
	}
	for _, c := range [][2]int64{{-1, 2}, {0, -1}, {math.MaxInt64, 1}, {1, math.MaxInt64}} {
		_, err := s.GetRange(ctx, "f/a", c[0], c[1])
		require.Error(t, err, "%v", c)
	}
	for n, want := range map[int64]string{-1: "", 0: "", 4: "6789", 10: "0123456789", 1000: "0123456789"} {
		tail, size, err := s.GetTail(ctx, "f/a", n)
		require.NoError(t, err)
		require.Equal(t, want, string(tail))
		require.EqualValues(t, 10, size)
	}
	tail, size, err := s.GetTail(ctx, "empty", 10)
	require.NoError(t, err)
	require.Empty(t, tail)
	require.Zero(t, size)
	data, _, err = s.Get(ctx, "empty")
	require.NoError(t, err)
	require.Empty(t, data)
	for _, missing := range []string{"none", "f/none", "none/a", "f"} {
		_, err := s.Stat(ctx, missing)
		require.ErrorIs(t, err, objstore.ErrNotExist, missing)
		_, _, err = s.Get(ctx, missing)
		require.ErrorIs(t, err, objstore.ErrNotExist, missing)
		_, err = s.GetRange(ctx, missing, 0, 1)
		require.ErrorIs(t, err, objstore.ErrNotExist, missing)
		_, _, err = s.GetTail(ctx, missing, 1)
		require.ErrorIs(t, err, objstore.ErrNotExist, missing)
	}
	put(t, s, "f/a", "new")
	data, again, err := s.Get(ctx, "f/a")
	require.NoError(t, err)
	require.Equal(t, "new", string(data))
	if o.ETag != "" {
		require.NotEqual(t, o.ETag, again.ETag)
	}
}

func list(t *testing.T, s objstore.Store) {
	require.Empty(t, listed(t, s, "", ""))
	require.Empty(t, listed(t, s, "nothing/", ""))
	all := []string{"a/b/c", "a/b2", "a/d", "ab/x", "b"}
	for _, key := range all {
		put(t, s, key, key)
	}
	require.Equal(t, all, listed(t, s, "", ""))
	require.Equal(t, []string{"a/b/c", "a/b2", "a/d"}, listed(t, s, "a/", ""))
	require.Equal(t, []string{"a/b/c"}, listed(t, s, "a/b/", ""))
	require.Equal(t, []string{"a/d", "ab/x", "b"}, listed(t, s, "", "a/b2"))
	require.Equal(t, []string{"a/b2", "a/d"}, listed(t, s, "a/", "a/b/c"))
	folders, err := s.Folders(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "ab"}, folders)
	folders, err = s.Folders(t.Context(), "a/")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, folders)
	folders, err = s.Folders(t.Context(), "nothing/")
	require.NoError(t, err)
	require.Empty(t, folders)
	for o, err := range s.List(t.Context(), "b/", "") {
		require.NoError(t, err)
		require.Fail(t, "a key is no prefix of itself", o.Key)
	}
	n := 0
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		require.EqualValues(t, len(o.Key), o.Size)
		require.WithinDuration(t, time.Now(), o.Modified, time.Hour)
		n++
		break
	}
	require.Equal(t, 1, n)
}

// many: more keys than one page or batch of S3 has.
func many(t *testing.T, s objstore.Store) {
	var all []string
	for i := range 1101 {
		key := fmt.Sprintf("many/%05d", i)
		all = append(all, key)
		put(t, s, key, "x")
	}
	put(t, s, "many-not/1", "x")
	require.Equal(t, all, listed(t, s, "many/", ""))
	failed, err := s.Delete(t.Context(), append([]string{"many/none"}, all...))
	require.NoError(t, err)
	require.Empty(t, failed)
	require.Equal(t, []string{"many-not/1"}, listed(t, s, "", ""))
}

func putIfAbsent(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	require.NoError(t, s.PutIfAbsent(ctx, "v/1", []byte("first")))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "v/1", []byte("second")), objstore.ErrExists)
	require.ErrorIs(t, s.PutIfAbsent(ctx, "v/1", []byte("first")), objstore.ErrExists)
	data, _, err := s.Get(ctx, "v/1")
	require.NoError(t, err)
	require.Equal(t, "first", string(data))
	_, err = s.Delete(ctx, []string{"v/1"})
	require.NoError(t, err)
	require.NoError(t, s.PutIfAbsent(ctx, "v/1", []byte("third")))
}

// race: exactly one of many writers wins, and its bytes are what is there.
func race(t *testing.T, s objstore.Store) {
	for round := range 5 {
		key := fmt.Sprintf("race/%d", round)
		var won []int
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				err := s.PutIfAbsent(t.Context(), key, bytes.Repeat([]byte{byte('a' + i)}, 1000))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, i)
				} else if !errors.Is(err, objstore.ErrExists) {
					t.Errorf("writer %d: %v", i, err)
				}
			})
		}
		group.Wait()
		require.Len(t, won, 1)
		data, _, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte{byte('a' + won[0])}, 1000), data)
	}
}

var errReader = errors.New("the source broke off")

func upload(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	for _, size := range []int{0, 1, 100_000, 20 << 20} {
		content := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		n, err := s.Upload(ctx, "u/x", io.MultiReader(bytes.NewReader(content)))
		require.NoError(t, err)
		require.EqualValues(t, size, n)
		data, _, err := s.Get(ctx, "u/x")
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, data))
	}
	require.Equal(t, []string{"u/x"}, listed(t, s, "", ""))
}

// brokenUpload: whatever error the source ends in, also one that could be taken for its end, nothing of it appears.
func brokenUpload(t *testing.T, s objstore.Store) {
	for _, size := range []int{0, 10, 8 << 20, 20 << 20} {
		for _, cause := range []error{errReader, io.ErrUnexpectedEOF} {
			broken := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(cause))
			_, err := s.Upload(t.Context(), "u/broken", broken)
			require.ErrorIs(t, err, cause, "after %d bytes", size)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Upload(ctx, "u/broken", io.MultiReader(bytes.NewReader(make([]byte, 20<<20)), cancelling(cancel), bytes.NewReader(make([]byte, 20<<20))))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, listed(t, s, "", ""), "nothing of a broken upload appears")
	put(t, s, "u/kept", "old")
	_, err = s.Upload(t.Context(), "u/kept", io.MultiReader(strings.NewReader("new"), iotest.ErrReader(errReader)))
	require.ErrorIs(t, err, errReader)
	data, _, err := s.Get(t.Context(), "u/kept")
	require.NoError(t, err)
	require.Equal(t, "old", string(data), "a broken upload leaves what was there")
}

// cancelling ends a context when a reader comes to it.
type cancelling context.CancelFunc

func (c cancelling) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}

func remove(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	put(t, s, "a/1", "x")
	put(t, s, "a/2", "x")
	put(t, s, "ab/1", "x")
	failed, err := s.Delete(ctx, []string{"a/1", "a/none", "none/none"})
	require.NoError(t, err)
	require.Empty(t, failed)
	require.Equal(t, []string{"a/2", "ab/1"}, listed(t, s, "", ""))
	failed, err = s.Delete(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, failed)
}

// removeNone: what is above an object is none itself, so that it counts as removed and takes nothing with it.
func removeNone(t *testing.T, s objstore.Store) {
	put(t, s, "a/b/1", "x")
	failed, err := s.Delete(t.Context(), []string{"a", "a/b", "a/b/1/none"})
	require.NoError(t, err)
	require.Empty(t, failed)
	require.Equal(t, []string{"a/b/1"}, listed(t, s, "", ""))
}

func clock(t *testing.T, s objstore.Store) {
	now, err := s.Now(t.Context())
	require.NoError(t, err)
	put(t, s, "fresh", "x")
	o, err := s.Stat(t.Context(), "fresh")
	require.NoError(t, err)
	require.WithinDuration(t, now, o.Modified, time.Minute)
}

func cancelled(t *testing.T, s objstore.Store) {
	put(t, s, "a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"put":           func() error { return s.Put(ctx, "b", nil) },
		"put if absent": func() error { return s.PutIfAbsent(ctx, "b", nil) },
		"upload":        func() error { _, err := s.Upload(ctx, "b", strings.NewReader("b")); return err },
		"stat":          func() error { _, err := s.Stat(ctx, "a"); return err },
		"get":           func() error { _, _, err := s.Get(ctx, "a"); return err },
		"get range":     func() error { _, err := s.GetRange(ctx, "a", 0, 1); return err },
		"get tail":      func() error { _, _, err := s.GetTail(ctx, "a", 1); return err },
		"folders":       func() error { _, err := s.Folders(ctx, ""); return err },
		"delete":        func() error { _, err := s.Delete(ctx, []string{"a"}); return err },
		"list": func() error {
			var last error
			for _, err := range s.List(ctx, "", "") {
				last = err
			}
			return last
		},
	} {
		require.ErrorIs(t, call(), context.Canceled, name)
	}
	require.Equal(t, []string{"a"}, listed(t, s, "", ""))
}

// ownership: the store keeps no slice of the caller's and hands out none of its own.
func ownership(t *testing.T, s objstore.Store) {
	ctx := t.Context()
	mine := []byte("mine")
	require.NoError(t, s.Put(ctx, "a", mine))
	require.NoError(t, s.PutIfAbsent(ctx, "b", mine))
	clear(mine)
	for _, key := range []string{"a", "b"} {
		whole, _, err := s.Get(ctx, key)
		require.NoError(t, err)
		part, err := s.GetRange(ctx, key, 0, 4)
		require.NoError(t, err)
		tail, _, err := s.GetTail(ctx, key, 4)
		require.NoError(t, err)
		for _, got := range [][]byte{whole, part, tail} {
			require.Equal(t, "mine", string(got))
			clear(got)
		}
		again, _, err := s.Get(ctx, key)
		require.NoError(t, err)
		require.Equal(t, "mine", string(again))
	}
}

// order: bytes decide, so that a slash comes before a letter, and what startAfter leaves out does not hang on the order.
func order(t *testing.T, s objstore.Store) {
	all := []string{"a!b", "a-b/x", "a.b", "a/x", "a0/x", "aZ", "a_", "ä/x"}
	for _, key := range all {
		put(t, s, key, "x")
	}
	require.Equal(t, all, listed(t, s, "", ""))
	for i, key := range all {
		require.ElementsMatch(t, all[i+1:], listed(t, s, "", key))
	}
	require.Equal(t, []string{"a-b/x", "a.b", "a/x", "a0/x", "aZ", "a_", "ä/x"}, listed(t, s, "", "a-"), "it need not be a key")
	require.Empty(t, listed(t, s, "a/", "a0"))
	require.Equal(t, []string{"a/x"}, listed(t, s, "a/", "A"))
	folders, err := s.Folders(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a-b", "a0", "ä"}, folders)
}

// names: keys are bytes to the store, whatever they look like.
func names(t *testing.T, s objstore.Store) {
	all := []string{"data/ä b+c%20.lance", " /x", "plus+/equals=", "-dash", "...", "data/.hidden", "data/a&amp;b<>'\"", "data/percent%2Fslash", "x/日本", "x/q?a=b&c#d", "x/‘quote’", "x/~tilde"}
	for _, key := range all {
		put(t, s, key, key)
	}
	require.ElementsMatch(t, all, listed(t, s, "", ""))
	for _, key := range all {
		data, _, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, key, string(data))
	}
	failed, err := s.Delete(t.Context(), all)
	require.NoError(t, err)
	require.Empty(t, failed)
	require.Empty(t, listed(t, s, "", ""))
}
