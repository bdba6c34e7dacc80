package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/google/uuid"

	"lancekeeper/internal/compact"
	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/txn"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/lock"
)

// maxRounds bounds how often a pass plans anew after a lost race or a fragment set aside. What is left then is for the next.
const maxRounds = 8

// copyBytes is the least size of a page that is copied as it is: each smaller one would be one more request for every reader.
const copyBytes = 1 << 20

// taskEnd is how one task of a compaction ended.
type taskEnd int

const (
	taskDone taskEnd = iota
	taskLost         // another's commit touched its fragments
	taskSetAside
	taskStop // nothing more of this kind in this pass
)

// compact merges and rewrites fragments, task by task, each with a commit of its own. It never fails the steps behind it.
func (p *pass) compact(ctx context.Context) {
	ctx, cancel := p.share(ctx)
	defer cancel()
	if err := compact.Supported(p.manifest); err != nil {
		p.leaveDataset(err)
		return
	}
	if policy := p.target.Settings.IndexPolicy; policy == policyRemap || policy == policyDefer {
		p.find("policy", fmt.Sprintf("index policy %s is not built yet: fragments that an index covers are left alone", policy))
	}
	for range maxRounds {
		plan, err := compact.MakePlan(p.manifest, p.planOptions())
		if err != nil {
			p.failCompaction(err)
			return
		}
		p.noteSkipped(plan)
		p.res.Compaction.Planned += len(plan.Tasks)
		again, stop := p.tasks(ctx, plan)
		if stop || len(plan.Tasks) == 0 {
			return
		}
		if err := p.reload(ctx); err != nil {
			p.failCompaction(err)
			return
		}
		if !again {
			return
		}
	}
}

// tasks works through a plan. again: planning anew may find more to do; stop: this pass compacts no further.
func (p *pass) tasks(ctx context.Context, plan compact.Plan) (again, stop bool) {
	for i, task := range plan.Tasks {
		if p.keeper.Progress != nil {
			p.keeper.Progress.Advance(int64(i), int64(len(plan.Tasks)), "tasks")
		}
		switch p.task(ctx, task) {
		case taskDone:
		case taskLost, taskSetAside:
			again = true
		case taskStop:
			return again, true
		}
	}
	return again, false
}

// task rewrites, verifies and commits one group of fragments. Before the first byte is written, the ledger knows its files.
func (p *pass) task(ctx context.Context, task compact.Task) taskEnd {
	if err := p.fits(ctx, task); err != nil {
		p.failCompaction(err)
		return taskStop
	}
	attempt := ledger.Attempt{TransactionUUID: uuid.NewString(), ReadVersion: p.manifest.GetVersion(), At: p.keeper.Now()}
	names := make([]string, len(task.OutputRows))
	for i := range names {
		names[i] = compact.NewFileName()
		attempt.Files = append(attempt.Files, dataset.DataFolder+names[i])
	}
	attempt.Files = append(attempt.Files, txn.Key(attempt.ReadVersion, attempt.TransactionUUID))
	for _, f := range task.Fragments {
		attempt.Fragments = append(attempt.Fragments, f.GetId())
	}
	p.entry = p.entry.WithAttempt(attempt)
	if err := p.save(ctx); err != nil {
		p.failCompaction(err)
		return taskStop
	}
	started := p.keeper.Now()
	out, err := compact.Rewrite(ctx, p.store, p.manifest, task, names, compact.RewriteOptions{MemoryBytes: p.target.Settings.MemoryBytes, CopyBytes: copyBytes})
	if err == nil {
		err = compact.Verify(ctx, p.store, p.manifest, out)
	}
	if err != nil {
		return p.taskFailed(ctx, attempt, err)
	}
	end := p.commitTask(ctx, task, out, attempt)
	p.pace.Observe(out.BytesRead+2*out.BytesWritten, waits(task), p.keeper.Now().Sub(started))
	return end
}

// fits says whether a task can end before compaction's time is over.
func (p *pass) fits(ctx context.Context, task compact.Task) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("begin a rewrite of %d fragments: %w", len(task.Fragments), err)
	}
	if err := p.pace.Fits(ctx, p.keeper.Now(), 3*task.Bytes, waits(task)); err != nil {
		return fmt.Errorf("begin a rewrite of %d fragments: %w", len(task.Fragments), err)
	}
	return nil
}

// waits is about how many requests of a task are waited for one after the other: many are under way at once.
func waits(task compact.Task) int {
	const atOnce = 16
	return 2*len(task.Fragments)/atOnce + 2*len(task.OutputRows) + 4
}

// taskFailed handles a rewrite that was never offered for commit: its files go at once.
func (p *pass) taskFailed(ctx context.Context, attempt ledger.Attempt, err error) taskEnd {
	p.discard(ctx, attempt)
	var mismatch *compact.MismatchError
	var bad *compact.FragmentError
	switch {
	case ctx.Err() != nil, errors.As(err, &mismatch):
		p.failCompaction(err)
		return taskStop
	case errors.As(err, &bad):
		p.setAside([]uint64{bad.Fragment}, err)
		return taskSetAside
	case decoding(err):
		// Not one fragment's fault as far as can be told: the whole group is left for later.
		p.setAside(attempt.Fragments, err)
		return taskSetAside
	}
	// The store does not answer, or refuses: the next task would fare no better.
	p.failCompaction(err)
	return taskStop
}

func decoding(err error) bool {
	return errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported)
}

// commitTask offers a verified rewrite for commit.
func (p *pass) commitTask(ctx context.Context, task compact.Task, out *compact.Output, attempt ledger.Attempt) taskEnd {
	claimed := false
	rewrite := commit.Rewrite{UUID: attempt.TransactionUUID, ReadVersion: attempt.ReadVersion, Groups: []commit.Group{out.Group}, Indices: task.Indices}
	result, err := commit.Commit(ctx, p.store, rewrite, commit.Options{
		Guard: func(ctx context.Context, target uint64) error {
			err := p.guard(ctx, attempt, target)
			claimed = claimed || err == nil
			return err
		},
		Writer: "lancekeeper", WriterVersion: p.keeper.Version, Clock: p.store.Now,
	})
	c := &p.res.Compaction
	c.Conflicts += result.Conflicts
	c.BytesRead += out.BytesRead
	c.BytesWritten += out.BytesWritten
	var conflict *commit.ConflictError
	switch {
	case err == nil:
		p.entry = p.entry.WithoutAttempt(attempt.TransactionUUID).RewriteWon(len(task.Fragments))
		p.commits++
		p.added += int64(len(out.Keys)) + 2
		c.Tasks++
		c.FragmentsRemoved += len(out.Group.Old)
		c.FragmentsAdded += len(out.Group.New)
		c.RowsDropped += out.RowsDropped
		p.noteUncovered(task)
		p.log.Info("rewrite committed", slog.Uint64("version", result.Version), slog.Int("fragments", len(task.Fragments)),
			slog.Uint64("rows", task.LiveRows), slog.Int64("bytes", out.BytesWritten))
		return taskDone
	case errors.As(err, &conflict):
		p.log.Info("rewrite lost", slog.Any("err", err))
		p.discard(ctx, attempt)
		p.entry = p.entry.RewriteLost(len(task.Fragments))
		return taskLost
	}
	p.failCompaction(err)
	if !claimed && (errors.Is(err, lock.ErrLost) || errors.Is(err, ledger.ErrFenced) || errors.Is(err, errGivenUp)) {
		// Nobody else looks after these files any more, and they were never offered.
		p.discard(ctx, attempt)
	}
	// Unknown outcome, replaced dataset, or no answer: nothing is deleted, the ledger keeps the attempt.
	return taskStop
}

// guard stands before every put of a commit: the lease must hold, and the ledger must know which version is claimed.
func (p *pass) guard(ctx context.Context, attempt ledger.Attempt, target uint64) error {
	if err := p.lease.Check(ctx); err != nil {
		return fmt.Errorf("before claiming version %d: %w", target, err)
	}
	attempt.Target = target
	p.entry = p.entry.WithAttempt(attempt)
	return p.save(ctx)
}

// share bounds compaction so that pruning always has time of its own.
func (p *pass) share(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || !p.target.Settings.Prune {
		return context.WithCancel(ctx)
	}
	now := p.keeper.Now()
	return context.WithDeadline(ctx, now.Add(deadline.Sub(now)*6/10))
}

func (p *pass) planOptions() compact.Options {
	s := p.target.Settings
	o := compact.Options{
		TargetRows: s.TargetRows, TargetBytes: s.TargetBytes, DeletionsOver: s.DeletionsOver, Quarantined: p.entry.Quarantined(p.keeper.Now()),
		Swap: s.IndexPolicy != policyLeave, Uncover: s.IndexPolicy == policyUncover,
		MergeRatio: compact.MergeRatio, MaxFragments: p.entry.TaskFragments, MaxOpenBytes: s.MemoryBytes / 4,
	}
	if o.Quarantined == nil {
		o.Quarantined = map[uint64]string{}
	}
	maps.Copy(o.Quarantined, p.avoid)
	return o
}

// Index policies beside auto. Of stable row ids an index covers the new fragments at once, unless all covered ones are to be left.
const (
	policyLeave   = "leave"
	policyUncover = "uncover"
	policyRemap   = "remap"
	policyDefer   = "defer"
)

// noteUncovered tells which indices queries have to scan beside until they are optimized. It is never done silently.
func (p *pass) noteUncovered(task compact.Task) {
	for _, name := range task.Uncovers {
		p.find("index", fmt.Sprintf("index %s does not cover the rows of %d rewritten fragments any more: queries scan them until it is optimized", name, len(task.Fragments)))
	}
}

// setAside leaves fragments alone for the rest of this pass, and counts the failure against them: after the second one the
// ledger keeps them aside for longer. What is not supported is no failure.
func (p *pass) setAside(fragments []uint64, err error) {
	p.log.Warn("fragments set aside", slog.Any("fragments", ledger.FragmentSet(fragments).String()), slog.Any("err", err))
	for _, id := range fragments {
		p.avoid[id] = err.Error()
	}
	if errors.Is(err, lance.ErrUnsupported) {
		p.unsupported++
		return
	}
	for _, id := range fragments {
		p.failed[id] = err.Error()
	}
	p.entry = p.entry.AttemptFailed(p.keeper.Now(), fragments, err.Error())
	p.failCompaction(err)
}

// maxNamed bounds how many fragments or versions a result names one by one.
const maxNamed = 100

// skip counts fragments that are left alone, and names the first of them.
func (p *pass) skip(fragments []*lancepb.DataFragment, reason string) {
	c := &p.res.Compaction
	c.SkippedFragments += len(fragments)
	for _, f := range fragments[:min(len(fragments), maxNamed)] {
		c.Skipped = append(c.Skipped, SkippedFragment{Fragment: f.GetId(), Reason: reason})
	}
}

// noteSkipped keeps what the last plan left alone.
func (p *pass) noteSkipped(plan compact.Plan) {
	c := &p.res.Compaction
	c.Skipped, c.SkippedFragments = []SkippedFragment{}, len(plan.Skipped)
	for _, s := range plan.Skipped[:min(len(plan.Skipped), maxNamed)] {
		c.Skipped = append(c.Skipped, SkippedFragment{Fragment: s.Fragment, Reason: s.Reason})
	}
}

// leaveDataset notes that nothing of this dataset can be rewritten at all, which is no failure: it is pruned all the same.
func (p *pass) leaveDataset(err error) {
	if !errors.Is(err, lance.ErrUnsupported) {
		p.failCompaction(err)
		return
	}
	p.res.Compaction.Outcome = Skipped
	p.res.Compaction.Error = fault(classUnsupported, err)
	p.find("unsupported", "not compacted: "+err.Error())
	p.unsupported++
	p.skip(p.manifest.GetFragments(), err.Error())
}

// failCompaction keeps the first thing that went wrong with compaction.
func (p *pass) failCompaction(err error) {
	outcome, fault := judge(err)
	p.log.Warn("compaction", slog.String("outcome", string(outcome)), slog.Any("err", err))
	c := &p.res.Compaction
	c.Outcome = Worst(c.Outcome, outcome)
	if c.Error == nil && fault != nil {
		fault.Step = "compact"
		c.Error = fault
	}
}
