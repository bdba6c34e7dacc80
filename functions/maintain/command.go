package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"lancekeeper/internal/config"
	"lancekeeper/internal/maintain"
)

// Exit codes beside those of maintain.Outcome.
const exitUsage = 2

// command is the command-line face.
type command struct {
	stdout, stderr io.Writer
	environ        []string
}

// run returns the exit code.
func (c command) run(args []string) int {
	parsed, err := config.ParseMaintain(args)
	if err != nil {
		return c.complain(err)
	}
	if parsed.Help != "" {
		return c.print(parsed.Help)
	}
	if parsed.Version {
		return c.print("maintain " + version + "\n")
	}
	cfg, err := config.Resolve(config.Input{Environ: c.environ, Flags: parsed.Flags, Datasets: parsed.Datasets})
	if err != nil {
		return c.complain(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	j := job{
		config: cfg, environ: c.environ, metrics: io.Discard,
		log: slog.New(slog.NewJSONHandler(c.stderr, &slog.HandlerOptions{Level: cfg.LogLevel})),
	}
	if parsed.EMF {
		j.metrics = c.stderr
	}
	if cfg.Timeout > 0 {
		j.deadline = time.Now().Add(cfg.Timeout)
	}
	if parsed.BreakLock != "" {
		if err := j.breakLock(ctx, parsed.BreakLock); err != nil {
			return c.complain(err)
		}
		return c.print("The lock is free.\n")
	}
	bar := newBar(c.stderr)
	if !parsed.JSON && bar != nil {
		j.progress = bar
	}
	doc, err := j.run(ctx)
	if bar != nil {
		bar.clear()
	}
	if err != nil {
		return c.complain(err)
	}
	if err := c.show(doc, parsed.JSON); err != nil {
		return c.complain(err)
	}
	return doc.Outcome.ExitCode()
}

func (c command) show(doc maintain.Document, asJSON bool) error {
	if !asJSON {
		return table(c.stdout, doc)
	}
	encoder := json.NewEncoder(c.stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(doc); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// complain tells what is wrong: 2 for usage and settings, 1 for everything else.
func (c command) complain(err error) int {
	_, _ = fmt.Fprintf(c.stderr, "maintain: %v\n", err)
	if isConfig(err) {
		_, _ = fmt.Fprintln(c.stderr, "See maintain --help.")
		return exitUsage
	}
	return maintain.Failed.ExitCode()
}

func (c command) print(text string) int {
	if _, err := io.WriteString(c.stdout, text); err != nil {
		return maintain.Failed.ExitCode()
	}
	return 0
}
