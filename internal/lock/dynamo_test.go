package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/lock"
)

// answers is a table that says what it is told to say. The expressions themselves are tested against a real one.
type answers func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error)

func (a answers) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	return a(ctx, in)
}

func granted() *dynamodb.UpdateItemOutput {
	return &dynamodb.UpdateItemOutput{Attributes: map[string]types.AttributeValue{
		"lease_generation": &types.AttributeValueMemberN{Value: "7"},
	}}
}

func refused(item map[string]types.AttributeValue) error {
	return &types.ConditionalCheckFailedException{Item: item}
}

func dynamoLocker(a answers, now func() time.Time) *lock.DynamoLocker {
	return lock.NewDynamo(a, lock.DynamoOptions{Table: "keeper", Owner: "a", Now: now})
}

// I2: a paused holder must not work on after its lease.
func TestFixedLeaseIsLostWithoutARequest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	requests := 0
	k := dynamoLocker(func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		requests++
		return granted(), nil
	}, func() time.Time { return now })
	lease, err := k.Acquire(t.Context(), dataset, now.Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, uint64(7), lease.Generation())

	now = now.Add(time.Minute - lock.DefaultSafety)
	require.NoError(t, lease.Check(t.Context()))
	now = now.Add(time.Millisecond)
	require.ErrorIs(t, lease.Check(t.Context()), lock.ErrLost)
	now = now.Add(-time.Hour)
	require.ErrorIs(t, lease.Check(t.Context()), lock.ErrLost, "lost is lost, even if the clock is set back")
	require.Equal(t, 1, requests)
}

func TestLeaseThatWouldEndAtOnceIsNotTaken(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	k := dynamoLocker(nil, func() time.Time { return now })
	_, err := k.Acquire(t.Context(), dataset, now.Add(time.Second))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	steps := map[string]struct {
		answer func(request int) error // from the second request on
		lost   bool
	}{
		"renews":                 {answer: func(int) error { return nil }},
		"survives a failed one":  {answer: func(n int) error { return onlyIf(n == 3, errors.New("reset by peer")) }},
		"taken over by another":  {answer: func(int) error { return refused(map[string]types.AttributeValue{}) }, lost: true},
		"no answer for too long": {answer: func(int) error { return errors.New("reset by peer") }, lost: true},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var requests atomic.Int32
				k := dynamoLocker(func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
					if n := requests.Add(1); n > 1 {
						if err := step.answer(int(n)); err != nil {
							return nil, err
						}
					}
					return granted(), nil
				}, time.Now)
				lease, err := k.Acquire(t.Context(), dataset, time.Time{})
				require.NoError(t, err)
				began := lease.Expires()
				time.Sleep(5 * lock.DefaultTerm)
				synctest.Wait()
				if step.lost {
					require.ErrorIs(t, lease.Check(t.Context()), lock.ErrLost)
				} else {
					require.NoError(t, lease.Check(t.Context()))
					require.Greater(t, lease.Expires(), began)
					require.NoError(t, lease.Release(t.Context()))
				}
				_ = lease.Release(t.Context()) // a bubble that ends with the heartbeat still running would fail
			})
		})
	}
}

func onlyIf(condition bool, err error) error {
	if condition {
		return err
	}
	return nil
}

// I2 with a heartbeat: a process that was stopped asks before it goes on.
func TestCheckAsksWhenTheHeartbeatIsOverdue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	var taken atomic.Bool
	k := dynamoLocker(func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		if taken.Load() {
			return nil, refused(map[string]types.AttributeValue{"lease_owner": &types.AttributeValueMemberS{Value: "b"}})
		}
		return granted(), nil
	}, func() time.Time { return now })
	lease, err := k.Acquire(t.Context(), dataset, time.Time{})
	require.NoError(t, err)
	now = now.Add(10 * lock.DefaultTerm)
	require.NoError(t, lease.Check(t.Context()), "nobody took it meanwhile")
	now = now.Add(10 * lock.DefaultTerm)
	taken.Store(true)
	err = lease.Check(t.Context())
	require.ErrorIs(t, err, lock.ErrLost)
	require.ErrorContains(t, err, "taken over by b")
	require.ErrorIs(t, lease.Release(t.Context()), lock.ErrLost)
}

// A far deadline must not lock the dataset for hours when the run is killed.
func TestFarDeadlineTakesARenewedLease(t *testing.T) {
	t.Parallel()
	k := dynamoLocker(func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		return granted(), nil
	}, time.Now)
	lease, err := k.Acquire(t.Context(), dataset, time.Now().Add(10*time.Hour))
	require.NoError(t, err)
	require.Less(t, time.Until(lease.Expires()), lock.DefaultTerm+time.Second)
	require.NoError(t, lease.Release(t.Context()))
}

func TestAcquireDoesNotRepeatWhatIsRefusedForGood(t *testing.T) {
	t.Parallel()
	requests := 0
	k := dynamoLocker(func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		requests++
		return nil, &types.ResourceNotFoundException{Message: aws.String("no table")}
	}, time.Now)
	_, err := k.Acquire(t.Context(), dataset, time.Time{})
	require.ErrorContains(t, err, "no such DynamoDB table")
	require.Equal(t, 1, requests)
}

func TestAcquireDoesNotWaitForASilentTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := dynamoLocker(func(ctx context.Context, _ *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, time.Now)
		_, err := k.Acquire(t.Context(), dataset, time.Time{})
		var silent *dynamo.NoAnswerError
		require.ErrorAs(t, err, &silent)
	})
}
