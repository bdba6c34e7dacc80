package prune

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/txn"
	"lancekeeper/internal/objstore"
)

func decoding(err error) bool {
	return errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported)
}

// readProofs reads versions side by side; each has its own error.
func readProofs(ctx context.Context, store objstore.Store, versions []dataset.Version) ([]*dataset.Proof, []error) {
	proofs, errs := make([]*dataset.Proof, len(versions)), make([]error, len(versions))
	var group errgroup.Group
	group.SetLimit(readParallel)
	for i, v := range versions {
		group.Go(func() error {
			proofs[i], errs[i] = dataset.ReadProof(ctx, store, v)
			return nil
		})
	}
	_ = group.Wait() // errors are kept one by one
	return proofs, errs
}

// prover collects which young files some committed version named. Versions are given to it in order, oldest first.
type prover struct {
	plan   *Plan
	store  objstore.Store
	proven map[string]struct{} // keys of young files, proven and not yet given out
	next   uint64              // the version number that would follow without a gap; 0 before the first
}

func newProver(p *Plan, store objstore.Store) *prover {
	v := &prover{plan: p, store: store, proven: map[string]struct{}{}}
	for key := range p.owed {
		if _, ok := p.young[key]; ok {
			v.proven[key] = struct{}{}
		}
	}
	return v
}

// chunk takes in versions that are about to go, and returns the young files that nothing names any more once they are gone.
// boundary is the first listed version behind them. Versions that turn out damaged or not understood are returned as bad: they
// stay, and so does what they name as far as that can be read.
func (v *prover) chunk(ctx context.Context, versions []dataset.Version, boundary dataset.Version) (dead []objstore.Object, bad map[uint64]string, err error) {
	bad = map[uint64]string{}
	if len(v.plan.young) == 0 {
		return nil, bad, nil
	}
	proofs, err := v.proofs(ctx, versions, bad)
	if err != nil {
		return nil, nil, err
	}
	for i, version := range versions {
		if proofs[i] == nil {
			continue
		}
		if err := v.take(ctx, version, proofs[i]); err != nil {
			if !decoding(err) {
				return nil, nil, err
			}
			bad[version.Number] = err.Error()
		}
	}
	still, err := v.named(ctx, boundary)
	if err != nil {
		return nil, nil, err
	}
	for key := range v.proven {
		if v.plan.working.names(key) || still.names(key) {
			continue
		}
		dead = append(dead, v.plan.young[key])
		delete(v.proven, key)
	}
	return dead, bad, nil
}

// proofs reads those of the versions that were not read before.
func (v *prover) proofs(ctx context.Context, versions []dataset.Version, bad map[uint64]string) ([]*dataset.Proof, error) {
	var unread []dataset.Version
	for _, version := range versions {
		if v.plan.proofs[version.Number] == nil {
			unread = append(unread, version)
		}
	}
	read, errs := readProofs(ctx, v.store, unread)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read expired versions: %w", err)
	}
	byNumber := map[uint64]*dataset.Proof{}
	for i, version := range unread {
		stays, err := v.plan.judge(version, read[i], errs[i])
		if err != nil {
			return nil, err
		}
		if stays != "" {
			bad[version.Number] = stays
			continue
		}
		byNumber[version.Number] = read[i]
	}
	out := make([]*dataset.Proof, len(versions))
	for i, version := range versions {
		if out[i] = v.plan.proofs[version.Number]; out[i] == nil {
			out[i] = byNumber[version.Number]
		}
		delete(v.plan.proofs, version.Number)
	}
	return out, nil
}

// take notes what a version proves. Its transaction says what it brought; everything that it names counts where the versions
// before it are gone, or where the transaction does not tell all.
func (v *prover) take(ctx context.Context, version dataset.Version, proof *dataset.Proof) error {
	m, t := proof.Manifest, proof.Transaction
	gap := version.Number != v.next
	v.next = version.Number + 1
	complete := false
	if t == nil && m != nil {
		var err error
		if t, err = dataset.ReadTransaction(ctx, v.store, m); err != nil && !decoding(err) {
			return fmt.Errorf("read the transaction of version %d: %w", version.Number, err)
		}
	}
	if t != nil {
		var keys, indices []string
		keys, indices, complete = txn.Added(t)
		for _, key := range keys {
			v.prove(key)
		}
		for _, id := range indices {
			v.proveIndex(id)
		}
		v.prove(txn.Key(t.GetReadVersion(), t.GetUuid()))
	}
	if complete && !gap {
		return nil
	}
	if m == nil {
		var err error
		if m, err = dataset.ReadManifest(ctx, v.store, version); err != nil {
			return fmt.Errorf("read version %d whole: %w", version.Number, err)
		}
	}
	return v.takeManifest(version, m)
}

func (v *prover) takeManifest(version dataset.Version, m *manifest.Manifest) error {
	files := dataset.NewFiles()
	if err := files.Add(version.Key, m); err != nil {
		return fmt.Errorf("files of version %d: %w", version.Number, err)
	}
	for key := range files.Keys {
		v.prove(key)
	}
	for id := range files.Indices {
		v.proveIndex(id)
	}
	return nil
}

// prove notes a file, and the blob sidecars of a data file.
func (v *prover) prove(key string) {
	if _, ok := v.plan.young[key]; ok {
		v.proven[key] = struct{}{}
	}
	stem, ok := strings.CutSuffix(key, ".lance")
	if !ok {
		return
	}
	for other := range v.plan.sidecars[stem+"/"] {
		v.proven[other] = struct{}{}
	}
}

func (v *prover) proveIndex(id string) {
	for key := range v.plan.indexFiles[indexmeta.Folder+id+"/"] {
		v.proven[key] = struct{}{}
	}
}

// named is what a version names; everything where it can't be read, since it stays then.
func (v *prover) named(ctx context.Context, version dataset.Version) (*working, error) {
	w := &working{files: dataset.NewFiles()}
	if v.plan.isRetained(version.Number) {
		return w, nil // part of the working set already
	}
	m, err := dataset.ReadManifest(ctx, v.store, version)
	if err != nil {
		return nil, fmt.Errorf("read version %d, the first that stays for now: %w", version.Number, err)
	}
	if err := w.files.Add(version.Key, m); err != nil {
		return nil, fmt.Errorf("files of version %d: %w", version.Number, err)
	}
	return w, nil
}
