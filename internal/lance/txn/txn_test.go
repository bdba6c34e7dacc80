package txn_test

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance/indexmeta"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/txn"
)

func fragments(ids ...uint64) []*lancepb.DataFragment {
	var out []*lancepb.DataFragment
	for _, id := range ids {
		out = append(out, &lancepb.DataFragment{Id: id, Files: []*lancepb.DataFile{{Path: "f.lance"}}})
	}
	return out
}

func index(t *testing.T, name string, ids ...uint32) *lancepb.IndexMetadata {
	t.Helper()
	data, err := roaring.BitmapOf(ids...).ToBytes()
	require.NoError(t, err)
	return &lancepb.IndexMetadata{Name: name, FragmentBitmap: data, Uuid: &lancepb.UUID{Uuid: make([]byte, 16)}}
}

// TestConflictsOfARewrite is the table of the official engine (lance src/io/commit/conflict_resolver.rs), for a rewrite of
// fragments 3 and 4.
func TestConflictsOfARewrite(t *testing.T) {
	t.Parallel()
	type tx = lancepb.Transaction
	for name, c := range map[string]struct {
		theirs   *tx
		op       string
		conflict bool
	}{
		"append":              {&tx{Operation: &lancepb.Transaction_Append_{Append: &lancepb.Transaction_Append{Fragments: fragments(0)}}}, "Append", false},
		"delete elsewhere":    {&tx{Operation: &lancepb.Transaction_Delete_{Delete: &lancepb.Transaction_Delete{UpdatedFragments: fragments(2), DeletedFragmentIds: []uint64{1}}}}, "Delete", false},
		"delete rows":         {&tx{Operation: &lancepb.Transaction_Delete_{Delete: &lancepb.Transaction_Delete{UpdatedFragments: fragments(2, 3)}}}, "Delete", true},
		"delete a fragment":   {&tx{Operation: &lancepb.Transaction_Delete_{Delete: &lancepb.Transaction_Delete{DeletedFragmentIds: []uint64{4}}}}, "Delete", true},
		"update elsewhere":    {&tx{Operation: &lancepb.Transaction_Update_{Update: &lancepb.Transaction_Update{UpdatedFragments: fragments(2), NewFragments: fragments(3)}}}, "Update", false},
		"update rows":         {&tx{Operation: &lancepb.Transaction_Update_{Update: &lancepb.Transaction_Update{UpdatedFragments: fragments(4)}}}, "Update", true},
		"update away":         {&tx{Operation: &lancepb.Transaction_Update_{Update: &lancepb.Transaction_Update{RemovedFragmentIds: []uint64{3}}}}, "Update", true},
		"rewrite elsewhere":   {&tx{Operation: &lancepb.Transaction_Rewrite_{Rewrite: &lancepb.Transaction_Rewrite{Groups: []*lancepb.Transaction_Rewrite_RewriteGroup{{OldFragments: fragments(1, 2), NewFragments: fragments(9)}}}}}, "Rewrite", false},
		"rewrite":             {&tx{Operation: &lancepb.Transaction_Rewrite_{Rewrite: &lancepb.Transaction_Rewrite{Groups: []*lancepb.Transaction_Rewrite_RewriteGroup{{OldFragments: fragments(1)}, {OldFragments: fragments(3)}}}}}, "Rewrite", true},
		"rewrite, old form":   {&tx{Operation: &lancepb.Transaction_Rewrite_{Rewrite: &lancepb.Transaction_Rewrite{OldFragments: fragments(3)}}}, "Rewrite", true},
		"merge":               {&tx{Operation: &lancepb.Transaction_Merge_{Merge: &lancepb.Transaction_Merge{}}}, "Merge", true},
		"project":             {&tx{Operation: &lancepb.Transaction_Project_{Project: &lancepb.Transaction_Project{}}}, "Project", false},
		"config":              {&tx{Operation: &lancepb.Transaction_UpdateConfig_{UpdateConfig: &lancepb.Transaction_UpdateConfig{}}}, "UpdateConfig", false},
		"overwrite":           {&tx{Operation: &lancepb.Transaction_Overwrite_{Overwrite: &lancepb.Transaction_Overwrite{}}}, "Overwrite", true},
		"restore":             {&tx{Operation: &lancepb.Transaction_Restore_{Restore: &lancepb.Transaction_Restore{Version: 1}}}, "Restore", true},
		"reserve":             {&tx{Operation: &lancepb.Transaction_ReserveFragments_{ReserveFragments: &lancepb.Transaction_ReserveFragments{NumFragments: 9}}}, "ReserveFragments", false},
		"clone":               {&tx{Operation: &lancepb.Transaction_Clone_{Clone: &lancepb.Transaction_Clone{}}}, "Clone", false},
		"bases":               {&tx{Operation: &lancepb.Transaction_UpdateBases_{UpdateBases: &lancepb.Transaction_UpdateBases{}}}, "UpdateBases", false},
		"write-ahead log":     {&tx{Operation: &lancepb.Transaction_UpdateMemWalState_{UpdateMemWalState: &lancepb.Transaction_UpdateMemWalState{}}}, "UpdateMemWalState", false},
		"replacement":         {&tx{Operation: &lancepb.Transaction_DataReplacement_{DataReplacement: &lancepb.Transaction_DataReplacement{Replacements: []*lancepb.Transaction_DataReplacementGroup{{FragmentId: 3}}}}}, "DataReplacement", true},
		"replacement aside":   {&tx{Operation: &lancepb.Transaction_DataReplacement_{DataReplacement: &lancepb.Transaction_DataReplacement{Replacements: []*lancepb.Transaction_DataReplacementGroup{{FragmentId: 5}}}}}, "DataReplacement", false},
		"overlay":             {&tx{Operation: &lancepb.Transaction_DataOverlay_{DataOverlay: &lancepb.Transaction_DataOverlay{Groups: []*lancepb.Transaction_DataOverlayGroup{{FragmentId: 4}}}}}, "DataOverlay", true},
		"overlay aside":       {&tx{Operation: &lancepb.Transaction_DataOverlay_{DataOverlay: &lancepb.Transaction_DataOverlay{Groups: []*lancepb.Transaction_DataOverlayGroup{{FragmentId: 5}}}}}, "DataOverlay", false},
		"index elsewhere":     {&tx{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: &lancepb.Transaction_CreateIndex{NewIndices: []*lancepb.IndexMetadata{index(t, "i", 1, 2)}}}}, "CreateIndex", false},
		"index over it":       {&tx{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: &lancepb.Transaction_CreateIndex{NewIndices: []*lancepb.IndexMetadata{index(t, "i", 1, 4)}}}}, "CreateIndex", true},
		"index over anything": {&tx{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: &lancepb.Transaction_CreateIndex{NewIndices: []*lancepb.IndexMetadata{{Name: "i"}}}}}, "CreateIndex", true},
		"reuse index":         {&tx{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: &lancepb.Transaction_CreateIndex{NewIndices: []*lancepb.IndexMetadata{index(t, indexmeta.ReuseIndexName)}}}}, "CreateIndex", true},
		"index dropped":       {&tx{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: &lancepb.Transaction_CreateIndex{RemovedIndices: []*lancepb.IndexMetadata{index(t, "i", 3)}}}}, "CreateIndex", false},
		"nothing":             {&tx{}, "unknown", true},
		"unknown operation":   {unknown(t, 150), "unknown", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason := txn.Conflict(map[uint64]struct{}{3: {}, 4: {}}, c.theirs)
			require.Equal(t, c.conflict, reason != "", reason)
			require.Equal(t, c.op, txn.Operation(c.theirs))
		})
	}
}

// unknown is a transaction with an operation of a later release.
func unknown(t *testing.T, number protowire.Number) *lancepb.Transaction {
	t.Helper()
	data := protowire.AppendTag(nil, number, protowire.BytesType)
	data = protowire.AppendBytes(data, []byte{8, 1})
	var out lancepb.Transaction
	require.NoError(t, proto.Unmarshal(data, &out))
	return &out
}

func TestUnknownFormsOfARewriteConflict(t *testing.T) {
	t.Parallel()
	r := &lancepb.Transaction_Rewrite{}
	r.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 1))
	theirs := &lancepb.Transaction{Operation: &lancepb.Transaction_Rewrite_{Rewrite: r}}
	require.NotEmpty(t, txn.Conflict(map[uint64]struct{}{3: {}}, theirs))
	_, _, complete := txn.Added(theirs)
	require.False(t, complete)
}

func TestAdded(t *testing.T) {
	t.Parallel()
	with := func(path string, deletions bool) *lancepb.DataFragment {
		f := &lancepb.DataFragment{Id: 7, Files: []*lancepb.DataFile{{Path: path}, {Path: "elsewhere.lance", BaseId: proto.Uint32(1)}}}
		if deletions {
			f.DeletionFile = &lancepb.DeletionFile{FileType: lancepb.DeletionFile_BITMAP, ReadVersion: 2, Id: 3}
		}
		return f
	}
	for name, c := range map[string]struct {
		t        *lancepb.Transaction
		keys     []string
		indices  int
		complete bool
	}{
		"append": {&lancepb.Transaction{Operation: &lancepb.Transaction_Append_{Append: &lancepb.Transaction_Append{Fragments: []*lancepb.DataFragment{with("a.lance", false)}}}}, []string{"data/a.lance"}, 0, true},
		"delete": {&lancepb.Transaction{Operation: &lancepb.Transaction_Delete_{Delete: &lancepb.Transaction_Delete{UpdatedFragments: []*lancepb.DataFragment{with("a.lance", true)}}}}, []string{"_deletions/7-2-3.bin", "data/a.lance"}, 0, true},
		"update": {&lancepb.Transaction{Operation: &lancepb.Transaction_Update_{Update: &lancepb.Transaction_Update{UpdatedFragments: []*lancepb.DataFragment{with("a.lance", true)}, NewFragments: []*lancepb.DataFragment{with("b.lance", false)}}}}, []string{"_deletions/7-2-3.bin", "data/a.lance", "data/b.lance"}, 0, true},
		"rewrite": {&lancepb.Transaction{Operation: &lancepb.Transaction_Rewrite_{Rewrite: &lancepb.Transaction_Rewrite{
			Groups:           []*lancepb.Transaction_Rewrite_RewriteGroup{{OldFragments: []*lancepb.DataFragment{with("old.lance", true)}, NewFragments: []*lancepb.DataFragment{with("n.lance", false)}}},
			RewrittenIndices: []*lancepb.Transaction_Rewrite_RewrittenIndex{{NewId: &lancepb.UUID{Uuid: make([]byte, 16)}}},
		}}}, []string{"data/n.lance"}, 1, true},
		"index":     {&lancepb.Transaction{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: &lancepb.Transaction_CreateIndex{NewIndices: []*lancepb.IndexMetadata{index(t, "i")}}}}, nil, 1, true},
		"bad index": {&lancepb.Transaction{Operation: &lancepb.Transaction_CreateIndex_{CreateIndex: &lancepb.Transaction_CreateIndex{NewIndices: []*lancepb.IndexMetadata{{}}}}}, nil, 0, false},
		"replacement": {&lancepb.Transaction{Operation: &lancepb.Transaction_DataReplacement_{DataReplacement: &lancepb.Transaction_DataReplacement{
			Replacements: []*lancepb.Transaction_DataReplacementGroup{{FragmentId: 1, NewFile: &lancepb.DataFile{Path: "r.lance"}}},
		}}}, []string{"data/r.lance"}, 0, true},
		"restore": {&lancepb.Transaction{Operation: &lancepb.Transaction_Restore_{Restore: &lancepb.Transaction_Restore{}}}, nil, 0, true},
		"clone":   {&lancepb.Transaction{Operation: &lancepb.Transaction_Clone_{Clone: &lancepb.Transaction_Clone{}}}, nil, 0, false},
		"unknown": {unknown(t, 150), nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, indices, complete := txn.Added(c.t)
			require.ElementsMatch(t, c.keys, keys)
			require.Len(t, indices, c.indices)
			require.Equal(t, c.complete, complete)
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "_transactions/8-abc.txn", txn.Key(8, "abc"))
	require.Equal(t, "8-abc.txn", txn.FileName(8, "abc"))
}
