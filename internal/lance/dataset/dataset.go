// Package dataset is the read side of a table on a store: its versions, manifests, references, and which files a version
// names.
package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

// ErrNotDataset is the class of *NotDatasetError.
var ErrNotDataset = errors.New("not a Lance dataset")

// NotDatasetError says that a place holds no version.
type NotDatasetError struct {
	URI    string
	Detail string
}

// Error names the place and what is there instead.
func (e *NotDatasetError) Error() string {
	return fmt.Sprintf("%s is not a Lance dataset: %s", e.URI, e.Detail)
}

// Is reports that the error is of class ErrNotDataset.
func (e *NotDatasetError) Is(target error) bool { return target == ErrNotDataset }

// Version is one manifest as a listing shows it. Modified is the store's clock.
type Version struct {
	Number   uint64
	Key      string
	Size     int64
	Modified time.Time
	ETag     string
}

// Listing is the content of the manifest folder.
type Listing struct {
	Scheme    manifest.Scheme
	Versions  []Version // attached, ascending; never empty
	Detached  []Version
	Staging   []objstore.Object
	Temporary []objstore.Object
	Other     []objstore.Object // foreign names
	Hint      *objstore.Object
}

// List reads the manifest folder once. Versions are counted from exact names only. *NotDatasetError without any version;
// ErrUnsupported where both naming schemes are mixed.
func List(ctx context.Context, store objstore.Store) (*Listing, error) {
	l := &Listing{}
	for o, err := range store.List(ctx, manifest.Folder, "") {
		if err != nil {
			return nil, fmt.Errorf("list the versions of %s: %w", store.URI(), err)
		}
		if err := l.add(o); err != nil {
			return nil, err
		}
	}
	if len(l.Versions) == 0 {
		return nil, notDataset(ctx, store)
	}
	byNumber := func(a, b Version) int { return cmp.Compare(a.Number, b.Number) }
	slices.SortFunc(l.Versions, byNumber)
	slices.SortFunc(l.Detached, byNumber)
	return l, nil
}

func (l *Listing) add(o objstore.Object) error {
	base := strings.TrimPrefix(o.Key, manifest.Folder)
	name := manifest.Name{}
	if !strings.Contains(base, "/") {
		name = manifest.ParseName(base)
	}
	version := Version{Number: name.Version, Key: o.Key, Size: o.Size, Modified: o.Modified, ETag: o.ETag}
	switch name.Kind {
	case manifest.Attached:
		if l.Scheme != 0 && l.Scheme != name.Scheme {
			return lance.Unsupported("manifest naming", "of both schemes in one folder", o.Key)
		}
		l.Scheme = name.Scheme
		l.Versions = append(l.Versions, version)
	case manifest.Detached:
		l.Detached = append(l.Detached, version)
	case manifest.Staging:
		l.Staging = append(l.Staging, o)
	case manifest.Temporary:
		l.Temporary = append(l.Temporary, o)
	case manifest.Hint:
		l.Hint = &o
	case manifest.Other:
		l.Other = append(l.Other, o)
	}
	return nil
}

// notDataset says what stands at a place that has no version.
func notDataset(ctx context.Context, store objstore.Store) error {
	folders, err := store.Folders(ctx, "")
	if err != nil {
		return fmt.Errorf("look at %s, which has no version: %w", store.URI(), err)
	}
	detail := "there is nothing at this place"
	switch {
	case slices.Contains(folders, path.Clean(manifest.Folder)):
		detail = "its folder " + manifest.Folder + " holds no manifest"
	case len(folders) > 0:
		detail = "it has no folder " + manifest.Folder
	default:
		for _, err := range store.List(ctx, "", "") {
			if err != nil {
				return fmt.Errorf("look at %s, which has no version: %w", store.URI(), err)
			}
			detail = "it has no folder " + manifest.Folder
			break
		}
	}
	return &NotDatasetError{URI: store.URI(), Detail: detail}
}

// Latest finds the newest version: on ordered stores with V2 names the first name that parses, otherwise the highest of a
// whole listing (lance-table src/io/commit.rs:resolve_version_from_listing). Errors as for List.
func Latest(ctx context.Context, store objstore.Store) (Version, manifest.Scheme, error) {
	if store.Ordered() {
		staged := stagedAhead{}
		for o, err := range store.List(ctx, manifest.Folder, "") {
			if err != nil {
				return Version{}, 0, fmt.Errorf("list the versions of %s: %w", store.URI(), err)
			}
			name := manifest.ParseName(strings.TrimPrefix(o.Key, manifest.Folder))
			staged.note(o.Key, name)
			if name.Kind != manifest.Attached {
				continue
			}
			if name.Scheme == manifest.V2 {
				if err := staged.check(name.Version); err != nil {
					return Version{}, 0, err
				}
				return Version{Number: name.Version, Key: o.Key, Size: o.Size, Modified: o.Modified, ETag: o.ETag}, name.Scheme, nil
			}
			break
		}
	}
	l, err := List(ctx, store)
	if err != nil {
		return Version{}, 0, err
	}
	latest := l.Versions[len(l.Versions)-1]
	if store.Ordered() {
		staged := stagedAhead{}
		for _, o := range l.Staging {
			staged.note(o.Key, manifest.ParseName(strings.TrimPrefix(o.Key, manifest.Folder)))
		}
		if err := staged.check(latest.Number); err != nil {
			return Version{}, 0, err
		}
	}
	return latest, l.Scheme, nil
}

// stagedAhead looks for a staged manifest above the latest version. On S3 only writers with an external manifest store stage
// manifests: one that stands above all others is a version that the store may have already, and the bucket does not show. A
// dataset that is opened through its store shows none (package manifeststore).
type stagedAhead struct {
	version uint64
	key     string
}

func (s *stagedAhead) note(key string, name manifest.Name) {
	if name.Kind == manifest.Staging && name.Scheme != 0 && name.Version > s.version {
		s.version, s.key = name.Version, key
	}
}

func (s *stagedAhead) check(latest uint64) error {
	if s.version <= latest {
		return nil
	}
	return lance.Unsupported("commit protocol", fmt.Sprintf("version %d is staged above version %d: the dataset seems to have an external manifest store; "+
		"name it as s3+ddb://bucket/path?ddbTableName=TABLE", s.version, latest), s.key)
}

// ReadManifest reads one version whole. ErrCorrupt with key and size where it is damaged, or is not the version that its name
// says; objstore.ErrNotExist where it is gone.
func ReadManifest(ctx context.Context, store objstore.Store, v Version) (*manifest.Manifest, error) {
	data, _, err := store.Get(ctx, v.Key)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", v.Key, err)
	}
	m, err := manifest.Decode(v.Key, data)
	if err != nil {
		return nil, fmt.Errorf("decode manifest of version %d: %w", v.Number, err)
	}
	if m.GetVersion() != v.Number {
		return nil, lance.Corrupt(v.Key, "it says that it is version %d, its name says %d", m.GetVersion(), v.Number)
	}
	return m, nil
}
