package maintain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"lancekeeper/internal/compact"
	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/prune"
)

// rehearse is a dry run: it plans both halves and writes nothing at all, neither lock nor ledger nor metrics.
func (p *pass) rehearse(ctx context.Context) Result {
	p.begin("open")
	entry, _, err := p.keeper.Ledger.Load(ctx, p.target.Key)
	if err != nil {
		p.fail(fmt.Errorf("read the ledger: %w", err))
	}
	p.entry = entry
	if err := p.open(ctx); err != nil {
		p.fail(err)
	} else {
		p.rehearseSteps(ctx)
	}
	p.conclude()
	p.gauges(p.entry)
	return p.res
}

func (p *pass) rehearseSteps(ctx context.Context) {
	if p.target.Settings.Compact {
		p.begin("compact")
		if err := p.rehearseCompaction(); err != nil {
			p.failCompaction(err)
		}
	}
	if p.target.Settings.Prune {
		p.begin("prune")
		if err := p.rehearsePruning(ctx); err != nil {
			p.failPruning(err)
		}
	}
}

func (p *pass) rehearseCompaction() error {
	if err := compact.Supported(p.manifest); err != nil {
		if errors.Is(err, lance.ErrUnsupported) {
			p.leaveDataset(err)
			return nil
		}
		return fmt.Errorf("plan: %w", err)
	}
	plan, err := compact.MakePlan(p.manifest, p.planOptions())
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	p.noteSkipped(plan)
	p.res.Compaction.Planned = len(plan.Tasks)
	for _, task := range plan.Tasks {
		planned := PlannedTask{LiveRows: task.LiveRows, OutputRows: task.OutputRows}
		for _, f := range task.Fragments {
			planned.Fragments = append(planned.Fragments, f.GetId())
		}
		p.res.Compaction.Plan = append(p.res.Compaction.Plan, planned)
	}
	return nil
}

func (p *pass) rehearsePruning(ctx context.Context) error {
	plan, err := p.planPruning(ctx)
	if err != nil {
		return err
	}
	lost, err := p.lost(ctx)
	if err != nil {
		return err
	}
	list := planList{most: p.target.maxNamed, sums: map[PlannedSum]*PlannedSum{}}
	for _, key := range slices.Sorted(maps.Keys(lost)) {
		list.take(lost[key])
	}
	unproven, err := plan.Explain(ctx, p.store, lost, list.take)
	if err != nil {
		return fmt.Errorf("explain the clean-up: %w", err)
	}
	if p.tidier != nil {
		if list.plan.StaleRows, err = p.tidier.Stale(ctx); err != nil {
			return fmt.Errorf("look beside %s: %w", p.target.URI, err)
		}
	}
	p.res.Pruning.Plan, p.res.Remaining = list.done(), &list.remaining
	if unproven.Files > 0 {
		p.res.Pruning.Left = append(p.res.Pruning.Left, LeftFiles{Files: unproven.Files, Bytes: unproven.Bytes, Reason: unproven.Reason})
	}
	return nil
}

// lost are the files of rewrites that earlier passes left and that can't be committed any more: a pass removes them first.
func (p *pass) lost(ctx context.Context) (map[string]prune.File, error) {
	files := map[string]prune.File{}
	for _, attempt := range p.entry.Attempts {
		verdict, err := p.verdict(ctx, attempt)
		if err != nil || verdict != commit.Theirs {
			continue // a pass leaves them too
		}
		for _, key := range attempt.Files {
			o, err := p.store.Stat(ctx, key)
			if errors.Is(err, objstore.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("look at a file of a lost rewrite: %w", err)
			}
			files[key] = prune.File{Key: key, Kind: prune.KindOf(dataset.Classify(key)), Size: o.Size, Cause: "of a rewrite that could not be committed"}
		}
	}
	return files, nil
}

// planList is what would go: the first of it by name, and the sums of all.
type planList struct {
	most      int // to be named; 0: all
	plan      PrunePlan
	sums      map[PlannedSum]*PlannedSum // by kind and reason
	remaining Remaining
}

func (l *planList) take(f prune.File) {
	if dataset.Classify(f.Key) == dataset.ManifestAttached {
		l.remaining.Versions++
		if l.room(len(l.plan.Versions)) {
			l.plan.Versions = append(l.plan.Versions, f.Version)
		} else {
			l.plan.OmittedVersions++
		}
	}
	if l.room(len(l.plan.Files)) {
		l.plan.Files = append(l.plan.Files, PlannedFile{Path: f.Key, Kind: f.Kind, Bytes: f.Size, Reason: f.Reason(), Version: f.Version})
	} else {
		l.plan.OmittedFiles++
	}
	key := PlannedSum{Kind: f.Kind, Reason: f.Cause}
	if l.sums[key] == nil {
		l.sums[key] = &PlannedSum{Kind: f.Kind, Reason: f.Cause}
	}
	l.sums[key].Files++
	l.sums[key].Bytes += f.Size
	l.remaining.Bytes += f.Size
}

func (l *planList) room(named int) bool { return l.most == 0 || named < l.most }

func (l *planList) done() *PrunePlan {
	plan := &l.plan
	if plan.Versions == nil {
		plan.Versions = []uint64{}
	}
	if plan.Files == nil {
		plan.Files = []PlannedFile{}
	}
	plan.Sums = []PlannedSum{}
	for sum := range maps.Values(l.sums) {
		plan.Sums = append(plan.Sums, *sum)
	}
	slices.SortFunc(plan.Sums, func(a, b PlannedSum) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason)) })
	return plan
}
