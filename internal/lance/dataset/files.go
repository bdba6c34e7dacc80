package dataset

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/deletion"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

// DataFolder is where data files lie, below the dataset's root.
const DataFolder = "data/"

// Files are the objects that versions name, by full key; Indices holds index folders' uuids. Objects named through a base
// path, which lie below another root, are in Elsewhere, by the key that they would have below this one.
type Files struct {
	Keys      map[string]struct{} // data, overlay, deletion and transaction files
	Indices   map[string]struct{}
	Elsewhere *Files // nil if there are none
}

// NewFiles returns an empty set.
func NewFiles() *Files {
	return &Files{Keys: map[string]struct{}{}, Indices: map[string]struct{}{}}
}

// Add takes in everything that a manifest names. Error where a path leaves the root, or an index has no uuid.
func (f *Files) Add(object string, m *manifest.Manifest) error {
	for _, fragment := range m.GetFragments() {
		if err := f.AddFragment(object, fragment); err != nil {
			return err
		}
	}
	if name := m.GetTransactionFile(); name != "" {
		if err := f.key(object, TransactionFolder+name, nil); err != nil {
			return err
		}
	}
	for _, index := range m.Indices {
		id, err := indexmeta.ID(index)
		if err != nil {
			return fmt.Errorf("files of %s: %w", object, err)
		}
		f.at(index.BaseId).Indices[id] = struct{}{}
	}
	return nil
}

// AddFragment takes in the files of one fragment.
func (f *Files) AddFragment(object string, fragment *lancepb.DataFragment) error {
	for _, file := range fragment.GetFiles() {
		if err := f.key(object, DataFolder+file.GetPath(), file.BaseId); err != nil {
			return err
		}
	}
	for _, overlay := range fragment.GetOverlays() {
		if err := f.key(object, DataFolder+overlay.GetDataFile().GetPath(), overlay.GetDataFile().BaseId); err != nil {
			return err
		}
	}
	if d := fragment.GetDeletionFile(); d != nil {
		return f.key(object, deletion.Key(fragment.GetId(), d), d.BaseId)
	}
	return nil
}

func (f *Files) key(object, key string, base *uint32) error {
	if err := objstore.CheckKey(key); err != nil {
		return lance.Corrupt(object, "names a file that leaves the dataset: %v", err)
	}
	f.at(base).Keys[key] = struct{}{}
	return nil
}

func (f *Files) at(base *uint32) *Files {
	if base == nil {
		return f
	}
	if f.Elsewhere == nil {
		f.Elsewhere = NewFiles()
	}
	return f.Elsewhere
}

// ReadDeletions returns the deleted rows of a fragment, nil if it has none. ErrUnsupported for a deletion file below another
// base path.
func ReadDeletions(ctx context.Context, store objstore.Store, fragment *lancepb.DataFragment) (*roaring.Bitmap, error) {
	d := fragment.GetDeletionFile()
	if d == nil {
		return nil, nil //nolint:nilnil // no deletions are no error
	}
	key := deletion.Key(fragment.GetId(), d)
	if d.BaseId != nil {
		return nil, lance.Unsupported("deletion file", "below another base path", key)
	}
	data, _, err := store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read deletion file %s of fragment %d: %w", key, fragment.GetId(), err)
	}
	rows, err := deletion.Decode(key, d.GetFileType(), data, fragment.GetPhysicalRows(), d.GetNumDeletedRows())
	if err != nil {
		return nil, fmt.Errorf("deletions of fragment %d: %w", fragment.GetId(), err)
	}
	return rows, nil
}

// Class is what an object's name says that it is.
type Class int

// Classes of object, by the layout of a dataset. Whatever fits none is Foreign.
const (
	Foreign Class = iota
	ManifestAttached
	ManifestDetached
	ManifestStaging
	Temporary // unfinished object of a local writer, in the manifest or data folder
	Hint
	Transaction
	Data
	Sidecar // blob v2 payload beside a data file
	DeletionFile
	IndexFile
	Reference
)

// Classify tells an object's class by its key below the dataset's root.
func Classify(key string) Class {
	folder, base, ok := strings.Cut(key, "/")
	if !ok {
		return Foreign
	}
	switch folder + "/" {
	case manifest.Folder:
		return classifyManifest(base)
	case TransactionFolder:
		if transactionName(base) {
			return Transaction
		}
	case DataFolder:
		return classifyData(key)
	case deletion.Folder:
		if deletionName(base) {
			return DeletionFile
		}
	case indexmeta.Folder:
		if _, ok := IndexID(key); ok {
			return IndexFile
		}
	case RefsFolder:
		return Reference
	}
	return Foreign
}

func classifyManifest(base string) Class {
	if strings.Contains(base, "/") {
		return Foreign
	}
	switch manifest.ParseName(base).Kind {
	case manifest.Attached:
		return ManifestAttached
	case manifest.Detached:
		return ManifestDetached
	case manifest.Staging:
		return ManifestStaging
	case manifest.Hint:
		return Hint
	case manifest.Temporary:
		return Temporary
	default:
		return Foreign
	}
}

func classifyData(key string) Class {
	if strings.HasPrefix(path.Base(key), ".tmp") {
		return Temporary
	}
	if _, ok := SidecarParent(key); ok {
		return Sidecar
	}
	if strings.HasSuffix(key, ".lance") {
		return Data
	}
	return Foreign
}

// transactionName: `<read version>-<uuid>.txn`.
func transactionName(base string) bool {
	stem, ok := strings.CutSuffix(base, ".txn")
	if !ok {
		return false
	}
	version, id, ok := strings.Cut(stem, "-")
	return ok && digits(version) && len(id) == 36 && uuid.Validate(id) == nil
}

// deletionName: `<fragment>-<read version>-<id>.arrow` or `.bin`.
func deletionName(base string) bool {
	stem, extension, ok := strings.Cut(base, ".")
	if !ok || (extension != "arrow" && extension != "bin") {
		return false
	}
	parts := strings.Split(stem, "-")
	return len(parts) == 3 && digits(parts[0]) && digits(parts[1]) && digits(parts[2])
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// sidecarDigits is the length of a sidecar's name: a blob id in binary (lance-core src/utils/blob.rs:blob_path).
const sidecarDigits = 32

// SidecarParent is the data file to which a blob sidecar `data/<stem>/<32 binary digits>.blob` belongs.
func SidecarParent(key string) (data string, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 || parts[0]+"/" != DataFolder {
		return "", false
	}
	name, ok := strings.CutSuffix(parts[2], ".blob")
	if !ok || len(name) != sidecarDigits || strings.Trim(name, "01") != "" {
		return "", false
	}
	return DataFolder + parts[1] + ".lance", true
}

// IndexID is the uuid of the index folder that a key lies in, as the folder is spelled.
func IndexID(key string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(key, indexmeta.Folder)
	if !ok {
		return "", false
	}
	id, file, ok := strings.Cut(rest, "/")
	if !ok || file == "" || len(id) != 36 || uuid.Validate(id) != nil || strings.ToLower(id) != id {
		return "", false
	}
	return id, true
}

// NestedRoots are the folders below a known folder that are datasets of their own, as far as the keys seen tell: those with a
// manifest folder. Everything below them is foreign (see Inside).
type NestedRoots map[string]struct{}

// Note takes in a key of a listing.
func (n NestedRoots) Note(key string) {
	if at := strings.LastIndex(key, "/"+manifest.Folder); at >= 0 {
		n[key[:at+1]] = struct{}{}
	}
}

// Inside says whether a key lies below a nested dataset.
func (n NestedRoots) Inside(key string) bool {
	if len(n) == 0 {
		return false
	}
	for at := strings.IndexByte(key, '/'); at >= 0; {
		if _, ok := n[key[:at+1]]; ok {
			return true
		}
		next := strings.IndexByte(key[at+1:], '/')
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return false
}
