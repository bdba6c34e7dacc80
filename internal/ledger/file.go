package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"lancekeeper/internal/durable"
)

const (
	fileEnding = ".ledger.json"
	// fileRetry is how often a file that another process is about to replace is tried again.
	fileRetry = 5 * time.Millisecond
)

// File keeps entries in a folder, one file a dataset.
type File struct {
	dir string
}

// NewFile returns a ledger on a folder, which is made with the first entry.
func NewFile(dir string) *File { return &File{dir: dir} }

// Begin notes that a pass begins and raises the fence. It returns the entry as the pass before left it, with the new
// generation, Started set, and Unfinished set if that pass was never recorded. An error of class ErrFenced if a later pass
// has begun.
func (f *File) Begin(ctx context.Context, dataset string, generation uint64, now time.Time, owner string) (Entry, error) {
	var entry Entry
	err := f.change(ctx, dataset, func(r record) (record, error) {
		next, ok := r.begun(Started{At: now.UTC(), Owner: owner, Generation: generation})
		if !ok {
			return record{}, fenced(dataset, r.Generation, generation)
		}
		var err error
		entry, err = next.entry()
		return next, err
	})
	return entry, err
}

// Save stores an entry. An error of class ErrFenced if a later pass has begun; *TooLargeError. Skips are not stored: they are
// counted by those who skip.
func (f *File) Save(ctx context.Context, e Entry) error {
	return f.change(ctx, e.Dataset, func(r record) (record, error) {
		if r.Generation != e.Generation {
			return record{}, fenced(e.Dataset, r.Generation, e.Generation)
		}
		next, err := encode(e)
		next.Skips, next.LastSkip = r.Skips, r.LastSkip
		return next, err
	})
}

// Skip counts a pass that found the lock held, and changes nothing else. It needs no lease.
func (f *File) Skip(ctx context.Context, dataset string, now time.Time, holder string) error {
	return f.change(ctx, dataset, func(r record) (record, error) {
		r.Skips++
		r.LastSkip = &Skip{At: now.UTC(), Holder: holder}
		return r, nil
	})
}

// Load returns an entry, and whether there is one.
func (f *File) Load(_ context.Context, dataset string) (Entry, bool, error) {
	r, found, err := f.read(f.path(dataset))
	if err != nil || !found {
		return Entry{Dataset: dataset}, false, err
	}
	e, err := r.entry()
	return e, err == nil, err
}

// List returns the datasets that have an entry, ascending.
func (f *File) List(context.Context) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(f.dir, "*"+fileEnding))
	if err != nil {
		return nil, fmt.Errorf("list the ledger %s: %w", f.dir, err)
	}
	names := []string{}
	for _, path := range paths {
		r, found, err := f.read(path)
		if err != nil {
			return nil, err
		}
		if found {
			names = append(names, r.Dataset)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (f *File) path(dataset string) string {
	return filepath.Join(f.dir, durable.Name(dataset)+fileEnding)
}

func (f *File) read(path string) (record, bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, fmt.Errorf("read the ledger: %w", err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, false, fmt.Errorf("read the ledger %s: %w", path, err)
	}
	return r, true, nil
}

// change reads a record, changes it, and replaces it, while no other process does.
func (f *File) change(ctx context.Context, dataset string, change func(record) (record, error)) (err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	path := f.path(dataset)
	guard := flock.New(path + ".lock")
	if _, err := guard.TryLockContext(ctx, fileRetry); err != nil {
		return fmt.Errorf("write the ledger %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	r, _, err := f.read(path)
	if err != nil {
		return err
	}
	r.Dataset = dataset
	if r, err = change(r); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the ledger %s: %w", path, err)
	}
	return durable.WriteFile(path, data)
}
