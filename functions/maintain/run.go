package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	"lancekeeper/internal/config"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/places"
	"lancekeeper/internal/state"
)

// job is what both faces of the program have in common.
type job struct {
	config   config.Config
	environ  []string
	metrics  io.Writer
	log      *slog.Logger
	progress maintain.Progress
	deadline time.Time // of the whole run; zero: none
	maxNamed int       // see maintain.Keeper
}

// run opens the state, finds the datasets and maintains them.
func (j job) run(ctx context.Context) (maintain.Document, error) {
	limitMemory(j.config.MemoryBytes)
	folder := j.config.State
	if j.config.Table == "" && folder == "" {
		var err error
		if folder, err = config.StateFolder(j.environ); err != nil {
			return maintain.Document{}, fmt.Errorf("find a folder for lock and ledger: %w", err)
		}
	}
	st, err := state.Open(ctx, j.config.Table, folder, state.Owner(), j.log)
	if err != nil {
		return maintain.Document{}, fmt.Errorf("open lock and ledger: %w", err)
	}
	keeper := &maintain.Keeper{
		Locker: st.Locker, Ledger: st.Ledger, Metrics: j.metrics, Log: j.log, Now: time.Now, Progress: j.progress, Version: release(version),
		Margin: margin(j.deadline), MaxNamed: j.maxNamed,
	}
	if !j.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, j.deadline.Add(-keeper.Margin))
		defer cancel()
	}
	return keeper.Run(ctx, j.targets(ctx)), nil
}

// targets lists the datasets. Looking for them must not eat the time of all: it gets a third, shared evenly among the places
// still to be looked into, so that one that does not answer hides no other.
func (j job) targets(ctx context.Context) []maintain.Target {
	end := time.Now().Add(lookTime(ctx))
	seen := map[string]struct{}{}
	var targets []maintain.Target
	for i, uri := range j.config.Datasets {
		for _, t := range j.look(ctx, uri, time.Until(end)/time.Duration(len(j.config.Datasets)-i)) {
			if _, twice := seen[t.Key]; !twice {
				seen[t.Key] = struct{}{}
				targets = append(targets, t)
			}
		}
	}
	return targets
}

// look lists the datasets of one place.
func (j job) look(ctx context.Context, uri string, share time.Duration) []maintain.Target {
	bounded, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	var targets []maintain.Target
	for _, d := range places.Find(bounded, []string{uri}, places.OptionsOf(j.config, j.log)) {
		targets = append(targets, maintain.Target{Key: d.Key, URI: d.URI, Settings: settings(j.config), Tune: j.tune(d.Key), Open: d.Open})
	}
	if bounded.Err() != nil && ctx.Err() == nil && share >= leastPatience {
		for i, t := range targets {
			targets[i].Open = func(ctx context.Context) (objstore.Store, error) {
				store, err := t.Open(ctx)
				if errors.Is(err, context.DeadlineExceeded) {
					return nil, &NoAnswerError{Place: uri, After: share.Round(time.Millisecond), Detail: err.Error()}
				}
				return store, err
			}
		}
	}
	return targets
}

// leastPatience is how long a place must have been silent to be called so; below, it is the time that was short.
const leastPatience = time.Second

// NoAnswerError says that a place did not answer in its share of the time, although the run still had some. It is no context
// error: the run did not run out of time.
type NoAnswerError struct {
	Place  string
	After  time.Duration
	Detail string
}

// Error says what is often the cause.
func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("%s did not answer within %s (a function in a private network needs a route or an endpoint for S3): %s", e.Place, e.After, e.Detail)
}

const longestLook = 2 * time.Minute

func lookTime(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(longestLook, time.Until(deadline)/3)
	}
	return longestLook
}

// tune has the rules for one dataset, and that dataset's own configuration, change the settings of all.
func (j job) tune(dataset string) func(table map[string]string) (maintain.Settings, []string, error) {
	return func(table map[string]string) (maintain.Settings, []string, error) {
		c, notes, err := config.ForDataset(j.config, dataset, table)
		return settings(c), notes, err //nolint:wrapcheck // names setting, value and source
	}
}

func settings(c config.Config) maintain.Settings {
	s := maintain.Settings{
		Grace: c.Grace, Keep: c.Keep, UnverifiedAge: c.UnverifiedAge, TargetRows: c.TargetRows, TargetBytes: c.TargetBytes,
		DeletionsOver: c.DeletionsOver, IndexPolicy: c.IndexPolicy, Compact: c.Compact, Prune: c.Prune, DryRun: c.DryRun,
		BeforeVersion: c.BeforeVersion, PinVersions: c.PinVersions, HasClones: c.HasClones, ErrorIfTagged: c.ErrorIfTagged,
		DeleteRate: c.DeletesASecond, UntilDrained: c.UntilDrained, MemoryBytes: c.MemoryBytes / 2, Policy: map[string]maintain.PolicySetting{},
	}
	for name, setting := range c.Policy() {
		s.Policy[name] = maintain.PolicySetting{Value: setting.Value, Source: string(setting.Source)}
	}
	return s
}

// limitMemory lets the collector work harder before the limit is reached, with some room for what it does not see.
func limitMemory(bytes int64) {
	if bytes > 0 {
		debug.SetMemoryLimit(bytes / 100 * 85)
	}
}

// margin is the time behind the run's own deadline in which the outcome is recorded and reported: a tenth of what there is, between
// three and ten seconds; of a short time a third, and one second at least.
func margin(deadline time.Time) time.Duration {
	const least, enough, most = time.Second, 3 * time.Second, 10 * time.Second
	if deadline.IsZero() {
		return most
	}
	left := time.Until(deadline)
	return min(most, max(least, left/10, min(enough, left/3)))
}

// release is a version that a manifest can carry: x.y.z without what a build adds.
func release(version string) string {
	var major, minor, patch int
	if n, err := fmt.Sscanf(version, "v%d.%d.%d", &major, &minor, &patch); n == 3 && err == nil {
		return fmt.Sprintf("%d.%d.%d", major, minor, patch)
	}
	return "0.1.0"
}

// isConfig says whether an error is about settings.
func isConfig(err error) bool {
	var setting *config.Error
	return errors.As(err, &setting)
}
