package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"lancekeeper/internal/maintain"
)

// table writes the result document for people: before and after of each dataset, and what stays.
func table(w io.Writer, doc maintain.Document) error {
	for i, r := range doc.Results {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
		}
		if err := (sheet{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}).result(r); err != nil {
			return fmt.Errorf("write the result of %s: %w", r.Dataset, err)
		}
	}
	return nil
}

type sheet struct{ *tabwriter.Writer }

func (s sheet) row(cells ...string) {
	_, _ = fmt.Fprintln(s, "  "+strings.Join(cells, "\t")) // errors come with Flush
}

func (s sheet) result(r maintain.Result) error {
	title := fmt.Sprintf("%s: %s", r.Dataset, r.Outcome)
	if r.Reason != "" {
		title += " (" + r.Reason + ")"
	}
	_, _ = fmt.Fprintln(s, title)
	if r.Before != nil && r.After != nil {
		s.states(*r.Before, *r.After)
	}
	s.done(r)
	for _, f := range r.Findings {
		s.row("note", f.Kind+": "+f.Detail)
	}
	for _, l := range r.Pruning.Left {
		s.row("left alone", fmt.Sprintf("%s %s files, %s: %s", l.Path, humanize.Comma(l.Files), humanize.IBytes(uint64(l.Bytes)), l.Reason))
	}
	if err := s.Flush(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

func (s sheet) states(before, after maintain.State) {
	s.row("", "before", "after")
	s.row("version", fmt.Sprint(before.Version), fmt.Sprint(after.Version))
	count := func(name string, b, a *int) {
		if b != nil && a != nil {
			s.row(name, humanize.Comma(int64(*b)), humanize.Comma(int64(*a)))
		}
	}
	count("manifests", before.Manifests, after.Manifests)
	count("fragments", &before.Fragments, &after.Fragments)
	s.row("rows", humanize.Comma(int64(before.Rows)), humanize.Comma(int64(after.Rows)))
	s.row("deleted rows", humanize.Comma(int64(before.DeletedRows)), humanize.Comma(int64(after.DeletedRows)))
	if before.Files != nil && after.Files != nil {
		s.row("files", humanize.Comma(*before.Files), humanize.Comma(*after.Files))
		s.row("bytes", humanize.IBytes(uint64(*before.Bytes)), humanize.IBytes(uint64(*after.Bytes)))
	}
}

func (s sheet) done(r maintain.Result) {
	c, p := r.Compaction, r.Pruning
	if len(c.Plan) > 0 || p.Plan != nil {
		s.plan(r)
	}
	if c.Tasks > 0 {
		s.row("compacted", fmt.Sprintf("%s fragments into %s, %s deleted rows dropped", humanize.Comma(int64(c.FragmentsRemoved)),
			humanize.Comma(int64(c.FragmentsAdded)), humanize.Comma(int64(c.RowsDropped))))
	}
	if c.SkippedFragments > 0 {
		s.row("not compacted", fmt.Sprintf("%s fragments, the first: %s", humanize.Comma(int64(c.SkippedFragments)), c.Skipped[0].Reason))
	}
	if p.VersionsRemoved > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(p.FilesRemoved)) {
			if p.FilesRemoved[kind] == 0 {
				continue
			}
			kinds = append(kinds, fmt.Sprintf("%s %s", humanize.Comma(p.FilesRemoved[kind]), kind))
		}
		s.row("removed", fmt.Sprintf("%s versions (files: %s), %s", humanize.Comma(int64(p.VersionsRemoved)), strings.Join(kinds, ", "), humanize.IBytes(uint64(p.BytesReclaimed))))
	}
	if r.Remaining != nil && r.Remaining.Versions > 0 {
		s.row("still to do", fmt.Sprintf("%s versions, %s", humanize.Comma(int64(r.Remaining.Versions)), humanize.IBytes(uint64(r.Remaining.Bytes))))
	}
	if r.UnreclaimedVersions != nil {
		s.row("unreclaimed versions", humanize.Comma(int64(*r.UnreclaimedVersions)))
	}
	q := r.Requests
	s.row("requests", fmt.Sprintf("%d list, %d get, %d put, %d delete", q.List, q.Get, q.Put, q.Delete))
	s.row("time", (time.Duration(r.DurationMs) * time.Millisecond).String())
}

func (s sheet) plan(r maintain.Result) {
	for _, t := range r.Compaction.Plan {
		s.row("would compact", fmt.Sprintf("%d fragments of %s rows into %d", len(t.Fragments), humanize.Comma(int64(t.LiveRows)), len(t.OutputRows)))
	}
	if p := r.Pruning.Plan; p != nil {
		s.row("would remove", fmt.Sprintf("%s versions", humanize.Comma(int64(len(p.Versions)+p.OmittedVersions))))
		for _, sum := range p.Sums {
			s.row("", fmt.Sprintf("%s %s", humanize.Comma(sum.Files), sum.Kind), humanize.IBytes(uint64(sum.Bytes)), sum.Reason)
		}
		if len(p.StaleRows) > 0 {
			s.row("", fmt.Sprintf("%s rows", humanize.Comma(int64(len(p.StaleRows)))), "", "their versions are gone already")
		}
		if len(p.Files) > 0 {
			s.row("", "(--json names each file)")
		}
	}
}
