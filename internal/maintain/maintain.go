// Package maintain runs passes: lock, open, compact, prune, record, metrics, unlock, for one dataset after the other.
package maintain

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"time"

	"lancekeeper/internal/ledger"
	"lancekeeper/internal/lock"
	"lancekeeper/internal/objstore"
)

// Settings say what a pass does. config resolves them; Policy is what the result says of them.
type Settings struct {
	Grace         time.Duration // keep a version this long after it was superseded
	Keep          int           // always keep the newest N versions
	UnverifiedAge time.Duration // keep files that no version names this long
	BeforeVersion uint64        // only versions below it may go; 0: any
	PinVersions   []uint64      // versions that stay
	HasClones     bool          // other datasets may name files of this one
	ErrorIfTagged bool          // do not prune where a tagged version would expire
	DeleteRate    int           // objects a second; 0: no limit
	TargetRows    uint64        // rows per fragment to aim for
	TargetBytes   int64         // bytes per fragment to aim for; 0 is off
	DeletionsOver float64       // materialize deletions where their share is above this
	IndexPolicy   string        // auto, leave, uncover, remap or defer
	Compact       bool
	Prune         bool
	DryRun        bool
	UntilDrained  bool
	MemoryBytes   int64
	Policy        map[string]PolicySetting
}

// Target is one dataset to maintain.
type Target struct {
	Key      string // canonical name: two spellings of one place have one key; used for lock and ledger
	URI      string // as people know it; used in results and metrics
	Settings Settings
	// Tune returns the settings as the dataset's own configuration changes them, with notes for its owner; nil: it changes nothing.
	Tune func(table map[string]string) (s Settings, notes []string, err error)
	Open func(ctx context.Context) (objstore.Store, error)

	maxNamed int // its share of Keeper.MaxNamed
}

// Locker gives the lease on a dataset; lock.DynamoLocker and lock.FileLocker are the real ones.
type Locker interface {
	Acquire(ctx context.Context, dataset string, until time.Time) (*lock.Lease, error)
}

// Ledger keeps what passes did.
type Ledger interface {
	Begin(ctx context.Context, dataset string, generation uint64, now time.Time, owner string) (ledger.Entry, error)
	Save(ctx context.Context, entry ledger.Entry) error
	Load(ctx context.Context, dataset string) (ledger.Entry, bool, error)
	Skip(ctx context.Context, dataset string, now time.Time, holder string) error
}

// Keeper holds what passes need beside their target. All fields but Progress and MaxNamed are required.
type Keeper struct {
	Locker   Locker
	Ledger   Ledger
	Metrics  io.Writer // metric documents go here, one a line
	Log      *slog.Logger
	Now      func() time.Time // this machine's clock; ages are judged by the store's
	Progress Progress
	Version  string // of this program, written into manifests
	MaxNamed int    // files and versions that dry runs of all targets together name in the document; 0: all of them

	// Margin is the time behind a run's deadline in which a pass may still be recorded and reported; 0: a few seconds. A third of
	// it goes to the end of the pass itself, and a third to the record of one that does not heed its context.
	Margin time.Duration
}

// defaultMargin is where runs have no deadline, so that only a pass which is stopped needs it.
const defaultMargin = 5 * time.Second

func (k *Keeper) margin() time.Duration { return cmp.Or(k.Margin, defaultMargin) }

// Progress is told what happens, for a person who watches. Implementations must not block.
type Progress interface {
	Step(dataset, step string)              // a step begins
	Advance(done, total int64, unit string) // within the step
}
