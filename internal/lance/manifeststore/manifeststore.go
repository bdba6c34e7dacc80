// Package manifeststore is a dataset's store where an external table, and not the bucket, decides which versions there are.
//
// The protocol is the official one (lance-table src/io/commit/external_manifest.rs): a manifest is staged under
// `<final name>-<uuid>`, its version is claimed by a conditional row that names the staged object, the object is copied to its
// final name, the row is pointed at that, and the staged object is deleted. Whoever finds a version between two of these steps
// finishes it. Reading never writes: a staged latest version is shown under its final name.
package manifeststore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

// Row is one version as the table has it.
type Row struct {
	Version uint64
	Path    string // of the manifest below the dataset's root: its final key, or a staged one
	Size    int64  // bytes; 0 is not known
}

// Table is the external table's part of one dataset. Reads see every write that came before. Claim returns an error of class
// objstore.ErrExists where there is a row already; any other error of a write leaves open whether it was done.
type Table interface {
	Latest(ctx context.Context) (row Row, found bool, err error)
	Row(ctx context.Context, version uint64) (row Row, found bool, err error)
	Rows(ctx context.Context, first, last uint64) ([]Row, error) // ascending
	Claim(ctx context.Context, row Row) error                    // writes a row where there is none
	Repoint(ctx context.Context, row Row) error                  // replaces a row that is there
	Forget(ctx context.Context, row Row) error                   // removes a row, if it still names that path
}

// Store is an objstore.Store of a dataset with an external table. Make it with New.
type Store struct {
	objstore.Store
	copier objstore.Copier
	table  Table
	uri    string

	mu     sync.Mutex
	listed map[uint64]struct{} // attached versions of the last whole listing; nil before
}

// New returns the store of a dataset: objects lie in inner, rooted at the dataset, versions are decided by table. uri names
// it for people. ErrUnsupported where inner can't copy objects.
func New(inner objstore.Store, table Table, uri string) (*Store, error) {
	copier, ok := inner.(objstore.Copier)
	if !ok {
		return nil, lance.Unsupported("external manifest store", "on a store that can't copy objects", uri)
	}
	return &Store{Store: inner, copier: copier, table: table, uri: uri}, nil
}

// URI names the dataset with its scheme.
func (s *Store) URI() string { return s.uri }

// Unwrap is the bucket's store.
func (s *Store) Unwrap() objstore.Store { return s.Store }

// finalOf is the final key of a row's manifest; staged says whether it has not come there yet, as far as the row knows.
func finalOf(r Row) (final string, staged bool, err error) {
	name := manifest.Name{}
	if base, ok := strings.CutPrefix(r.Path, manifest.Folder); ok && !strings.Contains(base, "/") {
		name = manifest.ParseName(base)
	}
	if name.Version != r.Version || name.Scheme == 0 {
		return "", false, lance.Unsupported("external manifest store", fmt.Sprintf("row of version %d names %q", r.Version, r.Path), "")
	}
	return manifest.Key(name.Version, name.Scheme), name.Kind == manifest.Staging, nil
}

// attached is the version that a key stands for.
func attached(key string) (uint64, bool) {
	base, ok := strings.CutPrefix(key, manifest.Folder)
	if !ok || strings.Contains(base, "/") {
		return 0, false
	}
	name := manifest.ParseName(base)
	return name.Version, name.Kind == manifest.Attached
}

// staging is the version that a staged manifest is meant for.
func staging(key string) (uint64, bool) {
	base, ok := strings.CutPrefix(key, manifest.Folder)
	if !ok || strings.Contains(base, "/") {
		return 0, false
	}
	name := manifest.ParseName(base)
	return name.Version, name.Kind == manifest.Staging && name.Scheme != 0
}

// latest is the newest row. A dataset without one has not been written through the table, or the table is another's.
func (s *Store) latest(ctx context.Context) (Row, error) {
	row, found, err := s.table.Latest(ctx)
	if err != nil {
		return Row{}, fmt.Errorf("ask the table for the latest version of %s: %w", s.uri, err)
	}
	if !found {
		return Row{}, lance.Unsupported("external manifest store", "that knows no version of the dataset: nothing was written through it yet, or the table is another", s.uri)
	}
	return row, nil
}

// PutIfAbsent publishes a manifest through the table; anything else goes to the bucket as it is.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	version, ok := attached(key)
	if !ok {
		return s.Store.PutIfAbsent(ctx, key, data) //nolint:wrapcheck // the bucket's own
	}
	if err := s.mayFollow(ctx, version); err != nil {
		return err
	}
	row := Row{Version: version, Path: key + "-" + uuid.NewString(), Size: int64(len(data))}
	if err := s.Put(ctx, row.Path, data); err != nil {
		return fmt.Errorf("stage version %d: %w", version, err)
	}
	if err := s.claim(ctx, row); err != nil {
		return err
	}
	// The version is ours from here on: whoever reads it next finishes it, if this does not.
	if err := s.publish(ctx, row); err != nil {
		return fmt.Errorf("publish version %d: %w: %w", version, objstore.ErrAmbiguous, err)
	}
	_ = s.repoint(ctx, row) // published it is; the row is mended by whoever comes next
	return nil
}

// mayFollow finishes the latest version where a writer left it staged, and says whether the given one comes next.
func (s *Store) mayFollow(ctx context.Context, version uint64) error {
	latest, err := s.finished(ctx)
	switch {
	case err != nil:
		return err
	case latest.Version >= version:
		return fmt.Errorf("version %d: %w: the table has version %d", version, objstore.ErrExists, latest.Version)
	case latest.Version+1 < version:
		return s.strange(version-1, latest)
	}
	return nil
}

// strange: the bucket has a version that the table does not know.
func (s *Store) strange(version uint64, latest Row) error {
	return lance.Unsupported("external manifest store", fmt.Sprintf("behind the bucket: version %d is there and the table ends at %d, so somebody has written without the table", version, latest.Version), s.uri)
}

// finished is the latest row, after its version was published.
func (s *Store) finished(ctx context.Context) (Row, error) {
	row, err := s.latest(ctx)
	if err != nil {
		return Row{}, err
	}
	_, staged, err := finalOf(row)
	if err != nil || !staged {
		return row, err
	}
	if err := s.publish(ctx, row); err != nil {
		return Row{}, fmt.Errorf("finish version %d, which another left staged: %w", row.Version, err)
	}
	if err := s.repoint(ctx, row); err != nil {
		return Row{}, fmt.Errorf("finish version %d, which another left staged: %w", row.Version, err)
	}
	return row, nil
}

// claim writes the row that decides the race. After any answer but success the row tells whose the version is.
func (s *Store) claim(ctx context.Context, row Row) error {
	claimed := s.table.Claim(ctx, row)
	if claimed == nil {
		return nil
	}
	now, found, err := s.table.Row(ctx, row.Version)
	switch {
	case err != nil:
		return fmt.Errorf("claim version %d: %w: %w", row.Version, objstore.ErrAmbiguous, errors.Join(claimed, err))
	case !found: // it may still come
		return fmt.Errorf("claim version %d: %w: %w", row.Version, objstore.ErrAmbiguous, claimed)
	case s.same(now, row):
		return nil
	}
	_, _ = s.Store.Delete(ctx, []string{row.Path}) // what stays is removed as staged manifests are, when it is old
	return fmt.Errorf("claim version %d: %w: the table names %s", row.Version, objstore.ErrExists, now.Path)
}

func (s *Store) same(a, b Row) bool { return a.Path == b.Path }

// publish copies a staged manifest to its final name. One that is gone has been published by another.
func (s *Store) publish(ctx context.Context, row Row) error {
	final, _, err := finalOf(row)
	if err != nil {
		return err
	}
	copied := s.copier.Copy(ctx, row.Path, final)
	if copied != nil && !errors.Is(copied, objstore.ErrNotExist) {
		return fmt.Errorf("copy %s to its final name: %w", row.Path, copied)
	}
	o, err := s.Store.Stat(ctx, final)
	if err != nil {
		return fmt.Errorf("look at %s: %w", final, errors.Join(err, copied))
	}
	if row.Size != 0 && o.Size != row.Size {
		return lance.Corrupt(final, "has %d bytes, and the table says %d", o.Size, row.Size)
	}
	return nil
}

// repoint has the row of a published version name its final key, and removes the staged object.
func (s *Store) repoint(ctx context.Context, row Row) error {
	final, staged, err := finalOf(row)
	if err != nil || !staged {
		return err
	}
	if err := s.table.Repoint(ctx, Row{Version: row.Version, Path: final, Size: row.Size}); err != nil {
		return fmt.Errorf("point version %d at its final manifest: %w", row.Version, err)
	}
	_, err = s.Store.Delete(ctx, []string{row.Path})
	if err != nil {
		return fmt.Errorf("remove staged manifest %s: %w", row.Path, err)
	}
	return nil
}
