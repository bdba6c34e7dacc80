// Package budget says whether there is time left to begin something.
package budget

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrSpent is the class of errors about work that was not begun because the time would not have sufficed.
var ErrSpent = errors.New("the time is spent")

// Unlimited is what remains where the context has no deadline.
const Unlimited = time.Duration(1<<63 - 1)

// SpentError says how much time something needs, and how much there is.
type SpentError struct {
	Needed time.Duration // as predicted
	Left   time.Duration // until the deadline; 0 when it has passed
}

// Error gives both times.
func (e *SpentError) Error() string {
	return fmt.Sprintf("%v: about %s needed, %s left", ErrSpent, round(e.Needed), round(e.Left))
}

// Unwrap makes the error one of class ErrSpent.
func (e *SpentError) Unwrap() error { return ErrSpent }

// Remaining is the time from now until the context's deadline: Unlimited without one, 0 when it has passed or the context
// has ended.
func Remaining(ctx context.Context, now time.Time) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return Unlimited
	}
	return max(0, deadline.Sub(now))
}

// Need returns an error of class ErrSpent (*SpentError) unless that much time remains.
func Need(ctx context.Context, now time.Time, needed time.Duration) error {
	if left := Remaining(ctx, now); left <= 0 || left < needed {
		return &SpentError{Needed: needed, Left: left}
	}
	return nil
}

// round keeps three digits or so: 1h2m, 3.21s, 45ms.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	default:
		return d.Round(time.Millisecond)
	}
}
