package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"lancekeeper/internal/lance/dataset"
)

// kindOf is the word for a class of object in reports and results.
func kindOf(c dataset.Class) string {
	switch c {
	case dataset.ManifestAttached, dataset.ManifestDetached, dataset.ManifestStaging:
		return "manifest"
	case dataset.Transaction:
		return "transaction"
	case dataset.Data, dataset.Sidecar:
		return "data"
	case dataset.DeletionFile:
		return "deletion"
	case dataset.IndexFile:
		return "index"
	default:
		return "other"
	}
}

// Text writes reports for people: one block a dataset.
func Text(w io.Writer, reports []Report) error {
	for i, r := range reports {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return fmt.Errorf("write the report: %w", err)
			}
		}
		if err := r.text(w); err != nil {
			return fmt.Errorf("write the report of %s: %w", r.Dataset, err)
		}
	}
	return nil
}

func (r Report) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, value string) { _, _ = fmt.Fprintf(t, "  %s\t%s\n", name, value) }
	_, _ = fmt.Fprintln(t, r.Dataset)
	if r.Error != "" {
		line("error", strings.ReplaceAll(r.Error, "\n", "; "))
	}
	if r.Manifests != nil {
		line("versions", fmt.Sprintf("%s manifests, %d to %d", humanize.Comma(int64(*r.Manifests)), r.OldestVersion, r.Version))
	}
	if r.Fragments != nil {
		version := ""
		if r.FileVersion != "" {
			version = ", file version " + r.FileVersion
		}
		line("table", fmt.Sprintf("%s fragments, %s rows (%s more are deleted)%s", humanize.Comma(int64(*r.Fragments)),
			humanize.Comma(int64(*r.Rows)), humanize.Comma(int64(*r.DeletedRows)), version))
	}
	r.shapeText(line)
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		s := r.Kinds[kind]
		line(kind+" files", fmt.Sprintf("%s, %s", humanize.Comma(s.Files), humanize.IBytes(uint64(s.Bytes))))
	}
	if r.Total != nil {
		line("in all", fmt.Sprintf("%s files, %s", humanize.Comma(r.Total.Files), humanize.IBytes(uint64(r.Total.Bytes))))
	}
	for _, list := range []struct {
		name  string
		names []string
	}{{"indices", r.Indices}, {"tags", r.Tags}, {"branches", r.Branches}} {
		if len(list.names) > 0 {
			line(list.name, strings.Join(list.names, ", "))
		}
	}
	if r.UnreclaimedVersions != nil {
		line("unreclaimed versions", humanize.Comma(int64(*r.UnreclaimedVersions)))
	}
	r.ledgerText(line)
	for _, f := range r.Findings {
		line("finding", f)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

func (r Report) ledgerText(line func(name, value string)) {
	e := r.Ledger
	if e == nil {
		line("ledger", "no pass has been recorded")
		return
	}
	success := "never"
	if e.LastSuccess != nil {
		success = fmt.Sprintf("version %d, %s", e.LastSuccess.Version, e.LastSuccess.At.Format(time.RFC3339))
	}
	line("last success", success)
	line("failures", fmt.Sprintf("%d in a row, %d in all; %d skips in a row", e.ConsecutiveFailures, e.Failures, e.ConsecutiveSkips))
	if e.Started != nil {
		line("unfinished pass", fmt.Sprintf("begun %s by %s", e.Started.At.Format(time.RFC3339), e.Started.Owner))
	}
	for i, o := range e.Outcomes {
		if i == 3 {
			break
		}
		line("pass", strings.TrimSpace(fmt.Sprintf("%s %s %s", o.At.Format(time.RFC3339), o.Outcome, o.Reason)))
	}
}
