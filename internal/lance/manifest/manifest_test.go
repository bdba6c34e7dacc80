package manifest_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
)

// golden are the manifests of all golden tables, by name and version.
func golden(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, name := range lancetest.Names(t) {
		store := lancetest.Load(t, name, time.Now, time.Hour)
		l, err := dataset.List(t.Context(), store)
		require.NoError(t, err)
		for _, v := range append(l.Versions, l.Detached...) {
			data, _, err := store.Get(t.Context(), v.Key)
			require.NoError(t, err)
			out[fmt.Sprintf("%s/%d", name, v.Number)] = data
		}
	}
	return out
}

// TestOfficialManifestsSurvive: decoded, understood, and encoded again with every field as it was.
func TestOfficialManifestsSurvive(t *testing.T) {
	t.Parallel()
	for name, data := range golden(t) {
		m, err := manifest.Decode(name, data)
		require.NoError(t, err, name)
		require.NoError(t, m.Check(name), name)
		again, err := manifest.Encode(m)
		require.NoError(t, err)
		back, err := manifest.Decode(name, again)
		require.NoError(t, err, name)
		require.True(t, proto.Equal(m.Manifest, back.Manifest), name)
		require.Len(t, back.Indices, len(m.Indices))
		for i := range m.Indices {
			require.True(t, proto.Equal(m.Indices[i], back.Indices[i]), name)
		}
		require.True(t, proto.Equal(m.Transaction, back.Transaction), name)
		once, err := manifest.Encode(back)
		require.NoError(t, err)
		require.Equal(t, again, once, "encoding is deterministic")
	}
}

// TestDictionariesOfOldEnginesStay: their values stand where the fields say, in every manifest.
func TestDictionariesOfOldEnginesStay(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/dictionary-0.20.0.manifest")
	require.NoError(t, err)
	m, err := manifest.Decode("m", data)
	require.NoError(t, err)
	require.NoError(t, m.Check("m"))
	require.Equal(t, data[:31], m.Dictionaries)
	require.Equal(t, "abcdefg", string(m.Dictionaries[:7]))
	m.Transaction = &lancepb.Transaction{ReadVersion: 5, Uuid: "6a06211d-9e8f-4058-a2a3-f5a0a85f9b75"}
	again, err := manifest.Encode(m)
	require.NoError(t, err)
	require.Equal(t, data[:31], again[:31])
	back, err := manifest.Decode("m", again)
	require.NoError(t, err)
	require.True(t, proto.Equal(m.Manifest, back.Manifest))
	require.True(t, proto.Equal(m.Transaction, back.Transaction))
	require.Equal(t, m.Dictionaries, back.Dictionaries)
}

// TestCutManifests: at every byte, always a clear error that names the object.
func TestCutManifests(t *testing.T) {
	t.Parallel()
	for name, data := range golden(t) {
		if !strings.HasPrefix(name, "indexed/") && !strings.HasPrefix(name, "emptied/") {
			continue
		}
		for n := range data {
			_, err := manifest.Decode(name, data[:n])
			require.ErrorIs(t, err, lance.ErrCorrupt, "%s cut to %d", name, n)
			require.ErrorContains(t, err, name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, data := range golden(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Decode("fuzzed", data)
		if err != nil {
			return
		}
		if m.Check("fuzzed") != nil {
			return
		}
		again, err := manifest.Encode(m)
		require.NoError(t, err)
		_, err = manifest.Decode("fuzzed", again)
		require.NoError(t, err)
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	const id = "7f1c6c9e-55a1-4c0e-9f0d-2a4e0c1b9d10"
	v2 := func(n uint64) string { return manifest.FileName(n, manifest.V2) }
	for name, want := range map[string]manifest.Name{
		"18446744073709551614.manifest":       {Kind: manifest.Attached, Version: 1, Scheme: manifest.V2},
		"18446744073709541616.manifest":       {Kind: manifest.Attached, Version: 9999, Scheme: manifest.V2},
		"1.manifest":                          {Kind: manifest.Attached, Version: 1, Scheme: manifest.V1},
		"12345.manifest":                      {Kind: manifest.Attached, Version: 12345, Scheme: manifest.V1},
		"d9223372036854775809.manifest":       {Kind: manifest.Detached, Version: 1<<63 + 1},
		v2(7) + "-" + id:                      {Kind: manifest.Staging, Version: 7, Scheme: manifest.V2},
		"7.manifest-" + id:                    {Kind: manifest.Staging, Version: 7, Scheme: manifest.V1},
		"d9223372036854775809.manifest-" + id: {Kind: manifest.Staging, Version: 1<<63 + 1},
		".tmp_7.manifest_" + id:               {Kind: manifest.Temporary},
		v2(7) + "#1":                          {Kind: manifest.Temporary},
		"latest_version_hint.json":            {Kind: manifest.Hint},
		"0.manifest":                          {},
		"01.manifest":                         {},
		"-1.manifest":                         {},
		"+1.manifest":                         {},
		"1e3.manifest":                        {},
		"18446744073709551615.manifest":       {}, // version 0
		"09223372036854775807.manifest":       {}, // would have bit 63
		"9223372036854775808.manifest":        {}, // bit 63 without the d
		"d5.manifest":                         {}, // d without bit 63
		"99999999999999999999.manifest":       {},
		"184467440737095516140.manifest":      {},
		"1.manifest.bak":                      {},
		"1.manifest-not-a-uuid":               {},
		"x#1":                                 {},
		v2(7) + "#":                           {},
		"manifest":                            {},
		".manifest":                           {},
		"":                                    {},
		"１.manifest":                          {},
	} {
		require.Equal(t, want, manifest.ParseName(name), name)
	}
	for _, n := range []uint64{1, 2, 9, 10, 99, 1 << 40, 1<<63 - 1} {
		for _, scheme := range []manifest.Scheme{manifest.V1, manifest.V2} {
			name := manifest.FileName(n, scheme)
			if scheme == manifest.V1 && len(name) == 20+len(".manifest") {
				continue
			}
			require.Equal(t, manifest.Name{Kind: manifest.Attached, Version: n, Scheme: scheme}, manifest.ParseName(name), name)
		}
		require.Greater(t, manifest.FileName(n, manifest.V2), manifest.FileName(n+1, manifest.V2), "the newest sorts first")
	}
}

func understood(t testing.TB) *manifest.Manifest {
	t.Helper()
	store := lancetest.Load(t, "indexed", time.Now, time.Hour)
	v, _, err := dataset.Latest(t.Context(), store)
	require.NoError(t, err)
	m, err := dataset.ReadManifest(t.Context(), store, v)
	require.NoError(t, err)
	require.NoError(t, m.Check("x"))
	return m
}

// TestFlags: each bit of each word, by name.
func TestFlags(t *testing.T) {
	t.Parallel()
	for bit := range 64 {
		for _, word := range []string{"reader", "writer", "both"} {
			m := understood(t)
			m.MaxAllocatedFieldId = nil
			if bit == 15 && word == "writer" {
				m.MaxAllocatedFieldId = proto.Int32(9)
			}
			if word != "writer" {
				m.ReaderFeatureFlags |= 1 << bit
			}
			if word != "reader" {
				m.WriterFeatureFlags |= 1 << bit
			}
			err := m.Check("_versions/x.manifest")
			switch {
			case bit <= 1, bit == 2, bit == 4, bit == 7, bit == 11:
				require.NoError(t, err, "bit %d, %s", bit, word)
			case (bit == 3 || bit == 5 || bit == 15) && word == "writer":
				require.NoError(t, err, "bit %d, %s", bit, word)
			case (bit == 8 || bit == 10) && word == "both":
				require.NoError(t, err, "bit %d, %s", bit, word)
			case bit == 8 || bit == 10:
				require.ErrorIs(t, err, lance.ErrCorrupt, "bit %d, %s", bit, word)
			default:
				require.ErrorIs(t, err, lance.ErrUnsupported, "bit %d, %s", bit, word)
				require.ErrorContains(t, err, fmt.Sprintf("bit %d", bit))
				require.ErrorContains(t, err, "_versions/x.manifest")
			}
		}
	}
}

func TestRecomputeFlags(t *testing.T) {
	t.Parallel()
	m := &manifest.Manifest{Manifest: &lancepb.Manifest{
		ReaderFeatureFlags: manifest.FlagDeletionFiles | manifest.FlagStableRowIDs | manifest.FlagBasePaths,
		WriterFeatureFlags: manifest.FlagDeletionFiles | manifest.FlagStableRowIDs | manifest.FlagTableConfig | manifest.FlagNoTransactionFiles,
		Fragments:          []*lancepb.DataFragment{{}},
	}}
	manifest.RecomputeFlags(m)
	require.Equal(t, manifest.FlagStableRowIDs, m.GetReaderFeatureFlags())
	require.Equal(t, manifest.FlagStableRowIDs|manifest.FlagNoTransactionFiles, m.GetWriterFeatureFlags())
	m.Fragments[0].DeletionFile = &lancepb.DeletionFile{}
	m.Config = map[string]string{"a": "b"}
	m.BasePaths = []*lancepb.BasePath{{}}
	manifest.RecomputeFlags(m)
	require.Equal(t, manifest.FlagStableRowIDs|manifest.FlagDeletionFiles|manifest.FlagBasePaths, m.GetReaderFeatureFlags())
	require.NotZero(t, m.GetWriterFeatureFlags()&manifest.FlagTableConfig)
}

// TestWhatIsNotUnderstoodIsRefused: unknown fields and reserved ones, wherever they may bear on files; paths that leave the dataset.
func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	t.Parallel()
	field := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	mark := func(m proto.Message) { m.ProtoReflect().SetUnknown(field) }
	for name, c := range map[string]struct {
		change func(m *manifest.Manifest)
		class  error
	}{
		"manifest field":  {func(m *manifest.Manifest) { mark(m.Manifest) }, lance.ErrUnsupported},
		"fragment field":  {func(m *manifest.Manifest) { mark(m.GetFragments()[0]) }, lance.ErrUnsupported},
		"data file field": {func(m *manifest.Manifest) { mark(m.GetFragments()[0].GetFiles()[0]) }, lance.ErrUnsupported},
		"deletion file field": {func(m *manifest.Manifest) {
			m.Fragments[0].DeletionFile = &lancepb.DeletionFile{}
			mark(m.GetFragments()[0].GetDeletionFile())
		}, lance.ErrUnsupported},
		"deletion file type": {func(m *manifest.Manifest) { m.Fragments[0].DeletionFile = &lancepb.DeletionFile{FileType: 7} }, lance.ErrUnsupported},
		"overlay field": {func(m *manifest.Manifest) {
			m.Fragments[0].Overlays = []*lancepb.DataOverlayFile{{DataFile: &lancepb.DataFile{Path: "o"}}}
			mark(m.GetFragments()[0].GetOverlays()[0])
		}, lance.ErrUnsupported},
		"index field":          {func(m *manifest.Manifest) { mark(m.Indices[0]) }, lance.ErrUnsupported},
		"base path field":      {func(m *manifest.Manifest) { m.BasePaths = []*lancepb.BasePath{{}}; mark(m.GetBasePaths()[0]) }, lance.ErrUnsupported},
		"fragment tree":        {func(m *manifest.Manifest) { m.FragmentTree = []byte{1} }, lance.ErrUnsupported},
		"clustering":           {func(m *manifest.Manifest) { m.Clustering = [][]byte{{1}} }, lance.ErrUnsupported},
		"fragment metadata":    {func(m *manifest.Manifest) { m.Fragments[0].Metadata = map[string]string{"a": "b"} }, lance.ErrUnsupported},
		"index metadata":       {func(m *manifest.Manifest) { m.Indices[0].Metadata = map[string]string{"a": "b"} }, lance.ErrUnsupported},
		"file version":         {func(m *manifest.Manifest) { m.DataFormat.Version = "3.0" }, lance.ErrUnsupported},
		"two of one id":        {func(m *manifest.Manifest) { m.Fragments = append(m.GetFragments(), m.GetFragments()[0]) }, lance.ErrCorrupt},
		"id above 32 bits":     {func(m *manifest.Manifest) { m.Fragments[0].Id = 1 << 32 }, lance.ErrCorrupt},
		"path outside":         {func(m *manifest.Manifest) { m.Fragments[0].Files[0].Path = "../../other.lance/data/x.lance" }, lance.ErrCorrupt},
		"absolute path":        {func(m *manifest.Manifest) { m.Fragments[0].Files[0].Path = "/etc/passwd" }, lance.ErrCorrupt},
		"empty path":           {func(m *manifest.Manifest) { m.Fragments[0].Files[0].Path = "" }, lance.ErrCorrupt},
		"base that is missing": {func(m *manifest.Manifest) { m.Fragments[0].Files[0].BaseId = proto.Uint32(3) }, lance.ErrCorrupt},
		"index without uuid":   {func(m *manifest.Manifest) { m.Indices[0].Uuid = nil }, lance.ErrCorrupt},
		"field ids by half":    {func(m *manifest.Manifest) { m.MaxAllocatedFieldId = proto.Int32(3) }, lance.ErrCorrupt},
	} {
		m := understood(t)
		c.change(m)
		err := m.Check("_versions/x.manifest")
		require.ErrorIs(t, err, c.class, name)
		require.ErrorContains(t, err, "_versions/x.manifest", name)
	}
	m := understood(t)
	mark(m.GetFields()[0])
	require.NoError(t, m.Check("x"), "a column's own business")
}

func TestFooter(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string][]byte{
		"empty": nil, "short": []byte("LANC"), "no magic": make([]byte, 40),
		"behind the end": append(append([]byte{200}, make([]byte, 11)...), "LANC"...),
		"negative":       append([]byte{0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 2, 0}, "LANC"...),
	} {
		_, err := manifest.Footer("key", tail, max(int64(len(tail)), 0))
		require.ErrorIs(t, err, lance.ErrCorrupt, name)
	}
	position, err := manifest.Footer("key", append([]byte{5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0}, "LANC"...), math.MaxInt32)
	require.NoError(t, err)
	require.EqualValues(t, 5, position)
}

func TestHint(t *testing.T) {
	t.Parallel()
	version, err := manifest.DecodeHint(manifest.EncodeHint(42))
	require.NoError(t, err)
	require.EqualValues(t, 42, version)
	for _, bad := range []string{"", "{}", "x", `{"version":0}`, `{"version":-1}`} {
		_, err := manifest.DecodeHint([]byte(bad))
		require.ErrorIs(t, err, lance.ErrCorrupt, bad)
	}
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	m := &manifest.Manifest{Manifest: &lancepb.Manifest{
		ReaderFeatureFlags: manifest.FlagDeletionFiles | 1<<40, WriterFeatureFlags: manifest.FlagDeletionFiles | manifest.FlagTableConfig,
	}}
	require.Equal(t, []manifest.Feature{
		{Name: "bit 0 (deletion files)", Read: true, Write: true, Understood: true},
		{Name: "bit 3 (table config)", Write: true, Understood: true},
		{Name: "bit 40", Read: true},
	}, manifest.Features(m))
}
