// Package lock gives the lease on a dataset, so that two keepers do not do the same work twice.
//
// Safety of data never rests on it: two keepers at once must be harmless. A locker never waits: it takes the lease or says
// who holds it.
package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// ErrLost is the class of errors about a lease that is not, or may soon not be, ours any more.
var ErrLost = errors.New("lease lost")

// Defaults of the lockers' options.
const (
	// DefaultSafety is how much of a lease must be left for a commit or a delete batch to begin.
	DefaultSafety = 2 * time.Second
	// DefaultSkew is how far apart two machines' clocks may be: a lease is taken over when it ended this long ago.
	DefaultSkew = 10 * time.Second
	// DefaultTerm is the length of a lease that a heartbeat renews; it is renewed when a third has passed.
	DefaultTerm = 2 * time.Minute
	// LongestFixed is the longest time for which a lease is taken in one go (a function may run for 15 minutes). Longer
	// ones are renewed by a heartbeat, so that a killed run does not lock the dataset for hours.
	LongestFixed = 20 * time.Minute
)

// HeldError says that another holds the lock. It is no failure: the dataset is skipped.
type HeldError struct {
	Dataset    string
	Owner      string
	Since      time.Time // zero if not recorded
	Until      time.Time // when the lease ends unless it is renewed; zero if it has no end of its own
	Generation uint64
	Token      string // what Break needs; empty where the lock ends with its process
	Advice     string // what to do if the lock should not be there; may be empty
}

// Error names the owner, the times, and the way out.
func (e *HeldError) Error() string {
	var b strings.Builder
	owner := e.Owner
	if owner == "" {
		owner = "an unknown owner"
	}
	fmt.Fprintf(&b, "%s is locked by %s", e.Dataset, owner)
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.UTC().Format(time.RFC3339))
	}
	if !e.Until.IsZero() {
		fmt.Fprintf(&b, " until %s", e.Until.UTC().Format(time.RFC3339))
	}
	if e.Advice != "" {
		fmt.Fprintf(&b, "; %s", e.Advice)
	}
	return b.String()
}

// holding is what a locker can do with a lease that it gave.
type holding interface {
	// renew moves the end; an error of class ErrLost if another has taken over.
	renew(ctx context.Context, until time.Time) error
	// release ends it; an error of class ErrLost if another has taken over.
	release(ctx context.Context) error
	// intact looks, without a request over the network, whether the lock is still what it was.
	intact() error
}

// Lease is the proof that the lock on one dataset is held. Only lockers make it. Safe for concurrent use.
type Lease struct {
	dataset    string
	owner      string
	generation uint64
	holding    holding
	now        func() time.Time
	safety     time.Duration
	every      time.Duration // renewed this often; 0: never
	stop       func()        // ends the heartbeat and waits for it

	mu       sync.Mutex
	granted  time.Time     // when the running term began, taken before it was asked for
	term     time.Duration // how long it runs; 0: no end
	until    time.Time     // the end asked for, where term is 0
	lost     error         // set once, then final
	released bool
	outcome  error // of the release
}

// Dataset is the name under which the lock was taken.
func (l *Lease) Dataset() string { return l.dataset }

// Owner names the holder.
func (l *Lease) Owner() string { return l.owner }

// Generation is the fence: it rises with each acquisition of the dataset's lock and never falls.
func (l *Lease) Generation() uint64 { return l.generation }

// Expires is when the lease ends unless it is renewed; zero if it has no end.
func (l *Lease) Expires() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return l.until
	}
	return l.granted.Add(l.term).Round(0)
}

// Check returns nil if the lease is ours for long enough to begin a commit or a delete batch, else an error of class ErrLost.
// It is judged by this process's monotonic clock and by the wall clock: the one misses a machine's sleep, the other may be
// set. No request is made unless a heartbeat is overdue. Once lost, a lease stays lost.
func (l *Lease) Check(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	if l.holding == nil || l.released {
		return fmt.Errorf("%w: not held", ErrLost)
	}
	overdue := l.renewIfDue(ctx)
	if l.lost != nil {
		return l.lost
	}
	if err := l.holding.intact(); err != nil {
		return l.lose(err)
	}
	if l.term > 0 {
		if left := l.left(l.now()); left < l.safety {
			return l.lose(errors.Join(fmt.Errorf("%w: %s of the lease on %s is left", ErrLost, left.Round(time.Millisecond), l.dataset), overdue))
		}
	}
	return nil
}

// Release ends the lease and its heartbeat. An error of class ErrLost says that another had taken over; nothing of theirs is
// touched. A second call returns what the first one did.
func (l *Lease) Release(ctx context.Context) error {
	if l.stop != nil {
		l.stop()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holding == nil {
		return fmt.Errorf("%w: not held", ErrLost)
	}
	if !l.released {
		l.released = true
		l.outcome = l.holding.release(ctx)
	}
	return l.outcome
}

// renewIfDue renews a lease whose heartbeat is due. What is not a loss is returned, to be told if time runs out over it.
func (l *Lease) renewIfDue(ctx context.Context) error {
	asked := l.now()
	if l.every == 0 || l.term-l.left(asked) < l.every {
		return nil
	}
	err := l.holding.renew(ctx, asked.Add(l.term))
	switch {
	case err == nil:
		l.granted = asked
	case errors.Is(err, ErrLost):
		return l.lose(err)
	}
	return err
}

// left is what remains of the term, by the less favourable of the two clocks.
func (l *Lease) left(now time.Time) time.Duration {
	monotonic := now.Sub(l.granted)
	wall := now.Round(0).Sub(l.granted.Round(0))
	return l.term - max(monotonic, wall)
}

func (l *Lease) lose(err error) error {
	l.lost = err
	return err
}

// beat renews the lease until it is lost or ctx ends.
func (l *Lease) beat(ctx context.Context) {
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		l.mu.Lock()
		if l.lost == nil {
			_ = l.renewIfDue(ctx) // what is not a loss is tried again; Check judges by the time that is left
		}
		gone := l.lost != nil
		l.mu.Unlock()
		if gone {
			return
		}
	}
}

// startHeartbeat renews the lease in the background until it is released, whatever becomes of ctx.
func (l *Lease) startHeartbeat(ctx context.Context) {
	beating, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.beat(beating)
	}()
	l.stop = func() {
		cancel()
		<-ended
	}
}
