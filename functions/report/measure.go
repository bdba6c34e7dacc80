package main

import (
	"context"
	"errors"
	"fmt"

	"lancekeeper/internal/config"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/places"
	"lancekeeper/internal/report"
	"lancekeeper/internal/state"
)

// measure reports on every dataset. One that can't be measured does not stop the others; err joins what went wrong.
func measure(ctx context.Context, cfg config.Config, environ []string) (reports []report.Report, err error) {
	folder := cfg.State
	if cfg.Table == "" && folder == "" {
		if folder, err = config.StateFolder(environ); err != nil {
			return nil, fmt.Errorf("find the folder of the ledger: %w", err)
		}
	}
	st, err := state.Open(ctx, cfg.Table, folder, state.Owner())
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	for _, d := range places.Find(ctx, cfg.Datasets) {
		r, oneErr := measureOne(ctx, d, st.Ledger)
		reports = append(reports, r)
		err = errors.Join(err, oneErr)
	}
	return reports, err
}

func measureOne(ctx context.Context, d places.Dataset, l state.Ledger) (report.Report, error) {
	var known *ledger.Entry
	entry, found, ledgerErr := l.Load(ctx, d.Key)
	if found {
		known = &entry
	}
	store, err := d.Open(ctx)
	if err != nil {
		return report.Unreachable(d.URI, known, err), errors.Join(fmt.Errorf("report on %s: %w", d.URI, err), ledgerErr)
	}
	r, err := report.Measure(ctx, store, d.URI, known)
	return r, errors.Join(err, ledgerErr)
}
