package budget

import (
	"context"
	"math"
	"sync"
	"time"
)

// What is assumed before anything was observed: a small function far from its bucket. Each is several times worse than what
// S3 usually gives (tens of MB/s for one stream, 20 to 100 ms for a request that many run beside).
const (
	DefaultBytesPerSecond = 8 << 20
	DefaultPerRequest     = 50 * time.Millisecond
	// Reserve is the factor by which a prediction exceeds what the observed rate would need.
	Reserve = 1.5
)

const (
	// decay is the weight of what was observed before, each time something is observed: the last ten or so count.
	decay = 0.9
	// trust is how much observed time weighs as much as the defaults.
	trust = 2 * time.Second
)

// Estimator predicts how long work takes from how long work took. It knows one number: by how much the work observed so far
// was slower (or faster) than the defaults say, where recent work counts more. The zero value has observed nothing. Safe for
// concurrent use.
type Estimator struct {
	mu       sync.Mutex
	took     float64 // seconds
	expected float64 // seconds by the defaults, for the same work
}

// Observe notes that work which read or wrote so many bytes in so many requests took that long. Work without size or
// duration says nothing.
func (e *Estimator) Observe(bytes int64, requests int, took time.Duration) {
	expected := base(bytes, requests)
	if expected <= 0 || took <= 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.took = e.took*decay + took.Seconds()
	e.expected = e.expected*decay + expected
}

// Predict says how long work of that size will take, the reserve included.
func (e *Estimator) Predict(bytes int64, requests int) time.Duration {
	seconds := base(bytes, requests) * e.slowness() * Reserve
	if seconds >= math.MaxInt64/float64(time.Second) {
		return Unlimited
	}
	return time.Duration(seconds * float64(time.Second))
}

// Fits returns an error of class ErrSpent, with the time needed and left, unless work of that size is predicted to end before
// the context's deadline.
func (e *Estimator) Fits(ctx context.Context, now time.Time, bytes int64, requests int) error {
	return Need(ctx, now, e.Predict(bytes, requests))
}

// slowness is the factor on the defaults. Without observations it is 1; a few short ones move it only a little.
func (e *Estimator) slowness() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return (e.took + trust.Seconds()) / (e.expected + trust.Seconds())
}

// base is what the defaults say, in seconds.
func base(bytes int64, requests int) float64 {
	return float64(max(0, bytes))/DefaultBytesPerSecond + float64(max(0, requests))*DefaultPerRequest.Seconds()
}
