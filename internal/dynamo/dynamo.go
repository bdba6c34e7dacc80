// Package dynamo makes single calls to the DynamoDB table of lock and ledger: each ends in time, and its failure has a name.
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"lancekeeper/internal/config"
	"lancekeeper/internal/objstore"
)

// Key schema of the table: both attributes are strings. One dataset has two items, which differ in the sort key.
const (
	PartitionKey = "pk" // the dataset's canonical name
	SortKey      = "sk" // which of the items
	LockItem     = "lock"
	LedgerItem   = "ledger"
	// ExpiryAttribute is the table's time-to-live attribute, in epoch seconds. It only tidies up: no decision rests on it.
	ExpiryAttribute = "expires_at"
)

// DefaultTimeout is how long one call may take, the SDK's retries included.
const DefaultTimeout = 5 * time.Second

// ItemKey is the key of one item of a dataset.
func ItemKey(dataset, item string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		PartitionKey: &types.AttributeValueMemberS{Value: dataset},
		SortKey:      &types.AttributeValueMemberS{Value: item},
	}
}

// Caller bounds and names calls to one table.
type Caller struct {
	Table   string
	Timeout time.Duration // 0 is DefaultTimeout
}

// NoAnswerError says that the table did not answer in time although the caller still had some. It is no context error: the
// pass did not run out of time, the table did not answer.
type NoAnswerError struct {
	Call  string
	Table string
	After time.Duration
}

// Error says what is often the cause.
func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("%s: DynamoDB table %s did not answer within %s (a function in a private network needs a route or an endpoint for DynamoDB)",
		e.Call, e.Table, e.After)
}

// Do makes one call. Errors: *types.ConditionalCheckFailedException as it is; *NoAnswerError; *config.Error where the table
// does not exist; of class objstore.ErrDenied or objstore.ErrThrottled; anything else wrapped with what was being done.
func Do[T any](ctx context.Context, c Caller, what string, call func(ctx context.Context) (T, error)) (T, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := call(bounded)
	if err == nil {
		return out, nil
	}
	if bounded.Err() != nil && ctx.Err() == nil {
		return out, &NoAnswerError{Call: what, Table: c.Table, After: timeout}
	}
	return out, c.name(what, err)
}

func (c Caller) name(what string, err error) error {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "ResourceNotFoundException":
			return &config.Error{Setting: "--table", Value: c.Table, Detail: "there is no such DynamoDB table in this account and region"}
		case "AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException":
			return fmt.Errorf("%s: table %s: %w: %w", what, c.Table, objstore.ErrDenied, err)
		case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded":
			return fmt.Errorf("%s: table %s: %w: %w", what, c.Table, objstore.ErrThrottled, err)
		}
	}
	return fmt.Errorf("%s: table %s: %w", what, c.Table, err)
}
