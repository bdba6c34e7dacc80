package meterstore

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// line watches whether the other side answers. Requests overlap: an answer to any of them is a sign of life.
type line struct {
	mu      sync.Mutex
	waiting int       // requests under way that wait for the store
	heard   time.Time // the last answer, or when the first of those waiting was asked
	silence time.Duration
}

// ask is a request that begins to wait.
func (l *line) ask() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == 0 {
		l.heard = time.Now()
	}
	l.waiting++
}

// hear is the end of a wait, with what came of it.
func (l *line) hear(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	now := time.Now()
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		l.silence = max(l.silence, now.Sub(l.heard)) // given up
		return
	}
	l.heard = now
}

func (l *line) longest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silence
}

// source is what an upload sends. While it is read, the store waits for us; that it is read at all says that the store is there.
type source struct {
	from io.Reader
	line *line
}

func (s *source) Read(p []byte) (int, error) {
	s.line.hear(nil)
	defer s.line.ask()
	return s.from.Read(p) //nolint:wrapcheck // a wrapper adds nothing
}
