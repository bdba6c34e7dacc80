package maintain

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"
)

// Run maintains the targets one after the other, the longest untended first, and returns what was done. ctx's deadline is that
// of the whole run, margin already taken off; the time left is shared evenly among the targets still to come. A failing target does
// not stop the next.
func (k *Keeper) Run(ctx context.Context, targets []Target) Document {
	doc := Document{Outcome: OK, Drained: true, Results: []Result{}}
	for i, target := range k.order(ctx, targets) {
		doc.DryRun = doc.DryRun || target.Settings.DryRun
		if k.MaxNamed > 0 {
			target.maxNamed = max(1, k.MaxNamed/len(targets))
		}
		result := k.share(ctx, target, len(targets)-i)
		doc.Outcome = Worst(doc.Outcome, result.Outcome)
		doc.Drained = doc.Drained && result.Drained
		doc.Results = append(doc.Results, result)
	}
	return doc
}

// order puts the targets that no pass has seen first, then those whose last success is the longest ago, and of equals the one with
// the larger backlog as the ledger knows it. Whatever a run has no time for comes first in the next.
func (k *Keeper) order(ctx context.Context, targets []Target) []Target {
	if len(targets) < 2 {
		return targets
	}
	type rank struct {
		target  Target
		since   time.Time // zero: never seen
		backlog uint64
	}
	ranks := make([]rank, len(targets))
	for i, t := range targets {
		ranks[i].target = t
		entry, found, err := k.Ledger.Load(ctx, t.Key)
		if err != nil {
			return targets // the passes say what is wrong; a ledger that does not answer must not be waited for again and again
		}
		if !found {
			continue
		}
		if age, known := entry.SinceSuccess(k.Now()); known {
			ranks[i].since = k.Now().Add(-age)
		}
		ranks[i].backlog, _ = entry.Unreclaimed(0, 0, false)
	}
	slices.SortStableFunc(ranks, func(a, b rank) int {
		return cmp.Or(a.since.Truncate(time.Second).Compare(b.since.Truncate(time.Second)), cmp.Compare(b.backlog, a.backlog))
	})
	ordered := make([]Target, len(ranks))
	for i, r := range ranks {
		ordered[i] = r.target
	}
	return ordered
}

// share gives a target its part of the time left and repeats its pass until nothing is left to do, where that is asked.
func (k *Keeper) share(ctx context.Context, target Target, left int) Result {
	if deadline, ok := ctx.Deadline(); ok {
		now := k.Now()
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, now.Add(deadline.Sub(now)/time.Duration(left)))
		defer cancel()
	}
	result := k.watched(ctx, target)
	for target.Settings.UntilDrained && result.again() && ctx.Err() == nil {
		next := k.watched(ctx, target)
		if next.Outcome == Skipped {
			break
		}
		result = result.followedBy(next)
	}
	return result
}

// watched runs one pass. A panic becomes the pass's failure; a pass that outlives its deadline is given up on, reported as
// failed with the step it hangs in, and its lease left to expire, since it may still be at work.
func (k *Keeper) watched(ctx context.Context, target Target) Result {
	p := newPass(k, target)
	if ctx.Err() != nil {
		return p.notBegun(ctx)
	}
	done := make(chan Result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				p.log.Error("pass panicked", slog.String("step", p.stepName()), slog.Any("err", r), slog.String("stack", string(debug.Stack())))
				done <- p.abandoned(ctx, fmt.Errorf("panic in step %s: %v", p.stepName(), r), true)
			}
		}()
		done <- p.run(ctx)
	}()
	deadline, ok := ctx.Deadline()
	if !ok {
		return <-done
	}
	hung := time.NewTimer(deadline.Sub(k.Now()) + k.margin()*overdue/parts)
	defer hung.Stop()
	select {
	case result := <-done:
		return result
	case <-hung.C:
		return p.abandoned(ctx, fmt.Errorf("step %s did not end in time", p.stepName()), false)
	}
}
