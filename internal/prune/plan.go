// Package prune plans which versions and files of a dataset go, and removes them.
//
// What stays is decided by the manifests that are retained, and by nothing else; what goes is only what stands in the plan.
package prune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

// readParallel is how many manifests are read at once.
const readParallel = 32

// ErrChanged is the class of errors about a dataset that changed under a plan in a way that makes the plan void. A new plan may
// succeed.
var ErrChanged = errors.New("the dataset changed since it was planned")

// Kinds of file, as results count them.
const (
	KindManifest    = "manifest"
	KindData        = "data"
	KindDeletion    = "deletion"
	KindTransaction = "transaction"
	KindIndex       = "index"
	KindOther       = "other"
)

// CountsByKind are zeros, one for each kind of file.
func CountsByKind() map[string]int64 {
	return map[string]int64{KindManifest: 0, KindData: 0, KindDeletion: 0, KindTransaction: 0, KindIndex: 0, KindOther: 0}
}

// KindOf is the kind of a class of object.
func KindOf(c dataset.Class) string {
	switch c {
	case dataset.ManifestAttached, dataset.ManifestDetached, dataset.ManifestStaging:
		return KindManifest
	case dataset.Data, dataset.Sidecar:
		return KindData
	case dataset.DeletionFile:
		return KindDeletion
	case dataset.Transaction:
		return KindTransaction
	case dataset.IndexFile:
		return KindIndex
	case dataset.Foreign, dataset.Temporary, dataset.Hint, dataset.Reference:
	}
	return KindOther
}

// Left counts files that stay although no retained version names them.
type Left struct {
	Path   string // folder, or key of a single file
	Files  int64
	Bytes  int64
	Reason string
}

// Plan is what goes from a dataset. Made by MakePlan, executed by Sweep.
type Plan struct {
	Latest     uint64
	LatestETag string
	Kept       []Kept
	Bad        []Kept            // those of Kept that have expired, and stay because they are damaged or not understood
	Expired    []dataset.Version // that will go, ascending
	Old        []objstore.Object // files that no retained version names, past the unverified age
	Left       []Left
	Files      int64 // all objects below the root
	Bytes      int64
	Manifests  int       // attached manifests
	Oldest     uint64    // lowest version listed
	NextExpiry time.Time // the earliest moment at which anything more can expire by itself; zero if nothing can
	ListedAt   time.Time // when the names were listed, by the store's clock
	RefsStamp  string    // of the references that it goes by, as dataset.RefsStamp has it

	scheme  manifest.Scheme
	policy  Policy
	now     time.Time
	working *working
	refs    *dataset.Refs
	known   uint64                     // versions of the history up to here are accounted for
	listed  []dataset.Version          // all attached, ascending
	young   map[string]objstore.Object // unreferenced, not past the unverified age: they need proof
	owed    map[string]struct{}        // names of the journal: proven by an earlier pass
	proofs  map[uint64]*dataset.Proof  // of expired versions that were read for a check

	sidecars   map[string]map[string]struct{} // young blob sidecars, by `data/<stem>/`
	indexFiles map[string]map[string]struct{} // young index files, by `_indices/<uuid>/`
}

// after are the listed versions behind some that are listed.
func (p *Plan) after(versions []dataset.Version) []dataset.Version {
	last := versions[len(versions)-1].Number
	i, _ := slices.BinarySearchFunc(p.listed, last+1, func(v dataset.Version, n uint64) int { return cmp.Compare(v.Number, n) })
	return p.listed[i:]
}

// isRetained says whether a listed version stays, so that the working set has what it names.
func (p *Plan) isRetained(version uint64) bool {
	_, found := slices.BinarySearchFunc(p.Expired, version, func(v dataset.Version, n uint64) int { return cmp.Compare(v.Number, n) })
	return !found
}

// working is the set of files that must stay.
type working struct {
	files *dataset.Files
}

func (w *working) names(key string) bool {
	for f := w.files; f != nil; f = f.Elsewhere {
		if _, ok := f.Keys[key]; ok {
			return true
		}
		if id, ok := dataset.IndexID(key); ok {
			if _, ok := f.Indices[id]; ok {
				return true
			}
		}
		if parent, ok := dataset.SidecarParent(key); ok {
			if _, ok := f.Keys[parent]; ok {
				return true
			}
		}
	}
	return false
}

// Input is what a plan is made from.
type Input struct {
	Store  objstore.Store
	Policy Policy
	Now    time.Time // the store's clock
	Owed   []string  // the journal of an earlier pass
}

// MakePlan lists the dataset, then reads references and every retained manifest, and says what may go. Nothing may where one of
// these can't be read or understood: ErrCorrupt, ErrUnsupported, or the store's error.
func MakePlan(ctx context.Context, in Input) (*Plan, error) {
	p := &Plan{policy: in.Policy, now: in.Now, working: &working{files: dataset.NewFiles()}, young: map[string]objstore.Object{}, owed: map[string]struct{}{}, sidecars: map[string]map[string]struct{}{}, indexFiles: map[string]map[string]struct{}{}}
	for _, name := range in.Owed {
		p.owed[name] = struct{}{}
	}
	before, _, err := dataset.Latest(ctx, in.Store)
	if err != nil {
		return nil, fmt.Errorf("find the latest version: %w", err)
	}
	l, err := p.list(ctx, in.Store)
	if err != nil {
		return nil, err
	}
	if p.refs, err = dataset.ReadRefs(ctx, in.Store); err != nil {
		return nil, fmt.Errorf("read the references: %w", err)
	}
	p.ListedAt, p.RefsStamp = p.now, p.refs.ETags
	p.Oldest, p.Manifests = p.listed[0].Number, len(p.listed)
	latest := p.listed[len(p.listed)-1]
	p.Latest, p.LatestETag = latest.Number, latest.ETag
	var retained []dataset.Version
	p.Kept, retained, p.Expired = retention(p.listed, in.Policy.pins(p.refs), in.Policy, p.now)
	if err := in.Policy.tagged(p.listed, p.refs, p.now); err != nil {
		return nil, err
	}
	// A version that came while the names were listed may name files in folders that had been listed by then.
	newer := len(retained)
	for newer > 0 && retained[newer-1].Number > before.Number {
		newer--
	}
	if err := p.read(ctx, in.Store, retained[:newer]); err != nil {
		return nil, err
	}
	if err := p.seen(l); err != nil {
		return nil, err
	}
	if err := p.read(ctx, in.Store, retained[newer:]); err != nil {
		return nil, err
	}
	branches, err := dataset.BranchManifests(ctx, in.Store)
	if err != nil {
		return nil, fmt.Errorf("find the versions of the branches: %w", err)
	}
	if err := p.read(ctx, in.Store, slices.Concat(l.detached, branches)); err != nil {
		return nil, err
	}
	if err := p.catchUp(ctx, in.Store); err != nil {
		return nil, err
	}
	if err := p.checkExpired(ctx, in.Store); err != nil {
		return nil, err
	}
	p.divide(l)
	return p, nil
}

// listing is one look at everything below the root.
type listing struct {
	detached []dataset.Version
	files    []objstore.Object // all but attached and detached manifests
	nested   dataset.NestedRoots
	seen     map[string]struct{}  // keys of data and deletion files; index ids
	newest   map[string]time.Time // by index id: the youngest file, since a build writes its folder for long and it goes as one
}

// clockGrain is the most that an answer's date may lie behind the times of objects: it has whole seconds.
const clockGrain = 2 * time.Second

// hear takes the time of an object for the store's clock where that was told less exactly.
func (p *Plan) hear(told time.Time, o objstore.Object) {
	if o.Modified.After(p.now) && o.Modified.Sub(told) <= clockGrain {
		p.now = o.Modified
	}
}

// list reads all names first: what is committed after it can only add references, never candidates.
func (p *Plan) list(ctx context.Context, store objstore.Store) (*listing, error) {
	told := p.now
	l := &listing{nested: dataset.NestedRoots{}, seen: map[string]struct{}{}, newest: map[string]time.Time{}}
	for o, err := range store.List(ctx, "", "") {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", store.URI(), err)
		}
		p.Files++
		p.Bytes += o.Size
		p.hear(told, o)
		l.nested.Note(o.Key)
		if err := p.take(l, o); err != nil {
			return nil, err
		}
	}
	if len(p.listed) == 0 {
		return nil, &dataset.NotDatasetError{URI: store.URI(), Detail: "its folder " + manifest.Folder + " holds no manifest"}
	}
	slices.SortFunc(p.listed, func(a, b dataset.Version) int { return cmp.Compare(a.Number, b.Number) })
	return l, nil
}

func (p *Plan) take(l *listing, o objstore.Object) error {
	switch dataset.Classify(o.Key) {
	case dataset.ManifestAttached:
		name := manifest.ParseName(strings.TrimPrefix(o.Key, manifest.Folder))
		if p.scheme != 0 && p.scheme != name.Scheme {
			return lance.Unsupported("manifest naming", "of both schemes in one folder", o.Key)
		}
		p.scheme = name.Scheme
		p.listed = append(p.listed, dataset.Version{Number: name.Version, Key: o.Key, Size: o.Size, Modified: o.Modified, ETag: o.ETag})
		return nil
	case dataset.ManifestDetached:
		name := manifest.ParseName(strings.TrimPrefix(o.Key, manifest.Folder))
		l.detached = append(l.detached, dataset.Version{Number: name.Version, Key: o.Key, Size: o.Size, Modified: o.Modified, ETag: o.ETag})
		return nil
	case dataset.Hint:
		return nil
	case dataset.Data, dataset.DeletionFile:
		l.seen[o.Key] = struct{}{}
	case dataset.IndexFile:
		id, _ := dataset.IndexID(o.Key)
		l.seen[indexmeta.Folder+id] = struct{}{}
		if o.Modified.After(l.newest[id]) {
			l.newest[id] = o.Modified
		}
	case dataset.Foreign, dataset.ManifestStaging, dataset.Temporary, dataset.Transaction, dataset.Sidecar, dataset.Reference:
	}
	o.ETag = "" // nobody asks for it, and there are many
	l.files = append(l.files, o)
	return nil
}

// read takes everything that the given versions name into the working set.
func (p *Plan) read(ctx context.Context, store objstore.Store, versions []dataset.Version) error {
	var mu sync.Mutex
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(readParallel)
	for _, v := range versions {
		group.Go(func() error {
			m, err := dataset.ReadManifest(inner, store, v)
			if errors.Is(err, objstore.ErrNotExist) {
				return fmt.Errorf("version %d is gone: %w", v.Number, ErrChanged)
			}
			if err != nil {
				return fmt.Errorf("read a version that stays: %w", err)
			}
			if err := m.Check(v.Key); err != nil {
				return fmt.Errorf("check a version that stays: %w", err)
			}
			mu.Lock()
			defer mu.Unlock()
			return p.add(v, m)
		})
	}
	return group.Wait() //nolint:wrapcheck // wrapped inside
}

// add takes a manifest's files into the working set. A branch's own files lie below its own folder and are no concern here;
// what it names through base paths is.
func (p *Plan) add(v dataset.Version, m *manifest.Manifest) error {
	if !strings.HasPrefix(v.Key, dataset.TreeFolder) {
		return p.working.files.Add(v.Key, m) //nolint:wrapcheck // names the object
	}
	files := dataset.NewFiles()
	if err := files.Add(v.Key, m); err != nil {
		return fmt.Errorf("files of a branch: %w", err)
	}
	if files.Elsewhere == nil {
		return nil
	}
	for key := range files.Elsewhere.Keys {
		p.working.files.Keys[key] = struct{}{}
	}
	for id := range files.Elsewhere.Indices {
		p.working.files.Indices[id] = struct{}{}
	}
	return nil
}

// seen makes sure that every data and deletion file that the retained versions of the history name was in the listing: if one
// was not, names are not what they seem, or the dataset has lost files already. Either way nothing may go.
func (p *Plan) seen(l *listing) error {
	for key := range p.working.files.Keys {
		class := dataset.Classify(key)
		if class != dataset.Data && class != dataset.DeletionFile {
			continue
		}
		if _, ok := l.seen[key]; !ok {
			return lance.Corrupt(key, "a version that stays names it, and no listing shows it")
		}
	}
	return nil
}

// divide sorts every file that no retained version names.
func (p *Plan) divide(l *listing) {
	left := map[Left]*Left{}
	leave := func(o objstore.Object, where, reason string) {
		key := Left{Path: where, Reason: reason}
		if left[key] == nil {
			left[key] = &Left{Path: where, Reason: reason}
		}
		left[key].Files++
		left[key].Bytes += o.Size
	}
	for _, o := range l.files {
		class := dataset.Classify(o.Key)
		switch {
		case class == dataset.Reference:
			continue
		case class == dataset.Foreign || l.nested.Inside(o.Key):
			where, reason := foreign(o.Key)
			leave(o, where, reason)
			continue
		case p.working.names(o.Key):
			continue
		case class == dataset.ManifestStaging && p.ahead(o.Key):
			leave(o, o.Key, "a manifest of a version that is not there yet: another commit protocol may be in use")
			continue
		}
		if p.policy.Clones && cloned(class) {
			leave(o, path.Dir(o.Key)+"/", "a clone of the dataset may need it")
			continue
		}
		modified := o.Modified
		if id, ok := dataset.IndexID(o.Key); ok {
			modified = l.newest[id]
		}
		if age := p.now.Sub(modified); age >= p.policy.UnverifiedAge {
			p.Old = append(p.Old, o)
			continue
		}
		p.young[o.Key] = o
		p.group(class, o.Key)
		p.expires(modified.Add(p.policy.UnverifiedAge))
	}
	for _, k := range p.Kept {
		if !k.Until.IsZero() {
			p.expires(k.Until)
		}
	}
	for _, x := range left {
		p.Left = append(p.Left, *x)
	}
	slices.SortFunc(p.Left, func(a, b Left) int { return strings.Compare(a.Path+a.Reason, b.Path+b.Reason) })
}

// cloned says whether a clone may name files of a class: it has manifests and transactions of its own.
func cloned(class dataset.Class) bool {
	return class == dataset.Data || class == dataset.Sidecar || class == dataset.DeletionFile || class == dataset.IndexFile
}

// group finds files that are named together, by their folder.
func (p *Plan) group(class dataset.Class, key string) {
	groups := p.indexFiles
	switch class {
	case dataset.Sidecar:
		groups = p.sidecars
	case dataset.IndexFile:
		id, _ := dataset.IndexID(key)
		addTo(groups, indexmeta.Folder+id+"/", key)
		return
	default:
		return
	}
	addTo(groups, path.Dir(key)+"/", key)
}

func addTo(groups map[string]map[string]struct{}, name, key string) {
	if groups[name] == nil {
		groups[name] = map[string]struct{}{}
	}
	groups[name][key] = struct{}{}
}

// ahead says whether a staged manifest is of a version above the latest: an external manifest store may still point at it.
func (p *Plan) ahead(key string) bool {
	return manifest.ParseName(strings.TrimPrefix(key, manifest.Folder)).Version > p.Latest
}

func (p *Plan) expires(at time.Time) {
	if p.NextExpiry.IsZero() || at.Before(p.NextExpiry) {
		p.NextExpiry = at
	}
}

// foreign says what an object is that is none of the format's, by the folder it lies in.
func foreign(key string) (where, reason string) {
	folder, _, inside := strings.Cut(key, "/")
	if !inside {
		return key, "not a file of the format"
	}
	switch folder + "/" {
	case dataset.TreeFolder:
		return folder + "/", "branches: each is a dataset of its own"
	case "_mem_wal/", "_fri/", "_blobs/":
		return folder + "/", "of the format, and not understood well enough to be pruned"
	case manifest.Folder, dataset.DataFolder, dataset.TransactionFolder, indexmeta.Folder, "_deletions/":
		return path.Dir(key) + "/", "names that are not of the format"
	}
	return folder + "/", "not a folder of the format"
}
