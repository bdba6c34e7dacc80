// Package commit publishes rewrites as new versions of a table.
package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/txn"
	"lancekeeper/internal/objstore"
)

// Limits of one commit.
const (
	maxAttempts = 20 // as official writers have it
	maxResends  = 3  // of one manifest whose put had no clear answer and that is not there
)

// Group is fragments that were rewritten together, as read, and what replaces them, with id 0.
type Group struct {
	Old []*lancepb.DataFragment
	New []*lancepb.DataFragment
}

// Rewrite is a compaction's result, not yet part of the table.
type Rewrite struct {
	UUID        string // of the transaction
	ReadVersion uint64 // the version that it was planned on: its fragments and deletions were read
	Groups      []Group
	Indices     map[string]Change // by id: the index segments that cover the old fragments, and what becomes of their entries
}

// Change is what a rewrite makes of the entry of an index that covers the old fragments.
type Change int

// Changes. An index that is in none of a rewrite's groups keeps its entry in any case.
const (
	Keep   Change = iota + 1 // as it is: the old fragments stay in its bitmap, and readers pass over them
	Shrink                   // the old fragments leave its bitmap
	Swap                     // the new fragments take the place of the old ones in its bitmap
)

// Options are what a commit needs beside the rewrite.
type Options struct {
	// Guard is asked before each put of a manifest, with the version about to be claimed. An error stops the commit before
	// anything was claimed.
	Guard         func(ctx context.Context, version uint64) error
	Writer        string // library name and version for the manifest
	WriterVersion string
	Clock         func(ctx context.Context) (time.Time, error)
}

// Result is a commit.
type Result struct {
	Version   uint64
	Conflicts int // versions of others that came in between
}

// ConflictError says that a version of another's came in between, after which the rewrite can't be committed. Nothing of it
// is part of any version.
type ConflictError struct {
	Version   uint64 // theirs
	Operation string // theirs
	Reason    string
}

// Error names the version and what it did.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict with version %d (%s): %s", e.Version, e.Operation, e.Reason)
}

// ErrUnknownOutcome is the class of errors after which nobody knows whether the version was made. Nothing of the rewrite may
// be deleted.
var ErrUnknownOutcome = errors.New("it is not known whether the version was made")

// ErrReplaced is the class of errors about a version that was made, but behind newer ones that do not descend from it: the
// number had been free because a clean-up removed its first owner. It is no part of the table's latest state.
var ErrReplaced = errors.New("the version was made behind newer ones")

// Commit publishes a rewrite as the newest version: by put-if-absent, after checking every version since the one it was
// planned on, and again after each lost race. *ConflictError, ErrUnknownOutcome, ErrReplaced, or an error of Guard or the
// store.
func Commit(ctx context.Context, store objstore.Store, r Rewrite, o Options) (Result, error) {
	c := &committer{store: store, rewrite: r, options: o, seen: r.ReadVersion, rewritten: map[uint64]struct{}{}}
	for _, g := range r.Groups {
		for _, f := range g.Old {
			c.rewritten[f.GetId()] = struct{}{}
		}
	}
	for range maxAttempts {
		done, err := c.attempt(ctx)
		if err != nil || done {
			return Result{Version: c.target, Conflicts: c.conflicts}, err
		}
	}
	return Result{Conflicts: c.conflicts}, &ConflictError{Version: c.target, Operation: "many", Reason: fmt.Sprintf("lost %d races", maxAttempts)}
}

type committer struct {
	store     objstore.Store
	rewrite   Rewrite
	options   Options
	rewritten map[uint64]struct{}
	seen      uint64 // versions up to here were checked
	conflicts int
	target    uint64
}

// attempt builds the manifest on the newest version and puts it. done is false after a lost race.
func (c *committer) attempt(ctx context.Context) (done bool, err error) {
	latest, scheme, err := dataset.Latest(ctx, c.store)
	if err != nil {
		return false, fmt.Errorf("find the newest version: %w", err)
	}
	if err := c.catchUp(ctx, latest.Number, scheme); err != nil {
		return false, err
	}
	base, err := dataset.ReadManifest(ctx, c.store, latest)
	if err != nil {
		return false, fmt.Errorf("read the newest version: %w", err)
	}
	if err := base.Check(latest.Key); err != nil {
		return false, fmt.Errorf("check the newest version: %w", err)
	}
	now, err := c.options.Clock(ctx)
	if err != nil {
		return false, fmt.Errorf("ask for the time: %w", err)
	}
	m, err := c.build(base, now)
	if err != nil {
		return false, err
	}
	c.target = m.GetVersion()
	if err := c.putTransaction(ctx, m); err != nil {
		return false, err
	}
	data, err := manifest.Encode(m)
	if err != nil {
		return false, fmt.Errorf("encode version %d: %w", c.target, err)
	}
	done, err = c.claim(ctx, manifest.Key(c.target, scheme), data)
	if err != nil || !done {
		return false, err
	}
	if err := c.lookBehind(ctx, m, scheme); err != nil {
		return false, err
	}
	c.hint(ctx)
	return true, nil
}

// catchUp checks the rewrite against every version that came after the last one looked at.
func (c *committer) catchUp(ctx context.Context, latest uint64, scheme manifest.Scheme) error {
	if latest < c.rewrite.ReadVersion {
		return &ConflictError{Version: latest, Operation: "unknown", Reason: "the table was made anew"}
	}
	for v := c.seen + 1; v <= latest; v++ {
		c.conflicts++
		t, found, err := transactionOf(ctx, c.store, dataset.Version{Number: v, Key: manifest.Key(v, scheme)})
		if err != nil {
			return fmt.Errorf("check what came in between: %w", err)
		}
		if !found || t == nil {
			return &ConflictError{Version: v, Operation: "unknown", Reason: "it left no transaction to check"}
		}
		if reason := txn.Conflict(c.rewritten, t); reason != "" {
			return &ConflictError{Version: v, Operation: txn.Operation(t), Reason: reason}
		}
	}
	c.seen = latest
	return nil
}

// build makes the manifest of the rewrite on top of base (lance-table src/transaction/manifest_build.rs).
func (c *committer) build(base *manifest.Manifest, now time.Time) (*manifest.Manifest, error) {
	conflict := func(format string, args ...any) error {
		return &ConflictError{Version: base.GetVersion(), Operation: "unknown", Reason: fmt.Sprintf(format, args...)}
	}
	if indexmeta.System(base.Indices, indexmeta.ReuseIndexName) != nil {
		return nil, conflict("the table has a fragment reuse index now")
	}
	next := uint64(base.GetMaxFragmentId()) + 1
	if base.MaxFragmentId == nil {
		next = 0
		for _, f := range base.GetFragments() {
			next = max(next, f.GetId()+1)
		}
	}
	m := &manifest.Manifest{Manifest: proto.CloneOf(base.Manifest), Dictionaries: base.Dictionaries}
	kept, err := c.without(base)
	if err != nil {
		return nil, err
	}
	op := &lancepb.Transaction_Rewrite{}
	for _, g := range c.rewrite.Groups {
		group := &lancepb.Transaction_Rewrite_RewriteGroup{OldFragments: g.Old}
		for _, f := range g.New {
			added := proto.CloneOf(f)
			added.Id = next
			next++
			group.NewFragments = append(group.NewFragments, added)
			kept = append(kept, added)
		}
		op.Groups = append(op.Groups, group)
	}
	if next-1 > 1<<32-1 && next > 0 {
		return nil, lance.Unsupported("fragment id", "above 2^32-1", "")
	}
	m.Fragments = kept // new ids are the highest: the list stays sorted
	if m.Indices, err = c.indices(base.Indices, op.GetGroups()); err != nil {
		return nil, err
	}
	if next > 0 {
		highest := uint32(max(next-1, uint64(base.GetMaxFragmentId())))
		m.MaxFragmentId = &highest
	}
	m.Version = base.GetVersion() + 1
	m.VersionAuxData, m.Tag = 0, ""
	m.Timestamp = timestamppb.New(now)
	m.WriterVersion = &lancepb.Manifest_WriterVersion{Library: c.options.Writer, Version: c.options.WriterVersion}
	m.TransactionFile = ""
	m.Transaction = &lancepb.Transaction{
		ReadVersion: c.rewrite.ReadVersion, Uuid: c.rewrite.UUID,
		Operation: &lancepb.Transaction_Rewrite_{Rewrite: op},
	}
	if m.GetWriterFeatureFlags()&manifest.FlagNoTransactionFiles == 0 {
		m.TransactionFile = txn.FileName(c.rewrite.ReadVersion, c.rewrite.UUID)
	}
	manifest.RecomputeFlags(m)
	return m, nil
}

// without is the fragment list without what was rewritten. Each rewritten fragment must still be there exactly as it was read,
// and no index may cover it but those that the rewrite knows of: whatever the transactions in between say of themselves.
func (c *committer) without(base *manifest.Manifest) ([]*lancepb.DataFragment, error) {
	conflict := func(id uint64, what string) error {
		return &ConflictError{Version: base.GetVersion(), Operation: "unknown", Reason: fmt.Sprintf("fragment %d %s", id, what)}
	}
	now := make(map[uint64]*lancepb.DataFragment, len(base.GetFragments()))
	for _, f := range base.GetFragments() {
		now[f.GetId()] = f
	}
	for _, g := range c.rewrite.Groups {
		for _, old := range g.Old {
			f, ok := now[old.GetId()]
			if !ok {
				return nil, conflict(old.GetId(), "is gone")
			}
			if !proto.Equal(f, old) {
				return nil, conflict(old.GetId(), "has changed")
			}
			delete(now, old.GetId())
		}
	}
	for _, index := range base.Indices {
		if indexmeta.IsSystem(index) {
			continue
		}
		segment, err := indexmeta.ID(index)
		if err != nil {
			return nil, fmt.Errorf("check index %q: %w", index.GetName(), err)
		}
		if c.rewrite.Indices[segment] != 0 {
			continue
		}
		covered, known, err := indexmeta.Coverage(index)
		if err != nil {
			return nil, fmt.Errorf("check index %q: %w", index.GetName(), err)
		}
		for id := range c.rewritten {
			if !known || covered.Contains(uint32(id)) {
				return nil, conflict(id, fmt.Sprintf("is covered by index %q", index.GetName()))
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(base.GetFragments()), func(f *lancepb.DataFragment) bool {
		_, ok := c.rewritten[f.GetId()]
		return ok
	}), nil
}

// putTransaction writes the transaction as a file of its own too, for readers that do not look into manifests.
func (c *committer) putTransaction(ctx context.Context, m *manifest.Manifest) error {
	if m.GetTransactionFile() == "" {
		return nil
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Transaction)
	if err != nil {
		return fmt.Errorf("encode the transaction: %w", err)
	}
	key := dataset.TransactionFolder + m.GetTransactionFile()
	if err := c.store.Put(ctx, key, data); err != nil {
		return fmt.Errorf("write transaction %s: %w", key, err)
	}
	return nil
}

// claim puts the manifest. done is false if the version is another's.
func (c *committer) claim(ctx context.Context, key string, data []byte) (done bool, err error) {
	for range maxResends {
		if err := c.options.Guard(ctx, c.target); err != nil {
			return false, err
		}
		put := c.store.PutIfAbsent(ctx, key, data)
		if put == nil {
			return true, nil
		}
		// Whatever the answer was: what counts is whose the version is.
		verdict, err := c.whose(ctx)
		switch {
		case err != nil:
			return false, fmt.Errorf("claim version %d: %w: %w", c.target, ErrUnknownOutcome, errors.Join(put, err))
		case verdict == Ours:
			return true, nil
		case verdict == Theirs:
			return false, nil
		case verdict == Unknown:
			return false, fmt.Errorf("claim version %d: %w: it is there, but left no transaction: %w", c.target, ErrUnknownOutcome, put)
		case !errors.Is(put, objstore.ErrAmbiguous) && !errors.Is(put, objstore.ErrExists):
			return false, fmt.Errorf("claim version %d: %w: %w", c.target, ErrUnknownOutcome, put)
		}
	}
	return false, fmt.Errorf("claim version %d: %w: no clear answer to %d puts", c.target, ErrUnknownOutcome, maxResends)
}

// whose looks the version up, also where the context has just ended: the answer decides what may be deleted.
func (c *committer) whose(ctx context.Context) (Verdict, error) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime)
	defer cancel()
	return Resolve(late, c.store, c.target, c.rewrite.UUID)
}

// lookupTime bounds the look at what became of a put.
const lookupTime = 10 * time.Second

// lookBehind makes sure that the version is not a ghost: one made behind newer versions, under a number whose first owner a
// clean-up had removed. The next version, if there is one, must then descend from it.
func (c *committer) lookBehind(ctx context.Context, m *manifest.Manifest, scheme manifest.Scheme) error {
	latest, _, err := dataset.Latest(ctx, c.store)
	if err != nil {
		return fmt.Errorf("look for newer versions: %w: %w", ErrUnknownOutcome, err)
	}
	if latest.Number <= c.target {
		return nil
	}
	after := dataset.Version{Number: c.target + 1, Key: manifest.Key(c.target+1, scheme)}
	next, err := dataset.ReadManifest(ctx, c.store, after)
	if errors.Is(err, objstore.ErrNotExist) {
		return fmt.Errorf("version %d: %w: the latest is %d", c.target, ErrReplaced, latest.Number)
	}
	if err != nil {
		return fmt.Errorf("look at the version behind: %w: %w", ErrUnknownOutcome, err)
	}
	if next.GetMaxFragmentId() < m.GetMaxFragmentId() || !descends(next, m) {
		return fmt.Errorf("version %d: %w: the latest is %d", c.target, ErrReplaced, latest.Number)
	}
	return nil
}

// descends says whether a version can have been built on another: none of the fragments that the rewrite replaced is back.
func descends(next, m *manifest.Manifest) bool {
	replaced := map[uint64]struct{}{}
	for _, g := range m.Transaction.GetRewrite().GetGroups() {
		for _, f := range g.GetOldFragments() {
			replaced[f.GetId()] = struct{}{}
		}
	}
	return !slices.ContainsFunc(next.GetFragments(), func(f *lancepb.DataFragment) bool {
		_, back := replaced[f.GetId()]
		return back
	})
}

// hint updates the version hint of stores that do not list in order, as writers do; it is never authority.
func (c *committer) hint(ctx context.Context) {
	if c.store.Ordered() {
		return
	}
	_ = c.store.Put(ctx, manifest.Folder+manifest.HintName, manifest.EncodeHint(c.target))
}
