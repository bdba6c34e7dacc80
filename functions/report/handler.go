package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"

	"lancekeeper/internal/config"
	"lancekeeper/internal/metrics"
	"lancekeeper/internal/report"
)

// handler is the Lambda face: it measures by itself and emits the gauges, so that a maintain function that is broken or gone
// still alarms.
type handler struct {
	stdout  io.Writer
	environ []string
}

// answer is the response document.
type answer struct {
	Reports []report.Report `json:"reports"`
}

func (h handler) handle(ctx context.Context, event json.RawMessage) (*answer, error) {
	cfg, err := config.Resolve(config.Input{Environ: h.environ, Event: event, Function: true})
	log := slog.New(slog.NewJSONHandler(h.stdout, &slog.HandlerOptions{Level: cfg.LogLevel}))
	if err != nil {
		log.Error("not started", slog.Any("err", err))
		return nil, fmt.Errorf("not started: %w", err)
	}
	bounded, cancel := inTime(ctx)
	defer cancel()
	reports, err := measure(bounded, cfg, h.environ, log)
	for _, r := range reports {
		sample := metrics.Sample{UnreclaimedVersions: r.UnreclaimedVersions, SecondsSinceSuccess: r.SecondsSinceSuccess}
		if r.Manifests != nil {
			n := int64(*r.Manifests)
			sample.ManifestsOnStorage, sample.DatasetVersion = &n, &r.Version
		}
		if metricErr := metrics.Write(h.stdout, time.Now(), r.Dataset, sample); metricErr != nil {
			log.Error("metrics", slog.Any("err", metricErr))
		}
	}
	if err != nil {
		log.Error("report failed", slog.Any("err", err))
		return &answer{reports}, fmt.Errorf("report: %w", err)
	}
	return &answer{reports}, nil
}

// inTime ends before Lambda would kill the process, so that what was measured is emitted: a tenth of the time earlier, at least a
// second.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-max(time.Second, time.Until(deadline)/10)))
}
