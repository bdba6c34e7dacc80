package maintain

import (
	"time"

	"lancekeeper/internal/objstore/meterstore"
)

// Outcome is how a pass, or the run of all passes, ended.
type Outcome string

// Outcomes. Partial means that time ran out between two steps; Skipped that another holds the lock.
const (
	OK      Outcome = "ok"
	Partial Outcome = "partial"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// ExitCode is the command's exit code for an outcome.
func (o Outcome) ExitCode() int {
	switch o {
	case Failed:
		return 1
	case Partial:
		return 3
	case Skipped:
		return 4
	default:
		return 0
	}
}

// Worst returns the outcome that counts when several datasets were maintained: failed, partial, skipped, ok.
func Worst(outcomes ...Outcome) Outcome {
	worst := OK
	rank := map[Outcome]int{OK: 0, Skipped: 1, Partial: 2, Failed: 3}
	for _, o := range outcomes {
		if rank[o] > rank[worst] {
			worst = o
		}
	}
	return worst
}

// Document is the answer of one invocation: one Result a dataset.
type Document struct {
	Outcome Outcome  `json:"outcome"`
	Drained bool     `json:"drained"` // no backlog is left anywhere
	DryRun  bool     `json:"dryRun,omitempty"`
	Results []Result `json:"results"`
}

// Result is what one pass did to one dataset. Numbers that were not measured are left out.
type Result struct {
	Dataset             string                   `json:"dataset"`
	Outcome             Outcome                  `json:"outcome"`
	Reason              string                   `json:"reason"`
	Error               *Fault                   `json:"error"`
	Before              *State                   `json:"before,omitempty"`
	After               *State                   `json:"after,omitempty"`
	Compaction          Compaction               `json:"compaction"`
	Pruning             Pruning                  `json:"pruning"`
	Remaining           *Remaining               `json:"remaining,omitempty"`
	Drained             bool                     `json:"drained"`
	UnreclaimedVersions *uint64                  `json:"unreclaimedVersions,omitempty"`
	SecondsSinceSuccess *float64                 `json:"secondsSinceSuccess,omitempty"`
	ConsecutiveFailures int                      `json:"consecutiveFailures"`
	Failures            int                      `json:"failures"` // all that the ledger has seen
	DurationMs          int64                    `json:"durationMs"`
	Requests            Requests                 `json:"requests"`
	Policy              map[string]PolicySetting `json:"policy,omitempty"`
	Findings            []Finding                `json:"findings"`
}

// Fault is an error for the result document. Class is one of unsupported, corrupt, mismatch, lock, denied, throttled,
// config, other; Object is the key concerned, where known.
type Fault struct {
	Class   string `json:"class"`
	Message string `json:"message"`
	Object  string `json:"object,omitempty"`
	Step    string `json:"step,omitempty"`
}

// State is a dataset at one moment. Files and Bytes are what the pass listed.
type State struct {
	Version     uint64 `json:"version"`
	Manifests   *int   `json:"manifests,omitempty"`
	Fragments   int    `json:"fragments"`
	Rows        uint64 `json:"rows"` // live rows
	DeletedRows uint64 `json:"deletedRows"`
	Files       *int64 `json:"files,omitempty"`
	Bytes       *int64 `json:"bytes,omitempty"`
}

// Compaction is what the compaction half of a pass did.
type Compaction struct {
	Outcome          Outcome           `json:"outcome"`
	Error            *Fault            `json:"error,omitempty"`
	Tasks            int               `json:"tasks"` // committed
	Planned          int               `json:"planned"`
	FragmentsRemoved int               `json:"fragmentsRemoved"`
	FragmentsAdded   int               `json:"fragmentsAdded"`
	RowsDropped      uint64            `json:"rowsDropped"`
	BytesRead        int64             `json:"bytesRead"`
	BytesWritten     int64             `json:"bytesWritten"`
	Conflicts        int               `json:"conflicts"`
	SkippedFragments int               `json:"skippedFragments"` // left alone; Skipped names the first 100 of them
	Skipped          []SkippedFragment `json:"skipped"`
	Plan             []PlannedTask     `json:"plan,omitempty"` // dry run only
}

// SkippedFragment is a fragment that was left alone although its size or deletions asked for a rewrite.
type SkippedFragment struct {
	Fragment uint64 `json:"fragment"`
	Reason   string `json:"reason"`
}

// PlannedTask is what a dry run says of one task.
type PlannedTask struct {
	Fragments  []uint64 `json:"fragments"`
	LiveRows   uint64   `json:"liveRows"`
	OutputRows []uint64 `json:"outputRows"`
}

// Pruning is what the pruning half of a pass did.
type Pruning struct {
	Outcome         Outcome          `json:"outcome"`
	Error           *Fault           `json:"error,omitempty"`
	VersionsRemoved int              `json:"versionsRemoved"`
	FilesRemoved    map[string]int64 `json:"filesRemoved"` // by kind, zeros included
	BytesReclaimed  int64            `json:"bytesReclaimed"`
	BytesHidden     int64            `json:"bytesHidden,omitempty"` // removed, and still stored: the bucket keeps versions of objects
	FailedDeletes   int              `json:"failedDeletes"`
	KeptVersions    int              `json:"keptVersions"` // beside the latest; Kept names the first 100 of them
	Kept            []KeptVersion    `json:"kept"`
	Left            []LeftFiles      `json:"left"`
	Plan            *PrunePlan       `json:"plan,omitempty"` // dry run only
}

// KeptVersion is a version that stays although it is not the latest, and why.
type KeptVersion struct {
	Version uint64     `json:"version"`
	Reason  string     `json:"reason"`
	Until   *time.Time `json:"until,omitempty"`
}

// LeftFiles counts files that stay although no version names them, and why.
type LeftFiles struct {
	Path   string `json:"path"`
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
	Reason string `json:"reason"`
}

// PrunePlan is what a dry run says: each version and file that would go, and why. A function's answer has room for the first of
// them only; the sums are of all.
type PrunePlan struct {
	Versions        []uint64      `json:"versions"`
	OmittedVersions int           `json:"omittedVersions,omitempty"`
	Files           []PlannedFile `json:"files"`
	OmittedFiles    int           `json:"omittedFiles,omitempty"`
	Sums            []PlannedSum  `json:"sums"`
	StaleRows       []uint64      `json:"staleRows,omitempty"` // of an external manifest store: versions that are gone already
}

// PlannedFile is a file that would be removed.
type PlannedFile struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"` // as in filesRemoved
	Bytes   int64  `json:"bytes"`
	Reason  string `json:"reason"`
	Version uint64 `json:"version,omitempty"` // that has expired: the manifest's, or the one that brought the file
}

// PlannedSum counts the files of one kind that would be removed for one reason.
type PlannedSum struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// Remaining is the backlog that a pass could not remove.
type Remaining struct {
	Versions int   `json:"versions"`
	Bytes    int64 `json:"bytes"`
}

// Requests is what a pass asked of the store.
type Requests struct {
	List         int64 `json:"list"`
	Get          int64 `json:"get"`
	Put          int64 `json:"put"`
	Delete       int64 `json:"delete"`
	BytesRead    int64 `json:"bytesRead"`
	BytesWritten int64 `json:"bytesWritten"`
}

// PolicySetting is the value of one setting and where it came from.
type PolicySetting struct {
	Value  string `json:"value"`
	Source string `json:"source"`
}

// Finding is something that the owner of the dataset should know and that does not fail the pass.
type Finding struct {
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
}

func requestsOf(c meterstore.Counts) Requests {
	return Requests{List: c.List, Get: c.Get, Put: c.Put, Delete: c.Delete, BytesRead: c.BytesRead, BytesWritten: c.BytesWritten}
}

// again says whether another pass at once may get further: the one before did something and left something.
func (r Result) again() bool {
	if r.Outcome == Failed || r.Outcome == Skipped || r.Drained {
		return false
	}
	return r.Pruning.VersionsRemoved > 0 || r.Compaction.Tasks > 0
}

// followedBy is the result of several passes as one: the first one's before, the last one's after, the sum of what was done.
func (r Result) followedBy(next Result) Result {
	out := next
	out.Before = r.Before
	out.DurationMs += r.DurationMs
	c, d := &out.Compaction, r.Compaction
	c.Tasks += d.Tasks
	c.Planned += d.Planned
	c.FragmentsRemoved += d.FragmentsRemoved
	c.FragmentsAdded += d.FragmentsAdded
	c.RowsDropped += d.RowsDropped
	c.BytesRead += d.BytesRead
	c.BytesWritten += d.BytesWritten
	c.Conflicts += d.Conflicts
	out.Pruning.VersionsRemoved += r.Pruning.VersionsRemoved
	out.Pruning.BytesReclaimed += r.Pruning.BytesReclaimed
	out.Pruning.BytesHidden += r.Pruning.BytesHidden
	out.Pruning.FailedDeletes += r.Pruning.FailedDeletes
	for kind, n := range r.Pruning.FilesRemoved {
		out.Pruning.FilesRemoved[kind] += n
	}
	out.Requests.List += r.Requests.List
	out.Requests.Get += r.Requests.Get
	out.Requests.Put += r.Requests.Put
	out.Requests.Delete += r.Requests.Delete
	out.Requests.BytesRead += r.Requests.BytesRead
	out.Requests.BytesWritten += r.Requests.BytesWritten
	return out
}
