package prune

import (
	"context"
	"fmt"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/objstore"
)

// File is one file that would go.
type File struct {
	Key    string
	Size   int64
	Reason string
}

// Explain names each object that Sweep would remove, with the reason, and counts the young files that would stay unproven. It
// writes nothing; the plan must not be swept afterwards.
func (p *Plan) Explain(ctx context.Context, store objstore.Store) (files []File, unproven Left, err error) {
	v := newProver(p, store)
	rest := p.Expired
	for len(rest) > 0 {
		versions := rest[:min(chunkVersions, len(rest))]
		rest = rest[len(versions):]
		dead, bad, err := v.chunk(ctx, versions, p.after(versions))
		if err != nil {
			return nil, Left{}, fmt.Errorf("prove what goes with versions %d to %d: %w", versions[0].Number, versions[len(versions)-1].Number, err)
		}
		for _, version := range versions {
			if _, stays := bad[version.Number]; !stays {
				files = append(files, File{Key: version.Key, Size: version.Size, Reason: fmt.Sprintf("version %d has expired", version.Number)})
			}
		}
		for _, o := range dead {
			files = append(files, File{Key: o.Key, Size: o.Size, Reason: "only expired versions name it"})
			delete(p.young, o.Key)
		}
	}
	if len(p.Expired) == 0 {
		dead, err := v.owed(ctx)
		if err != nil {
			return nil, Left{}, fmt.Errorf("prove what an earlier pass left: %w", err)
		}
		for _, o := range dead {
			files = append(files, File{Key: o.Key, Size: o.Size, Reason: "an earlier pass proved that only expired versions name it"})
			delete(p.young, o.Key)
		}
	}
	for _, o := range p.Old {
		if p.working.names(o.Key) {
			continue // of a version that turned out not to be understood
		}
		reason := fmt.Sprintf("no version that stays names it, and it is older than %s", p.policy.UnverifiedAge)
		if dataset.Classify(o.Key) == dataset.Temporary {
			reason = "unfinished, and older than " + p.policy.UnverifiedAge.String()
		}
		files = append(files, File{Key: o.Key, Size: o.Size, Reason: reason})
	}
	for _, o := range p.young {
		unproven.Files++
		unproven.Bytes += o.Size
	}
	unproven.Reason = fmt.Sprintf("no version that is known names them; they stay until they are %s old", p.policy.UnverifiedAge)
	return files, unproven, nil
}
