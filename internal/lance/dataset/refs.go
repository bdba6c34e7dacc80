package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

// Folders of references and branches, below the dataset's root.
const (
	RefsFolder     = "_refs/"
	tagsFolder     = RefsFolder + "tags/"
	branchesFolder = RefsFolder + "branches/"
	TreeFolder     = "tree/"
)

// Tag names a version of a branch; Branch "" is main.
type Tag struct {
	Name    string
	Branch  string
	Version uint64
}

// Step is one step of a branch's descent: the version of the parent that it starts at, and an id.
type Step struct {
	Version uint64
	ID      string
}

// Branch is one branch's record. Mapping leads from main down to it.
type Branch struct {
	Name          string
	Parent        string // "" is main
	ParentVersion uint64
	Mapping       []Step // nil in old records
}

// Refs are all tags and branches of a dataset, as recorded in its root.
type Refs struct {
	Tags     []Tag
	Branches []Branch
	ETags    string // changes when any record comes, goes or changes
}

type tagRecord struct {
	Branch  *string `json:"branch"`
	Version *uint64 `json:"version"`
}

type branchRecord struct {
	ParentBranch  *string `json:"parentBranch"`
	ParentVersion *uint64 `json:"parentVersion"`
	Identifier    *struct {
		VersionMapping []json.RawMessage `json:"version_mapping"`
	} `json:"identifier"`
}

// ReadRefs reads every tag and branch record (lance src/dataset/refs.rs:TagContents, BranchContents). A record that can't be
// read or understood is an error: what it pins is not known.
func ReadRefs(ctx context.Context, store objstore.Store) (*Refs, error) {
	refs := &Refs{}
	var objects []objstore.Object
	for o, err := range store.List(ctx, RefsFolder, "") {
		if err != nil {
			return nil, fmt.Errorf("list the references of %s: %w", store.URI(), err)
		}
		objects = append(objects, o)
	}
	slices.SortFunc(objects, func(a, b objstore.Object) int { return strings.Compare(a.Key, b.Key) })
	refs.ETags = stamp(objects)
	for _, o := range objects {
		if err := refs.read(ctx, store, o.Key); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// RefsStamp changes when any record comes, goes or changes; equal to the ETags of ReadRefs while nothing did. One listing.
func RefsStamp(ctx context.Context, store objstore.Store) (string, error) {
	var objects []objstore.Object
	for o, err := range store.List(ctx, RefsFolder, "") {
		if err != nil {
			return "", fmt.Errorf("list the references of %s: %w", store.URI(), err)
		}
		objects = append(objects, o)
	}
	slices.SortFunc(objects, func(a, b objstore.Object) int { return strings.Compare(a.Key, b.Key) })
	return stamp(objects), nil
}

func stamp(objects []objstore.Object) string {
	var s strings.Builder
	for _, o := range objects {
		fmt.Fprintf(&s, "%s\x00%d\x00%d\x00%s\n", o.Key, o.Size, o.Modified.UnixNano(), o.ETag)
	}
	return s.String()
}

func (r *Refs) read(ctx context.Context, store objstore.Store, key string) error {
	tag, isTag := nameIn(key, tagsFolder)
	branch, isBranch := nameIn(key, branchesFolder)
	if !isTag && !isBranch {
		return lance.Unsupported("reference", "of a kind that is not known", key)
	}
	data, _, err := store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read reference %s: %w", key, err)
	}
	if isTag {
		t, err := parseTag(tag, key, data)
		if err != nil {
			return err
		}
		r.Tags = append(r.Tags, t)
		return nil
	}
	b, err := parseBranch(branch, key, data)
	if err != nil {
		return err
	}
	r.Branches = append(r.Branches, b)
	return nil
}

// nameIn is the name of the record at key; a branch name may hold slashes, escaped as %2F.
func nameIn(key, folder string) (string, bool) {
	base, ok := strings.CutPrefix(key, folder)
	if !ok || strings.Contains(base, "/") {
		return "", false
	}
	name, ok := strings.CutSuffix(base, ".json")
	if !ok || name == "" {
		return "", false
	}
	if plain, err := url.PathUnescape(name); err == nil {
		return plain, true
	}
	return name, true
}

func parseTag(name, key string, data []byte) (Tag, error) {
	var record tagRecord
	if err := json.Unmarshal(bytes.TrimSpace(data), &record); err != nil {
		return Tag{}, lance.Corrupt(key, "tag record: %v", err)
	}
	if record.Version == nil {
		return Tag{}, lance.Corrupt(key, "tag record without a version")
	}
	t := Tag{Name: name, Version: *record.Version}
	if record.Branch != nil {
		t.Branch = mainAsEmpty(*record.Branch)
	}
	return t, nil
}

func parseBranch(name, key string, data []byte) (Branch, error) {
	var record branchRecord
	if err := json.Unmarshal(bytes.TrimSpace(data), &record); err != nil {
		return Branch{}, lance.Corrupt(key, "branch record: %v", err)
	}
	if record.ParentVersion == nil {
		return Branch{}, lance.Corrupt(key, "branch record without a parent version")
	}
	b := Branch{Name: name, ParentVersion: *record.ParentVersion}
	if record.ParentBranch != nil {
		b.Parent = mainAsEmpty(*record.ParentBranch)
	}
	if record.Identifier == nil {
		return b, nil
	}
	for _, raw := range record.Identifier.VersionMapping {
		var pair []json.RawMessage
		var step Step
		if json.Unmarshal(raw, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[0], &step.Version) != nil || json.Unmarshal(pair[1], &step.ID) != nil {
			return Branch{}, lance.Corrupt(key, "branch record: version mapping entry %s", raw)
		}
		b.Mapping = append(b.Mapping, step)
	}
	return b, nil
}

// mainAsEmpty: some writers name the main branch (lance src/dataset/refs.rs:MAIN_BRANCH).
func mainAsEmpty(branch string) string {
	if branch == "main" {
		return ""
	}
	return branch
}

// Pinned are the versions of main that tags and branches hold, each with the reasons. Branches of branches count: what a
// descendant took from main is the first step of its descent. Tags on other branches pin nothing of main.
func (r *Refs) Pinned() map[uint64][]string {
	pinned := map[uint64][]string{}
	add := func(version uint64, reason string) { pinned[version] = append(pinned[version], reason) }
	for _, t := range r.Tags {
		if t.Branch == "" {
			add(t.Version, "tag "+t.Name)
		}
	}
	for _, b := range r.Branches {
		switch {
		case len(b.Mapping) > 0:
			add(b.Mapping[0].Version, "branch "+b.Name+" starts here")
		case b.Parent == "":
			add(b.ParentVersion, "branch "+b.Name+" starts here")
		}
		if b.Parent == "" && len(b.Mapping) > 0 && b.Mapping[0].Version != b.ParentVersion {
			add(b.ParentVersion, "branch "+b.Name+" starts here")
		}
	}
	return pinned
}

// BranchManifests lists the attached and detached manifests of every branch, below tree/ of the root. A branch that is
// recorded but has no folder contributes none.
func BranchManifests(ctx context.Context, store objstore.Store) ([]Version, error) {
	var versions []Version
	for o, err := range store.List(ctx, TreeFolder, "") {
		if err != nil {
			return nil, fmt.Errorf("list the branches of %s: %w", store.URI(), err)
		}
		at := strings.LastIndex(o.Key, "/"+manifest.Folder)
		if at < 0 {
			continue
		}
		name := manifest.ParseName(o.Key[at+1+len(manifest.Folder):])
		if name.Kind == manifest.Attached || name.Kind == manifest.Detached {
			versions = append(versions, Version{Number: name.Version, Key: o.Key, Size: o.Size, Modified: o.Modified, ETag: o.ETag})
		}
	}
	return versions, nil
}
