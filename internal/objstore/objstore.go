// Package objstore is the one small interface through which everything else reads and writes objects.
package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Classes of error. Implementations wrap them with the operation and the key.
var (
	ErrNotExist  = errors.New("object does not exist")
	ErrExists    = errors.New("object exists")
	ErrThrottled = errors.New("throttled by the store")
	ErrDenied    = errors.New("access denied by the store")
	// ErrAmbiguous: a conditional put ended without a clear answer (time-out, reset, 5xx, or a refusal that a retry of
	// our own may have caused). The object may or may not be there, and may or may not be ours: read it back.
	ErrAmbiguous = errors.New("outcome of the write is not known")
)

// Object is what a listing says of one object.
type Object struct {
	Key      string    // relative to the store's root, slash-separated, no leading slash
	Size     int64     // bytes
	Modified time.Time // by the store's clock
	ETag     string    // changes with the content; empty where the store has none
}

// KeyError is a delete that failed for one key. Code is the store's own word for the reason.
type KeyError struct {
	Key  string
	Code string
	Err  error
}

// Error names the key and the reason.
func (e KeyError) Error() string { return fmt.Sprintf("delete %s: %s: %v", e.Key, e.Code, e.Err) }

// Unwrap returns the class of the failure.
func (e KeyError) Unwrap() error { return e.Err }

// Store is a flat space of objects below one root. All keys are relative to it; CheckKey holds for every key that goes
// in or out, so nothing outside the root can be named. Implementations retry what is worth retrying and slow down when
// throttled, within the context. Every implementation passes storetest.Run.
type Store interface {
	// URI names the root for people, without a trailing slash.
	URI() string
	// List yields every object whose key begins with prefix, at any depth. prefix is "" or ends in a slash.
	// The order is ascending by key (byte-wise) where Ordered is true, else arbitrary. startAfter, if not empty,
	// leaves out keys that are not greater (also on unordered stores). An error is yielded once, as the last pair.
	// A prefix with nothing below it yields nothing.
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error]
	// Folders returns the names (no slashes) of the folders directly below prefix ("" or ending in a slash), ascending.
	Folders(ctx context.Context, prefix string) ([]string, error)
	// Ordered says whether List ascends by key, as S3 general purpose buckets do and disks do not.
	Ordered() bool
	// Stat looks up one object; ErrNotExist.
	Stat(ctx context.Context, key string) (Object, error)
	// Get reads a whole object; ErrNotExist. The bytes are the caller's.
	Get(ctx context.Context, key string) ([]byte, Object, error)
	// GetRange reads exactly length bytes from offset; fewer is an error (io.ErrUnexpectedEOF).
	GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error)
	// GetTail reads the last min(n, size) bytes in one request, and the object's true size. An empty object is no error.
	GetTail(ctx context.Context, key string, n int64) (tail []byte, size int64, err error)
	// Put writes or replaces a whole object atomically.
	Put(ctx context.Context, key string, data []byte) error
	// PutIfAbsent writes a whole object atomically and durably if the key is free; ErrExists if it is surely another's
	// or was there before the first attempt; ErrAmbiguous if it can't be known who wrote what is there, or whether it is.
	PutIfAbsent(ctx context.Context, key string, data []byte) error
	// Upload streams r to a new object (multipart where large) and returns the bytes written. The object appears only
	// when all of it is there. If r returns an error nothing appears, and that error is returned.
	Upload(ctx context.Context, key string, r io.Reader) (int64, error)
	// Delete removes objects, any number, in the store's batches. A key that is not there counts as removed. Keys that
	// could not be removed after retries are returned one by one; err is for a failure as a whole (then what was not
	// reported as failed may or may not be gone).
	Delete(ctx context.Context, keys []string) (failed []KeyError, err error)
	// Now is the store's clock, as good as can be known (one request at most, none after a listing).
	Now(ctx context.Context) (time.Time, error)
}

// Copier is what a store has that can copy an object without reading it. The copy appears whole or not at all, and replaces what
// is there; ErrNotExist where the source is gone.
type Copier interface {
	Copy(ctx context.Context, from, to string) error
}

// Hider is what a store has whose deletes may free nothing: a bucket with versioning only hides what is deleted behind markers.
// Hides says whether a delete so far did so.
type Hider interface{ Hides() bool }

// As finds an ability of a store, or of the one that it is made from (its method Unwrap), where no key is concerned.
func As[T any](s Store) (ability T, found bool) {
	for s != nil {
		if ability, found = s.(T); found {
			return ability, true
		}
		outer, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = outer.Unwrap()
	}
	return ability, false
}

// CheckKey refuses keys that are empty, absolute, climb out of the root, or have empty or dot segments.
func CheckKey(key string) error {
	if key == "" {
		return errors.New("empty object key")
	}
	if strings.ContainsRune(key, 0) || strings.ContainsRune(key, '\\') {
		return fmt.Errorf("object key %q has a character that is not allowed", key)
	}
	for segment := range strings.SplitSeq(key, "/") {
		switch segment {
		case "", ".", "..":
			return fmt.Errorf("object key %q has a segment %q", key, segment)
		}
	}
	return nil
}

// CheckPrefix refuses prefixes that are neither empty nor a checked key with a slash behind it.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	trimmed, ok := strings.CutSuffix(prefix, "/")
	if !ok {
		return fmt.Errorf("listing prefix %q does not end in a slash", prefix)
	}
	return CheckKey(trimmed)
}
