// Package report measures the health of datasets without writing to them.
package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/objstore"
)

// Report is the health of one dataset. What could not be measured is left out.
type Report struct {
	Dataset             string             `json:"dataset"`
	At                  time.Time          `json:"at"` // the store's clock; the program's own where the store did not answer
	Error               string             `json:"error,omitempty"`
	Version             uint64             `json:"version,omitempty"`
	OldestVersion       uint64             `json:"oldestVersion,omitempty"`
	Manifests           *int               `json:"manifests,omitempty"`
	Detached            int                `json:"detached,omitempty"`
	Naming              string             `json:"naming,omitempty"` // V1 or V2: how manifests are named
	FileVersion         string             `json:"fileVersion,omitempty"`
	Fragments           *int               `json:"fragments,omitempty"`
	Rows                *uint64            `json:"rows,omitempty"` // live rows
	DeletedRows         *uint64            `json:"deletedRows,omitempty"`
	FragmentsByRows     []Bin              `json:"fragmentsByRows,omitempty"`    // live rows
	FragmentsByDeleted  []Bin              `json:"fragmentsByDeleted,omitempty"` // share of deleted rows; the first bin is those without
	History             []Period           `json:"history,omitempty"`            // versions over time, of those still listed
	Coverage            []Coverage         `json:"coverage,omitempty"`
	Features            []manifest.Feature `json:"features,omitempty"`
	Indices             []string           `json:"indices,omitempty"`
	Tags                []string           `json:"tags,omitempty"`
	Branches            []string           `json:"branches,omitempty"`
	Kinds               map[string]Size    `json:"kinds,omitempty"` // objects by kind
	Total               *Size              `json:"total,omitempty"`
	UnreclaimedVersions *uint64            `json:"unreclaimedVersions,omitempty"`
	SecondsSinceSuccess *float64           `json:"secondsSinceSuccess,omitempty"`
	Ledger              *ledger.Entry      `json:"ledger,omitempty"`
	Findings            []string           `json:"findings,omitempty"`
}

// Size is a number of objects and their bytes.
type Size struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Input is what a report is made from.
type Input struct {
	Store objstore.Store
	URI   string        // for people
	Entry *ledger.Entry // nil if the ledger has none
	Now   time.Time     // the program's clock, for when the store does not tell its own
}

// Measure looks at one dataset. A report is returned also with an error: it then holds what could be measured, the gauges from the
// ledger among them.
func Measure(ctx context.Context, in Input) (Report, error) {
	r := Report{Dataset: in.URI, At: in.Now, Ledger: in.Entry}
	err := r.measure(ctx, in.Store)
	if err != nil {
		r.Error = err.Error()
	}
	r.gauges()
	return r, err
}

// Unreachable is the report on a dataset that could not even be opened: the gauges come from the ledger. now is
// the program's clock.
func Unreachable(uri string, entry *ledger.Entry, now time.Time, err error) Report {
	r := Report{Dataset: uri, At: now, Ledger: entry, Error: err.Error()}
	r.gauges()
	return r
}

func (r *Report) measure(ctx context.Context, store objstore.Store) error {
	now, err := store.Now(ctx)
	if err != nil {
		return fmt.Errorf("ask the clock of %s: %w", r.Dataset, err)
	}
	r.At = now
	listing, err := dataset.List(ctx, store)
	if err != nil {
		return fmt.Errorf("list the versions of %s: %w", r.Dataset, err)
	}
	r.versions(listing)
	// One thing that is damaged does not hide the others.
	damaged := r.latest(ctx, store, listing.Versions[len(listing.Versions)-1])
	if damaged != nil && !errors.Is(damaged, lance.ErrCorrupt) && !errors.Is(damaged, lance.ErrUnsupported) {
		return damaged
	}
	return errors.Join(damaged, r.references(ctx, store), r.objects(ctx, store))
}

func (r *Report) latest(ctx context.Context, store objstore.Store, latest dataset.Version) error {
	m, err := dataset.ReadManifest(ctx, store, latest)
	if err != nil {
		return fmt.Errorf("open %s: %w", r.Dataset, err)
	}
	r.table(m)
	if err := m.Check(latest.Key); err != nil {
		if !errors.Is(err, lance.ErrUnsupported) {
			return fmt.Errorf("check %s: %w", r.Dataset, err)
		}
		r.Findings = append(r.Findings, "not maintained: "+err.Error())
	}
	return nil
}

func (r *Report) versions(l *dataset.Listing) {
	n := len(l.Versions)
	r.Manifests = &n
	r.Version, r.OldestVersion = l.Versions[n-1].Number, l.Versions[0].Number
	r.Detached = len(l.Detached)
	r.History = history(l.Versions)
	r.Naming = "V2"
	if l.Scheme == manifest.V1 {
		r.Naming = "V1"
		r.Findings = append(r.Findings, fmt.Sprintf("old manifest names: finding the latest version on S3 lists all %d of them; migrate with the official engine while nobody writes", n))
	}
}

func (r *Report) table(m *manifest.Manifest) {
	r.FileVersion = m.GetDataFormat().GetVersion()
	fragments := len(m.GetFragments())
	var rows, deletedRows uint64
	for _, f := range m.GetFragments() {
		deleted := f.GetDeletionFile().GetNumDeletedRows()
		deletedRows += deleted
		rows += f.GetPhysicalRows() - min(deleted, f.GetPhysicalRows())
	}
	r.Fragments, r.Rows, r.DeletedRows = &fragments, &rows, &deletedRows
	r.FragmentsByRows, r.FragmentsByDeleted = bySize(m.GetFragments()), byDeleted(m.GetFragments())
	r.Features = manifest.Features(m)
	var err error
	if r.Coverage, err = coverage(m); err != nil {
		r.Findings = append(r.Findings, err.Error())
	}
	for _, index := range m.Indices {
		r.Indices = append(r.Indices, index.GetName())
	}
	for key, value := range m.GetConfig() {
		if key == "lance.auto_cleanup.interval" {
			r.Findings = append(r.Findings, "writers of this dataset clean up by themselves every "+value+" versions; the shorter of both policies wins")
		}
	}
}

func (r *Report) references(ctx context.Context, store objstore.Store) error {
	refs, err := dataset.ReadRefs(ctx, store)
	if err != nil {
		return fmt.Errorf("read the tags and branches of %s: %w", r.Dataset, err)
	}
	for _, t := range refs.Tags {
		r.Tags = append(r.Tags, t.Name)
	}
	for _, b := range refs.Branches {
		r.Branches = append(r.Branches, b.Name)
	}
	return nil
}

// objects counts every object below the root by kind.
func (r *Report) objects(ctx context.Context, store objstore.Store) error {
	var total Size
	kinds := map[string]Size{}
	for o, err := range store.List(ctx, "", "") {
		if err != nil {
			return fmt.Errorf("list %s: %w", r.Dataset, err)
		}
		kind := kindOf(dataset.Classify(o.Key))
		s := kinds[kind]
		kinds[kind] = Size{Files: s.Files + 1, Bytes: s.Bytes + o.Size}
		total = Size{Files: total.Files + 1, Bytes: total.Bytes + o.Size}
	}
	r.Kinds, r.Total = kinds, &total
	return nil
}

// gauges come from the ledger and from what was measured, as in a pass: an unmeasured backlog is never shown as none.
func (r *Report) gauges() {
	entry := r.Ledger
	if entry == nil {
		entry = &ledger.Entry{Dataset: r.Dataset}
	}
	if n, known := entry.Unreclaimed(r.Version, r.OldestVersion, r.Version != 0); known {
		r.UnreclaimedVersions = &n
	}
	if age, known := entry.SinceSuccess(r.At); known && !r.At.IsZero() {
		seconds := age.Seconds()
		r.SecondsSinceSuccess = &seconds
	}
}
