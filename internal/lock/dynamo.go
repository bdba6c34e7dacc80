package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"lancekeeper/internal/config"
	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/objstore"
)

// Attributes of the lock item. Times are epoch milliseconds. An item without owner and token is free; the generation stays.
const (
	attributeOwner      = "lease_owner"
	attributeToken      = "lease_token"
	attributeGeneration = "lease_generation"
	attributeExpires    = "lease_expires"
	attributeAcquired   = "lease_acquired"
	attributeReleased   = "lease_released"
)

// tidyAfter is when the table may remove the item of a dataset that nobody maintains any more.
const tidyAfter = 180 * 24 * time.Hour

// ownerToken marks the token of an item that was made by hand and has only an owner.
const ownerToken = "owner="

// takeLock takes the lock and raises the fence in one write. The fence of a new item begins at the clock's second, so that it
// does not fall even if the item was removed.
const (
	takeLock = "SET lease_owner = :owner, lease_token = :token, lease_expires = :expires, lease_acquired = :now, expires_at = :tidy, " +
		"lease_generation = if_not_exists(lease_generation, :seed) + :one REMOVE lease_released"
	canTake = "(attribute_not_exists(lease_owner) AND attribute_not_exists(lease_token)) OR lease_expires < :ended OR lease_token = :token"

	freeLock = "SET lease_released = :now, expires_at = :tidy REMOVE lease_owner, lease_token, lease_expires, lease_acquired"
)

// Updater is the one call of DynamoDB that the lock needs; *dynamodb.Client has it.
type Updater interface {
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// DynamoOptions configure a DynamoLocker. Table, Owner and Now are required; a zero elsewhere means the default.
type DynamoOptions struct {
	Table   string
	Owner   string           // for people: who holds it
	Now     func() time.Time // this machine's clock
	Term    time.Duration    // length of a renewed lease
	Skew    time.Duration    // a lease is over when it ended this long ago
	Safety  time.Duration    // what must be left of it for Check to pass
	Timeout time.Duration    // of one call
}

// DynamoLocker keeps leases in a DynamoDB table.
type DynamoLocker struct {
	client Updater
	o      DynamoOptions
}

// NewDynamo returns a locker on a table with the key schema of package dynamo.
func NewDynamo(client Updater, o DynamoOptions) *DynamoLocker {
	if o.Term == 0 {
		o.Term = DefaultTerm
	}
	if o.Skew == 0 {
		o.Skew = DefaultSkew
	}
	if o.Safety == 0 {
		o.Safety = DefaultSafety
	}
	return &DynamoLocker{client: client, o: o}
}

// Acquire takes the lease on a dataset until the given time, without renewal, if that is near; without a time, or with a far
// one, it takes a short lease and renews it until it is released. *HeldError if another holds it.
func (k *DynamoLocker) Acquire(ctx context.Context, dataset string, until time.Time) (*Lease, error) {
	asked := k.o.Now()
	l := &Lease{dataset: dataset, owner: k.o.Owner, now: k.o.Now, safety: k.o.Safety, granted: asked}
	l.term = until.Round(0).Sub(asked.Round(0))
	if until.IsZero() || l.term > LongestFixed {
		l.term, l.every = k.o.Term, k.o.Term/3
	}
	if l.term < l.safety {
		return nil, fmt.Errorf("lock %s: %w", dataset, context.DeadlineExceeded)
	}
	h := &dynamoHolding{locker: k, dataset: dataset, token: uuid.NewString()}
	if err := h.take(ctx, asked, asked.Add(l.term)); err != nil {
		return nil, err
	}
	l.holding, l.generation = h, h.generation
	if l.every > 0 {
		l.startHeartbeat(ctx)
	}
	return l, nil
}

// Break frees a lock whose owner is gone, if it is still the one that was seen: token is that of the HeldError. An error of
// class ErrLost if it is another by now.
func (k *DynamoLocker) Break(ctx context.Context, dataset, token string) error {
	h := &dynamoHolding{locker: k, dataset: dataset, token: token}
	if owner, ok := strings.CutPrefix(token, ownerToken); ok {
		return h.free(ctx, "attribute_not_exists(lease_token) AND lease_owner = :token", owner)
	}
	return h.free(ctx, "lease_token = :token", token)
}

// dynamoHolding is one lease, held or asked for.
type dynamoHolding struct {
	locker     *DynamoLocker
	dataset    string
	token      string
	generation uint64
}

func (h *dynamoHolding) take(ctx context.Context, now, until time.Time) error {
	in := h.update(takeLock, canTake, map[string]types.AttributeValue{
		":owner":   dynamo.Text(h.locker.o.Owner),
		":token":   dynamo.Text(h.token),
		":expires": millis(until),
		":now":     millis(now),
		":ended":   millis(now.Add(-h.locker.o.Skew)),
		":tidy":    dynamo.Number(until.Add(tidyAfter).Unix()),
		":seed":    dynamo.Number(now.Unix()),
		":one":     dynamo.Number(1),
	})
	in.ReturnValues = types.ReturnValueAllNew
	out, err := h.do(ctx, "take the lock on "+h.dataset, in)
	if mayHaveWorked(err) && ctx.Err() == nil {
		// The answer was lost. If the write was done, the token is ours and the condition holds again.
		out, err = h.do(ctx, "take the lock on "+h.dataset, in)
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return h.heldBy(failed.Item)
	}
	if err != nil {
		return err
	}
	h.generation = dynamo.ReadNumber(out.Attributes, attributeGeneration)
	if h.generation == 0 {
		return fmt.Errorf("take the lock on %s: the table answered without a generation", h.dataset)
	}
	return nil
}

// mayHaveWorked says of a write's error that it does not tell whether the write was done.
func mayHaveWorked(err error) bool {
	var failed *types.ConditionalCheckFailedException
	var setting *config.Error
	return err != nil && !errors.As(err, &failed) && !errors.As(err, &setting) &&
		!errors.Is(err, objstore.ErrDenied) && !errors.Is(err, objstore.ErrThrottled)
}

func (h *dynamoHolding) heldBy(item map[string]types.AttributeValue) *HeldError {
	held := &HeldError{
		Dataset:    h.dataset,
		Owner:      dynamo.ReadText(item, attributeOwner),
		Since:      readMillis(item, attributeAcquired),
		Until:      readMillis(item, attributeExpires),
		Generation: dynamo.ReadNumber(item, attributeGeneration),
		Token:      dynamo.ReadText(item, attributeToken),
	}
	if held.Token == "" {
		held.Token = ownerToken + held.Owner
	}
	if held.Until.IsZero() {
		held.Advice = fmt.Sprintf("it has no end of its own: if that owner is gone, break it: maintain --table %s --break-lock '%s' %s", h.locker.o.Table, held.Token, h.dataset)
	}
	return held
}

func (h *dynamoHolding) renew(ctx context.Context, until time.Time) error {
	in := h.update("SET lease_expires = :expires, expires_at = :tidy", "lease_token = :token", map[string]types.AttributeValue{
		":token":   dynamo.Text(h.token),
		":expires": millis(until),
		":tidy":    dynamo.Number(until.Add(tidyAfter).Unix()),
	})
	_, err := h.do(ctx, "renew the lock on "+h.dataset, in)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return h.lostTo(failed.Item)
	}
	return err
}

func (h *dynamoHolding) release(ctx context.Context) error {
	return h.free(ctx, "lease_token = :token", h.token)
}

func (h *dynamoHolding) intact() error { return nil }

func (h *dynamoHolding) free(ctx context.Context, condition, token string) error {
	now := h.locker.o.Now()
	in := h.update(freeLock, condition, map[string]types.AttributeValue{
		":token": dynamo.Text(token),
		":now":   millis(now),
		":tidy":  dynamo.Number(now.Add(tidyAfter).Unix()),
	})
	_, err := h.do(ctx, "release the lock on "+h.dataset, in)
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return err
	}
	_, owned := failed.Item[attributeOwner]
	if !owned && h.generation != 0 && dynamo.ReadNumber(failed.Item, attributeGeneration) == h.generation {
		return nil // an earlier try of this call, whose answer was lost, did it
	}
	return h.lostTo(failed.Item)
}

func (h *dynamoHolding) lostTo(item map[string]types.AttributeValue) error {
	owner := dynamo.ReadText(item, attributeOwner)
	if owner == "" {
		return fmt.Errorf("%w: the lock on %s is not held by this one any more", ErrLost, h.dataset)
	}
	return fmt.Errorf("%w: the lock on %s was taken over by %s", ErrLost, h.dataset, owner)
}

func (h *dynamoHolding) update(expression, condition string, values map[string]types.AttributeValue) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(h.locker.o.Table),
		Key:                                 dynamo.ItemKey(h.dataset, dynamo.LockItem),
		UpdateExpression:                    aws.String(expression),
		ConditionExpression:                 aws.String(condition),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (h *dynamoHolding) do(ctx context.Context, what string, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	caller := dynamo.Caller{Table: h.locker.o.Table, Timeout: h.locker.o.Timeout}
	return dynamo.Do(ctx, caller, what, func(ctx context.Context) (*dynamodb.UpdateItemOutput, error) {
		return h.locker.client.UpdateItem(ctx, in)
	})
}

func millis(t time.Time) types.AttributeValue { return dynamo.Number(t.UnixMilli()) }

func readMillis(item map[string]types.AttributeValue, name string) time.Time {
	ms := dynamo.ReadNumber(item, name)
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)) //nolint:gosec // written by us from an int64; nonsense gives a nonsense date in a message
}
