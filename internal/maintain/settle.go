package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/ledger"
)

// settle resolves the rewrites that earlier passes left unfinished in the ledger. Their files may go only once their commit can
// never happen any more: one was never allowed to claim a version (the fence stops it from being allowed now), or the version
// that it was last allowed to claim is another's. A paused keeper that wakes up can then claim nothing, since each further
// claim needs a record in the ledger, which the fence refuses.
func (p *pass) settle(ctx context.Context) {
	for _, attempt := range p.entry.Attempts {
		if err := p.lease.Check(ctx); err != nil {
			return // whoever has it settles them
		}
		verdict, err := p.verdict(ctx, attempt)
		if err != nil {
			p.log.Warn("unfinished rewrite not resolved", slog.Any("err", err))
			p.find("attempt", fmt.Sprintf("a rewrite that an earlier pass left is not resolved: %v", err))
			continue
		}
		switch verdict {
		case commit.Ours:
			p.entry = p.entry.WithoutAttempt(attempt.TransactionUUID)
		case commit.Theirs:
			p.discard(ctx, attempt)
		case commit.Absent, commit.Unknown:
			if verdict == commit.Absent && attempt.Target < p.version.Number {
				// A clean-up has removed that version, whoever made it, and nothing will settle it any more. Files of it that
				// no version names go as all such files do, when they are old.
				p.entry = p.entry.WithoutAttempt(attempt.TransactionUUID)
				continue
			}
			// It may still be committed as the version that it claimed; the next version, ours or anybody's, settles it.
			p.log.Info("rewrite of an earlier pass is still open", slog.Uint64("version", attempt.Target))
		}
	}
}

// verdict says what became of a rewrite that an earlier pass left.
func (p *pass) verdict(ctx context.Context, attempt ledger.Attempt) (commit.Verdict, error) {
	if attempt.Target == 0 {
		return commit.Theirs, nil
	}
	verdict, err := commit.Resolve(ctx, p.store, attempt.Target, attempt.TransactionUUID)
	if err != nil {
		return verdict, fmt.Errorf("find out whether a rewrite became version %d: %w", attempt.Target, err)
	}
	return verdict, nil
}

// discard deletes the files of a rewrite that is known lost and takes it off the ledger's books. It needs no lease: their names
// are nobody else's, and no version will ever name them.
func (p *pass) discard(ctx context.Context, attempt ledger.Attempt) {
	late, cancel := p.late(ctx, discarding)
	defer cancel()
	if err := p.remove(late, attempt.Files); err != nil {
		p.log.Warn("files of a lost rewrite stay for now", slog.Int("files", len(attempt.Files)), slog.Any("err", err))
		p.find("attempt", fmt.Sprintf("%d files of a lost rewrite could not be removed; the next pass tries again: %v", len(attempt.Files), err))
		return
	}
	p.entry = p.entry.WithoutAttempt(attempt.TransactionUUID)
}

// Ends of what a pass may still do behind its deadline, in parts of the margin. They leave each step time of its own where the
// one before it hangs; all come before the watchdog gives the pass up, whose record begins only then.
const (
	parts      = 24
	discarding = 2
	measuring  = 3
	recording  = 5
	releasing  = 6
	overdue    = 8
	abandoning = 16
	notBegun   = 20
)

// unhurried is how long what comes last may take where nothing presses.
const unhurried = time.Minute

// late is a context for what must still be done when ctx has ended: until a part of the margin behind its deadline, or behind now where
// a pass without one was stopped.
func (p *pass) late(ctx context.Context, end time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = p.keeper.Now()
		if ctx.Err() == nil {
			deadline = deadline.Add(unhurried)
		}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(p.keeper.margin()*end/parts))
}

// remove deletes files of our own making, in one batch.
func (p *pass) remove(ctx context.Context, files []string) error {
	if len(files) == 0 {
		return nil
	}
	failed, err := p.store.Delete(ctx, files)
	for _, f := range failed {
		err = errors.Join(err, f)
	}
	if err != nil {
		return fmt.Errorf("remove the files of a lost rewrite: %w", err)
	}
	return nil
}
