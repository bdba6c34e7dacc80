package maintain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/prune"
)

// maxIdle is how long passes go by the ledger at most until they look at everything again: what nobody committed is seen then.
const maxIdle = 24 * time.Hour

// pruneUnlessIdle spares the listing of every folder where the ledger shows that nothing can have expired since the last one.
func (p *pass) pruneUnlessIdle(ctx context.Context) {
	idle, err := p.isIdle(ctx)
	if err != nil {
		p.failPruning(err)
		return
	}
	if idle {
		p.idle, p.rest = true, p.entry.Idle
		p.res.Remaining = &Remaining{}
		p.find("idle", fmt.Sprintf("nothing has changed since all was listed at %s, and nothing can expire before %s: not listed again",
			p.rest.ListedAt.Format(time.RFC3339), p.rest.Until.Format(time.RFC3339)))
		return
	}
	p.entry.Idle = nil // until this pass has ended well
	p.prune(ctx)
}

// isIdle compares the dataset with what the ledger says of it. At most one request: a listing of the references.
func (p *pass) isIdle(ctx context.Context) (bool, error) {
	rest := p.entry.Idle
	if rest == nil || len(p.entry.Sweep) > 0 || len(p.entry.Attempts) > 0 || p.commits > 0 {
		return false, nil
	}
	if rest.Version != p.version.Number || rest.ETag != p.version.ETag || rest.Policy != p.policyDigest() {
		return false, nil
	}
	now, err := p.store.Now(ctx)
	if err != nil {
		return false, fmt.Errorf("ask the clock of %s: %w", p.target.URI, err)
	}
	if !now.Before(rest.Until) || now.Before(rest.ListedAt.Add(-time.Minute)) {
		return false, nil
	}
	stamp, err := dataset.RefsStamp(ctx, p.store)
	if err != nil {
		return false, fmt.Errorf("look at the references: %w", err)
	}
	return digest(stamp) == rest.Refs, nil
}

// resting is what a next pass may go by once everything in the plan is gone. What is stored after the listing is past the unverified
// age when that has gone by once, and not before.
func (p *pass) resting(plan *prune.Plan) *ledger.Idle {
	until := plan.ListedAt.Add(min(maxIdle, p.target.Settings.UnverifiedAge))
	if !plan.NextExpiry.IsZero() && plan.NextExpiry.Before(until) {
		until = plan.NextExpiry
	}
	return &ledger.Idle{
		Version: plan.Latest, ETag: plan.LatestETag, Refs: digest(plan.RefsStamp), Policy: p.policyDigest(),
		ListedAt: plan.ListedAt.UTC(), Until: until.UTC(),
	}
}

// rememberRest notes for the next pass that nothing is left to do, if that is so.
func (p *pass) rememberRest() {
	done := p.res.Outcome == OK && p.res.Drained && len(p.bad) == 0 && p.unsupported == 0
	if !done || len(p.entry.Sweep) > 0 || len(p.entry.Attempts) > 0 {
		p.entry.Idle = nil
		return
	}
	p.entry.Idle = p.rest
}

// policyDigest changes with every setting, and with the program.
func (p *pass) policyDigest() string {
	s := p.target.Settings
	s.Policy = nil // what the others came from
	data, err := json.Marshal(s)
	if err != nil {
		p.log.Warn("settings", slog.Any("err", err))
		return "" // not reached: they are numbers
	}
	return digest(p.keeper.Version + string(data))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
