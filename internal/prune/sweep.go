package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

const (
	// chunkVersions are removed together: so many that a boundary manifest a chunk costs little, so few that the names to
	// be written down before fit the journal.
	chunkVersions = 1000
	// batchKeys are deleted between two looks at the lease and the dataset: as many as the service takes in a second or so.
	batchKeys = 4000
	// leastBatch keeps a slow sweep from looking more often than it deletes.
	leastBatch = 100
	// maxJournal is the names that are written down for one chunk. Of more, the rest would have to wait for the unverified age
	// if this pass were killed in the middle of the chunk.
	maxJournal = 4000
)

// Hooks connect a sweep with whoever runs it.
type Hooks struct {
	// Guard is asked before every batch of deletes; an error stops the sweep.
	Guard func(ctx context.Context) error
	// Journal replaces the names that a next pass must finish; nil clears them.
	Journal func(ctx context.Context, names []string) error
	// Progress is told how many of how many objects are gone. May be nil.
	Progress func(done, total int64)
	// Rate is how many objects the store is let remove in a second, so that batches take no longer than that; 0: no limit.
	Rate int
}

// batch is how many keys are deleted between two looks.
func (h Hooks) batch() int {
	if h.Rate == 0 {
		return batchKeys
	}
	return min(batchKeys, max(leastBatch, h.Rate))
}

// Result is what a sweep removed.
type Result struct {
	Versions  int
	Files     map[string]int64 // by kind, zeros included
	Bytes     int64
	Failed    []objstore.KeyError
	Bad       []Kept // expired versions that stay because they are damaged or not understood
	Unproven  Left   // young files that stay
	Remaining int    // expired versions that are still there
	Oldest    uint64 // lowest version that is still listed, as far as is known
	RestBytes int64  // of files that could go and are still there
}

// Sweep removes what the plan names, in chunks of versions, oldest first: write down the names that nobody could prove dead
// again, remove the manifests, remove the files that only they named, clear the names; then the old files. A kill after any
// step leaves every version that is still listed whole. The result says what was done, also with an error.
func Sweep(ctx context.Context, store objstore.Store, p *Plan, h Hooks) (*Result, error) {
	s := &sweep{store: store, plan: p, hooks: h, prover: newProver(p, store), result: &Result{Files: CountsByKind()}}
	s.total = int64(len(p.Expired) + len(p.Old))
	err := s.run(ctx)
	s.prover.stop()
	s.rest()
	return s.result, err
}

type sweep struct {
	store  objstore.Store
	plan   *Plan
	hooks  Hooks
	prover *prover
	result *Result
	carry  []objstore.Object // proven dead, but they, or a version that may name them, could not be removed: they stay in the journal
	gone   int               // versions of plan.Expired that were dealt with
	old    int               // files of plan.Old that were dealt with
	done   int64
	total  int64
}

func (s *sweep) run(ctx context.Context) error {
	expired := s.plan.Expired
	for s.gone < len(expired) {
		n := min(chunkVersions, len(expired)-s.gone)
		next := expired[s.gone+n:]
		if err := s.chunk(ctx, expired[s.gone:s.gone+n], next[:min(chunkVersions, len(next))]); err != nil {
			return err
		}
		s.gone += n
	}
	if len(expired) == 0 && len(s.plan.owed) > 0 {
		if err := s.finishOwed(ctx); err != nil {
			return err
		}
	}
	return s.sweepOld(ctx)
}

// chunk removes some versions and the young files that only they named. Meanwhile the next ones are read.
func (s *sweep) chunk(ctx context.Context, versions, next []dataset.Version) error {
	dead, bad, err := s.prover.chunk(ctx, versions, s.plan.after(versions))
	if err != nil {
		return fmt.Errorf("prove what goes with versions %d to %d: %w", versions[0].Number, versions[len(versions)-1].Number, err)
	}
	s.prover.readAhead(ctx, next)
	var manifests []objstore.Object
	for _, v := range versions {
		if reason, ok := bad[v.Number]; ok {
			s.result.Bad = append(s.result.Bad, Kept{Version: v.Number, Reason: reason})
			continue
		}
		manifests = append(manifests, objstore.Object{Key: v.Key, Size: v.Size, Modified: v.Modified})
	}
	if len(dead) > 0 { // the journal is to be as the dataset is now
		if err := s.before(ctx); err != nil {
			return err
		}
		dead = s.unnamed(dead)
	}
	s.total += int64(len(dead))
	if err := s.journal(ctx, slices.Concat(s.carry, dead)); err != nil {
		return err
	}
	failed, err := s.remove(ctx, manifests)
	if err != nil {
		return err
	}
	if failed > 0 {
		// What the versions that could not be removed name is not known one by one: all files of the chunk wait in the journal.
		s.carry = append(s.carry, dead...)
		return nil
	}
	return s.finish(ctx, dead)
}

// finishOwed removes what an earlier pass wrote down and could not finish, where no version goes in this one.
func (s *sweep) finishOwed(ctx context.Context) error {
	dead, err := s.prover.owed(ctx)
	if err != nil {
		return err
	}
	return s.finish(ctx, dead)
}

// finish removes what is written down; what could not be removed stays in the journal.
func (s *sweep) finish(ctx context.Context, dead []objstore.Object) error {
	if _, err := s.remove(ctx, dead); err != nil {
		return err
	}
	s.carry = append(s.carry, s.still(dead)...)
	return s.journal(ctx, s.carry)
}

// sweepOld removes what is past the unverified age. No listed version that is not retained is left then, or it is damaged.
func (s *sweep) sweepOld(ctx context.Context) error {
	if s.result.Versions < len(s.plan.Expired)-len(s.result.Bad) && len(s.result.Failed) > 0 {
		return nil // a version that could not be removed may still name them
	}
	for s.old < len(s.plan.Old) {
		n := min(s.hooks.batch(), len(s.plan.Old)-s.old)
		if _, err := s.remove(ctx, s.plan.Old[s.old:s.old+n]); err != nil {
			return err
		}
		s.old += n
	}
	return nil
}

// before stands before each batch: the lease must hold, and what came in between is taken into the working set.
func (s *sweep) before(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	if err := s.hooks.Guard(ctx); err != nil {
		return err
	}
	if err := s.plan.catchUp(ctx, s.store); err != nil {
		return err
	}
	return s.raiseHint(ctx)
}

// raiseHint brings the version hint of an unordered store to the latest version where it lags behind. Readers begin at the
// hinted version and probe upwards until one is missing: a gap above it would hide the latest version from them.
func (s *sweep) raiseHint(ctx context.Context) error {
	if s.store.Ordered() || len(s.plan.Expired) == 0 {
		return nil
	}
	key := manifest.Folder + manifest.HintName
	data, _, err := s.store.Get(ctx, key)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil // readers list
	}
	if err != nil {
		return fmt.Errorf("read the version hint: %w", err)
	}
	hinted, err := manifest.DecodeHint(data)
	if err == nil && hinted > s.plan.Expired[len(s.plan.Expired)-1].Number {
		return nil
	}
	if err := s.store.Put(ctx, key, manifest.EncodeHint(s.plan.known)); err != nil {
		return fmt.Errorf("raise the version hint: %w", err)
	}
	return nil
}

// remove deletes objects in batches and returns how many of them could not be deleted. What has become part of the working set
// meanwhile is left out.
func (s *sweep) remove(ctx context.Context, objects []objstore.Object) (failed int, err error) {
	for batch := range slices.Chunk(objects, s.hooks.batch()) {
		if err := s.before(ctx); err != nil {
			return failed, err
		}
		batch = s.unnamed(batch)
		keys := make([]string, len(batch))
		for i, o := range batch {
			keys[i] = o.Key
		}
		faults, err := s.store.Delete(ctx, keys)
		if err != nil {
			return failed, fmt.Errorf("delete %d objects: %w", len(keys), err)
		}
		failed += len(faults)
		s.result.Failed = append(s.result.Failed, faults...)
		s.count(batch, faults)
	}
	return failed, nil
}

// unnamed are the objects that the working set, as it is by now, does not name.
func (s *sweep) unnamed(objects []objstore.Object) []objstore.Object {
	out := make([]objstore.Object, 0, len(objects))
	for _, o := range objects {
		if !s.plan.working.names(o.Key) {
			out = append(out, o)
		}
	}
	return out
}

func (s *sweep) count(batch []objstore.Object, faults []objstore.KeyError) {
	stayed := map[string]struct{}{}
	for _, f := range faults {
		stayed[f.Key] = struct{}{}
	}
	for _, o := range batch {
		if _, ok := stayed[o.Key]; ok {
			continue
		}
		class := dataset.Classify(o.Key)
		s.result.Files[KindOf(class)]++
		s.result.Bytes += o.Size
		if class == dataset.ManifestAttached {
			s.result.Versions++
		}
		delete(s.plan.young, o.Key)
	}
	s.done += int64(len(batch))
	if s.hooks.Progress != nil {
		s.hooks.Progress(s.done, s.total)
	}
}

// journal writes down what must be finished if this pass ends here.
func (s *sweep) journal(ctx context.Context, objects []objstore.Object) error {
	var names []string
	for _, o := range objects[:min(len(objects), maxJournal)] {
		names = append(names, o.Key)
	}
	slices.Sort(names)
	if len(names) == 0 && len(s.plan.owed) == 0 {
		return nil
	}
	if err := s.hooks.Journal(ctx, names); err != nil {
		return fmt.Errorf("write the journal of %d names: %w", len(names), err)
	}
	s.plan.owed = map[string]struct{}{}
	for _, name := range names {
		s.plan.owed[name] = struct{}{}
	}
	return nil
}

// still are those of the objects that could not be deleted.
func (s *sweep) still(objects []objstore.Object) []objstore.Object {
	var out []objstore.Object
	for _, o := range objects {
		if _, ok := s.plan.young[o.Key]; ok {
			out = append(out, o)
		}
	}
	return out
}

// oldest is the lowest version that is not known to be gone.
func (s *sweep) oldest() uint64 {
	expired, listed := s.plan.Expired, s.plan.listed
	i := 0
	for i < len(expired) && expired[i].Number == listed[i].Number {
		i++
	}
	lowest := listed[i].Number
	if s.gone < len(expired) {
		lowest = min(lowest, expired[s.gone].Number)
	}
	for _, k := range s.result.Bad {
		lowest = min(lowest, k.Version)
	}
	for _, f := range s.result.Failed {
		name := manifest.ParseName(strings.TrimPrefix(f.Key, manifest.Folder))
		if name.Kind == manifest.Attached {
			lowest = min(lowest, name.Version)
		}
	}
	return lowest
}

// rest sums up what is still there.
func (s *sweep) rest() {
	r := s.result
	r.Oldest = s.oldest()
	r.Remaining = max(0, len(s.plan.Expired)-r.Versions-len(r.Bad))
	for _, v := range s.plan.Expired[s.gone:] {
		r.RestBytes += v.Size
	}
	for _, o := range s.plan.Old[s.old:] {
		r.RestBytes += o.Size
	}
	r.Unproven = Left{Reason: fmt.Sprintf("no version that is known names them; they stay until they are %s old", s.plan.policy.UnverifiedAge)}
	for _, o := range s.plan.young {
		r.Unproven.Files++
		r.Unproven.Bytes += o.Size
	}
}
