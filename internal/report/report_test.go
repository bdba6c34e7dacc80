package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/memstore"
	"lancekeeper/internal/report"
)

var update = flag.Bool("update", false, "rewrite the expected texts") //nolint:gochecknoglobals // a flag of the test binary

func now() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

// entry is a ledger that knows a success of two hours ago and a failure since.
func entry(version uint64) *ledger.Entry {
	e := ledger.Entry{Dataset: "table", FirstSeen: now().Add(-72 * time.Hour)}
	e = e.Measured(now().Add(-2*time.Hour), version, 1, 3)
	e = e.Succeeded(ledger.Outcome{At: now().Add(-2 * time.Hour), Version: version, Drained: true})
	e = e.Failed(ledger.Outcome{At: now().Add(-time.Hour), Reason: "the store is on fire", Class: "other"})
	e.Started = &ledger.Started{At: now().Add(-time.Minute), Owner: "somebody", Generation: 7}
	return &e
}

func measure(t *testing.T, store objstore.Store, e *ledger.Entry) report.Report {
	t.Helper()
	r, err := report.Measure(t.Context(), report.Input{Store: store, URI: "mem://table.lance", Entry: e, Now: now()})
	require.NoError(t, err)
	return r
}

// sizes of files are left out of what is compared: they are the official engine's affair.
var sizes = regexp.MustCompile(`[0-9.]+ (B|KiB|MiB)`) //nolint:gochecknoglobals // compiled once

// expect compares with a file of testdata.
func expect(t *testing.T, name, got string) {
	t.Helper()
	got = sizes.ReplaceAllString(got, "# $1")
	path := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o700))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]*ledger.Entry{"tags": entry(12), "indexed": nil, "v1names": entry(2), "cleared": nil, "detached": nil, "legacy": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := lancetest.Load(t, name, now, time.Hour)
			r := measure(t, store, e)
			var out bytes.Buffer
			require.NoError(t, report.Text(&out, []report.Report{r}))
			expect(t, name, out.String())
			for range 5 {
				var again bytes.Buffer
				require.NoError(t, report.Text(&again, []report.Report{r}))
				require.Equal(t, out.String(), again.String())
			}
		})
	}
	t.Run("several", func(t *testing.T) {
		t.Parallel()
		missing := report.Unreachable("s3://gone/t.lance", entry(5), now(), fmt.Errorf("open s3://gone/t.lance: %w", objstore.ErrDenied))
		fresh := report.Unreachable("s3://new/t.lance", nil, now(), fmt.Errorf("open s3://new/t.lance: %w", objstore.ErrDenied))
		var out bytes.Buffer
		require.NoError(t, report.Text(&out, []report.Report{missing, fresh}))
		expect(t, "several", out.String())
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		require.ErrorContains(t, report.Text(full{}, []report.Report{{Dataset: "mem://a"}, {Dataset: "mem://b"}}), "mem://a")
	})
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

// Every golden table can be measured, also one that would not be maintained; nothing is written.
func TestGoldenTables(t *testing.T) {
	t.Parallel()
	for _, name := range lancetest.Names(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := lancetest.Load(t, name, now, time.Hour)
			faults := faultstore.New(store)
			r := measure(t, faults, nil)
			require.Zero(t, faults.Mutations())
			l, err := dataset.List(t.Context(), store)
			require.NoError(t, err)
			require.Equal(t, len(l.Versions), *r.Manifests)
			require.Equal(t, uint64(len(l.Versions)), *r.UnreclaimedVersions, "before any success: all that is listed")
			require.Nil(t, r.SecondsSinceSuccess, "no pass has seen it")
			require.Equal(t, int64(len(store.Keys())), r.Total.Files)
			var files, size int64
			for _, s := range r.Kinds {
				files += s.Files
				size += s.Bytes
			}
			require.Equal(t, report.Size{Files: files, Bytes: size}, *r.Total, "the kinds add up")
			if name != "legacy" {
				require.Len(t, lancetest.Latest(t, store), int(*r.Rows))
			}

			data, err := json.Marshal(r)
			require.NoError(t, err)
			var back map[string]any
			require.NoError(t, json.Unmarshal(data, &back))
			for _, member := range []string{"dataset", "at", "version", "oldestVersion", "manifests", "naming", "fragments", "rows", "deletedRows", "kinds", "total", "unreclaimedVersions"} {
				require.Contains(t, back, member)
			}
			require.NotContains(t, back, "error")
			require.NotContains(t, back, "ledger")
		})
	}
}

func TestGauges(t *testing.T) {
	t.Parallel()
	store := lancetest.Load(t, "upserts-2.1", now, time.Hour)
	l, err := dataset.List(t.Context(), store)
	require.NoError(t, err)
	latest := l.Versions[len(l.Versions)-1].Number

	r := measure(t, store, entry(latest))
	require.Zero(t, *r.UnreclaimedVersions, "measured")
	require.InDelta(t, 7200, *r.SecondsSinceSuccess, 0)
	require.Equal(t, uint64(4), *measure(t, store, entry(latest-4)).UnreclaimedVersions)
	require.Equal(t, latest, *measure(t, store, entry(latest+9)).UnreclaimedVersions, "made anew under its name: never done")

	never := &ledger.Entry{Dataset: "table", FirstSeen: now().Add(-time.Hour)}
	r = measure(t, store, never)
	require.Equal(t, latest, *r.UnreclaimedVersions)
	require.InDelta(t, 3600, *r.SecondsSinceSuccess, 0, "before any success: since it was first seen, as in a pass")
}

// Nothing that was not measured is shown: neither as 0 nor at all.
func TestNotMeasured(t *testing.T) {
	t.Parallel()
	t.Run("newest manifest damaged", func(t *testing.T) {
		t.Parallel()
		for name, data := range map[string][]byte{"empty": nil, "cut": []byte("LANC")} {
			store := lancetest.Load(t, "tags", now, time.Hour)
			latest, _, err := dataset.Latest(t.Context(), store)
			require.NoError(t, err)
			require.NoError(t, store.Put(t.Context(), latest.Key, data))
			r, err := report.Measure(t.Context(), report.Input{Store: store, URI: "mem://table.lance"})
			require.ErrorContains(t, err, latest.Key, name)
			require.Contains(t, r.Error, latest.Key)
			require.Equal(t, latest.Number, r.Version)
			require.Equal(t, latest.Number, *r.UnreclaimedVersions)
			require.Nil(t, r.Fragments)
			require.Nil(t, r.Rows)
			require.NotEmpty(t, r.Tags, "the rest is measured all the same")
			require.Equal(t, int64(len(store.Keys())), r.Total.Files)
			text, err := json.Marshal(r)
			require.NoError(t, err)
			require.NotContains(t, string(text), `"rows"`)
			var out bytes.Buffer
			require.NoError(t, report.Text(&out, []report.Report{r}))
			require.NotContains(t, out.String(), "fragments")
			require.Contains(t, out.String(), "error")
		}
	})
	t.Run("unknown flag", func(t *testing.T) {
		t.Parallel()
		store := lancetest.Load(t, "tags", now, time.Hour)
		latest, _, err := dataset.Latest(t.Context(), store)
		require.NoError(t, err)
		lancetest.Rewrite(t, store, latest, func(m *manifest.Manifest) { m.WriterFeatureFlags |= 1 << 40 })
		r := measure(t, store, nil)
		require.Contains(t, r.Findings, "not maintained: "+latest.Key+": unsupported writer feature flag bit 40")
	})
	t.Run("damaged tag", func(t *testing.T) {
		t.Parallel()
		store := lancetest.Load(t, "tags", now, time.Hour)
		require.NoError(t, store.Put(t.Context(), "_refs/tags/bad.json", []byte("{")))
		r, err := report.Measure(t.Context(), report.Input{Store: store, URI: "mem://table.lance"})
		require.ErrorContains(t, err, "_refs/tags/bad.json")
		require.NotNil(t, r.Fragments)
		require.NotNil(t, r.Total)
	})
	t.Run("no dataset", func(t *testing.T) {
		t.Parallel()
		r, err := report.Measure(t.Context(), report.Input{Store: memstore.New("mem://nothing.lance", now), URI: "mem://nothing.lance"})
		require.ErrorIs(t, err, dataset.ErrNotDataset)
		require.Nil(t, r.UnreclaimedVersions)
		require.Nil(t, r.Manifests)
		require.Nil(t, r.Total)
	})
	for _, kind := range []string{"now", "list", "get"} {
		t.Run("denied: "+kind, func(t *testing.T) {
			t.Parallel()
			faults := faultstore.New(lancetest.Load(t, "tags", now, time.Hour))
			faults.Hook(func(_ context.Context, op faultstore.Op) error {
				if op.Kind == kind {
					return objstore.ErrDenied
				}
				return nil
			})
			e := entry(12)
			r, err := report.Measure(t.Context(), report.Input{Store: faults, URI: "mem://table.lance", Entry: e, Now: now()})
			require.ErrorIs(t, err, objstore.ErrDenied)
			require.Nil(t, r.Total)
			require.Nil(t, r.Fragments)
			require.InDelta(t, 7200, *r.SecondsSinceSuccess, 0)
			if kind == "get" {
				require.Equal(t, r.Version-12, *r.UnreclaimedVersions)
			} else {
				require.Nil(t, r.UnreclaimedVersions, "0 is known of then, and is not shown as measured now")
			}
			grown := e.Measured(now(), 15, 1, 3)
			r, err = report.Measure(t.Context(), report.Input{Store: faults, URI: "mem://table.lance", Entry: &grown, Now: now()})
			require.ErrorIs(t, err, objstore.ErrDenied)
			require.Equal(t, uint64(3), *r.UnreclaimedVersions, "the last known value")
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		t.Parallel()
		grown := entry(12).Measured(now(), 15, 1, 3)
		r := report.Unreachable("s3://b/t.lance", &grown, now(), objstore.ErrDenied)
		require.Equal(t, uint64(3), *r.UnreclaimedVersions)
		require.Equal(t, objstore.ErrDenied.Error(), r.Error)
		require.InDelta(t, 7200, *r.SecondsSinceSuccess, 0, "it grows whatever the store does")
		require.Nil(t, report.Unreachable("s3://b/t.lance", nil, now(), objstore.ErrDenied).UnreclaimedVersions)
	})
}
