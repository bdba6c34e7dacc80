package maintain

import (
	"context"
	"errors"
	"fmt"

	"lancekeeper/internal/compact"
	"lancekeeper/internal/lance"
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
	files, unproven, err := plan.Explain(ctx, p.store)
	if err != nil {
		return fmt.Errorf("explain the clean-up: %w", err)
	}
	out := &PrunePlan{Versions: []uint64{}, Files: []PlannedFile{}}
	remaining := Remaining{Versions: len(plan.Expired)}
	for _, v := range plan.Expired {
		out.Versions = append(out.Versions, v.Number)
	}
	for _, f := range files {
		out.Files = append(out.Files, PlannedFile{Path: f.Key, Bytes: f.Size, Reason: f.Reason})
		remaining.Bytes += f.Size
	}
	p.res.Pruning.Plan, p.res.Remaining = out, &remaining
	if unproven.Files > 0 {
		p.res.Pruning.Left = append(p.res.Pruning.Left, LeftFiles{Files: unproven.Files, Bytes: unproven.Bytes, Reason: unproven.Reason})
	}
	return nil
}
