// Package dynamotest makes tables for integration tests.
package dynamotest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/dynamo"
)

// NewTable makes a table of locks and ledger on the DynamoDB that AWS_ENDPOINT_URL_DYNAMODB names, and removes it with the test.
func NewTable(t *testing.T) (*dynamodb.Client, string) {
	t.Helper()
	return newTable(t, dynamo.PartitionKey, dynamo.SortKey, types.ScalarAttributeTypeS)
}

// NewManifestTable makes one of an external manifest store, likewise.
func NewManifestTable(t *testing.T) (*dynamodb.Client, string) {
	t.Helper()
	return newTable(t, "base_uri", "version", types.ScalarAttributeTypeN)
}

func newTable(t *testing.T, hash, sort string, sortType types.ScalarAttributeType) (*dynamodb.Client, string) {
	t.Helper()
	require.NotEmpty(t, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), "AWS_ENDPOINT_URL_DYNAMODB is not set: run this through make test or test/run")
	settings, err := awsconfig.LoadDefaultConfig(t.Context())
	require.NoError(t, err)
	client := dynamodb.NewFromConfig(settings, func(o *dynamodb.Options) { o.DisableValidateResponseChecksum = true })
	name := "test-" + uuid.NewString()
	key := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(name), KeyType: kind}
	}
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
	}
	_, err = client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attribute(hash, types.ScalarAttributeTypeS), attribute(sort, sortType)},
		KeySchema:            []types.KeySchemaElement{key(hash, types.KeyTypeHash), key(sort, types.KeyTypeRange)},
	})
	if !errors.As(err, new(*types.ResourceInUseException)) { // the SDK's own retry, after an answer that was lost
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: aws.String(name)})
		if !errors.As(err, new(*types.ResourceNotFoundException)) { // likewise
			require.NoError(t, err)
		}
	})
	require.NoError(t, dynamodb.NewTableExistsWaiter(client).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(name)}, time.Minute))
	return client, name
}
