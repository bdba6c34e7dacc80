package compact_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"lancekeeper/internal/compact"
	"lancekeeper/internal/lance/commit"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
)

// script is one planner case: fragments and options in, tasks and what is left alone out. See testdata/README.md.
type script struct {
	manifest *manifest.Manifest
	options  compact.Options
	want     []string
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return n
}

func readScript(t *testing.T, path string) script {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	s := script{
		manifest: &manifest.Manifest{Manifest: &lancepb.Manifest{Version: 1, DataFormat: &lancepb.Manifest_DataStorageFormat{FileFormat: "lance", Version: "2.1"}}},
		options:  compact.Options{TargetRows: 1000, Quarantined: map[uint64]string{}},
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "frag":
			s.fragment(t, words[1:])
		case "index":
			s.index(t, words[1], words[2:])
		case "options":
			s.option(t, words[1:])
		case "task", "skip", "none":
			s.want = append(s.want, strings.Join(words, " "))
		default:
			t.Fatalf("%s: %s", path, line)
		}
	}
	return s
}

// fragment reads `frag ID rows=N [deleted=N] [bytes=N] [times=N] [overlay] [base] [old] [uncounted]`.
func (s *script) fragment(t *testing.T, words []string) {
	t.Helper()
	f := &lancepb.DataFragment{Id: number(t, words[0]), Files: []*lancepb.DataFile{{Path: "x.lance", FileMajorVersion: 2, FileMinorVersion: 1}}}
	times := uint64(1)
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "rows":
			f.PhysicalRows = number(t, value)
		case "deleted":
			f.DeletionFile = &lancepb.DeletionFile{NumDeletedRows: number(t, value)}
		case "bytes":
			f.Files[0].FileSizeBytes = number(t, value)
		case "times":
			times = number(t, value)
		case "overlay":
			f.Overlays = []*lancepb.DataOverlayFile{{DataFile: &lancepb.DataFile{Path: "o.lance"}}}
		case "base":
			f.Files[0].BaseId = proto.Uint32(0)
		case "old":
			f.Files[0].FileMajorVersion, f.Files[0].FileMinorVersion = 0, 2
		default:
			t.Fatalf("fragment: %s", word)
		}
	}
	for i := range times {
		next := proto.CloneOf(f)
		next.Id += i
		s.manifest.Fragments = append(s.manifest.Fragments, next)
	}
}

// index reads `index NAME FRAGMENT...`, or `index NAME unknown`.
func (s *script) index(t *testing.T, name string, words []string) {
	t.Helper()
	index := &lancepb.IndexMetadata{Name: name, Uuid: &lancepb.UUID{Uuid: bytes.Repeat([]byte{byte(len(s.manifest.Indices))}, 16)}}
	kind, _, _ := strings.Cut(name, ":") // a name may say another kind: rtree:places
	if kind == name {
		kind = "BTree"
	}
	index.IndexDetails = &anypb.Any{TypeUrl: "/lance.table." + kind + "IndexDetails"}
	if words[0] != "unknown" {
		ids := roaring.New()
		for _, word := range words {
			ids.Add(uint32(number(t, word)))
		}
		data, err := ids.ToBytes()
		require.NoError(t, err)
		index.FragmentBitmap = data
	}
	s.manifest.Indices = append(s.manifest.Indices, index)
}

// option reads `options [target=N] [bytes=N] [over=SHARE] [aside=FRAGMENT] [uncover] [stable]
// [ratio=N] [fragments=N] [open=N]`.
func (s *script) option(t *testing.T, words []string) {
	t.Helper()
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "swap":
			s.options.Swap = true
		case "uncover":
			s.options.Uncover = true
		case "stable":
			s.manifest.ReaderFeatureFlags = manifest.FlagStableRowIDs
			for _, f := range s.manifest.GetFragments() {
				f.RowIdSequence = &lancepb.DataFragment_InlineRowIds{}
			}
		case "target":
			s.options.TargetRows = number(t, value)
		case "bytes":
			s.options.TargetBytes = int64(number(t, value))
		case "over":
			share, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			s.options.DeletionsOver = share
		case "ratio":
			s.options.MergeRatio = int64(number(t, value))
		case "fragments":
			s.options.MaxFragments = int(number(t, value))
		case "open":
			s.options.MaxOpenBytes = int64(number(t, value))
		case "aside":
			s.options.Quarantined[number(t, value)] = "set aside"
		default:
			t.Fatalf("options: %s", word)
		}
	}
}

// render writes a plan as scripts have it.
func render(p compact.Plan) []string {
	var out []string
	for _, task := range p.Tasks {
		ids := fmt.Sprint(task.Fragments[0].GetId())
		if n := len(task.Fragments); n > 1 {
			ids += fmt.Sprintf("-%d", task.Fragments[n-1].GetId())
		}
		var rows []string
		for _, n := range task.OutputRows {
			rows = append(rows, fmt.Sprint(n))
		}
		line := strings.TrimSpace(fmt.Sprintf("task %s -> %s", ids, strings.Join(rows, " ")))
		if len(task.Uncovers) > 0 {
			line += " uncovers " + strings.Join(task.Uncovers, " ")
		}
		swaps := 0
		for _, change := range task.Indices {
			if change == commit.Swap {
				swaps++
			}
		}
		line += strings.Repeat(" swaps", swaps)
		out = append(out, line)
	}
	for _, s := range p.Skipped {
		out = append(out, fmt.Sprintf("skip %d %s", s.Fragment, s.Reason))
	}
	if len(out) == 0 {
		out = append(out, "none")
	}
	return out
}

func TestPlans(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := readScript(t, path)
			plan, err := compact.MakePlan(s.manifest, s.options)
			require.NoError(t, err)
			require.Equal(t, s.want, render(plan))
			require.EqualValues(t, 1, plan.ReadVersion)
		})
	}
}

func TestPlanNeedsATarget(t *testing.T) {
	t.Parallel()
	_, err := compact.MakePlan(&manifest.Manifest{Manifest: &lancepb.Manifest{}}, compact.Options{})
	require.Error(t, err)
}

// Every pass adds a few small fragments to a table. What passes write must stay near what was added, and so must the number of
// fragments, whatever the table holds already.
func TestGrowingTableConverges(t *testing.T) {
	t.Parallel()
	const rowBytes = 10_000
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Uint64Range(0, 100_000).Draw(t, "rows at first")
		most := rapid.Uint64Range(1, 5_000).Draw(t, "rows of an append")
		m := &manifest.Manifest{Manifest: &lancepb.Manifest{Version: 1, DataFormat: &lancepb.Manifest_DataStorageFormat{FileFormat: "lance", Version: "2.1"}}}
		next := uint64(0)
		add := func(rows uint64) {
			file := &lancepb.DataFile{Path: "x.lance", FileMajorVersion: 2, FileMinorVersion: 1, FileSizeBytes: rows * rowBytes}
			m.Fragments = append(m.Fragments, &lancepb.DataFragment{Id: next, PhysicalRows: rows, Files: []*lancepb.DataFile{file}})
			next++
		}
		if start > 0 {
			add(start)
		}
		var added, written uint64
		for range 40 {
			for range rapid.IntRange(1, 3).Draw(t, "appends") {
				rows := rapid.Uint64Range(1, most).Draw(t, "rows")
				add(rows)
				added += rows * rowBytes
			}
			plan, err := compact.MakePlan(m, compact.Options{TargetRows: 1 << 20, MergeRatio: compact.MergeRatio})
			require.NoError(t, err)
			for _, task := range plan.Tasks {
				gone := map[uint64]bool{}
				for _, f := range task.Fragments {
					gone[f.GetId()] = true
				}
				require.Less(t, len(task.OutputRows), len(task.Fragments))
				m.Fragments = slices.DeleteFunc(m.Fragments, func(f *lancepb.DataFragment) bool { return gone[f.GetId()] })
				for _, rows := range task.OutputRows {
					add(rows)
					written += rows * rowBytes
				}
			}
		}
		const free = 40 << 20 // a pass may rewrite a megabyte for nothing
		require.LessOrEqual(t, written, 8*added+free, "%d bytes were added", added)
		require.LessOrEqual(t, len(m.Fragments), 24)
	})
}
