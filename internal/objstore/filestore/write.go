package filestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"lancekeeper/internal/objstore"
)

// temporaryPrefix begins the names of files under way; the official clean-up sweeps such names too, once they are old.
const temporaryPrefix = ".tmp_"

// Put writes or replaces a file atomically and durably.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	_, err := s.write(ctx, key, bytes.NewReader(data), s.root.Rename)
	return err
}

// PutIfAbsent writes a new file atomically and durably. The name is claimed by a hard link, which fails where there is one.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	_, err := s.write(ctx, key, bytes.NewReader(data), func(from, to string) error {
		if err := s.root.Link(from, to); err != nil {
			return err
		}
		_ = s.root.Remove(from) // a second name of the same file: a clean-up takes it when it is old
		return nil
	})
	return err
}

// Upload streams r to a file that appears when all of it is there.
func (s *Store) Upload(ctx context.Context, key string, r io.Reader) (int64, error) {
	return s.write(ctx, key, r, s.root.Rename)
}

// createAttempts: the clean-up of empty folders can take a folder away just before the first file is in it.
const createAttempts = 32

// write fills a temporary file beside the final name, makes it durable, and publishes it.
func (s *Store) write(ctx context.Context, key string, r io.Reader, publish func(from, to string) error) (int64, error) {
	if err := begin(ctx, "put", key); err != nil {
		return 0, err
	}
	final := name(key)
	f, temporary, err := s.create(filepath.Dir(final))
	if err != nil {
		return 0, fmt.Errorf("put %s: %w", key, classify(err))
	}
	n, err := fill(ctx, f, r)
	if err == nil {
		err = publish(temporary, final)
	}
	if err != nil {
		_ = s.root.Remove(temporary)
		return 0, fmt.Errorf("put %s: %w", key, classify(err))
	}
	if err := s.syncFolder(filepath.Dir(final)); err != nil {
		return n, fmt.Errorf("put %s: make it durable: %w: %w", key, objstore.ErrAmbiguous, err)
	}
	return n, nil
}

// create opens a new temporary file in a folder, which it makes if need be.
func (s *Store) create(folder string) (*os.File, string, error) {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, "", err
	}
	temporary := filepath.Join(folder, temporaryPrefix+hex.EncodeToString(id[:]))
	for attempt := 1; ; attempt++ {
		there := s.nearest(folder)
		err := s.root.MkdirAll(folder, 0o777)
		var f *os.File
		if err == nil {
			f, err = s.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		}
		if err == nil {
			if err = s.syncBetween(there, folder); err == nil {
				return f, temporary, nil
			}
			_ = f.Close()
			_ = s.root.Remove(temporary)
		}
		if attempt == createAttempts || !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
	}
}

// nearest is the deepest folder at or above this one that is there.
func (s *Store) nearest(folder string) string {
	for folder != "." {
		if _, err := s.root.Lstat(folder); err == nil {
			break
		}
		folder = filepath.Dir(folder)
	}
	return folder
}

// syncBetween makes new folders durable, each in the one above, up to one that was there: a file is only as durable as its path.
// With a file in the lowest none of them can be taken away meanwhile.
func (s *Store) syncBetween(there, folder string) error {
	for folder != there {
		folder = filepath.Dir(folder)
		if err := s.syncFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

// writeBytes are written at once.
const writeBytes = 256 << 10

// fill writes all of r, makes it durable and closes.
func fill(ctx context.Context, f *os.File, r io.Reader) (int64, error) {
	n, err := io.CopyBuffer(struct{ io.Writer }{f}, &heedful{ctx: ctx, r: r}, make([]byte, writeBytes))
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return n, err
}

// heedful stops reading when the context ends.
type heedful struct {
	ctx context.Context //nolint:containedctx // lives as long as one write
	r   io.Reader
}

func (h *heedful) Read(p []byte) (int, error) {
	if err := h.ctx.Err(); err != nil {
		return 0, err
	}
	return h.r.Read(p)
}

// syncFolder makes the names in a folder durable, where the file system can.
func (s *Store) syncFolder(name string) error {
	dir, err := s.root.Open(name)
	if err != nil {
		return err
	}
	if err = dir.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if closed := dir.Close(); err == nil {
		err = closed
	}
	return err
}

// Delete removes files, and index folders that become empty. A failure of one file does not stop the next.
func (s *Store) Delete(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	for _, key := range keys {
		if err := objstore.CheckKey(key); err != nil {
			return nil, err
		}
	}
	var failed []objstore.KeyError
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return failed, fmt.Errorf("delete %s: %w", key, err)
		}
		if err := s.remove(key); err != nil {
			code := "Failed"
			if errors.Is(err, objstore.ErrDenied) {
				code = "AccessDenied"
			}
			failed = append(failed, objstore.KeyError{Key: key, Code: code, Err: err})
			continue
		}
		s.tidy(key)
	}
	return failed, nil
}

// remove removes a file or a link. A folder is no object, so there is nothing to remove.
func (s *Store) remove(key string) error {
	info, err := s.root.Lstat(name(key))
	if err == nil && !info.IsDir() {
		err = s.root.Remove(name(key))
	}
	if err = classify(err); errors.Is(err, objstore.ErrNotExist) {
		return nil
	}
	return err
}

// tidy removes the folders above a removed file that became empty, but never the first level below the root.
func (s *Store) tidy(key string) {
	for folder := path.Dir(key); strings.Contains(folder, "/"); folder = path.Dir(folder) {
		info, err := s.root.Lstat(name(folder))
		if err != nil || !info.IsDir() { // Remove takes files and links too
			return
		}
		if s.root.Remove(name(folder)) != nil {
			return
		}
	}
}
