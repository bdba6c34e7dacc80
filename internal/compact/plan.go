// Package compact plans which fragments to rewrite together, rewrites them, and verifies what was written.
package compact

import (
	"errors"
	"fmt"
	"strings"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/schema"
)

// Options of a plan.
type Options struct {
	TargetRows    uint64            // rows per fragment to aim for; above 0
	TargetBytes   int64             // bytes per fragment to aim for; 0 is off
	DeletionsOver float64           // materialize deletions where their share is above this
	Quarantined   map[uint64]string // fragments that must be left alone, with the reason
	Swap          bool              // rewrite fragments that an index of stable row ids covers: the new ones take their place
	Uncover       bool              // rewrite fragments that any index covers: they leave its coverage, and queries scan them

	// Bounds that the official planner does not have; 0 is none.
	MergeRatio   int64 // a fragment without dead rows is merged only if it has at most so many times the bytes of those merged with it
	MaxFragments int   // of one task
	MaxOpenBytes int64 // of what a task has to keep in memory of its fragments' files: about their metadata
}

// Task is fragments to rewrite together: neighbours in the table, in its order.
type Task struct {
	Fragments  []*lancepb.DataFragment
	LiveRows   uint64
	OutputRows []uint64                 // rows of each new fragment; empty when all rows are deleted
	Indices    map[string]commit.Change // by id: the index segments that cover the fragments
	Uncovers   []string                 // names of indices whose coverage the fragments leave
	Bytes      int64                    // of the data files, as far as the manifest tells
}

// Skipped is a fragment that should be rewritten and is left alone.
type Skipped struct {
	Fragment uint64
	Reason   string
	Err      error // of class lance.ErrUnsupported where the reason is something not understood; else nil
}

// Plan is what to rewrite in a version.
type Plan struct {
	ReadVersion uint64
	Tasks       []Task
	Skipped     []Skipped
}

// Supported says whether fragments of a version can be rewritten at all. ErrUnsupported names what is not understood; such a
// dataset can still be pruned.
func Supported(m *manifest.Manifest) error {
	if major, minor, known := manifest.FileVersion(m); len(m.GetFragments()) > 0 && (!known || major != 2 || minor > 2) {
		name := fmt.Sprintf("%d.%d", major, minor)
		if !known {
			name = "mixed, and none is the dataset's own"
		}
		return lance.Unsupported("file version", name, "")
	}
	if (m.GetReaderFeatureFlags()|m.GetWriterFeatureFlags())&manifest.FlagHiddenLineage != 0 {
		return lance.Unsupported("table feature", "hidden row lineage columns", "")
	}
	if indexmeta.System(m.Indices, indexmeta.ReuseIndexName) != nil {
		return lance.Unsupported("index", "fragment reuse index", "")
	}
	columns, err := schema.Columns(m.GetFields())
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if _, minor, known := manifest.FileVersion(m); known {
		if _, err := schema.Lay(columns, minor); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	return nil
}

// why a fragment is a candidate (lance src/dataset/optimize.rs:CompactionCandidacy).
type candidacy int

const (
	not candidacy = iota
	withNeighbours
	itself
)

// MakePlan chooses what to rewrite, as the official planner does (lance src/dataset/optimize.rs:DefaultCompactionPlanner):
// fragments with too many deletions by themselves, small ones together with their neighbours, in the order of the table. It
// reads nothing. Supported must hold. Fragments that an index covers are left alone, as are those that the options name.
func MakePlan(m *manifest.Manifest, o Options) (Plan, error) {
	if o.TargetRows == 0 {
		return Plan{}, errors.New("plan a compaction: the target in rows must be above 0")
	}
	plan := Plan{ReadVersion: m.GetVersion()}
	covered, err := coverage(m)
	if err != nil {
		return Plan{}, err
	}
	var b bin
	for _, f := range m.GetFragments() {
		kind, err := candidate(f, o)
		segments := covering(covered, f.GetId())
		if err == nil && kind != not {
			err = leave(f, o, segments, manifest.StableRowIDs(m))
		}
		if err != nil {
			plan.Skipped = append(plan.Skipped, skipped(f, err))
			kind = not
		}
		if kind == not {
			plan.Tasks = append(plan.Tasks, b.tasks(o)...)
			b = bin{}
			continue
		}
		if set := indexSet(segments); len(b.members) > 0 && set != indexSet(b.segments) {
			plan.Tasks = append(plan.Tasks, b.tasks(o)...)
			b = bin{}
		}
		b.members, b.segments = append(b.members, member{fragment: f, itself: kind == itself, bytes: weight(f)}), segments
	}
	plan.Tasks = append(plan.Tasks, b.tasks(o)...)
	return plan, nil
}

func skipped(f *lancepb.DataFragment, err error) Skipped {
	s := Skipped{Fragment: f.GetId(), Reason: err.Error()}
	if errors.Is(err, lance.ErrUnsupported) {
		s.Err = err
	}
	return s
}

// candidate judges a fragment by its size and deletions.
func candidate(f *lancepb.DataFragment, o Options) (candidacy, error) {
	rows, deleted := f.GetPhysicalRows(), f.GetDeletionFile().GetNumDeletedRows()
	switch {
	case rows == 0:
		return not, errors.New("the manifest does not say how many rows it has")
	case f.GetDeletionFile() != nil && deleted == 0:
		return not, errors.New("the manifest does not say how many of its rows are deleted")
	case deleted > rows:
		return not, lance.Corrupt("", "fragment %d: %d of %d rows are deleted", f.GetId(), deleted, rows)
	case deleted > 0 && float64(deleted)/float64(rows) > o.DeletionsOver:
		return itself, nil
	case rows < o.TargetRows && (o.TargetBytes == 0 || size(f) < o.TargetBytes):
		return withNeighbours, nil
	}
	return not, nil
}

// leave says why a candidate is left alone; nil if it is not.
func leave(f *lancepb.DataFragment, o Options, segments []index, stable bool) error {
	if reason, ok := o.Quarantined[f.GetId()]; ok {
		return errors.New(reason)
	}
	if len(f.GetOverlays()) > 0 {
		return lance.Unsupported("fragment feature", "data overlay files", "")
	}
	if err := inlineLineage(f, stable); err != nil {
		return err
	}
	if f.GetDeletionFile() != nil && f.GetDeletionFile().BaseId != nil {
		return lance.Unsupported("deletion file", "below another base path", "")
	}
	for _, file := range f.GetFiles() {
		if file.BaseId != nil {
			return lance.Unsupported("data file", "below another base path", "")
		}
		if major, minor := manifest.DataFileVersion(file); major != 2 || minor > 2 {
			return lance.Unsupported("file version", fmt.Sprintf("%d.%d", major, minor), file.GetPath())
		}
	}
	var names, bound []string
	for _, i := range segments {
		if i.bound == "" && (o.Uncover || o.Swap && i.change == commit.Swap) {
			continue
		}
		names = append(names, i.name)
		if i.bound != "" {
			bound = append(bound, fmt.Sprintf("%s, which forbids it: %s", i.name, i.bound))
		}
	}
	switch {
	case o.Uncover && len(bound) > 0:
		return fmt.Errorf("covered by index %s", strings.Join(bound, "; "))
	case len(names) > 0:
		return fmt.Errorf("covered by index %s", strings.Join(names, ", "))
	}
	return nil
}

// inlineLineage refuses row ids and row versions that are kept elsewhere than in the manifest, or where they should not be.
func inlineLineage(f *lancepb.DataFragment, stable bool) error {
	_, ids := f.GetRowIdSequence().(*lancepb.DataFragment_InlineRowIds)
	if ids != stable {
		return lance.Unsupported("fragment feature", "row ids that the manifest does not hold, or should not", "")
	}
	_, created := f.GetCreatedAtVersionSequence().(*lancepb.DataFragment_InlineCreatedAtVersions)
	_, updated := f.GetLastUpdatedAtVersionSequence().(*lancepb.DataFragment_InlineLastUpdatedAtVersions)
	if f.GetCreatedAtVersionSequence() != nil && (!created || !stable) || f.GetLastUpdatedAtVersionSequence() != nil && (!updated || !stable) {
		return lance.Unsupported("fragment feature", "row versions that the manifest does not hold, or should not", "")
	}
	return nil
}

// bin is neighbours to be rewritten.
type bin struct {
	members  []member
	segments []index // that cover each of them
}

// tasks cuts the bin into what is worth a rewrite, and that into tasks.
func (b *bin) tasks(o Options) []Task {
	var uncovers []string
	changes := map[string]commit.Change{}
	for _, i := range b.segments {
		changes[i.id] = i.change
		if i.change != commit.Swap {
			uncovers = append(uncovers, i.name)
		}
	}
	var tasks []Task
	for _, run := range worthwhile(b.members, o.MergeRatio) {
		tasks = append(tasks, cut(run, o)...)
	}
	for i := range tasks {
		tasks[i].Indices, tasks[i].Uncovers = changes, uncovers
	}
	return tasks
}

// cut ends a task where its rows and those that follow both reach the target (CandidateBin::split_for_size), and where it would be
// too much for one.
func cut(run []member, o Options) []Task {
	var rest uint64
	for _, m := range run {
		rest += live(m.fragment)
	}
	var tasks []Task
	var current []member
	var rows uint64
	var open int64
	end := func() {
		if len(current) > 1 || len(current) == 1 && current[0].itself {
			tasks = append(tasks, newTask(current, o))
		}
		current, rows, open = nil, 0, 0
	}
	for _, m := range run {
		more := openBytes(m.fragment)
		if o.MaxFragments > 0 && len(current) >= o.MaxFragments || o.MaxOpenBytes > 0 && open+more > o.MaxOpenBytes {
			end()
		}
		current = append(current, m)
		open += more
		rows += live(m.fragment)
		rest -= live(m.fragment)
		if rows >= o.TargetRows && rest >= o.TargetRows {
			end()
		}
	}
	end()
	return tasks
}

func newTask(members []member, o Options) Task {
	var t Task
	for _, m := range members {
		t.Fragments = append(t.Fragments, m.fragment)
		t.LiveRows += live(m.fragment)
		t.Bytes += size(m.fragment)
	}
	return t.outputs(o)
}

// outputs spreads the live rows evenly over as many fragments as the targets ask for, the first ones one row more.
func (t Task) outputs(o Options) Task {
	if t.LiveRows == 0 {
		return t
	}
	n := max(1, t.LiveRows/o.TargetRows)
	if o.TargetBytes > 0 {
		n = min(t.LiveRows, max(n, uint64(t.Bytes/o.TargetBytes)))
	}
	for i := range n {
		rows := t.LiveRows / n
		if i < t.LiveRows%n {
			rows++
		}
		t.OutputRows = append(t.OutputRows, rows)
	}
	return t
}

func live(f *lancepb.DataFragment) uint64 {
	return f.GetPhysicalRows() - f.GetDeletionFile().GetNumDeletedRows()
}

func size(f *lancepb.DataFragment) int64 {
	var n int64
	for _, file := range f.GetFiles() {
		n += int64(file.GetFileSizeBytes())
	}
	return n
}
