package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"lancekeeper/internal/dynamo"
)

// Attributes of the ledger item, as the members of record. Started and unfinished are JSON, or empty.
const (
	attributeGeneration = "ledger_generation"
	attributeSkips      = "ledger_skips"
	attributeLastSkip   = "ledger_last_skip"
	attributeStarted    = "ledger_started"
	attributeUnfinished = "ledger_unfinished"
	attributeState      = "ledger_state"
	attributeSweep      = "ledger_sweep"
)

const (
	beginPass = "SET ledger_unfinished = if_not_exists(ledger_started, :none), ledger_started = :started, " +
		"ledger_generation = :generation, ledger_skips = :zero"
	canBegin  = "attribute_not_exists(ledger_generation) OR ledger_generation < :generation"
	saveEntry = "SET ledger_started = :started, ledger_unfinished = :unfinished, ledger_state = :state, ledger_sweep = :sweep"
	canSave   = "ledger_generation = :generation"
	countSkip = "SET ledger_last_skip = :skip ADD ledger_skips :one"
)

// Client is what the ledger asks of DynamoDB; *dynamodb.Client has it.
type Client interface {
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	Scan(ctx context.Context, in *dynamodb.ScanInput, options ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Dynamo keeps entries in the DynamoDB table of the lock.
type Dynamo struct {
	client Client
	caller dynamo.Caller
}

// NewDynamo returns a ledger on a table with the key schema of package dynamo.
func NewDynamo(client Client, table string) *Dynamo {
	return &Dynamo{client: client, caller: dynamo.Caller{Table: table}}
}

// Begin does what File.Begin does, in one conditional write.
func (d *Dynamo) Begin(ctx context.Context, dataset string, generation uint64, now time.Time, owner string) (Entry, error) {
	started := Started{At: now.UTC().Round(0), Owner: owner, Generation: generation}
	written, err := writeJSON(&started)
	if err != nil {
		return Entry{}, err
	}
	in := d.update(dataset, beginPass, canBegin, map[string]types.AttributeValue{
		":none": dynamo.Text(""), ":zero": dynamo.Number(0),
		":started": dynamo.Text(written), ":generation": dynamo.Unsigned(generation),
	})
	in.ReturnValues = types.ReturnValueAllNew
	var item map[string]types.AttributeValue
	out, err := d.do(ctx, "begin a pass in the ledger of "+dataset, in)
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &failed):
		// A repeated call, after the answer of the first was lost, finds its own work.
		item = failed.Item
	case err != nil:
		return Entry{}, err
	default:
		item = out.Attributes
	}
	r, err := readItem(dataset, item)
	if err != nil {
		return Entry{}, err
	}
	r, ok := r.begun(started)
	if !ok {
		return Entry{}, fenced(dataset, r.Generation, generation)
	}
	return r.entry()
}

// Save does what File.Save does.
func (d *Dynamo) Save(ctx context.Context, e Entry) error {
	r, err := encode(e)
	if err != nil {
		return err
	}
	started, err := writeJSON(r.Started)
	if err != nil {
		return err
	}
	unfinished, err := writeJSON(r.Unfinished)
	if err != nil {
		return err
	}
	_, err = d.do(ctx, "save the ledger of "+e.Dataset, d.update(e.Dataset, saveEntry, canSave, map[string]types.AttributeValue{
		":generation": dynamo.Unsigned(e.Generation),
		":started":    dynamo.Text(started),
		":unfinished": dynamo.Text(unfinished),
		":state":      dynamo.Text(r.State),
		":sweep":      &types.AttributeValueMemberB{Value: append([]byte{}, r.Sweep...)},
	}))
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return fenced(e.Dataset, dynamo.ReadNumber(failed.Item, attributeGeneration), e.Generation)
	}
	return err
}

// Skip does what File.Skip does. Where the SDK repeats a call whose answer was lost, one skip may count twice.
func (d *Dynamo) Skip(ctx context.Context, dataset string, now time.Time, holder string) error {
	skip, err := writeJSON(&Skip{At: now.UTC(), Holder: holder})
	if err != nil {
		return err
	}
	in := d.update(dataset, countSkip, "", map[string]types.AttributeValue{":skip": dynamo.Text(skip), ":one": dynamo.Number(1)})
	in.ConditionExpression = nil
	_, err = d.do(ctx, "count a skip in the ledger of "+dataset, in)
	return err
}

// Load does what File.Load does. The read is consistent.
func (d *Dynamo) Load(ctx context.Context, dataset string) (Entry, bool, error) {
	out, err := dynamo.Do(ctx, d.caller, "load the ledger of "+dataset, func(ctx context.Context) (*dynamodb.GetItemOutput, error) {
		return d.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String(d.caller.Table), Key: dynamo.ItemKey(dataset, dynamo.LedgerItem), ConsistentRead: aws.Bool(true),
		})
	})
	if err != nil {
		return Entry{Dataset: dataset}, false, err
	}
	if len(out.Item) == 0 {
		return Entry{Dataset: dataset}, false, nil
	}
	r, err := readItem(dataset, out.Item)
	if err != nil {
		return Entry{Dataset: dataset}, false, err
	}
	e, err := r.entry()
	return e, err == nil, err
}

// List does what File.List does. It reads the whole table.
func (d *Dynamo) List(ctx context.Context) ([]string, error) {
	names := []string{}
	pages := dynamodb.NewScanPaginator(d.client, &dynamodb.ScanInput{
		TableName:                 aws.String(d.caller.Table),
		FilterExpression:          aws.String(dynamo.SortKey + " = :ledger"),
		ProjectionExpression:      aws.String(dynamo.PartitionKey),
		ExpressionAttributeValues: map[string]types.AttributeValue{":ledger": dynamo.Text(dynamo.LedgerItem)},
	})
	for pages.HasMorePages() {
		page, err := dynamo.Do(ctx, d.caller, "list the ledger", func(ctx context.Context) (*dynamodb.ScanOutput, error) {
			return pages.NextPage(ctx)
		})
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			names = append(names, dynamo.ReadText(item, dynamo.PartitionKey))
		}
	}
	slices.Sort(names)
	return names, nil
}

func (d *Dynamo) update(dataset, expression, condition string, values map[string]types.AttributeValue) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(d.caller.Table),
		Key:                                 dynamo.ItemKey(dataset, dynamo.LedgerItem),
		UpdateExpression:                    aws.String(expression),
		ConditionExpression:                 aws.String(condition),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (d *Dynamo) do(ctx context.Context, what string, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	return dynamo.Do(ctx, d.caller, what, func(ctx context.Context) (*dynamodb.UpdateItemOutput, error) {
		return d.client.UpdateItem(ctx, in)
	})
}

func readItem(dataset string, item map[string]types.AttributeValue) (record, error) {
	r := record{
		Dataset:    dataset,
		Generation: dynamo.ReadNumber(item, attributeGeneration),
		Skips:      int(dynamo.ReadNumber(item, attributeSkips)), //nolint:gosec // counted up by ones
		State:      dynamo.ReadText(item, attributeState),
		Sweep:      dynamo.ReadBytes(item, attributeSweep),
	}
	err := errors.Join(
		readJSON(item, attributeLastSkip, &r.LastSkip),
		readJSON(item, attributeStarted, &r.Started),
		readJSON(item, attributeUnfinished, &r.Unfinished),
	)
	if err != nil {
		return record{}, fmt.Errorf("decode the ledger entry of %s: %w", dataset, err)
	}
	return r, nil
}

// writeJSON encodes a value for an attribute; nil is the empty text.
func writeJSON[T any](value *T) (string, error) {
	if value == nil {
		return "", nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode a ledger entry: %w", err)
	}
	return string(data), nil
}

func readJSON[T any](item map[string]types.AttributeValue, name string, into **T) error {
	text := dynamo.ReadText(item, name)
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("attribute %s: %w", name, err)
	}
	return nil
}
