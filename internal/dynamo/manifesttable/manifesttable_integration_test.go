//go:build integration

package manifesttable_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/config"
	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/dynamo/dynamotest"
	"lancekeeper/internal/dynamo/manifesttable"
	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/manifeststore"
	"lancekeeper/internal/objstore"
)

func TestRows(t *testing.T) {
	t.Parallel()
	client, name := dynamotest.NewManifestTable(t)
	table, other := manifesttable.New(client, name, "db/t.lance"), manifesttable.New(client, name, "db/u.lance")
	_, found, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.False(t, found)

	rows := []manifeststore.Row{{Version: 1, Path: "_versions/1.manifest", Size: 10}, {Version: 2, Path: "_versions/2.manifest"}, {Version: 10, Path: "_versions/10.manifest", Size: 7}}
	for _, row := range rows {
		require.NoError(t, table.Claim(t.Context(), row))
	}
	require.NoError(t, other.Claim(t.Context(), manifeststore.Row{Version: 99, Path: "_versions/99.manifest", Size: 1}))
	require.ErrorIs(t, table.Claim(t.Context(), manifeststore.Row{Version: 2, Path: "x", Size: 1}), objstore.ErrExists)

	latest, found, err := table.Latest(t.Context())
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, rows[2], latest, "by number, not by text, and of no other dataset")
	got, err := table.Rows(t.Context(), 1, 5)
	require.NoError(t, err)
	require.Equal(t, rows[:2], got)
	got, err = table.Rows(t.Context(), 5, 4)
	require.NoError(t, err)
	require.Empty(t, got)

	moved := manifeststore.Row{Version: 2, Path: "_versions/other.manifest", Size: 3}
	require.NoError(t, table.Repoint(t.Context(), moved))
	require.ErrorIs(t, table.Repoint(t.Context(), manifeststore.Row{Version: 3, Path: "x"}), objstore.ErrNotExist)
	require.NoError(t, table.Forget(t.Context(), rows[1]), "it names another path by now: none of ours")
	row, found, err := table.Row(t.Context(), 2)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, moved, row)
	for range 2 {
		require.NoError(t, table.Forget(t.Context(), moved))
	}
	_, found, err = table.Row(t.Context(), 2)
	require.NoError(t, err)
	require.False(t, found)

	item, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &name, Key: map[string]types.AttributeValue{
		"base_uri": dynamo.Text("db/t.lance"), "version": dynamo.Number(1),
	}})
	require.NoError(t, err)
	require.Equal(t, "db/t.lance/_versions/1.manifest", dynamo.ReadText(item.Item, "path"), "as official readers have it")
}

// Rows that are not understood are errors, and a table that is another's is one of settings.
func TestForeignRowsAndTables(t *testing.T) {
	t.Parallel()
	client, name := dynamotest.NewManifestTable(t)
	put := func(version uint64, path, size string) *manifesttable.Table {
		base := t.Name() + path + size
		item := map[string]types.AttributeValue{"base_uri": dynamo.Text(base), "version": dynamo.Unsigned(version), "path": dynamo.Text(base + path)}
		if size != "" {
			item["size"] = dynamo.Text(size)
		}
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: item})
		require.NoError(t, err)
		return manifesttable.New(client, name, base)
	}
	for path, size := range map[string]string{"-elsewhere/1.manifest": "", "/_versions/1.manifest": "many"} {
		_, _, err := put(1, path, size).Latest(t.Context())
		require.ErrorIs(t, err, lance.ErrCorrupt, path)
	}
	_, _, err := put(1<<63+5, "/_versions/d9223372036854775813.manifest", "").Latest(t.Context())
	require.ErrorIs(t, err, lance.ErrUnsupported)

	var setting *config.Error
	_, locks := dynamotest.NewTable(t)
	for _, wrong := range []string{locks, "no-such-table"} {
		_, _, err := manifesttable.New(client, wrong, "db/t.lance").Latest(t.Context())
		require.ErrorAs(t, err, &setting, wrong)
		require.Equal(t, "ddbTableName", setting.Setting)
	}
}
