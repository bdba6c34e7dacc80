//go:build integration

package ledger_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/dynamo/dynamotest"
	"lancekeeper/internal/ledger"
)

func TestDynamo(t *testing.T) {
	testBook(t, func(t *testing.T) book {
		t.Helper()
		client, table := dynamotest.NewTable(t)
		return ledger.NewDynamo(client, table)
	})
}

// repeating does each update twice, as the SDK does when the answer to the first was lost.
type repeating struct{ *dynamodb.Client }

func (r repeating) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if _, err := r.Client.UpdateItem(ctx, in, options...); err != nil {
		return nil, err
	}
	return r.Client.UpdateItem(ctx, in, options...)
}

func TestDynamoRepeatedCalls(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	first := ledger.NewDynamo(client, table)
	_, err := first.Begin(t.Context(), dataset, 1, noon, "killed")
	require.NoError(t, err)

	b := ledger.NewDynamo(repeating{client}, table)
	e, err := b.Begin(t.Context(), dataset, 2, noon, "a")
	require.NoError(t, err)
	require.NotNil(t, e.Unfinished, "the killed pass is seen, not our own first try")
	require.Equal(t, "killed", e.Unfinished.Owner)
	require.NoError(t, b.Save(t.Context(), full(e)))
}

func TestDynamoListsManyPages(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	b := ledger.NewDynamo(client, table)
	names := []string{"s3://b/a", "s3://b/b", "s3://b/c"}
	for _, name := range names {
		e, err := b.Begin(t.Context(), name, 1, noon, "a")
		require.NoError(t, err)
		e.Sweep = randomNames(t, 15_000) // three items of this size are more than a page of 1 MB
		require.NoError(t, b.Save(t.Context(), e))
	}
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: dynamo.ItemKey(names[0], dynamo.LockItem)})
	require.NoError(t, err)
	got, err := b.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, names, got)
}
