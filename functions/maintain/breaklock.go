package main

import (
	"context"
	"fmt"
	"log/slog"

	"lancekeeper/internal/config"
	"lancekeeper/internal/state"
)

// breaker is a locker whose locks may have no end.
type breaker interface {
	Break(ctx context.Context, dataset, token string) error
}

// breakLock frees the lock of one dataset, if it is still the one that was seen, and says so in the log: whoever looks for the
// reason of two passes at once must find it.
func (j job) breakLock(ctx context.Context, token string) error {
	if len(j.config.Datasets) != 1 || j.config.Table == "" {
		return &config.Error{Setting: "--break-lock", Value: token, Source: config.Flag, Detail: "needs --table, and the one dataset whose lock it is"}
	}
	key, err := config.DatasetKey(j.config.Datasets[0])
	if err != nil {
		return fmt.Errorf("%s: %w", j.config.Datasets[0], err)
	}
	st, err := state.Open(ctx, j.config.Table, "", state.Owner(), j.log)
	if err != nil {
		return fmt.Errorf("open the locks: %w", err)
	}
	locks, ok := st.Locker.(breaker)
	if !ok {
		return &config.Error{Setting: "--break-lock", Value: token, Source: config.Flag, Detail: "is for locks in a DynamoDB table"}
	}
	audit := []any{slog.String("table", key), slog.String("token", token), slog.String("by", state.Owner())}
	if err := locks.Break(ctx, key, token); err != nil {
		j.log.Error("lock not broken", append(audit, slog.Any("err", err))...)
		return fmt.Errorf("break the lock on %s: %w", key, err)
	}
	j.log.Warn("lock broken", audit...)
	return nil
}
