package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/prune"
)

// maxReplans bounds how often a pass plans a clean-up anew because the dataset changed under it.
const maxReplans = 3

// prune removes expired versions and what only they named. It never fails the record behind it.
func (p *pass) prune(ctx context.Context) {
	for try := 1; ; try++ {
		err := p.pruneOnce(ctx)
		if errors.Is(err, prune.ErrChanged) && try < maxReplans {
			p.log.Info("planning the clean-up anew", slog.Any("err", err))
			continue
		}
		if err != nil {
			p.failPruning(err)
		}
		return
	}
}

func (p *pass) pruneOnce(ctx context.Context) error {
	plan, err := p.planPruning(ctx)
	if err != nil {
		return err
	}
	result, err := prune.Sweep(ctx, p.store, plan, prune.Hooks{
		Guard: func(ctx context.Context) error {
			if p.isOver() {
				return errGivenUp
			}
			return p.lease.Check(ctx)
		},
		Journal: func(ctx context.Context, names []string) error {
			p.entry.Sweep = names
			return p.save(ctx)
		},
		Progress: func(done, total int64) { p.advance(done, total, "objects") },
		Rate:     p.target.Settings.DeleteRate,
	})
	p.notePruned(plan, result)
	if err != nil || p.tidier == nil {
		return err
	}
	if err := p.lease.Check(ctx); err != nil {
		return err //nolint:wrapcheck // says what was lost
	}
	if err := p.tidier.Tidy(ctx); err != nil {
		return fmt.Errorf("tidy up beside %s: %w", p.target.URI, err)
	}
	return nil
}

// planPruning lists the dataset and notes what the listing says.
func (p *pass) planPruning(ctx context.Context) (*prune.Plan, error) {
	s := p.target.Settings
	now, err := p.store.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the clock of %s: %w", p.target.URI, err)
	}
	plan, err := prune.MakePlan(ctx, prune.Input{
		Store: p.store, Now: now, Owed: p.entry.Sweep,
		Policy: prune.Policy{
			Grace: s.Grace, Keep: s.Keep, UnverifiedAge: s.UnverifiedAge, Before: s.BeforeVersion, Pinned: s.PinVersions,
			Clones: s.HasClones, FailIfTagged: s.ErrorIfTagged,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("plan the clean-up of %s: %w", p.target.URI, err)
	}
	if p.oldest == 0 {
		p.oldest = plan.Oldest
		p.listedBefore(plan)
	}
	p.listed, p.files, p.bytes = plan.Manifests, plan.Files, plan.Bytes
	p.version.Number = max(p.version.Number, plan.Latest)
	p.rest = p.resting(plan)
	p.res.Pruning.Kept = kept(plan.Kept)
	p.res.Pruning.KeptVersions = len(plan.Kept)
	p.res.Pruning.Left = left(plan.Left)
	for _, k := range plan.Bad {
		p.noteBad(k)
	}
	return plan, nil
}

// noteBad counts and names an expired version that stays because it is damaged or not understood, once however often a pass
// plans.
func (p *pass) noteBad(k prune.Kept) {
	if _, known := p.bad[k.Version]; known {
		return
	}
	p.bad[k.Version] = struct{}{}
	if len(p.bad) <= maxNamed {
		p.find("version", fmt.Sprintf("version %d has expired and stays: %s", k.Version, k.Reason))
	}
}

// listedBefore fills in what the dataset held when the pass began, from the first listing, which came after compaction.
func (p *pass) listedBefore(plan *prune.Plan) {
	if p.res.Before == nil {
		return
	}
	manifests := plan.Manifests - p.commits
	files := plan.Files - p.added
	bytes := plan.Bytes - p.res.Compaction.BytesWritten
	p.res.Before.Manifests, p.res.Before.Files, p.res.Before.Bytes = &manifests, &files, &bytes
}

func (p *pass) notePruned(plan *prune.Plan, r *prune.Result) {
	out := &p.res.Pruning
	out.VersionsRemoved += r.Versions
	for kind, n := range r.Files {
		out.FilesRemoved[kind] += n
		p.files -= n
	}
	p.listed -= r.Versions
	p.oldest = r.Oldest
	p.bytes -= r.Bytes
	p.noteReclaimed(r.Bytes)
	out.FailedDeletes += len(r.Failed)
	for _, f := range r.Failed[:min(len(r.Failed), 3)] {
		p.find("delete", f.Error())
	}
	for _, k := range r.Bad {
		out.Kept = append(out.Kept, KeptVersion{Version: k.Version, Reason: k.Reason})
		out.KeptVersions++
		p.noteBad(k)
	}
	if r.Unproven.Files > 0 {
		out.Left = append(out.Left, LeftFiles{Path: "", Files: r.Unproven.Files, Bytes: r.Unproven.Bytes, Reason: r.Unproven.Reason})
	}
	p.res.Remaining = &Remaining{Versions: r.Remaining, Bytes: r.RestBytes}
	if len(r.Failed) > 0 {
		p.failPruning(fmt.Errorf("%d objects could not be deleted, the first: %w", len(r.Failed), r.Failed[0]))
	}
	if plan.Manifests > 0 && r.Versions > 0 {
		p.log.Info("pruned", slog.Int("versions", r.Versions), slog.Int64("bytes", r.Bytes))
	}
}

// noteReclaimed tells what was freed from what a bucket with versioning keeps behind markers.
func (p *pass) noteReclaimed(bytes int64) {
	if p.hider == nil || !p.hider.Hides() {
		p.res.Pruning.BytesReclaimed += bytes
		return
	}
	if p.res.Pruning.BytesHidden == 0 && bytes > 0 {
		p.find("versioning", "the bucket keeps old versions of objects: what was removed still takes up storage until a lifecycle rule for noncurrent versions removes it; here no object version is ever removed")
	}
	p.res.Pruning.BytesHidden += bytes
}

func kept(list []prune.Kept) []KeptVersion {
	out := []KeptVersion{}
	for _, k := range list[:min(len(list), maxNamed)] {
		v := KeptVersion{Version: k.Version, Reason: k.Reason}
		if !k.Until.IsZero() {
			until := k.Until.UTC().Truncate(time.Millisecond)
			v.Until = &until
		}
		out = append(out, v)
	}
	return out
}

func left(list []prune.Left) []LeftFiles {
	out := []LeftFiles{}
	for _, l := range list {
		out = append(out, LeftFiles{Path: l.Path, Files: l.Files, Bytes: l.Bytes, Reason: l.Reason})
	}
	return out
}

// failPruning keeps the first thing that went wrong with pruning.
func (p *pass) failPruning(err error) {
	outcome, fault := judge(err)
	if errors.Is(err, lance.ErrUnsupported) {
		p.unsupported++
	}
	p.log.Warn("pruning", slog.String("outcome", string(outcome)), slog.Any("err", err))
	out := &p.res.Pruning
	out.Outcome = Worst(out.Outcome, outcome)
	if out.Error == nil && fault != nil {
		fault.Step = "prune"
		out.Error = fault
	}
}

func (p *pass) advance(done, total int64, unit string) {
	if p.keeper.Progress != nil {
		p.keeper.Progress.Advance(done, total, unit)
	}
}
