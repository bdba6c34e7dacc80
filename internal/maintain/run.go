package maintain

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Run maintains the targets one after the other and returns what was done. ctx's deadline is that of the whole run, margin
// already taken off; the time left is shared evenly among the targets still to come. A failing target does not stop the next.
func (k *Keeper) Run(ctx context.Context, targets []Target) Document {
	doc := Document{Outcome: OK, Drained: true, Results: []Result{}}
	for i, target := range targets {
		doc.DryRun = doc.DryRun || target.Settings.DryRun
		result := k.share(ctx, target, len(targets)-i)
		doc.Outcome = Worst(doc.Outcome, result.Outcome)
		doc.Drained = doc.Drained && result.Drained
		doc.Results = append(doc.Results, result)
	}
	return doc
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
				done <- p.abandoned(context.WithoutCancel(ctx), fmt.Errorf("panic in step %s: %v", p.stepName(), r), true)
			}
		}()
		done <- p.run(ctx)
	}()
	deadline, ok := ctx.Deadline()
	if !ok {
		return <-done
	}
	hung := time.NewTimer(deadline.Sub(k.Now()) + k.Margin/3)
	defer hung.Stop()
	select {
	case result := <-done:
		return result
	case <-hung.C:
		return p.abandoned(context.WithoutCancel(ctx), fmt.Errorf("step %s did not end in time", p.stepName()), false)
	}
}
