package dataset_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/memstore"
)

func TestLatestOnAnyStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"upserts-2.2", "v1names", "tags", "detached"} {
		for _, unordered := range []bool{false, true} {
			store := lancetest.Load(t, name, time.Now, time.Hour)
			if unordered {
				store.Unordered()
			}
			for _, foreign := range []string{"00000000000000000000.manifest.bak", ".tmp_1.manifest", "zzz", "1.manifest-7f1c6c9e-55a1-4c0e-9f0d-2a4e0c1b9d10", "a/1.manifest"} {
				require.NoError(t, store.Put(t.Context(), manifest.Folder+foreign, nil))
			}
			l, err := dataset.List(t.Context(), store)
			require.NoError(t, err)
			latest, scheme, err := dataset.Latest(t.Context(), store)
			require.NoError(t, err)
			require.Equal(t, l.Versions[len(l.Versions)-1], latest)
			require.Equal(t, l.Scheme, scheme)
			for i, v := range l.Versions[1:] {
				require.Greater(t, v.Number, l.Versions[i].Number)
			}
			require.Len(t, l.Temporary, 1)
			require.Len(t, l.Staging, 1)
			require.Len(t, l.Other, 3)
		}
	}
}

func TestBothSchemesAreRefused(t *testing.T) {
	t.Parallel()
	store := lancetest.Load(t, "v1names", time.Now, time.Hour)
	require.NoError(t, store.Put(t.Context(), manifest.Key(3, manifest.V2), nil))
	_, err := dataset.List(t.Context(), store)
	require.ErrorIs(t, err, lance.ErrUnsupported)
}

func TestNoDataset(t *testing.T) {
	t.Parallel()
	for want, key := range map[string]string{
		"nothing at this place": "", "no folder _versions": "data/x.lance", "holds no manifest": "_versions/notes.txt",
	} {
		store := memstore.New("mem://empty", time.Now)
		if key != "" {
			require.NoError(t, store.Put(t.Context(), key, nil))
		}
		_, err := dataset.List(t.Context(), store)
		require.ErrorIs(t, err, dataset.ErrNotDataset)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "mem://empty")
		_, _, err = dataset.Latest(t.Context(), store)
		require.ErrorIs(t, err, dataset.ErrNotDataset)
	}
}

func TestManifestMustBeTheVersionItIsNamed(t *testing.T) {
	t.Parallel()
	store := lancetest.Load(t, "emptied", time.Now, time.Hour)
	latest, _, err := dataset.Latest(t.Context(), store)
	require.NoError(t, err)
	data, _, err := store.Get(t.Context(), latest.Key)
	require.NoError(t, err)
	other := dataset.Version{Number: latest.Number + 1, Key: manifest.Key(latest.Number+1, manifest.V2)}
	require.NoError(t, store.Put(t.Context(), other.Key, data))
	_, err = dataset.ReadManifest(t.Context(), store, other)
	require.ErrorIs(t, err, lance.ErrCorrupt)
	_, err = dataset.ReadProof(t.Context(), store, other)
	require.ErrorIs(t, err, lance.ErrCorrupt)
}

// TestProofs: the transaction of a version is the same whether its manifest is small or has megabytes, with or without indices.
func TestProofs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"indexed", "updates"} {
		store := lancetest.Load(t, name, time.Now, time.Hour)
		l, err := dataset.List(t.Context(), store)
		require.NoError(t, err)
		for _, v := range l.Versions {
			whole, err := dataset.ReadManifest(t.Context(), store, v)
			require.NoError(t, err)
			proof, err := dataset.ReadProof(t.Context(), store, v)
			require.NoError(t, err)
			require.NotNil(t, proof.Manifest)
			require.True(t, proto.Equal(whole.Transaction, proof.Transaction))

			lancetest.Rewrite(t, store, v, func(m *manifest.Manifest) {
				for i := range 3000 { // some hundred KB
					m.Fragments = append(m.Fragments, &lancepb.DataFragment{Id: uint64(1000 + i), Files: []*lancepb.DataFile{{Path: fmt.Sprintf("%060d.lance", i)}}})
				}
				for i := range m.Indices {
					m.Indices[i].FragmentBitmap = bytes.Repeat([]byte{1}, 100_000)
				}
			})
			proof, err = dataset.ReadProof(t.Context(), store, v)
			require.NoError(t, err)
			require.Nil(t, proof.Manifest, "too large to be read for that")
			require.True(t, proto.Equal(whole.Transaction, proof.Transaction), "%s version %d", name, v.Number)
		}
	}
}

// TestProofsBehindDictionaries: old engines keep some in front of the sections.
func TestProofsBehindDictionaries(t *testing.T) {
	t.Parallel()
	store := lancetest.Load(t, "updates", time.Now, time.Hour)
	v, _, err := dataset.Latest(t.Context(), store)
	require.NoError(t, err)
	whole, err := dataset.ReadManifest(t.Context(), store, v)
	require.NoError(t, err)
	for _, dictionaries := range []string{"abcdefg\x00", "\x05\x00\x00\x00small", strings.Repeat("some text", 10_000)} {
		lancetest.Rewrite(t, store, v, func(m *manifest.Manifest) {
			m.Fields[0].Dictionary = &lancepb.Dictionary{Offset: 3, Length: 1}
			m.Dictionaries = []byte(dictionaries)
			for i := range 3000 {
				m.Fragments = append(m.Fragments, &lancepb.DataFragment{Id: uint64(1000 + i), Files: []*lancepb.DataFile{{Path: fmt.Sprintf("%060d.lance", i)}}})
			}
		})
		proof, err := dataset.ReadProof(t.Context(), store, v)
		require.NoError(t, err)
		require.True(t, proto.Equal(whole.Transaction, proof.Transaction))
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	store := memstore.New("mem://t", time.Now)
	put := func(key, content string) { require.NoError(t, store.Put(t.Context(), "_refs/"+key, []byte(content))) }
	put("tags/release.json", `{"branch":null,"version":3,"manifestSize":1}`)
	put("tags/on-main.json", `{"branch":"main","version":4}`)
	put("tags/elsewhere.json", `{"branch":"dev","version":5}`)
	put("branches/dev.json", `{"parentBranch":null,"identifier":{"version_mapping":[[6,"00000000000000000000000000000001"]]},"parentVersion":6}`)
	put("branches/dev%2Fdeep.json", `{"parentBranch":"dev","identifier":{"version_mapping":[[6,"00000000000000000000000000000001"],[9,"00000000000000000000000000000002"]]},"parentVersion":9}`)
	put("branches/old.json", `{"parentVersion":7}`)
	refs, err := dataset.ReadRefs(t.Context(), store)
	require.NoError(t, err)
	pinned := refs.Pinned()
	require.Equal(t, []string{"tag release"}, pinned[3])
	require.Equal(t, []string{"tag on-main"}, pinned[4])
	require.Empty(t, pinned[5], "a tag of another branch pins nothing of main")
	require.ElementsMatch(t, []string{"branch dev starts here", "branch dev/deep starts here"}, pinned[6])
	require.Equal(t, []string{"branch old starts here"}, pinned[7])
	require.Empty(t, pinned[9])
	stamp, err := dataset.RefsStamp(t.Context(), store)
	require.NoError(t, err)
	require.Equal(t, refs.ETags, stamp)
	put("tags/new.json", `{"version":8}`)
	stamp, err = dataset.RefsStamp(t.Context(), store)
	require.NoError(t, err)
	require.NotEqual(t, refs.ETags, stamp)
}

// TestReferencesThatAreNotUnderstoodStopEverything: what they pin is not known.
func TestReferencesThatAreNotUnderstoodStopEverything(t *testing.T) {
	t.Parallel()
	for key, content := range map[string]string{
		"tags/a.json": "", "tags/b.json": "{", "tags/c.json": "{}", "branches/a.json": "{}", "branches/b.json": `{"parentVersion":1,"identifier":{"version_mapping":[[1]]}}`,
		"locks/a.json": "{}", "tags/deep/a.json": `{"version":1}`, "tags/a.txt": `{"version":1}`,
	} {
		store := memstore.New("mem://t", time.Now)
		require.NoError(t, store.Put(t.Context(), "_refs/"+key, []byte(content)))
		_, err := dataset.ReadRefs(t.Context(), store)
		require.Error(t, err, key)
		require.ErrorContains(t, err, key)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	const id = "7f1c6c9e-55a1-4c0e-9f0d-2a4e0c1b9d10"
	for key, want := range map[string]dataset.Class{
		"_versions/18446744073709551614.manifest":                 dataset.ManifestAttached,
		"_versions/d9223372036854775809.manifest":                 dataset.ManifestDetached,
		"_versions/1.manifest-" + id:                              dataset.ManifestStaging,
		"_versions/.tmp_x":                                        dataset.Temporary,
		"_versions/latest_version_hint.json":                      dataset.Hint,
		"_versions/sub/1.manifest":                                dataset.Foreign,
		"_transactions/1-" + id + ".txn":                          dataset.Transaction,
		"_transactions/x-" + id + ".txn":                          dataset.Foreign,
		"_transactions/1-x.txn":                                   dataset.Foreign,
		"data/x.lance":                                            dataset.Data,
		"data/sub/x.lance":                                        dataset.Data,
		"data/.tmp_x.lance":                                       dataset.Temporary,
		"data/x/01010101010101010101010101010101.blob":            dataset.Sidecar,
		"data/x/0101.blob":                                        dataset.Foreign,
		"data/x/y/01010101010101010101010101010101.blob":          dataset.Foreign,
		"data/video.mp4":                                          dataset.Foreign,
		"_deletions/1-2-3.arrow":                                  dataset.DeletionFile,
		"_deletions/1-2-3.bin":                                    dataset.DeletionFile,
		"_deletions/1-2.bin":                                      dataset.Foreign,
		"_deletions/1-2-3.txt":                                    dataset.Foreign,
		"_indices/" + id + "/index.idx":                           dataset.IndexFile,
		"_indices/" + id:                                          dataset.Foreign,
		"_indices/7F1C6C9E-55A1-4C0E-9F0D-2A4E0C1B9D10/index.idx": dataset.Foreign,
		"_indices/notes.txt":                                      dataset.Foreign,
		"_refs/tags/a.json":                                       dataset.Reference,
		"tree/dev/_versions/1.manifest":                           dataset.Foreign,
		"_mem_wal/x/manifest/1.binpb":                             dataset.Foreign,
		"videos/a.lance":                                          dataset.Foreign,
		"x.lance":                                                 dataset.Foreign,
		"_latest.manifest":                                        dataset.Foreign,
		".lance-reserved":                                         dataset.Foreign,
		"data-old/x.lance":                                        dataset.Foreign,
		"_versions-old/1.manifest":                                dataset.Foreign,
	} {
		require.Equal(t, want, dataset.Classify(key), key)
	}
}

func TestFilesOfAVersion(t *testing.T) {
	t.Parallel()
	base := uint32(0)
	fragment := &lancepb.DataFragment{
		Id:    5,
		Files: []*lancepb.DataFile{{Path: "a.lance"}, {Path: "b.lance", BaseId: &base}}, Overlays: []*lancepb.DataOverlayFile{{DataFile: &lancepb.DataFile{Path: "o.lance"}}},
		DeletionFile: &lancepb.DeletionFile{ReadVersion: 3, Id: 9},
	}
	m := &manifest.Manifest{
		Manifest: &lancepb.Manifest{Fragments: []*lancepb.DataFragment{fragment}, TransactionFile: "1-x.txn"},
		Indices:  []*lancepb.IndexMetadata{{Uuid: &lancepb.UUID{Uuid: make([]byte, 16)}}, {Uuid: &lancepb.UUID{Uuid: bytes.Repeat([]byte{1}, 16)}, BaseId: &base}},
	}
	files := dataset.NewFiles()
	require.NoError(t, files.Add("m", m))
	require.Len(t, files.Keys, 4)
	for _, key := range []string{"data/a.lance", "data/o.lance", "_deletions/5-3-9.arrow", "_transactions/1-x.txn"} {
		require.Contains(t, files.Keys, key)
	}
	require.Contains(t, files.Indices, "00000000-0000-0000-0000-000000000000")
	require.Contains(t, files.Elsewhere.Keys, "data/b.lance")
	require.Contains(t, files.Elsewhere.Indices, "01010101-0101-0101-0101-010101010101")
	for _, path := range []string{"../x.lance", "/x.lance", "", "a//b.lance", "a/./b.lance"} {
		fragment.Files[0].Path = path
		require.ErrorIs(t, dataset.NewFiles().Add("m", m), lance.ErrCorrupt, path)
	}
}

func TestNestedDatasets(t *testing.T) {
	t.Parallel()
	n := dataset.NestedRoots{}
	for _, key := range []string{"_versions/1.manifest", "data/inner.lance/_versions/1.manifest", "data/x.lance"} {
		n.Note(key)
	}
	require.True(t, n.Inside("data/inner.lance/data/y.lance"))
	require.False(t, n.Inside("data/inner.lance-copy/data/y.lance"))
	require.False(t, n.Inside("data/x.lance"))
	require.False(t, n.Inside("_versions/1.manifest"))
}

func TestTransactionsWithoutInlineCopy(t *testing.T) {
	t.Parallel()
	store := lancetest.Load(t, "emptied", time.Now, time.Hour)
	v, _, err := dataset.Latest(t.Context(), store)
	require.NoError(t, err)
	m, err := dataset.ReadManifest(t.Context(), store, v)
	require.NoError(t, err)
	want := m.Transaction
	m.Transaction = nil
	got, err := dataset.ReadTransaction(t.Context(), store, m)
	require.NoError(t, err)
	require.True(t, proto.Equal(want, got), "from the file")
	_, err = store.Delete(t.Context(), []string{"_transactions/" + m.GetTransactionFile()})
	require.NoError(t, err)
	got, err = dataset.ReadTransaction(t.Context(), store, m)
	require.NoError(t, err)
	require.Nil(t, got)
	m.TransactionFile = "../x"
	_, err = dataset.ReadTransaction(t.Context(), store, m)
	require.ErrorIs(t, err, lance.ErrCorrupt)
	_, err = dataset.ReadProof(t.Context(), store, dataset.Version{Number: 99, Key: manifest.Key(99, manifest.V2)})
	require.ErrorIs(t, err, objstore.ErrNotExist)
}
