package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path"
	"syscall"

	"lancekeeper/internal/config"
	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/objstore/s3store"
	"lancekeeper/internal/places"
	"lancekeeper/internal/report"
)

// inspect takes one data file apart.
func (c command) inspect(uri string, asJSON bool) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d, err := c.describe(ctx, uri)
	if err != nil {
		return c.complain(err)
	}
	if asJSON {
		encoder := json.NewEncoder(c.stdout)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(map[string]any{"file": uri, "data": d}); err != nil {
			return c.complain(fmt.Errorf("write the description of %s: %w", uri, err))
		}
		return 0
	}
	if err := report.InspectText(c.stdout, uri, d); err != nil {
		return c.complain(err)
	}
	return 0
}

func (c command) describe(ctx context.Context, uri string) (*datafile.Description, error) {
	if ending := path.Ext(uri); ending != ".lance" && ending != ".idx" {
		return nil, &config.Error{Setting: "FILE", Value: uri, Source: config.Flag, Detail: "must be a data file (data/*.lance) or a file of an index (_indices/*/*.idx); no other kind can be taken apart yet"}
	}
	log := slog.New(slog.NewJSONHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, key, err := places.OpenFile(ctx, uri, places.Options{S3: s3store.Options{Log: log}})
	if err != nil {
		var place *places.FileError
		if errors.As(err, &place) {
			return nil, &config.Error{Setting: "FILE", Value: uri, Source: config.Flag, Detail: place.Detail}
		}
		return nil, fmt.Errorf("inspect %s: %w", uri, err)
	}
	d, err := datafile.Describe(ctx, store, key)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", uri, err)
	}
	return d, nil
}
