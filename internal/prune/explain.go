package prune

import (
	"context"
	"fmt"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/objstore"
)

// File is one file that would go.
type File struct {
	Key     string
	Kind    string // KindManifest and so on
	Size    int64
	Cause   string // why, said of all such files alike
	Version uint64 // that has expired: a manifest's own, or the first that named the file; 0: not known, or none
}

// Reason says why this file would go.
func (f File) Reason() string {
	switch {
	case f.Version == 0:
		return f.Cause
	case f.Kind == KindManifest:
		return fmt.Sprintf("version %d has expired", f.Version)
	}
	return fmt.Sprintf("version %d brought it, and only versions that have expired name it", f.Version)
}

// Explain names each object that Sweep would remove, in the same order, and counts the young files that would stay unproven;
// files that are gone by then are left out. It writes nothing; the plan must not be swept afterwards.
func (p *Plan) Explain(ctx context.Context, store objstore.Store, gone map[string]File, name func(File)) (unproven Left, err error) {
	v := newProver(p, store)
	v.origin = map[string]uint64{}
	tell := func(o objstore.Object, cause string, version uint64) {
		if _, ok := gone[o.Key]; ok {
			return
		}
		name(File{Key: o.Key, Kind: KindOf(dataset.Classify(o.Key)), Size: o.Size, Cause: cause, Version: version})
	}
	proven := func(dead []objstore.Object) {
		for _, o := range dead {
			cause, version := "only versions that have expired name it", v.origin[o.Key]
			if version == 0 {
				cause = "an earlier pass proved that only expired versions name it"
			}
			tell(o, cause, version)
			delete(v.origin, o.Key)
			delete(p.young, o.Key)
		}
	}
	rest := p.Expired
	for len(rest) > 0 {
		versions := rest[:min(chunkVersions, len(rest))]
		rest = rest[len(versions):]
		dead, bad, err := v.chunk(ctx, versions, p.after(versions))
		if err != nil {
			return Left{}, fmt.Errorf("prove what goes with versions %d to %d: %w", versions[0].Number, versions[len(versions)-1].Number, err)
		}
		for _, version := range versions {
			if _, stays := bad[version.Number]; !stays {
				tell(objstore.Object{Key: version.Key, Size: version.Size}, "its version has expired", version.Number)
			}
		}
		proven(dead)
	}
	if len(p.Expired) == 0 {
		dead, err := v.owed(ctx)
		if err != nil {
			return Left{}, fmt.Errorf("prove what an earlier pass left: %w", err)
		}
		proven(dead)
	}
	for _, o := range p.Old {
		if p.working.names(o.Key) {
			continue // of a version that turned out not to be understood
		}
		tell(o, fmt.Sprintf("%s, and it is older than %s", unneeded(o.Key), p.policy.UnverifiedAge), 0)
	}
	for key, o := range p.young {
		if _, ok := gone[key]; ok {
			continue
		}
		unproven.Files++
		unproven.Bytes += o.Size
	}
	unproven.Reason = fmt.Sprintf("no version that is known names them; they stay until they are %s old", p.policy.UnverifiedAge)
	return unproven, nil
}

// unneeded says why nobody needs an old file.
func unneeded(key string) string {
	switch dataset.Classify(key) {
	case dataset.Temporary:
		return "unfinished"
	case dataset.ManifestStaging:
		return "staged for a commit that is over"
	default:
		return "no version that stays names it"
	}
}
