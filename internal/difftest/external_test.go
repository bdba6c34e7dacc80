//go:build oracle

package difftest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/dynamo/dynamotest"
	"lancekeeper/internal/dynamo/manifesttable"
	"lancekeeper/internal/lance/manifeststore"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/s3store"
)

// external is a place with an external manifest store of the test's own.
type external struct {
	client *dynamodb.Client
	table  string
	out    string // for MakeAt
}

func newExternal(t *testing.T) external {
	t.Helper()
	client, table := dynamotest.NewManifestTable(t)
	return external{client, table, "s3+ddb://" + Env(t, "LANCEKEEPER_TEST_BUCKET") + "/" + t.Name() + "?ddbTableName=" + table}
}

// paths are the rows of the table, by version.
func (e external) paths(t *testing.T) map[uint64]string {
	t.Helper()
	out, err := e.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &e.table})
	require.NoError(t, err)
	paths := map[uint64]string{}
	for _, item := range out.Items {
		paths[dynamo.ReadNumber(item, "version")] = dynamo.ReadText(item, "path")
	}
	return paths
}

// TestExternalManifestStore: the official engine writes through its DynamoDB manifest store, and goes on after a pass; each
// version that stays has its row, and no other.
func TestExternalManifestStore(t *testing.T) {
	t.Parallel()
	for _, recipe := range []string{"upserts", "v1names"} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			e := newExternal(t)
			made := MakeAt(t, e.out, recipe)
			before := Dump(t, made.URI)
			got := newKeeper(t).good(t, made.URI)
			require.True(t, strings.HasPrefix(got.Dataset, "s3+ddb://"))
			require.Positive(t, got.Compaction.FragmentsRemoved)
			after := Dump(t, made.URI)
			Same(t, before, after)
			require.Len(t, only(after).Versions, 1)
			require.Equal(t, []uint64{only(after).Version}, keys(e.paths(t)))
			NoMissingNoDead(t, made.URI)
			if recipe != "upserts" {
				return // the writer's rows are of that table
			}
			var said bytes.Buffer
			writer := Command(t, "write.py", made.URI, "--seconds", "2", "--writer", "1")
			writer.Stdout, writer.Stderr = &said, &said
			require.NoError(t, writer.Run(), said.String())
			again := Dump(t, made.URI)
			require.Greater(t, only(again).Version, only(after).Version)
			newKeeper(t).good(t, made.URI)
			Same(t, again, Dump(t, made.URI))
			require.Len(t, e.paths(t), 1)
		})
	}
}

// TestExternalLiveWriters: passes and official writers race for versions through one table; the writers check that they lost
// nothing.
func TestExternalLiveWriters(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	made := MakeAt(t, e.out, "upserts")
	var said bytes.Buffer
	writer := Command(t, "write.py", made.URI, "--seconds", "8", "--writer", "1")
	writer.Stdout, writer.Stderr = &said, &said
	require.NoError(t, writer.Start())
	finished := make(chan error, 1)
	go func() { finished <- writer.Wait() }()
	keep, fragments := newKeeper(t), 0
	for running := true; running; {
		select {
		case err := <-finished:
			require.NoError(t, err, said.String())
			running = false
		default:
		}
		results, code, complaint := keep.run(t, "--grace", "1h", made.URI)
		require.Contains(t, []int{0, 3}, code, complaint)
		fragments += results[0].Compaction.FragmentsRemoved
	}
	require.Positive(t, fragments)
	before := Dump(t, made.URI)
	keep.good(t, made.URI)
	Same(t, before, Dump(t, made.URI))
	require.Len(t, e.paths(t), 1)
	require.Empty(t, Files(t, made.URI).Missing)
}

// TestExternalKilledWriter: what a writer that was killed behind a step of its commit leaves is read and finished by us as it
// is by the official engine.
func TestExternalKilledWriter(t *testing.T) {
	t.Parallel()
	for step, name := range map[int]string{2: "claimed", 3: "copied", 4: "pointed at"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExternal(t)
			made := MakeAt(t, e.out, "upserts")
			before := Dump(t, made.URI)
			latest := only(before).Version
			final := e.paths(t)[latest]
			e.kill(t, latest, final, step)
			_, code, said := newKeeper(t).run(t, "--dry-run", made.URI)
			require.Zero(t, code, said)
			newKeeper(t).good(t, made.URI)
			after := Dump(t, made.URI)
			Same(t, before, after)
			require.Equal(t, []uint64{only(after).Version}, keys(e.paths(t)))
			require.NotContains(t, e.paths(t)[only(after).Version], ".manifest-")
			require.Empty(t, Files(t, made.URI).Missing)
		})
	}
}

// mortalTable is a manifest table that takes part in the faults of a store.
type mortalTable struct {
	manifeststore.Table
	faults *faultstore.Store
}

func (m mortalTable) Claim(ctx context.Context, row manifeststore.Row) error {
	return m.faults.Mutation(ctx, "row claim", row.Path, func() error { return m.Table.Claim(ctx, row) })
}

func (m mortalTable) Repoint(ctx context.Context, row manifeststore.Row) error {
	return m.faults.Mutation(ctx, "row repoint", row.Path, func() error { return m.Table.Repoint(ctx, row) })
}

func (m mortalTable) Forget(ctx context.Context, row manifeststore.Row) error {
	return m.faults.Mutation(ctx, "row forget", row.Path, func() error { return m.Table.Forget(ctx, row) })
}

// TestExternalOurKilledPass: the other way round. A pass of ours is killed behind each kind of step; the official engine reads
// every version that is listed, finishes what was begun, and goes on writing; the next pass ends clean.
func TestExternalOurKilledPass(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(op faultstore.Op) bool{
		"staged":    func(op faultstore.Op) bool { return op.Kind == "put" && strings.Contains(op.Key, ".manifest-") },
		"claimed":   func(op faultstore.Op) bool { return op.Kind == "row claim" },
		"copied":    func(op faultstore.Op) bool { return op.Kind == "copy" },
		"pointed":   func(op faultstore.Op) bool { return op.Kind == "row repoint" },
		"tidied":    func(op faultstore.Op) bool { return op.Kind == "delete" && strings.Contains(op.Key, ".manifest-") },
		"removed":   func(op faultstore.Op) bool { return op.Kind == "delete" && strings.HasSuffix(op.Key, ".manifest") },
		"forgotten": func(op faultstore.Op) bool { return op.Kind == "row forget" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExternal(t)
			made := MakeAt(t, e.out, "upserts", "--count", "9", "--keys", "3")
			before := Dump(t, made.URI)
			path := t.Name() + "/upserts.lance"
			bucket, err := s3store.Open(t.Context(), Env(t, "LANCEKEEPER_TEST_BUCKET"), path, s3store.Options{})
			require.NoError(t, err)
			faults := faultstore.New(bucket)
			faults.Hook(func(_ context.Context, op faultstore.Op) error {
				if op.When == faultstore.Before && at(op) {
					faults.KillAt(op.Mutation, faultstore.After)
				}
				return nil
			})
			store, err := manifeststore.New(faults, mortalTable{manifesttable.New(e.client, e.table, path), faults}, made.URI)
			require.NoError(t, err)
			passThrough(t, made.URI, t.TempDir(), all(), store, faults)
			require.True(t, faults.Killed())

			Same(t, before, Dump(t, made.URI))
			require.Empty(t, Files(t, made.URI).Missing)
			var said bytes.Buffer
			writer := Command(t, "write.py", made.URI, "--seconds", "1", "--writer", "1")
			writer.Stdout, writer.Stderr = &said, &said
			require.NoError(t, writer.Run(), said.String())
			again := Dump(t, made.URI)
			newKeeper(t).good(t, made.URI)
			Same(t, again, Dump(t, made.URI))
			require.Len(t, e.paths(t), 1)
			require.Empty(t, Files(t, made.URI).Missing)
		})
	}
}

// kill puts a version back to where its commit was after a step.
func (e external) kill(t *testing.T, version uint64, final string, step int) {
	t.Helper()
	bucket := filepath.Join(Env(t, "LANCEKEEPER_TEST_S3_DIR"), Env(t, "LANCEKEEPER_TEST_BUCKET"))
	staged := final + "-" + uuid.NewString()
	data, err := os.ReadFile(filepath.Join(bucket, final))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(bucket, staged), data, 0o600))
	if step < 4 {
		_, err := e.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &e.table, Item: map[string]types.AttributeValue{
			"base_uri": dynamo.Text(final[:strings.Index(final, "/_versions/")]), "version": dynamo.Unsigned(version),
			"path": dynamo.Text(staged), "size": dynamo.Number(int64(len(data))), "committer": dynamo.Text("lancedb"),
		}})
		require.NoError(t, err)
	}
	if step < 3 {
		require.NoError(t, os.Remove(filepath.Join(bucket, final)))
	}
}

func keys(rows map[uint64]string) (versions []uint64) {
	for version := range rows {
		versions = append(versions, version)
	}
	return versions
}
