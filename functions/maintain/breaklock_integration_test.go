//go:build integration

package main

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/dynamo/dynamotest"
)

// TestBreakLock: only the lock that was seen is freed, and the log says so.
func TestBreakLock(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	item := dynamo.ItemKey("s3://b/t.lance", dynamo.LockItem)
	item["lease_owner"], item["lease_token"] = dynamo.Text("a person"), dynamo.Text("seen")
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
	require.NoError(t, err)
	run := func(args ...string) (code int, out, log string) {
		var stdout, stderr bytes.Buffer
		code = command{stdout: &stdout, stderr: &stderr}.run(args)
		return code, stdout.String(), stderr.String()
	}
	held := func() bool {
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: dynamo.ItemKey("s3://b/t.lance", dynamo.LockItem)})
		require.NoError(t, err)
		_, owned := out.Item["lease_owner"].(*types.AttributeValueMemberS)
		return owned
	}
	for _, wrong := range [][]string{
		{"--break-lock", "seen", "s3://b/t.lance"},
		{"--break-lock", "seen", "--table", table, "s3://b/t.lance", "s3://b/u.lance"},
	} {
		code, _, said := run(wrong...)
		require.Equal(t, exitUsage, code, said)
	}
	code, _, said := run("--break-lock", "another", "--table", table, "s3://b/t.lance")
	require.Equal(t, 1, code)
	require.Contains(t, said, "lock not broken")
	require.True(t, held())

	code, out, said := run("--break-lock", "seen", "--table", table, "s3://b/t.lance/")
	require.Zero(t, code, said)
	require.Contains(t, out, "free")
	require.Contains(t, said, `"msg":"lock broken"`)
	require.False(t, held())
}
