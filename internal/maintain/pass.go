package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"lancekeeper/internal/budget"
	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/lock"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/meterstore"
	"lancekeeper/internal/objstore/ratestore"
	"lancekeeper/internal/prune"
)

// pass is one pass on one dataset, from lock to release. Only the goroutine of run touches it, but for the fields of mu.
type pass struct {
	keeper *Keeper
	target Target
	log    *slog.Logger
	began  time.Time

	meter  *meterstore.Store
	store  objstore.Store
	tidier tidier         // nil where the store keeps nothing beside the objects
	hider  objstore.Hider // nil where deletes free what they remove, as far as is known
	lease  *lock.Lease
	entry  ledger.Entry

	version  dataset.Version    // the latest version, as last read
	manifest *manifest.Manifest // its manifest; nil until it was opened
	oldest   uint64             // lowest version that was listed; 0 if nothing was
	listed   int                // manifests that exist, as last known; 0 if not listed
	files    int64              // objects that exist, likewise, and their bytes
	bytes    int64

	idle    bool         // the ledger told that nothing can go: nothing was listed
	rest    *ledger.Idle // what a next pass may go by, if this one ends well
	commits int          // versions that this pass made
	added   int64        // objects that it added with them

	unsupported int                 // things left alone because they are not understood, beside
	bad         map[uint64]struct{} // expired versions that stay because they are damaged or not understood
	pace        budget.Estimator

	res Result

	avoid  map[uint64]string // fragments not to be tried again in this pass, with the reason
	failed map[uint64]string // those of them whose rewrite failed

	mu    sync.Mutex
	step  string
	known ledger.Entry // the entry as last saved, for the watchdog
	over  bool         // the watchdog has given up on the pass: it must not do anything any more
	final *Result      // as reported; nil before
}

// tidier is a store that keeps something beside its objects, which kills and other clean-ups may leave behind: the rows of an
// external manifest store. Tidy goes by the last whole listing.
type tidier interface {
	Tidy(ctx context.Context) error
	Stale(ctx context.Context) (versions []uint64, err error) // what Tidy would remove
}

func newPass(k *Keeper, t Target) *pass {
	p := &pass{keeper: k, target: t, began: k.Now(), log: k.Log.With(slog.String("table", t.URI)), avoid: map[uint64]string{}, failed: map[uint64]string{}, bad: map[uint64]struct{}{}}
	p.res = Result{Dataset: t.URI, Outcome: OK, Policy: t.Settings.Policy, Findings: []Finding{}}
	p.res.Compaction = Compaction{Outcome: OK, Skipped: []SkippedFragment{}}
	p.res.Pruning = Pruning{Outcome: OK, FilesRemoved: prune.CountsByKind(), Kept: []KeptVersion{}, Left: []LeftFiles{}}
	return p
}

// run is the straight line. Whatever a step returns, what follows it is decided here alone; the record, the metrics and the
// release happen always.
func (p *pass) run(ctx context.Context) Result {
	if p.target.Settings.DryRun {
		return p.rehearse(ctx)
	}
	p.begin("lock")
	if err := p.acquire(ctx); err != nil {
		return p.notHeld(ctx, err)
	}
	if err := p.openLedger(ctx); err != nil {
		p.fail(err)
		return p.finish(ctx)
	}
	p.begin("open")
	if err := p.open(ctx); err != nil {
		p.fail(err)
		return p.finish(ctx)
	}
	p.entry = p.entry.Measured(p.keeper.Now(), p.version.Number, 0, 0) // so that the gauge grows even if this pass has no end
	p.publish()
	p.begin("settle")
	p.settle(ctx)
	if p.target.Settings.Compact {
		p.begin("compact")
		p.compact(ctx)
		p.listen()
		p.settle(ctx) // before the versions that tell may go
	}
	if p.target.Settings.Prune {
		p.begin("prune")
		p.pruneUnlessIdle(ctx)
	}
	return p.finish(ctx)
}

// acquire takes the lease, until the end of the run where it has one.
func (p *pass) acquire(ctx context.Context) error {
	until, _ := ctx.Deadline()
	if !until.IsZero() {
		until = until.Add(p.keeper.margin())
	}
	lease, err := p.keeper.Locker.Acquire(ctx, p.target.Key, until)
	if err != nil {
		return fmt.Errorf("lock %s: %w", p.target.URI, err)
	}
	p.lease = lease
	return nil
}

// openLedger raises the fence: from here on nothing that an earlier pass still tries to record goes through.
func (p *pass) openLedger(ctx context.Context) error {
	entry, err := p.keeper.Ledger.Begin(ctx, p.target.Key, p.lease.Generation(), p.began, p.lease.Owner())
	if err != nil {
		return fmt.Errorf("open the ledger of %s: %w", p.target.URI, err)
	}
	p.entry = entry.Died(p.began)
	p.publish()
	if entry.Unfinished != nil {
		return p.save(ctx) // so that a death is counted even if this pass dies before its next record
	}
	return nil
}

// save writes the ledger entry; it fails once a later pass has begun.
func (p *pass) save(ctx context.Context) error {
	if p.isOver() {
		return fmt.Errorf("save the ledger of %s: %w", p.target.URI, errGivenUp)
	}
	if err := p.keeper.Ledger.Save(ctx, p.entry); err != nil {
		return fmt.Errorf("save the ledger of %s: %w", p.target.URI, err)
	}
	p.publish()
	return nil
}

// open reads the latest manifest and refuses what is not understood.
func (p *pass) open(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	if err := p.reload(ctx); err != nil {
		return err
	}
	if err := p.askClock(ctx); err != nil {
		return err
	}
	p.res.Before = p.state()
	if err := p.manifest.Check(p.version.Key); err != nil {
		return fmt.Errorf("check the latest version of %s: %w", p.target.URI, err)
	}
	if branch := p.manifest.GetBranch(); branch != "" {
		// Its tags and its own branches are recorded in the dataset's root, which is not ours to see from here.
		return lance.Unsupported("place", fmt.Sprintf("branch %q of a dataset", branch), p.target.URI)
	}
	return p.tune()
}

// tune takes in what the dataset's own configuration says of its upkeep.
func (p *pass) tune() error {
	if p.target.Tune != nil {
		s, notes, err := p.target.Tune(p.manifest.GetConfig())
		if err != nil {
			return fmt.Errorf("read the configuration of %s: %w", p.target.URI, err)
		}
		for _, note := range notes {
			p.find("policy", note)
		}
		p.target.Settings, p.res.Policy = s, s.Policy
	}
	if rate := p.target.Settings.DeleteRate; rate > 0 {
		p.store = ratestore.New(p.store, rate)
	}
	return nil
}

func (p *pass) connect(ctx context.Context) error {
	store, err := p.target.Open(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", p.target.URI, err)
	}
	p.tidier, _ = store.(tidier)
	p.hider, _ = objstore.As[objstore.Hider](store)
	p.meter = meterstore.New(store)
	p.store = p.meter
	return nil
}

// askClock is due when the latest version was found: a store whose names were listed needs not be asked.
func (p *pass) askClock(ctx context.Context) error {
	now, err := p.store.Now(ctx)
	if err != nil {
		return fmt.Errorf("ask the clock of %s: %w", p.target.URI, err)
	}
	if skew := now.Sub(p.keeper.Now()).Abs(); skew > time.Minute {
		p.find("clock", fmt.Sprintf("the store's clock and this machine's differ by %s; ages go by the store's", skew.Round(time.Second)))
	}
	return nil
}

// reload reads the latest version anew.
func (p *pass) reload(ctx context.Context) error {
	version, _, err := dataset.Latest(ctx, p.store)
	if err != nil {
		return fmt.Errorf("find the latest version of %s: %w", p.target.URI, err)
	}
	p.version = version
	m, err := dataset.ReadManifest(ctx, p.store, version)
	if err != nil {
		return fmt.Errorf("open %s: %w", p.target.URI, err)
	}
	p.manifest = m
	return nil
}

// state sums up the version last read.
func (p *pass) state() *State {
	s := &State{Version: p.version.Number, Fragments: len(p.manifest.GetFragments())}
	for _, f := range p.manifest.GetFragments() {
		deleted := f.GetDeletionFile().GetNumDeletedRows()
		s.DeletedRows += deleted
		s.Rows += f.GetPhysicalRows() - min(deleted, f.GetPhysicalRows())
	}
	return s
}

func (p *pass) find(kind, detail string) {
	p.res.Findings = append(p.res.Findings, Finding{Kind: kind, Detail: detail})
}

func (p *pass) begin(step string) {
	p.mu.Lock()
	p.step = step
	p.mu.Unlock()
	p.log.Info("step", slog.String("step", step))
	if p.keeper.Progress != nil {
		p.keeper.Progress.Step(p.target.URI, step)
	}
}

func (p *pass) stepName() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.step
}

// errGivenUp: the watchdog has recorded the pass as failed; what it still does must come to nothing.
var errGivenUp = errors.New("the pass has been given up")

func (p *pass) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// publish keeps the entry for the watchdog.
func (p *pass) publish() {
	p.mu.Lock()
	p.known = p.entry
	p.mu.Unlock()
}
