package compact_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/compact"
	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/datafile"
	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/schema"
	"lancekeeper/internal/objstore"
)

// rawPage is a page of a column, its place in the file aside.
type rawPage struct {
	column string
	sum    uint64
}

// rawPages are those pages of fragments that could be moved: they have bytes and all of their rows, and are what they should be.
func rawPages(t *testing.T, store objstore.Store, columns []schema.Column, fragments []*lancepb.DataFragment) (pages []rawPage, unsound int) {
	t.Helper()
	for _, f := range fragments {
		for _, file := range f.GetFiles() {
			r, err := datafile.Open(t.Context(), store, dataset.DataFolder+file.GetPath(), int64(file.GetFileSizeBytes()))
			require.NoError(t, err)
			for _, c := range columns {
				if !slices.Contains(file.GetFields(), c.Field) {
					continue
				}
				var at []int
				for _, field := range c.Stored(r.Minor()) {
					at = append(at, int(file.GetColumnIndices()[slices.Index(file.GetFields(), field)]))
				}
				leaf, err := r.Leaf(t.Context(), at, c.Type, c.Layers)
				require.NoError(t, err)
				for part := range leaf.Parts() {
					if !leaf.Movable() || leaf.Bytes(part) == 0 {
						continue
					}
					p, err := leaf.ReadRaw(t.Context(), part)
					require.NoError(t, err)
					b, err := leaf.Decode(part, p)
					require.NoError(t, err)
					if !p.Sound(b) {
						unsound++
						continue
					}
					pages = append(pages, rawPage{c.Name, p.Sum()})
				}
			}
		}
	}
	return pages, unsound
}

// TestCopiedPages: each page whose rows all stay is in the output, byte for byte, once and in the same order; those of fragments with
// deleted rows are not.
func TestCopiedPages(t *testing.T) {
	t.Parallel()
	for _, name := range supported {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := lancetest.Load(t, name, time.Now, time.Hour)
			out, m, err := rewrite(t, store, compact.Options{TargetRows: 1 << 20}, copying)
			require.NoError(t, err)
			require.NoError(t, compact.Verify(t.Context(), store, m, out))
			columns, err := schema.Columns(m.GetFields())
			require.NoError(t, err)
			var untouched []*lancepb.DataFragment
			for _, f := range out.Group.Old {
				if f.GetDeletionFile() == nil {
					untouched = append(untouched, f)
				}
			}
			before, _ := rawPages(t, store, columns, untouched)
			after, unsound := rawPages(t, store, columns, out.Group.New)
			require.Zero(t, unsound)
			slices.SortStableFunc(before, byColumn)
			slices.SortStableFunc(after, byColumn)
			for _, p := range after { // those written anew stand in between
				if len(before) > 0 && p == before[0] {
					before = before[1:]
				}
			}
			require.Empty(t, before, "pages that were not copied")
		})
	}
}

func byColumn(a, b rawPage) int {
	switch {
	case a.column < b.column:
		return -1
	case a.column > b.column:
		return 1
	}
	return 0
}

// TestDamageIsNotCopied: a damaged page is refused, or its rows are those that any reader would find in it; and then readers of single
// rows find them too.
func TestDamageIsNotCopied(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"upserts-2.0", "upserts-2.1", "upserts-2.2", "nested-2.0", "nested-2.1", "nested-2.2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := lancetest.Load(t, name, time.Now, time.Hour)
			key := files(t, store)[0]
			whole, _, err := store.Get(t.Context(), key)
			require.NoError(t, err)
			refused, passed := 0, 0
			for i := 0; i < len(whole); i += 1 + len(whole)/150 {
				clone := store.Clone()
				damaged := slices.Clone(whole)
				damaged[i] ^= 0x04
				require.NoError(t, clone.Put(t.Context(), key, damaged))
				out, m, err := rewrite(t, clone, compact.Options{TargetRows: 1 << 20}, copying)
				if err != nil {
					require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "byte %d: %v", i, err)
					refused++
					continue
				}
				require.NoError(t, compact.Verify(t.Context(), clone, m, out), "byte %d", i)
				columns, err := schema.Columns(m.GetFields())
				require.NoError(t, err)
				_, unsound := rawPages(t, clone, columns, out.Group.New)
				require.Zero(t, unsound, "byte %d", i)
				before := lancetest.Latest(t, clone)
				publish(t, clone, m, out)
				require.Equal(t, before, lancetest.Latest(t, clone), "byte %d", i)
				passed++
			}
			require.Positive(t, refused)
			require.Positive(t, passed)
		})
	}
}
