// Package metrics writes metrics as log lines in CloudWatch's embedded metric format: no call, no queue, nothing to flush.
package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Namespace holds all metrics.
const Namespace = "Lancekeeper"

// Dimension is the one dimension. Every metric is there for each dataset, and without dimension for all together: each
// combination is billed.
const Dimension = "Dataset"

// maxDimension is how long the value of a dimension may be.
const maxDimension = 1024

// largest is the largest value that CloudWatch takes, 2^360.
const largest = 0x1p360

// Unit is one of CloudWatch's.
type Unit string

// Units.
const (
	Count        Unit = "Count"
	Seconds      Unit = "Seconds"
	Milliseconds Unit = "Milliseconds"
	Bytes        Unit = "Bytes"
	None         Unit = "None"
)

// Definition is one metric. A counter is emitted with each document of a pass, 0 included; a gauge only where it was measured.
type Definition struct {
	Name        string
	Unit        Unit
	Description string
	Gauge       bool
	AlarmOn     bool // an alarm of the product rests on it
}

// Definitions are all metrics, in the order in which they are written.
func Definitions() []Definition {
	all := fields()
	out := make([]Definition, len(all))
	for i, f := range all {
		out[i] = f.Definition
	}
	return out
}

// Sample is what there is to say of one dataset. Gauges that were not measured are nil and left out: a 0 that nobody measured
// would hide a backlog. Pass is nil where no pass was made, as in a report: then no counter is emitted at all.
type Sample struct {
	UnreclaimedVersions *uint64
	SecondsSinceSuccess *float64
	ConsecutiveFailures *int
	FragmentsBefore     *int
	FragmentsAfter      *int
	ManifestsOnStorage  *int64
	DatasetVersion      *uint64
	Pass                *Pass
}

// Pass is what one pass did.
type Pass struct {
	Skipped          bool // the lock was held: neither failure nor success, so no MaintenanceFailures
	Failed           bool
	Duration         time.Duration
	VersionsRemoved  int64
	FilesRemoved     int64
	RowsDropped      uint64
	BytesReclaimed   int64
	BytesWritten     int64
	CommitConflicts  int
	SkippedFragments int
	Unsupported      int // things left alone because they are not understood
}

// field is a metric and how to read it from a sample; false: left out.
type field struct {
	Definition
	read func(s Sample) (float64, bool)
}

func fields() []field {
	return []field{
		gauge("UnreclaimedVersions", Count, true, "Versions committed since the last successful pass; before any success, the whole backlog. Alert on this.",
			func(s Sample) *uint64 { return s.UnreclaimedVersions }),
		gauge("SecondsSinceSuccess", Seconds, true, "Age of the last successful pass when this was written.",
			func(s Sample) *float64 { return s.SecondsSinceSuccess }),
		{
			Definition{Name: "MaintenanceFailures", Unit: Count, AlarmOn: true, Description: "1 for a failed pass, 0 for one that did not fail; left out where the lock was held."},
			func(s Sample) (float64, bool) {
				if s.Pass == nil || s.Pass.Skipped {
					return 0, false
				}
				return flag(s.Pass.Failed), true
			},
		},
		gauge("ConsecutiveFailures", Count, true, "Failed passes in a row; 0 after any success.",
			func(s Sample) *int { return s.ConsecutiveFailures }),
		counter("MaintenanceDuration", Milliseconds, "How long the pass took.",
			func(p Pass) float64 { return float64(p.Duration.Milliseconds()) }),
		counter("VersionsRemoved", Count, "Versions that the pass removed.", func(p Pass) float64 { return float64(p.VersionsRemoved) }),
		counter("FilesRemoved", Count, "Files that the pass removed, manifests included.", func(p Pass) float64 { return float64(p.FilesRemoved) }),
		gauge("FragmentsBefore", Count, false, "Fragments of the latest version when the pass began.", func(s Sample) *int { return s.FragmentsBefore }),
		gauge("FragmentsAfter", Count, false, "Fragments of the latest version when the pass ended.", func(s Sample) *int { return s.FragmentsAfter }),
		counter("RowsDropped", Count, "Deleted rows that compaction left out.", func(p Pass) float64 { return float64(p.RowsDropped) }),
		counter("BytesReclaimed", Bytes, "Bytes of the files that the pass removed.", func(p Pass) float64 { return float64(p.BytesReclaimed) }),
		counter("BytesWritten", Bytes, "Bytes that compaction wrote: what it cost.", func(p Pass) float64 { return float64(p.BytesWritten) }),
		gauge("ManifestsOnStorage", Count, false, "Manifests that exist: what really costs.", func(s Sample) *int64 { return s.ManifestsOnStorage }),
		gauge("DatasetVersion", None, false, "Number of the latest version. It climbs by design and is no signal.",
			func(s Sample) *uint64 { return s.DatasetVersion }),
		alarmed(counter("LockContended", Count, "1 for a pass that found the lock held.", func(p Pass) float64 { return flag(p.Skipped) })),
		counter("CommitConflicts", Count, "Commits that lost against another writer.", func(p Pass) float64 { return float64(p.CommitConflicts) }),
		alarmed(counter("SkippedFragments", Count, "Fragments set aside after their rewrite failed or died.", func(p Pass) float64 { return float64(p.SkippedFragments) })),
		alarmed(counter("Unsupported", Count, "Things left alone because they are not understood.", func(p Pass) float64 { return float64(p.Unsupported) })),
	}
}

func gauge[T uint64 | int64 | int | float64](name string, unit Unit, alarm bool, description string, read func(Sample) *T) field {
	return field{
		Definition{Name: name, Unit: unit, Description: description, Gauge: true, AlarmOn: alarm},
		func(s Sample) (float64, bool) {
			if v := read(s); v != nil {
				return float64(*v), true
			}
			return 0, false
		},
	}
}

func counter(name string, unit Unit, description string, read func(Pass) float64) field {
	return field{
		Definition{Name: name, Unit: unit, Description: description},
		func(s Sample) (float64, bool) {
			if s.Pass == nil {
				return 0, false
			}
			return read(*s.Pass), true
		},
	}
}

func alarmed(f field) field {
	f.AlarmOn = true
	return f
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

// Document is a sample of one dataset, for WriteAll.
type Document struct {
	Dataset string
	Sample  Sample
}

// metric is how a document declares one.
type metric struct {
	Name string
	Unit Unit
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metric
}

type header struct {
	Timestamp         int64
	CloudWatchMetrics []directive
}

// Write writes one document, in one line and one call. Nothing is written where the sample holds nothing. What is no number
// that CloudWatch takes is left out.
func Write(w io.Writer, now time.Time, dataset string, s Sample) error {
	line, err := encode(now, dataset, s)
	if err != nil || line == nil {
		return err
	}
	if _, err := w.Write(line); err != nil {
		return fmt.Errorf("write the metrics of %s: %w", dataset, err)
	}
	return nil
}

// WriteAll writes one document a dataset. One that can't be written does not stop the others.
func WriteAll(w io.Writer, now time.Time, documents []Document) error {
	var all []error
	for _, d := range documents {
		all = append(all, Write(w, now, d.Dataset, d.Sample))
	}
	return errors.Join(all...)
}

func encode(now time.Time, dataset string, s Sample) ([]byte, error) {
	var declared []metric
	var members bytes.Buffer
	for _, f := range fields() {
		value, measured := f.read(s)
		if !measured || !(math.Abs(value) <= largest) { // so that NaN is left out
			continue
		}
		declared = append(declared, metric{Name: f.Name, Unit: f.Unit})
		fmt.Fprintf(&members, `,%q:%s`, f.Name, strconv.FormatFloat(value, 'f', -1, 64))
	}
	if declared == nil {
		return nil, nil //nolint:nilnil // nothing to write
	}
	head, err := json.Marshal(header{Timestamp: now.UnixMilli(), CloudWatchMetrics: []directive{{
		Namespace: Namespace, Dimensions: [][]string{{Dimension}, {}}, Metrics: declared,
	}}})
	if err != nil {
		return nil, fmt.Errorf("encode the metrics of %s: %w", dataset, err)
	}
	name, err := json.Marshal(DimensionValue(dataset))
	if err != nil {
		return nil, fmt.Errorf("encode the metrics of %s: %w", dataset, err)
	}
	return fmt.Appendf(nil, "{\"_aws\":%s,%q:%s%s}\n", head, Dimension, name, members.Bytes()), nil
}

// DimensionValue is a dataset's name as CloudWatch takes it: printable ASCII, not empty, at most 1,024 characters. Other bytes
// are written as in a URI, %C3%A4; of a name that is too long the end stays, which tells tables apart.
func DimensionValue(dataset string) string {
	var b strings.Builder
	for _, c := range []byte(dataset) {
		if c < ' ' || c > '~' {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	value := strings.TrimSpace(b.String())
	if value == "" {
		return "-"
	}
	if len(value) > maxDimension {
		return "..." + value[len(value)-maxDimension+len("..."):]
	}
	return value
}
