package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/lock"
	"lancekeeper/internal/metrics"
)

// fail keeps the error that ended a pass before its steps.
func (p *pass) fail(err error) {
	outcome, fault := judge(err)
	if errors.Is(err, lance.ErrUnsupported) {
		p.unsupported++
	}
	p.res.Outcome = Worst(p.res.Outcome, outcome)
	if p.res.Error == nil {
		p.res.Error = fault
		if fault != nil {
			fault.Step = p.stepName()
		}
	}
	if p.res.Reason == "" {
		p.res.Reason = err.Error()
	}
}

// finish is the end of every pass that held the lock: measure, record, metrics, release, whatever came before.
func (p *pass) finish(ctx context.Context) Result {
	p.listen()
	p.begin("record")
	p.withLate(ctx, measuring, func(ctx context.Context) {
		p.settleLate(ctx)
		p.measure(ctx)
	})
	p.conclude()
	p.withLate(ctx, recording, p.record)
	p.report()
	p.withLate(ctx, releasing, func(ctx context.Context) {
		if err := p.lease.Release(ctx); err != nil {
			p.log.Warn("release", slog.Any("err", err))
			p.find("lock", "the lease could not be released: "+err.Error())
		}
	})
	return p.res
}

// withLate does a step of the end in time of its own.
func (p *pass) withLate(ctx context.Context, end time.Duration, do func(ctx context.Context)) {
	late, cancel := p.late(ctx, end)
	defer cancel()
	do(late)
}

// SilentStoreError is the failure of a pass whose time ended while its store did not answer. Without it such a pass would look
// like one that had too much to do.
type SilentStoreError struct {
	URI     string
	Silence time.Duration // how long nothing at all was answered
	Cause   string        // what was given up then
}

func (e *SilentStoreError) Error() string {
	return fmt.Sprintf("%s did not answer for %s, until time ran out: %s", e.URI, e.Silence.Round(time.Second), e.Cause)
}

// A store is silent where nothing was answered for that long, and for that part of the time that the pass had. Stores repeat
// requests which are not answered, and it may be the last of them alone that time ran out for.
const (
	minSilence  = 5 * time.Second
	silentShare = 3
)

// listen makes a failure of what is unfinished as far as it is the store's silence that took the time.
func (p *pass) listen() {
	if p.meter == nil {
		return
	}
	silence := p.meter.Silence()
	if silence < minSilence || silence*silentShare < p.keeper.Now().Sub(p.began) {
		return
	}
	err := &SilentStoreError{URI: p.target.URI, Silence: silence}
	switch {
	case p.res.Outcome == Partial:
		err.Cause, p.res.Reason = p.res.Reason, ""
		p.fail(err)
	case p.res.Compaction.Outcome == Partial:
		err.Cause = "compaction is unfinished"
		p.failCompaction(err)
	case p.res.Pruning.Outcome == Partial:
		err.Cause = "pruning is unfinished"
		p.failPruning(err)
	}
}

// settleLate looks once more at rewrites of earlier passes: a version that came meanwhile may have decided them.
func (p *pass) settleLate(ctx context.Context) {
	if p.store != nil && len(p.entry.Attempts) > 0 {
		p.settle(ctx)
	}
}

// measure looks at the dataset as it is now, as far as it can be seen.
func (p *pass) measure(ctx context.Context) {
	if p.store == nil {
		return
	}
	if !p.idle { // else what it was opened with is all there is
		if err := p.reload(ctx); err != nil {
			p.log.Warn("measure", slog.Any("err", err))
		}
	}
	if p.oldest == 0 && p.entry.LastSuccess == nil {
		if l, err := dataset.List(ctx, p.store); err == nil {
			p.oldest, p.listed = l.Versions[0].Number, len(l.Versions)
			p.version.Number = l.Versions[len(l.Versions)-1].Number
		}
	}
	if p.manifest == nil || p.manifest.GetVersion() != p.version.Number {
		return
	}
	p.res.After = p.state()
	if p.idle {
		manifests := int(p.entry.Manifests)
		p.res.Before.Manifests, p.res.After.Manifests = &manifests, &manifests
	}
	if p.files > 0 {
		manifests, files, bytes := p.listed, p.files, p.bytes
		p.res.After.Manifests, p.res.After.Files, p.res.After.Bytes = &manifests, &files, &bytes
	}
}

// conclude makes one outcome of the parts.
func (p *pass) conclude() {
	r := &p.res
	for _, part := range []struct {
		outcome Outcome
		fault   *Fault
	}{{r.Compaction.Outcome, r.Compaction.Error}, {r.Pruning.Outcome, r.Pruning.Error}} {
		if part.outcome == Skipped {
			continue // nothing of it could be done, which is no failure
		}
		if Worst(r.Outcome, part.outcome) != r.Outcome {
			r.Outcome = part.outcome
		}
		if r.Error == nil && part.outcome == Failed {
			r.Error = part.fault
		}
	}
	if r.Reason == "" {
		switch {
		case r.Error != nil:
			r.Reason = r.Error.Message
		case r.Outcome == Partial:
			r.Reason = "time ran out between two steps; the next pass goes on"
		}
	}
	r.Drained = r.Outcome == OK && (r.Remaining == nil || r.Remaining.Versions == 0)
	r.DurationMs = p.keeper.Now().Sub(p.began).Milliseconds()
	if p.meter != nil {
		r.Requests = requestsOf(p.meter.Counts())
	}
}

// record writes the outcome into the ledger, and the gauges that follow from it into the result.
func (p *pass) record(ctx context.Context) {
	now := p.keeper.Now()
	if p.manifest != nil {
		exists := map[uint64]struct{}{}
		for _, f := range p.manifest.GetFragments() {
			exists[f.GetId()] = struct{}{}
		}
		p.entry = p.entry.Forget(func(id uint64) bool { _, ok := exists[id]; return ok })
	}
	latest := p.version.Number
	if latest > 0 {
		p.entry = p.entry.Measured(now, latest, p.oldest, int64(p.listed))
	}
	p.rememberRest()
	before := p.entry
	p.entry = p.outcome(before, p.res, latest)
	if err := p.save(ctx); err != nil {
		// Whatever it did: a success that is written nowhere is none, for this pass as for the next.
		p.fail(fmt.Errorf("record the pass: %w", err))
		p.entry = p.outcome(before, p.res, latest)
	}
	p.gauges(p.entry)
}

// outcome adds the end of the pass to an entry.
func (p *pass) outcome(e ledger.Entry, r Result, latest uint64) ledger.Entry {
	o := ledger.Outcome{At: p.keeper.Now(), Reason: r.Reason, Version: latest, DurationMs: r.DurationMs, Drained: r.Drained}
	if r.Error != nil {
		o.Class = r.Error.Class
	}
	if n, known := e.Unreclaimed(latest, p.oldest, latest > 0); known && r.Outcome != OK {
		o.Unreclaimed = &n
	}
	switch r.Outcome {
	case OK:
		return e.Succeeded(o)
	case Partial:
		return e.Partial(o)
	case Failed, Skipped:
	}
	return e.Failed(o)
}

// gauges puts what the ledger says into the result.
func (p *pass) gauges(e ledger.Entry) {
	p.res.UnreclaimedVersions, p.res.SecondsSinceSuccess = nil, nil
	if n, known := e.Unreclaimed(p.version.Number, p.oldest, p.version.Number > 0); known {
		p.res.UnreclaimedVersions = &n
	}
	if age, known := e.SinceSuccess(p.keeper.Now()); known {
		seconds := age.Seconds()
		p.res.SecondsSinceSuccess = &seconds
	}
	p.res.ConsecutiveFailures, p.res.Failures = e.ConsecutiveFailures, e.Failures
}

// report writes the metrics, and a failed pass to the log at warn with both numbers; nothing where the watchdog did already.
func (p *pass) report() {
	r := p.res
	p.mu.Lock()
	over := p.over
	if !over {
		p.final = &r
	}
	p.mu.Unlock()
	if over {
		return
	}
	if r.Outcome == Failed {
		attributes := []any{slog.String("outcome", string(r.Outcome)), slog.String("err", r.Reason), slog.Int("consecutiveFailures", r.ConsecutiveFailures)}
		if r.UnreclaimedVersions != nil {
			attributes = append(attributes, slog.Uint64("unreclaimedVersions", *r.UnreclaimedVersions))
		}
		p.log.Warn("pass failed", attributes...)
	} else {
		p.log.Info("pass ended", slog.String("outcome", string(r.Outcome)), slog.Int64("dur_ms", r.DurationMs))
	}
	if err := metrics.Write(p.keeper.Metrics, p.keeper.Now(), r.Dataset, p.sample(r)); err != nil {
		p.log.Error("metrics", slog.Any("err", err))
	}
}

func (p *pass) sample(r Result) metrics.Sample {
	s := metrics.Sample{UnreclaimedVersions: r.UnreclaimedVersions, SecondsSinceSuccess: r.SecondsSinceSuccess, Pass: &metrics.Pass{
		Skipped: r.Outcome == Skipped, Failed: r.Outcome == Failed, Duration: p.keeper.Now().Sub(p.began),
		VersionsRemoved: int64(r.Pruning.VersionsRemoved), RowsDropped: r.Compaction.RowsDropped,
		BytesReclaimed: r.Pruning.BytesReclaimed, BytesWritten: r.Compaction.BytesWritten,
		CommitConflicts: r.Compaction.Conflicts, SkippedFragments: p.aside(), Unsupported: p.unsupported + len(p.bad),
	}}
	for _, n := range r.Pruning.FilesRemoved {
		s.Pass.FilesRemoved += n
	}
	if r.Outcome != Skipped {
		s.ConsecutiveFailures = &r.ConsecutiveFailures
	}
	if r.Before != nil {
		s.FragmentsBefore, s.DatasetVersion = &r.Before.Fragments, &r.Before.Version
	}
	if r.After != nil {
		s.FragmentsAfter, s.DatasetVersion = &r.After.Fragments, &r.After.Version
		if r.After.Manifests != nil {
			n := int64(*r.After.Manifests)
			s.ManifestsOnStorage = &n
		}
	}
	return s
}

// aside is how many fragments are left alone because their rewrite failed or died. Those that an index covers, or that are not
// understood, are not among them.
func (p *pass) aside() int {
	all := maps.Clone(p.entry.Quarantined(p.keeper.Now()))
	if all == nil {
		all = map[uint64]string{}
	}
	maps.Copy(all, p.failed)
	return len(all)
}

// notHeld ends a pass that did not get the lock. Held by another it is skipped, which changes no gauge; any other reason is a
// failure, recorded as far as the ledger can be reached.
func (p *pass) notHeld(ctx context.Context, err error) Result {
	late, cancel := p.late(ctx, recording)
	defer cancel()
	p.fail(err)
	p.res.DurationMs = p.keeper.Now().Sub(p.began).Milliseconds()
	var held *lock.HeldError
	if errors.As(err, &held) {
		p.res.Reason = held.Error()
		if err := p.keeper.Ledger.Skip(late, p.target.Key, p.began, holder(held)); err != nil {
			p.log.Warn("record the skip", slog.Any("err", err))
		}
	}
	entry, found, loadErr := p.keeper.Ledger.Load(late, p.target.Key)
	if loadErr != nil {
		p.log.Warn("read the ledger", slog.Any("err", loadErr))
	}
	if found {
		p.gauges(entry)
	}
	if held == nil {
		p.res.ConsecutiveFailures++ // of this process's own knowledge: it can't be recorded without the lock
	}
	if held != nil {
		p.res.UnreclaimedVersions, p.res.SecondsSinceSuccess = nil, nil // the holder measures
	}
	p.report()
	return p.res
}

// notBegun is a pass for which no time was left: partial, with the gauges as the ledger has them.
func (p *pass) notBegun(ctx context.Context) Result {
	late, cancel := p.late(ctx, notBegun)
	defer cancel()
	p.fail(fmt.Errorf("no time is left for %s: %w", p.target.URI, ctx.Err()))
	entry, found, err := p.keeper.Ledger.Load(late, p.target.Key)
	if err != nil {
		p.log.Warn("read the ledger", slog.Any("err", err))
	}
	if found {
		p.gauges(entry)
	}
	p.report()
	return p.res
}

func holder(held *lock.HeldError) string {
	if held.Owner == "" {
		return "unknown"
	}
	return strings.TrimSpace(held.Owner)
}

// abandoned ends a pass that panicked or hangs, in its stead: it is recorded as failed, with the gauges from the ledger. release
// says whether nothing of it is at work any more; else its lease is left to expire.
func (p *pass) abandoned(ctx context.Context, err error, release bool) Result {
	late, cancel := p.late(ctx, abandoning)
	defer cancel()
	p.mu.Lock()
	entry, step, final := p.known, p.step, p.final
	p.over = true
	p.mu.Unlock()
	if final != nil {
		return *final // recorded and reported: what hangs is the release
	}
	q := newPass(p.keeper, p.target)
	q.began, q.step = p.began, step
	q.fail(err)
	q.res.DurationMs = p.keeper.Now().Sub(p.began).Milliseconds()
	if entry.Dataset != "" {
		q.entry = q.outcome(entry, q.res, 0)
		q.gauges(q.entry)
		if err := p.keeper.Ledger.Save(late, q.entry); err != nil {
			q.log.Warn("record", slog.Any("err", err))
		}
	} else {
		q.res.ConsecutiveFailures = 1
	}
	q.report()
	if release && p.lease != nil {
		if err := p.lease.Release(late); err != nil {
			q.log.Warn("release", slog.Any("err", err))
		}
	}
	return q.res
}
