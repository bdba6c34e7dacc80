package maintain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancetest"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/manifeststore"
	"lancekeeper/internal/lance/manifeststore/manifeststoretest"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/faultstore"
)

// newExternal is a golden table whose versions an external manifest store decides. Its last writer was killed behind a step
// of its commit: 2 claimed, 3 copied, 4 pointed at; 5 was not killed.
func newExternal(t *testing.T, name string, age time.Duration, step int) *bench {
	t.Helper()
	b := newBench(t, name, age)
	b.table = manifeststoretest.New(b.store.Keys())
	b.table.Faults = b.faults
	latest := b.latest()
	data, _, err := b.store.Get(t.Context(), latest.Key)
	require.NoError(t, err)
	at := latest.Key + "-" + uuid.NewString()
	if step < 5 {
		require.NoError(t, b.store.Put(t.Context(), at, data))
		b.store.SetModified(at, latest.Modified)
	}
	if step < 4 {
		b.table.Set(manifeststore.Row{Version: latest.Number, Path: at, Size: int64(len(data))})
	}
	if step < 3 {
		_, err := b.store.Delete(t.Context(), []string{latest.Key})
		require.NoError(t, err)
	}
	return b
}

// reader is the table as one sees it that comes now.
func (b *bench) reader() objstore.Store {
	b.t.Helper()
	b.restart()
	store, err := b.open(b.t.Context())
	require.NoError(b.t, err)
	return store
}

// TestExternalManifestStore stops passes before and after each single write or delete, of the bucket, the table and the
// ledger, over what killed writers leave: the latest version reads whole at any moment, and the next pass ends with one row
// and its manifest.
func TestExternalManifestStore(t *testing.T) {
	t.Parallel()
	for step := 2; step <= 5; step++ {
		for _, age := range []time.Duration{time.Minute, 30 * day} {
			t.Run(fmt.Sprintf("behind step %d, %s", step, age), func(t *testing.T) {
				t.Parallel()
				whole := newExternal(t, "upserts-2.2", age, step)
				rows := lancetest.Latest(t, whole.reader())
				whole.good()
				mutations := whole.faults.Mutations()
				require.Greater(t, mutations, 20)
				require.Equal(t, rows, lancetest.Latest(t, whole.reader()))
				for n := 1; n <= mutations; n++ {
					for _, when := range []faultstore.When{faultstore.Before, faultstore.After} {
						b := newExternal(t, "upserts-2.2", age, step)
						b.faults.KillAt(n, when)
						b.pass()
						require.True(t, b.faults.Killed(), "mutation %d of %d", n, mutations)
						require.Equal(t, rows, lancetest.Latest(t, b.reader()), "mutation %d", n)
						lancetest.Whole(t, b.reader())
						b.restart()
						b.clock.add(time.Hour)
						b.good()
						b.clean(rows)
					}
				}
			})
		}
	}
}

// clean requires what must be after a whole pass: one version, its row, its rows, no dead file.
func (b *bench) clean(rows []string) {
	b.t.Helper()
	require.Equal(b.t, rows, lancetest.Latest(b.t, b.reader()))
	all := b.table.All()
	require.Len(b.t, b.versions(), 1)
	require.Len(b.t, all, 1, "%v", all)
	require.Equal(b.t, b.latest().Key, all[0].Path)
	for _, key := range lancetest.Dead(b.t, b.store) {
		require.Equal(b.t, dataset.ManifestStaging, dataset.Classify(key), "%s", key) // young, and of no row
	}
}

// B9: a dataset that is written through an external manifest store, and is maintained without: what its bucket shows is not
// all there is, so nothing is written and nothing goes.
func TestB9ExternalStoreNotConfigured(t *testing.T) {
	t.Parallel()
	b := newExternal(t, "upserts-2.2", 30*day, 2)
	b.table = nil
	before := contents(t, b.store)
	r := b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Equal(t, "unsupported", r.Error.Class)
	require.Contains(t, r.Reason, "s3+ddb://")
	require.Equal(t, before, contents(t, b.store))
}

// B9: somebody writes past the table.
func TestB9WrittenWithoutTheTable(t *testing.T) {
	t.Parallel()
	b := newExternal(t, "upserts-2.2", 30*day, 5)
	m, err := dataset.ReadManifest(t.Context(), b.store, b.latest())
	require.NoError(t, err)
	m.Version++
	data, err := manifest.Encode(m)
	require.NoError(t, err)
	require.NoError(t, b.store.Put(t.Context(), manifest.Key(m.GetVersion(), manifest.V2), data))
	before := contents(t, b.store)
	r := b.pass()
	require.Equal(t, maintain.Failed, r.Outcome)
	require.Contains(t, r.Reason, "somebody has written without the table")
	require.Equal(t, before, contents(t, b.store))
}

// A lost race against a writer through the same table is rebased.
func TestExternalLostRace(t *testing.T) {
	t.Parallel()
	b := newTable(t, 3, 2)
	b.table = manifeststoretest.New(b.store.Keys())
	b.restart()
	met := b.once(func(op faultstore.Op) bool { return op.Kind == "row claim" && op.When == faultstore.Before }, func() error {
		rival, err := manifeststore.New(b.store, b.table, b.store.URI())
		if err == nil {
			lancetest.Append(t, rival, 6, 7, 8, 9)
		}
		return err
	})
	r := b.good()
	require.True(t, *met)
	require.Equal(t, 1, r.Compaction.Conflicts)
	require.Equal(t, uint64(9), r.After.Rows)
	for _, row := range b.table.All() {
		require.NotContains(t, row.Path, ".manifest-")
	}
}

// TestDryRunNamesStaleRows: rows of versions that another clean-up has taken are named, and then go.
func TestDryRunNamesStaleRows(t *testing.T) {
	t.Parallel()
	b := newExternal(t, "upserts-2.0", 30*day, 5)
	b.settings.Compact = false
	gone := b.versions()[:3]
	for _, v := range gone {
		_, err := b.store.Delete(t.Context(), []string{v.Key})
		require.NoError(t, err)
	}
	rows := len(b.table.All())
	b.settings.DryRun = true
	plan := b.good().Pruning.Plan
	require.Equal(t, []uint64{gone[0].Number, gone[1].Number, gone[2].Number}, plan.StaleRows)
	require.Len(t, b.table.All(), rows)
	b.settings.DryRun = false
	b.good()
	require.Len(t, b.table.All(), rows-len(plan.Versions)-len(plan.StaleRows))
}
