package prune

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
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
	origin map[string]uint64   // the first version that named each of them, for who explains; nil: not asked for
	next   uint64              // the version number that would follow without a gap; 0 before the first
	since  time.Time           // older versions name no young file
	ahead  *reading            // of the chunk that comes next; nil if nothing is read ahead
}

// copySlack is how much younger than its version a file may be: stored earlier, it was copied later with the whole dataset. A file
// for which that is not enough stays until the unverified age.
const copySlack = 24 * time.Hour

// reading is a read of versions under way.
type reading struct {
	cancel   context.CancelFunc
	done     chan struct{}
	versions []dataset.Version
	proofs   []*dataset.Proof
	errs     []error
}

// readAhead begins to read what a chunk will need.
func (v *prover) readAhead(ctx context.Context, versions []dataset.Version) {
	if len(v.plan.young) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &reading{cancel: cancel, done: make(chan struct{}), versions: v.unread(versions)}
	v.ahead = r
	go func() {
		defer close(r.done)
		r.proofs, r.errs = readProofs(ctx, v.store, r.versions)
	}()
}

// read returns what was read ahead, or reads it now.
func (v *prover) read(ctx context.Context, versions []dataset.Version) ([]*dataset.Proof, []error) {
	r := v.ahead
	if r == nil || !slices.Equal(r.versions, versions) {
		v.stop()
		return readProofs(ctx, v.store, versions)
	}
	<-r.done
	r.cancel()
	v.ahead = nil
	return r.proofs, r.errs
}

// stop ends what is read ahead.
func (v *prover) stop() {
	if v.ahead != nil {
		v.ahead.cancel()
		<-v.ahead.done
		v.ahead = nil
	}
}

// unread are the versions whose transactions are needed and not known yet.
func (v *prover) unread(versions []dataset.Version) (out []dataset.Version) {
	for _, version := range versions {
		if v.plan.proofs[version.Number] == nil && !version.Modified.Before(v.since) {
			out = append(out, version)
		}
	}
	return out
}

func newProver(p *Plan, store objstore.Store) *prover {
	v := &prover{plan: p, store: store, proven: map[string]struct{}{}}
	for key := range p.owed {
		if _, ok := p.young[key]; ok {
			v.proven[key] = struct{}{}
		}
	}
	for _, o := range p.young {
		if at := o.Modified.Add(-copySlack); v.since.IsZero() || at.Before(v.since) {
			v.since = at
		}
	}
	return v
}

// chunk takes in versions that are about to go, and returns the young files that nothing names any more once they are gone.
// behind are the listed versions that follow them. Versions that turn out damaged or not understood are returned as bad: they
// stay, and so does what they name as far as that can be read.
func (v *prover) chunk(ctx context.Context, versions, behind []dataset.Version) (dead []objstore.Object, bad map[uint64]string, err error) {
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
	still, err := v.named(ctx, behind)
	if err != nil {
		return nil, nil, err
	}
	return v.dead(still), bad, nil
}

// owed gives out what an earlier pass proved and could not finish, where no version goes in this one.
func (v *prover) owed(ctx context.Context) ([]objstore.Object, error) {
	still, err := v.named(ctx, v.plan.listed)
	if err != nil {
		return nil, err
	}
	return v.dead(still), nil
}

// dead gives out what is proven and neither named by what is retained nor by still.
func (v *prover) dead(still *working) []objstore.Object {
	var dead []objstore.Object
	for key := range v.proven {
		if v.plan.working.names(key) || still.names(key) {
			continue
		}
		dead = append(dead, v.plan.young[key])
		delete(v.proven, key)
	}
	return dead
}

// proofs reads those of the versions that were not read before.
func (v *prover) proofs(ctx context.Context, versions []dataset.Version, bad map[uint64]string) ([]*dataset.Proof, error) {
	unread := v.unread(versions)
	read, errs := v.read(ctx, unread)
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
	var keys, indices []string
	if t != nil {
		keys, indices, complete = txn.Added(t)
		keys = append(keys, txn.Key(t.GetReadVersion(), t.GetUuid()))
		if _, restore := t.GetOperation().(*lancepb.Transaction_Restore_); restore {
			complete = false // it brings back what versions that are long gone had brought
		}
	}
	files := dataset.NewFiles()
	if !complete || gap {
		var err error
		if m == nil {
			m, err = dataset.ReadManifest(ctx, v.store, version)
		}
		switch {
		case errors.Is(err, objstore.ErrNotExist): // another clean-up was faster
		case err != nil:
			return fmt.Errorf("read version %d whole: %w", version.Number, err)
		default:
			if err := files.Add(version.Key, m); err != nil {
				return fmt.Errorf("files of version %d: %w", version.Number, err)
			}
		}
	}
	// A version that turned out damaged proves nothing, since it stays.
	for _, key := range slices.AppendSeq(keys, maps.Keys(files.Keys)) {
		v.prove(key, version.Number)
	}
	for _, id := range slices.AppendSeq(indices, maps.Keys(files.Indices)) {
		v.proveIndex(id, version.Number)
	}
	return nil
}

// prove notes a file, and the blob sidecars of a data file.
func (v *prover) prove(key string, version uint64) {
	if _, ok := v.plan.young[key]; ok {
		v.note(key, version)
	}
	stem, ok := strings.CutSuffix(key, ".lance")
	if !ok {
		return
	}
	for other := range v.plan.sidecars[stem+"/"] {
		v.note(other, version)
	}
}

func (v *prover) proveIndex(id string, version uint64) {
	for key := range v.plan.indexFiles[indexmeta.Folder+id+"/"] {
		v.note(key, version)
	}
}

func (v *prover) note(key string, version uint64) {
	v.proven[key] = struct{}{}
	if v.origin == nil {
		return
	}
	if _, known := v.origin[key]; !known {
		v.origin[key] = version
	}
}

// named is what the first of some listed versions names; one that is gone, or damaged, tells nothing and is passed over.
func (v *prover) named(ctx context.Context, listed []dataset.Version) (*working, error) {
	for _, version := range listed {
		w := &working{files: dataset.NewFiles()}
		if v.plan.isRetained(version.Number) {
			return w, nil // part of the working set already
		}
		m, err := dataset.ReadManifest(ctx, v.store, version)
		if err == nil {
			err = w.files.Add(version.Key, m)
		}
		switch {
		case err == nil:
			return w, nil
		case !decoding(err) && !errors.Is(err, objstore.ErrNotExist):
			return nil, fmt.Errorf("read version %d, the first that stays for now: %w", version.Number, err)
		}
	}
	return &working{files: dataset.NewFiles()}, nil
}
