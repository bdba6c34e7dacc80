package prune

import (
	"context"
	"errors"
	"fmt"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

// catchUp takes in what was committed since the plan last looked: each new version becomes part of the working set, and a
// new reference to a version that is about to go makes the plan void (ErrChanged). Two or three requests where nothing came.
func (p *Plan) catchUp(ctx context.Context, store objstore.Store) error {
	if err := p.newVersions(ctx, store); err != nil {
		return err
	}
	stamp, err := dataset.RefsStamp(ctx, store)
	if err != nil {
		return fmt.Errorf("look at the references: %w", err)
	}
	if stamp == p.refs.ETags {
		return nil
	}
	refs, err := dataset.ReadRefs(ctx, store)
	if err != nil {
		return fmt.Errorf("read the references: %w", err)
	}
	before, after := p.refs.Pinned(), refs.Pinned()
	for version := range after {
		if len(before[version]) == 0 {
			return fmt.Errorf("version %d was tagged or branched from: %w", version, ErrChanged)
		}
	}
	if len(refs.Branches) > len(p.refs.Branches) {
		return fmt.Errorf("a branch was made: %w", ErrChanged)
	}
	p.refs = refs
	return nil
}

func (p *Plan) newVersions(ctx context.Context, store objstore.Store) error {
	p.known = max(p.known, p.Latest)
	latest, err := p.newest(ctx, store)
	if err != nil {
		return fmt.Errorf("find the latest version: %w", err)
	}
	if latest.Number < p.known {
		return fmt.Errorf("the latest version is %d and was %d: %w", latest.Number, p.known, ErrChanged)
	}
	if latest.Number == p.Latest && latest.ETag != p.listed[len(p.listed)-1].ETag {
		return fmt.Errorf("the latest version %d is another than was listed, so the dataset was made anew: %w", latest.Number, ErrChanged)
	}
	var versions []dataset.Version
	for n := p.known + 1; n <= latest.Number; n++ {
		versions = append(versions, dataset.Version{Number: n, Key: manifest.Key(n, p.scheme)})
	}
	if err := p.read(ctx, store, versions); err != nil {
		return err
	}
	p.known = latest.Number
	return nil
}

// newest finds the latest version. Where a listing does not begin with it, it is looked for upwards from the one that is known, as
// readers do from the hint: new versions follow without a gap.
func (p *Plan) newest(ctx context.Context, store objstore.Store) (dataset.Version, error) {
	if store.Ordered() && p.scheme == manifest.V2 {
		v, _, err := dataset.Latest(ctx, store)
		return v, err //nolint:wrapcheck // wrapped by the caller
	}
	var found dataset.Version
	for n := p.known; ; n++ {
		o, err := store.Stat(ctx, manifest.Key(n, p.scheme))
		switch {
		case errors.Is(err, objstore.ErrNotExist) && n > p.known:
			return found, nil
		case errors.Is(err, objstore.ErrNotExist):
			return found, fmt.Errorf("version %d is gone: %w", n, ErrChanged)
		case err != nil:
			return found, err //nolint:wrapcheck // wrapped by the caller
		}
		found = dataset.Version{Number: n, Key: o.Key, Size: o.Size, Modified: o.Modified, ETag: o.ETag}
	}
}

// checkAll is the number of expired versions up to which each is looked into before it goes. Of more, only those whose size
// stands out are, beside those that are read as proof.
const checkAll = 1000

// checkExpired looks into expired versions and takes those that are damaged or not understood off the list: they stay, and what
// can be read of the files that they name stays with them.
func (p *Plan) checkExpired(ctx context.Context, store objstore.Store) error {
	p.proofs = map[uint64]*dataset.Proof{}
	suspects := p.Expired
	if len(suspects) > checkAll {
		suspects = outliers(p.Expired)
	}
	proofs, errs := readProofs(ctx, store, suspects)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("look into expired versions: %w", err)
	}
	bad := map[uint64]struct{}{}
	for i, v := range suspects {
		stays, err := p.judge(v, proofs[i], errs[i])
		if err != nil {
			return err
		}
		if stays != "" {
			bad[v.Number] = struct{}{}
			p.Bad = append(p.Bad, Kept{Version: v.Number, Reason: stays})
			continue
		}
		p.proofs[v.Number] = proofs[i]
	}
	p.Kept = append(p.Kept, p.Bad...)
	p.drop(bad)
	return nil
}

// judge says why an expired version stays after it was looked into; "" if it may go.
func (p *Plan) judge(v dataset.Version, proof *dataset.Proof, err error) (stays string, fatal error) {
	switch {
	case errors.Is(err, objstore.ErrNotExist):
		return "", nil // another clean-up was faster
	case err != nil && !decoding(err):
		return "", fmt.Errorf("look into expired version %d: %w", v.Number, err)
	case err != nil:
		return err.Error(), nil //nolint:nilerr // a reason to stay, not to stop
	case proof.Manifest == nil:
		return "", nil
	}
	if err := proof.Manifest.Check(v.Key); err != nil {
		if addErr := p.working.files.Add(v.Key, proof.Manifest); addErr != nil {
			return "", fmt.Errorf("files of version %d, which is not understood: %w", v.Number, addErr)
		}
		return err.Error(), nil
	}
	return "", nil
}

// drop takes versions off the list of those that go.
func (p *Plan) drop(numbers map[uint64]struct{}) {
	if len(numbers) == 0 {
		return
	}
	var rest []dataset.Version
	for _, v := range p.Expired {
		if _, ok := numbers[v.Number]; !ok {
			rest = append(rest, v)
		}
	}
	p.Expired = rest
}

// outliers are versions whose manifest is empty or much smaller than both its neighbours'.
func outliers(versions []dataset.Version) []dataset.Version {
	const share = 0.6
	var out []dataset.Version
	for i, v := range versions {
		smaller := int64(1 << 62)
		if i > 0 {
			smaller = versions[i-1].Size
		}
		if i+1 < len(versions) {
			smaller = min(smaller, versions[i+1].Size)
		}
		if v.Size == 0 || float64(v.Size) < share*float64(smaller) {
			out = append(out, v)
		}
	}
	return out
}
