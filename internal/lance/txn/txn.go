// Package txn says what transactions do: which of them a rewrite conflicts with, and which files they brought.
package txn

import (
	"fmt"
	"strings"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/deletion"
	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
)

// Key is the object key of a transaction (lance-table src/io/commit.rs: `{read_version}-{uuid}.txn`).
func Key(readVersion uint64, uuid string) string {
	return fmt.Sprintf("%s%d-%s.txn", dataset.TransactionFolder, readVersion, uuid)
}

// FileName is Key without the folder, as manifests name it.
func FileName(readVersion uint64, uuid string) string {
	return strings.TrimPrefix(Key(readVersion, uuid), dataset.TransactionFolder)
}

// Operation is the format's word for what a transaction does; "unknown" where that is not understood.
func Operation(t *lancepb.Transaction) string {
	switch t.GetOperation().(type) {
	case *lancepb.Transaction_Append_:
		return "Append"
	case *lancepb.Transaction_Delete_:
		return "Delete"
	case *lancepb.Transaction_Overwrite_:
		return "Overwrite"
	case *lancepb.Transaction_CreateIndex_:
		return "CreateIndex"
	case *lancepb.Transaction_Rewrite_:
		return "Rewrite"
	case *lancepb.Transaction_Merge_:
		return "Merge"
	case *lancepb.Transaction_Restore_:
		return "Restore"
	case *lancepb.Transaction_ReserveFragments_:
		return "ReserveFragments"
	case *lancepb.Transaction_Update_:
		return "Update"
	case *lancepb.Transaction_Project_:
		return "Project"
	case *lancepb.Transaction_UpdateConfig_:
		return "UpdateConfig"
	case *lancepb.Transaction_DataReplacement_:
		return "DataReplacement"
	case *lancepb.Transaction_UpdateMemWalState_:
		return "UpdateMemWalState"
	case *lancepb.Transaction_Clone_:
		return "Clone"
	case *lancepb.Transaction_UpdateBases_:
		return "UpdateBases"
	case *lancepb.Transaction_DataOverlay_:
		return "DataOverlay"
	}
	return "unknown"
}

// Conflict says why a rewrite of the given fragments, planned before theirs was committed, can't be committed after it; ""
// if it can (lance src/io/commit/conflict_resolver.rs:TransactionRebase). The rewrite leaves all index entries as they are,
// and the dataset has no fragment reuse index.
func Conflict(rewritten map[uint64]struct{}, theirs *lancepb.Transaction) string {
	touches := func(ids []uint64) bool {
		for _, id := range ids {
			if _, ok := rewritten[id]; ok {
				return true
			}
		}
		return false
	}
	var touched bool
	switch op := theirs.GetOperation().(type) {
	case *lancepb.Transaction_Append_, *lancepb.Transaction_ReserveFragments_, *lancepb.Transaction_Project_, *lancepb.Transaction_UpdateConfig_,
		*lancepb.Transaction_Clone_, *lancepb.Transaction_UpdateBases_, *lancepb.Transaction_UpdateMemWalState_:
	case *lancepb.Transaction_Delete_:
		touched = touches(op.Delete.GetDeletedFragmentIds()) || touches(ids(op.Delete.GetUpdatedFragments()))
	case *lancepb.Transaction_Update_:
		touched = touches(op.Update.GetRemovedFragmentIds()) || touches(ids(op.Update.GetUpdatedFragments()))
	case *lancepb.Transaction_Rewrite_:
		if len(op.Rewrite.ProtoReflect().GetUnknown()) > 0 {
			return "a rewrite of a kind that is not known"
		}
		touched = touches(ids(rewriteOld(op.Rewrite)))
	case *lancepb.Transaction_DataReplacement_:
		for _, r := range op.DataReplacement.GetReplacements() {
			touched = touched || touches([]uint64{r.GetFragmentId()})
		}
	case *lancepb.Transaction_DataOverlay_:
		for _, g := range op.DataOverlay.GetGroups() {
			touched = touched || touches([]uint64{g.GetFragmentId()})
		}
	case *lancepb.Transaction_CreateIndex_:
		return newIndex(rewritten, op.CreateIndex.GetNewIndices())
	default:
		return "it changes the table as a whole, or in a way that is not known"
	}
	if touched {
		return "it changes a fragment that was rewritten"
	}
	return ""
}

// newIndex: an index that was built meanwhile must not cover what was rewritten.
func newIndex(rewritten map[uint64]struct{}, indices []*lancepb.IndexMetadata) string {
	for _, index := range indices {
		if index.GetName() == indexmeta.ReuseIndexName {
			return "it brings a fragment reuse index"
		}
		if indexmeta.IsSystem(index) {
			continue
		}
		covered, known, err := indexmeta.Coverage(index)
		if err != nil || !known {
			return fmt.Sprintf("the coverage of its index %q is not known", index.GetName())
		}
		for id := range rewritten {
			if id <= 1<<32-1 && covered.Contains(uint32(id)) {
				return fmt.Sprintf("its index %q covers a fragment that was rewritten", index.GetName())
			}
		}
	}
	return ""
}

func ids(fragments []*lancepb.DataFragment) []uint64 {
	out := make([]uint64, len(fragments))
	for i, f := range fragments {
		out[i] = f.GetId()
	}
	return out
}

func rewriteOld(r *lancepb.Transaction_Rewrite) []*lancepb.DataFragment {
	old := r.GetOldFragments()
	for _, g := range r.GetGroups() {
		old = append(old[:len(old):len(old)], g.GetOldFragments()...)
	}
	return old
}

func rewriteNew(r *lancepb.Transaction_Rewrite) []*lancepb.DataFragment {
	added := r.GetNewFragments()
	for _, g := range r.GetGroups() {
		added = append(added[:len(added):len(added)], g.GetNewFragments()...)
	}
	return added
}

// Added are the keys of the data and deletion files, and the ids of the index folders, that the commit of a transaction made
// part of the table; it may name older ones of the same fragments too. complete is false where it may have brought others
// that it does not name.
func Added(t *lancepb.Transaction) (keys, indices []string, complete bool) {
	var fragments []*lancepb.DataFragment
	var files []*lancepb.DataFile
	complete = true
	switch op := t.GetOperation().(type) {
	case *lancepb.Transaction_Append_:
		fragments = op.Append.GetFragments()
	case *lancepb.Transaction_Delete_:
		fragments = op.Delete.GetUpdatedFragments()
	case *lancepb.Transaction_Overwrite_:
		fragments = op.Overwrite.GetFragments()
	case *lancepb.Transaction_Merge_:
		fragments = op.Merge.GetFragments()
	case *lancepb.Transaction_Update_:
		fragments = append(op.Update.GetUpdatedFragments()[:len(op.Update.GetUpdatedFragments()):len(op.Update.GetUpdatedFragments())], op.Update.GetNewFragments()...)
	case *lancepb.Transaction_Rewrite_:
		complete = len(op.Rewrite.ProtoReflect().GetUnknown()) == 0
		fragments = rewriteNew(op.Rewrite)
		for _, r := range op.Rewrite.GetRewrittenIndices() {
			indices, complete = appendID(indices, r.GetNewId(), complete)
		}
	case *lancepb.Transaction_CreateIndex_:
		for _, index := range op.CreateIndex.GetNewIndices() {
			indices, complete = appendID(indices, index.GetUuid(), complete)
		}
	case *lancepb.Transaction_DataReplacement_:
		for _, r := range op.DataReplacement.GetReplacements() {
			files = append(files, r.GetNewFile())
		}
	case *lancepb.Transaction_DataOverlay_:
		for _, g := range op.DataOverlay.GetGroups() {
			files = append(files, overlayFiles(g.GetOverlays())...)
		}
	case *lancepb.Transaction_Restore_, *lancepb.Transaction_ReserveFragments_, *lancepb.Transaction_Project_,
		*lancepb.Transaction_UpdateConfig_, *lancepb.Transaction_UpdateBases_, *lancepb.Transaction_UpdateMemWalState_:
	default: // Clone, unknown
		complete = false
	}
	for _, f := range fragments {
		files = append(files, f.GetFiles()...)
		files = append(files, overlayFiles(f.GetOverlays())...)
		if d := f.GetDeletionFile(); d != nil && d.BaseId == nil {
			keys = append(keys, deletion.Key(f.GetId(), d))
		}
	}
	for _, f := range files {
		if f != nil && f.BaseId == nil {
			keys = append(keys, dataset.DataFolder+f.GetPath())
		}
	}
	return keys, indices, complete
}

func appendID(indices []string, id *lancepb.UUID, complete bool) ([]string, bool) {
	name, err := indexmeta.ID(&lancepb.IndexMetadata{Uuid: id})
	if err != nil {
		return indices, false
	}
	return append(indices, name), complete
}

func overlayFiles(overlays []*lancepb.DataOverlayFile) []*lancepb.DataFile {
	var files []*lancepb.DataFile
	for _, o := range overlays {
		files = append(files, o.GetDataFile())
	}
	return files
}
