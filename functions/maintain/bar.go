package main

import (
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar shows a person at a terminal what goes on.
type bar struct {
	mu     sync.Mutex
	out    io.Writer
	inner  *progressbar.ProgressBar
	prefix string
}

// newBar returns nil unless out is a terminal.
func newBar(out io.Writer) *bar {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &bar{out: out}
}

// Step begins a step, of which the length is not known yet.
func (b *bar) Step(dataset, step string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prefix = dataset + "  " + step
	b.start(-1, "")
}

func (b *bar) start(total int64, unit string) {
	if b.inner != nil {
		_ = b.inner.Clear() // a terminal that can't be written to shows nothing
	}
	b.inner = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(b.prefix), progressbar.OptionSetItsString(unit),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
}

// Advance shows how far a step is.
func (b *bar) Advance(done, total int64, unit string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inner == nil || b.inner.GetMax64() != total {
		b.start(total, unit)
	}
	_ = b.inner.Set64(done) // as above
}

func (b *bar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inner != nil {
		_ = b.inner.Clear() // as above
	}
}
