package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"lancekeeper/internal/config"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/metrics"
)

// handler is the Lambda face.
type handler struct {
	stdout  io.Writer
	environ []string
}

// answerNames is how many files a dry run names in an answer, which may have 6 MiB; a log line has room for a quarter of a megabyte.
const answerNames = 1000

// FailedError says that some datasets failed. Everything has been done and recorded; the whole document is in the log.
type FailedError struct {
	Failed []string // dataset: reason
}

// Error names the datasets.
func (e *FailedError) Error() string { return "maintenance failed: " + strings.Join(e.Failed, "; ") }

// handle takes a scheduled or manual event and answers with the result document. It returns an error, so that Lambda's own
// metric counts it too, only when all is done.
func (h handler) handle(ctx context.Context, event json.RawMessage) (*maintain.Document, error) {
	deadline, _ := ctx.Deadline()
	cfg, err := config.Resolve(config.Input{
		Environ: h.environ, Event: event, Function: true, FunctionMemoryMB: functionMemory(), FunctionTimeout: untilDeadline(deadline),
	})
	log := slog.New(slog.NewJSONHandler(h.stdout, &slog.HandlerOptions{Level: cfg.LogLevel}))
	if err != nil {
		return nil, h.refuse(log, err)
	}
	if cfg.Timeout > 0 {
		if earlier := time.Now().Add(cfg.Timeout); deadline.IsZero() || earlier.Before(deadline) {
			deadline = earlier
		}
	}
	j := job{config: cfg, environ: h.environ, metrics: h.stdout, log: log, deadline: deadline, maxNamed: answerNames}
	doc, err := j.run(ctx)
	if err != nil {
		return nil, h.refuse(log, err)
	}
	if doc.Outcome != maintain.Failed {
		return &doc, nil
	}
	failed := &FailedError{}
	for _, r := range doc.Results {
		if r.Outcome == maintain.Failed {
			failed.Failed = append(failed.Failed, r.Dataset+": "+r.Reason)
		}
	}
	log.Error("maintenance failed", slog.Any("document", doc))
	return &doc, failed
}

// refuse counts an invocation that could not begin: it must not look like no invocation.
func (h handler) refuse(log *slog.Logger, err error) error {
	log.Error("not started", slog.Any("err", err))
	if metricErr := metrics.Write(h.stdout, time.Now(), "(settings)", metrics.Sample{Pass: &metrics.Pass{Failed: true}}); metricErr != nil {
		log.Error("metrics", slog.Any("err", metricErr))
	}
	return fmt.Errorf("not started: %w", err)
}

func functionMemory() int {
	n, err := strconv.Atoi(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"))
	if err != nil {
		return 0
	}
	return n
}

func untilDeadline(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return time.Until(deadline)
}
