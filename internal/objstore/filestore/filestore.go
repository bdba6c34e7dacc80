// Package filestore keeps objects as files of a folder on a local disk.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lancekeeper/internal/objstore"
)

// Store is an objstore.Store on a folder. Symbolic links below it are not listed, and none leads out of it.
type Store struct {
	path string   // absolute, as given
	root *os.Root // every operation goes through it
}

// Open returns a store on an existing folder. objstore.ErrNotExist if there is none; nothing is made.
func Open(path string) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open folder %s: %w", path, err)
	}
	root, err := os.OpenRoot(absolute)
	if err != nil {
		return nil, fmt.Errorf("open folder %s: %w", absolute, classify(err))
	}
	return &Store{path: absolute, root: root}, nil
}

// URI is the folder's absolute path.
func (s *Store) URI() string { return s.path }

// Ordered is false: folders list in any order.
func (s *Store) Ordered() bool { return false }

// Now is this machine's clock, which is also the disk's.
func (s *Store) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// classify gives an error of the file system the store's class.
func classify(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %w", objstore.ErrNotExist, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %w", objstore.ErrExists, err)
	}
	return err
}

// name is a key, or a prefix, as the file system spells it; "" is the root itself.
func name(key string) string {
	if key = strings.TrimSuffix(key, "/"); key == "" {
		return "."
	}
	return filepath.FromSlash(key)
}

func describe(key string, info fs.FileInfo) objstore.Object {
	o := objstore.Object{Key: key, Size: info.Size(), Modified: info.ModTime()}
	var inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	o.ETag = strconv.FormatUint(inode, 16) + "-" + strconv.FormatInt(info.ModTime().UnixNano(), 16) + "-" + strconv.FormatInt(info.Size(), 16)
	return o
}

// List walks the folder, a batch of names at a time.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		if err := objstore.CheckPrefix(prefix); err != nil {
			yield(objstore.Object{}, err)
			return
		}
		w := walk{store: s, ctx: ctx, startAfter: startAfter, yield: yield}
		if err := w.folder(prefix); err != nil && !errors.Is(err, errStop) {
			yield(objstore.Object{}, fmt.Errorf("list %s/%s: %w", s.path, prefix, err))
		}
	}
}

// errStop ends a walk whose reader wants no more.
var errStop = errors.New("stop")

type walk struct {
	store      *Store
	ctx        context.Context //nolint:containedctx // lives as long as one List
	startAfter string
	yield      func(objstore.Object, error) bool
}

const namesAtOnce = 1024

func (w *walk) folder(prefix string) error {
	dir, err := w.store.folder(prefix)
	if err != nil || dir == nil {
		return err
	}
	var folders []string
	err = w.entries(dir, prefix, &folders)
	if closed := dir.Close(); err == nil && closed != nil {
		err = closed
	}
	if err != nil {
		return err
	}
	for _, f := range folders {
		if err := w.folder(f); err != nil {
			return err
		}
	}
	return nil
}

// folder opens a folder for reading; nil if there is none.
func (s *Store) folder(prefix string) (*os.File, error) {
	info, err := s.root.Lstat(name(prefix))
	if err == nil && !info.IsDir() {
		return nil, nil //nolint:nilnil // a file, or a link: nothing is below it
	}
	var dir *os.File
	if err == nil {
		dir, err = s.root.Open(name(prefix))
	}
	if err = classify(err); errors.Is(err, objstore.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing is below it, or it vanished
	}
	return dir, err
}

func (w *walk) entries(dir *os.File, prefix string, folders *[]string) error {
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		batch, err := dir.ReadDir(namesAtOnce)
		for _, entry := range batch {
			if err := w.entry(entry, prefix, folders); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return classify(err)
		}
	}
}

func (w *walk) entry(entry fs.DirEntry, prefix string, folders *[]string) error {
	key := prefix + entry.Name()
	switch {
	case entry.IsDir():
		*folders = append(*folders, key+"/")
		return nil
	case !entry.Type().IsRegular(), key <= w.startAfter, objstore.CheckKey(key) != nil:
		return nil //nolint:nilerr // no object of ours, whatever is wrong with its name
	}
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it vanished while the folder was read
	}
	if err != nil {
		return classify(err)
	}
	if !w.yield(describe(key, info), nil) {
		return errStop
	}
	return nil
}

// Folders are the names of the folders below prefix.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	if err := objstore.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list the folders of %s/%s: %w", s.path, prefix, err)
	}
	dir, err := s.folder(prefix)
	if err != nil {
		return nil, fmt.Errorf("list the folders of %s/%s: %w", s.path, prefix, err)
	}
	if dir == nil {
		return nil, nil
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("list the folders of %s/%s: %w", s.path, prefix, classify(err))
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && objstore.CheckKey(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Stat looks up one file.
func (s *Store) Stat(ctx context.Context, key string) (objstore.Object, error) {
	if err := begin(ctx, "stat", key); err != nil {
		return objstore.Object{}, err
	}
	info, err := s.root.Lstat(name(key))
	if err != nil {
		return objstore.Object{}, fmt.Errorf("stat %s: %w", key, classify(err))
	}
	if !info.Mode().IsRegular() {
		return objstore.Object{}, fmt.Errorf("stat %s: %w: it is no regular file", key, objstore.ErrNotExist)
	}
	return describe(key, info), nil
}

// begin checks key and context before an operation.
func begin(ctx context.Context, what, key string) error {
	if err := objstore.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", what, key, err)
	}
	return nil
}

// open opens a regular file for reading.
func (s *Store) open(ctx context.Context, key string) (*os.File, fs.FileInfo, error) {
	if err := begin(ctx, "get", key); err != nil {
		return nil, nil, err
	}
	if _, err := s.Stat(ctx, key); err != nil {
		return nil, nil, err
	}
	f, err := s.root.Open(name(key))
	if err != nil {
		return nil, nil, fmt.Errorf("get %s: %w", key, classify(err))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: it is no regular file", objstore.ErrNotExist)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("get %s: %w", key, classify(err))
	}
	return f, info, nil
}

// Get reads a whole file.
func (s *Store) Get(ctx context.Context, key string) ([]byte, objstore.Object, error) {
	f, info, err := s.open(ctx, key)
	if err != nil {
		return nil, objstore.Object{}, err
	}
	defer func() { _ = f.Close() }()
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, objstore.Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	return data, describe(key, info), nil
}

// GetRange reads exactly length bytes.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	f, info, err := s.open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if offset < 0 || length < 0 || offset > info.Size() || length > info.Size()-offset {
		return nil, fmt.Errorf("get %s bytes %d+%d of %d: %w", key, offset, length, info.Size(), io.ErrUnexpectedEOF)
	}
	data := make([]byte, length)
	if _, err := f.ReadAt(data, offset); err != nil && (!errors.Is(err, io.EOF) || length > 0) {
		return nil, fmt.Errorf("get %s bytes %d+%d: %w", key, offset, length, err)
	}
	return data, nil
}

// GetTail reads the last bytes.
func (s *Store) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	f, info, err := s.open(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	tail := make([]byte, min(max(n, 0), info.Size()))
	if len(tail) == 0 {
		return tail, info.Size(), nil
	}
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return nil, 0, fmt.Errorf("get the tail of %s: %w", key, err)
	}
	return tail, info.Size(), nil
}
