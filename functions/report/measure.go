package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lancekeeper/internal/config"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/places"
	"lancekeeper/internal/report"
	"lancekeeper/internal/state"
)

// measure reports on every dataset. One that can't be measured, or does not answer in its share of the time, does not stop the
// others; err joins what went wrong.
func measure(ctx context.Context, cfg config.Config, environ []string, log *slog.Logger) (reports []report.Report, err error) {
	folder := cfg.State
	if cfg.Table == "" && folder == "" {
		if folder, err = config.StateFolder(environ); err != nil {
			return nil, fmt.Errorf("find the folder of the ledger: %w", err)
		}
	}
	st, err := state.Open(ctx, cfg.Table, folder, state.Owner(), log)
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	seen := map[string]struct{}{}
	for i, uri := range cfg.Datasets {
		found, placeErr := measurePlace(ctx, place{uri, len(cfg.Datasets) - i, places.OptionsOf(cfg, log)}, st.Ledger, seen)
		reports = append(reports, found...)
		err = errors.Join(err, placeErr)
	}
	return reports, err
}

// place is one to be measured.
type place struct {
	uri     string
	left    int // places still to come, this one among them
	options places.Options
}

// measurePlace measures the datasets of one place, within an even part of the time left for it and for those still to come. Looking
// for them takes half of it at most.
func measurePlace(ctx context.Context, p place, l state.Ledger, seen map[string]struct{}) (reports []report.Report, err error) {
	ctx, cancel := share(ctx, p.left)
	defer cancel()
	look, done := share(ctx, 2)
	found := places.Find(look, []string{p.uri}, p.options)
	done()
	for i, d := range found {
		if _, twice := seen[d.Key]; twice {
			continue
		}
		seen[d.Key] = struct{}{}
		own, done := share(ctx, len(found)-i)
		r, oneErr := measureOne(own, d, l)
		done()
		reports = append(reports, r)
		err = errors.Join(err, oneErr)
	}
	return reports, err
}

// share ends when an even part of the time left is over.
func share(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(parts))
}

func measureOne(ctx context.Context, d places.Dataset, l state.Ledger) (report.Report, error) {
	var known *ledger.Entry
	entry, found, ledgerErr := l.Load(ctx, d.Key)
	if found {
		known = &entry
	}
	store, err := d.Open(ctx)
	if err != nil {
		return report.Unreachable(d.URI, known, time.Now(), err), errors.Join(fmt.Errorf("report on %s: %w", d.URI, err), ledgerErr)
	}
	r, err := report.Measure(ctx, report.Input{Store: store, URI: d.URI, Entry: known, Now: time.Now()})
	return r, errors.Join(err, ledgerErr)
}
