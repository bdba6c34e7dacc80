package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"lancekeeper/internal/config"
	"lancekeeper/internal/report"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// command is the command-line face.
type command struct {
	stdout, stderr io.Writer
	environ        []string
}

// run returns the exit code.
func (c command) run(args []string) int {
	parsed, err := config.ParseReport(args)
	if err != nil {
		return c.complain(err)
	}
	switch {
	case parsed.Help != "":
		return c.print(parsed.Help)
	case parsed.Version:
		return c.print("report " + version + "\n")
	case parsed.Inspect != "":
		return c.inspect(parsed.Inspect, parsed.JSON)
	case parsed.HTML != "":
		return c.complain(&config.Error{Setting: "--html", Source: config.Flag, Detail: "not there yet in this version"})
	}
	cfg, err := config.Resolve(config.Input{Environ: c.environ, Flags: parsed.Flags, Datasets: parsed.Datasets})
	if err != nil {
		return c.complain(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewJSONHandler(c.stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	reports, err := measure(ctx, cfg, c.environ, log)
	if showErr := c.show(reports, parsed.JSON); showErr != nil {
		return c.complain(showErr)
	}
	if err != nil {
		return c.complain(err)
	}
	return 0
}

func (c command) show(reports []report.Report, asJSON bool) error {
	if !asJSON {
		return report.Text(c.stdout, reports) //nolint:wrapcheck // says what it was writing
	}
	encoder := json.NewEncoder(c.stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{"reports": reports}); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (c command) complain(err error) int {
	_, _ = fmt.Fprintf(c.stderr, "report: %v\n", err)
	var setting *config.Error
	if errors.As(err, &setting) {
		return exitUsage
	}
	return exitFailed
}

func (c command) print(text string) int {
	if _, err := io.WriteString(c.stdout, text); err != nil {
		return exitFailed
	}
	return 0
}
