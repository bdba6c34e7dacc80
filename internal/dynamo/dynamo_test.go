package dynamo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/config"
	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/objstore"
)

func fail(ctx context.Context, err error) error {
	_, got := dynamo.Do(ctx, dynamo.Caller{Table: "keeper"}, "take the lock", func(context.Context) (int, error) { return 0, err })
	return got
}

func TestDoNamesFailures(t *testing.T) {
	t.Parallel()
	api := func(code string) error { return &smithy.GenericAPIError{Code: code, Message: "said the service"} }

	var failed *types.ConditionalCheckFailedException
	require.ErrorAs(t, fail(t.Context(), &smithy.OperationError{Err: &types.ConditionalCheckFailedException{}}), &failed)

	require.ErrorIs(t, fail(t.Context(), api("AccessDeniedException")), objstore.ErrDenied)
	require.ErrorIs(t, fail(t.Context(), api("ThrottlingException")), objstore.ErrThrottled)
	require.ErrorContains(t, fail(t.Context(), api("InternalServerError")), "take the lock: table keeper")

	var setting *config.Error
	require.ErrorAs(t, fail(t.Context(), api("ResourceNotFoundException")), &setting)
	require.Equal(t, "keeper", setting.Value)
	require.NoError(t, fail(t.Context(), nil))
}

func TestDoDoesNotWaitForSilence(t *testing.T) {
	t.Parallel()
	silence := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		_, err := dynamo.Do(t.Context(), dynamo.Caller{Table: "keeper"}, "load the ledger", silence)
		var silent *dynamo.NoAnswerError
		require.ErrorAs(t, err, &silent)
		require.Equal(t, dynamo.DefaultTimeout, silent.After)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the pass has time left")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = dynamo.Do(ctx, dynamo.Caller{Table: "keeper"}, "load the ledger", silence)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the pass ran out of time")
		require.NotErrorAs(t, err, new(*dynamo.NoAnswerError))
	})
}
