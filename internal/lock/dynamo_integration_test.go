//go:build integration

package lock_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/dynamo/dynamotest"
	"lancekeeper/internal/lock"
)

func onTable(client lock.Updater, table, owner string, now func() time.Time) *lock.DynamoLocker {
	return lock.NewDynamo(client, lock.DynamoOptions{Table: table, Owner: owner, Now: now})
}

func TestDynamoLocker(t *testing.T) {
	real, table := dynamotest.NewTable(t)
	var client lock.Updater = real
	if isMoto(t) {
		client = &oneByOne{Client: real}
	}
	testLocker(t, func(_ *testing.T, owner string) locker { return onTable(client, table, owner, time.Now) })
}

// isMoto says whether the server is moto, which checks a condition and writes in two steps: two updates at once may both pass.
// DynamoDB and DynamoDB Local do it in one.
func isMoto(t *testing.T) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")+"/moto-api/", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode == http.StatusOK
}

// oneByOne gives a server's single updates the atomicity that DynamoDB promises; in which order they come is still open.
type oneByOne struct {
	*dynamodb.Client
	mu sync.Mutex
}

func (o *oneByOne) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Client.UpdateItem(ctx, in, options...)
}

// I1, I3, I5: a dead owner's lease is taken over when expiry and skew have passed, whatever the table's tidying does; not before.
func TestDynamoTakeover(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	now := time.Now()
	clock := func() time.Time { return now }
	dead, err := onTable(client, table, "dead", clock).Acquire(t.Context(), dataset, now.Add(5*time.Minute))
	require.NoError(t, err)

	item := readItem(t, client, table)
	for _, name := range []string{"lease_owner", "lease_token", "lease_expires", "lease_acquired", "lease_generation", "expires_at"} {
		require.Contains(t, item, name)
	}

	k := onTable(client, table, "heir", clock)
	now = now.Add(5*time.Minute + lock.DefaultSkew)
	_, err = k.Acquire(t.Context(), dataset, now.Add(5*time.Minute))
	require.ErrorAs(t, err, new(*lock.HeldError))
	now = now.Add(time.Millisecond)
	heir, err := k.Acquire(t.Context(), dataset, now.Add(5*time.Minute))
	require.NoError(t, err)
	require.Equal(t, dead.Generation()+1, heir.Generation())

	require.ErrorIs(t, dead.Release(t.Context()), lock.ErrLost)
	_, err = k.Acquire(t.Context(), dataset, now.Add(5*time.Minute))
	var held *lock.HeldError
	require.ErrorAs(t, err, &held, "the late release freed nothing")
	require.Equal(t, "heir", held.Owner)
	require.NoError(t, heir.Release(t.Context()))
}

// I4: a lock without an end stays held, says how to break it, and is broken only as it was seen.
func TestDynamoLockWithoutExpiry(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	put := func(extra map[string]types.AttributeValue) {
		item := dynamo.ItemKey(dataset, dynamo.LockItem)
		item["lease_owner"] = &types.AttributeValueMemberS{Value: "somebody"}
		maps.Copy(item, extra)
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item})
		require.NoError(t, err)
	}
	k := onTable(client, table, "a", time.Now)
	for name, extra := range map[string]map[string]types.AttributeValue{
		"owner only":           nil,
		"with a token":         {"lease_token": &types.AttributeValueMemberS{Value: "seen"}},
		"with a generation":    {"lease_generation": &types.AttributeValueMemberN{Value: "41"}},
		"time to live is over": {"expires_at": &types.AttributeValueMemberN{Value: "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			put(extra)
			_, err := k.Acquire(t.Context(), dataset, time.Time{})
			var held *lock.HeldError
			require.ErrorAs(t, err, &held)
			require.Zero(t, held.Until)
			require.ErrorContains(t, err, "--break-lock '"+held.Token+"'")

			require.ErrorIs(t, k.Break(t.Context(), dataset, "another"), lock.ErrLost)
			require.ErrorIs(t, k.Break(t.Context(), dataset, "owner=another"), lock.ErrLost)
			require.NoError(t, k.Break(t.Context(), dataset, held.Token))
			lease, err := k.Acquire(t.Context(), dataset, time.Time{})
			require.NoError(t, err)
			require.Greater(t, lease.Generation(), held.Generation)
			require.NoError(t, lease.Release(t.Context()))
		})
	}
}

// lossy does each call and loses the answer of the first one whose update begins with the given word.
type lossy struct {
	*dynamodb.Client
	lose  string
	times int
}

func (l *lossy) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	out, err := l.Client.UpdateItem(ctx, in, options...)
	if l.times > 0 && strings.HasPrefix(aws.ToString(in.UpdateExpression), l.lose) {
		l.times--
		return nil, errors.New("connection reset by peer")
	}
	return out, err
}

func TestDynamoLostAnswers(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	flaky := &lossy{Client: client, lose: "SET lease_owner", times: 1}
	lease, err := onTable(flaky, table, "a", time.Now).Acquire(t.Context(), dataset, time.Time{})
	require.NoError(t, err, "the token in the item is ours")
	require.Zero(t, flaky.times)
	require.NoError(t, lease.Check(t.Context()))

	_, err = onTable(client, table, "b", time.Now).Acquire(t.Context(), dataset, time.Time{})
	var held *lock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, lease.Generation(), held.Generation)
	require.NoError(t, lease.Release(t.Context()))
}

// The SDK repeats a call whose answer was lost; then the lock is free already, by our own doing.
func TestDynamoReleaseTwice(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	twice := &repeating{Client: client}
	lease, err := onTable(twice, table, "a", time.Now).Acquire(t.Context(), dataset, time.Time{})
	require.NoError(t, err)
	twice.on = true
	require.NoError(t, lease.Release(t.Context()))
}

// repeating does each call twice and returns the second answer.
type repeating struct {
	*dynamodb.Client
	on bool
}

func (r *repeating) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if r.on {
		if _, err := r.Client.UpdateItem(ctx, in, options...); err != nil {
			return nil, err
		}
	}
	return r.Client.UpdateItem(ctx, in, options...)
}

func TestDynamoFenceSurvivesTheItem(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	now := time.Now()
	k := onTable(client, table, "a", func() time.Time { return now })
	var last uint64
	for range 3 {
		lease, err := k.Acquire(t.Context(), dataset, now.Add(time.Minute))
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
		require.Greater(t, lease.Generation(), last)
		last = lease.Generation()
		_, err = client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: aws.String(table), Key: dynamo.ItemKey(dataset, dynamo.LockItem),
		})
		require.NoError(t, err)
		now = now.Add(time.Minute)
	}
}

func readItem(t *testing.T, client *dynamodb.Client, table string) map[string]types.AttributeValue {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: dynamo.ItemKey(dataset, dynamo.LockItem), ConsistentRead: aws.Bool(true),
	})
	require.NoError(t, err)
	return out.Item
}
