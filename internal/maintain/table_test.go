package maintain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/objstore/faultstore"
)

// lockTable is a DynamoDB table as far as the three writes go that package lock makes. The expressions themselves are tested
// against a real one there.
type lockTable struct {
	mu     sync.Mutex
	items  map[string]map[string]types.AttributeValue // by dataset
	faults *faultstore.Store                          // a killed process writes nothing here either
	fault  error                                      // of every write
}

func newLockTable() *lockTable {
	return &lockTable{items: map[string]map[string]types.AttributeValue{}}
}

func (l *lockTable) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.faults.Killed() {
		return nil, faultstore.ErrKilled
	}
	if l.fault != nil {
		return nil, l.fault
	}
	value, dataset := in.ExpressionAttributeValues, dynamo.ReadText(in.Key, dynamo.PartitionKey)
	item := l.items[dataset]
	owner, token := dynamo.ReadText(item, "lease_owner"), dynamo.ReadText(item, "lease_token")
	expires := dynamo.ReadNumber(item, "lease_expires")
	ours := token != "" && token == dynamo.ReadText(value, ":token")
	next := maps.Clone(item)
	switch expression := *in.UpdateExpression; {
	case strings.HasPrefix(expression, "SET lease_owner"):
		ended := dynamo.ReadNumber(value, ":ended")
		if free := owner == "" && token == ""; !free && !ours && (expires == 0 || expires >= ended) {
			return nil, &types.ConditionalCheckFailedException{Item: item}
		}
		generation := dynamo.ReadNumber(item, "lease_generation")
		if generation == 0 {
			generation = dynamo.ReadNumber(value, ":seed")
		}
		next = map[string]types.AttributeValue{
			"lease_owner": value[":owner"], "lease_token": value[":token"], "lease_expires": value[":expires"],
			"lease_acquired": value[":now"], "lease_generation": dynamo.Unsigned(generation + 1),
		}
	case !ours:
		return nil, &types.ConditionalCheckFailedException{Item: item}
	case strings.HasPrefix(expression, "SET lease_expires"):
		next["lease_expires"] = value[":expires"]
	case strings.HasPrefix(expression, "SET lease_released"):
		next = map[string]types.AttributeValue{"lease_generation": item["lease_generation"]}
	default:
		return nil, fmt.Errorf("an update that this table does not know: %s", expression)
	}
	l.items[dataset] = next
	return &dynamodb.UpdateItemOutput{Attributes: next}, nil
}

// byHand makes the lock item of the bench's table as a person would, or an older program: without an end.
func (l *lockTable) byHand() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items["table"] = map[string]types.AttributeValue{"lease_owner": dynamo.Text("somebody"), "lease_token": dynamo.Text("t1")}
}

// book is a ledger in memory. It keeps entries as text, as the real ones do.
type book struct {
	mu      sync.Mutex
	entries map[string]string
}

func newBook() *book { return &book{entries: map[string]string{}} }

func (b *book) load(dataset string) (e ledger.Entry, found bool, err error) {
	text, found := b.entries[dataset]
	if !found {
		return ledger.Entry{Dataset: dataset}, false, nil
	}
	err = json.Unmarshal([]byte(text), &e)
	return e, true, err
}

func (b *book) store(e ledger.Entry) error {
	text, err := json.Marshal(e)
	b.entries[e.Dataset] = string(text)
	return err
}

func (b *book) Begin(_ context.Context, dataset string, generation uint64, now time.Time, owner string) (ledger.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, _, err := b.load(dataset)
	if err != nil {
		return ledger.Entry{}, err
	}
	if e.Generation >= generation {
		return ledger.Entry{}, fmt.Errorf("begin: %w", ledger.ErrFenced)
	}
	if e.FirstSeen.IsZero() {
		e.FirstSeen = now.UTC()
	}
	e.Generation, e.Unfinished, e.ConsecutiveSkips = generation, e.Started, 0
	e.Started = &ledger.Started{At: now.UTC(), Owner: owner, Generation: generation}
	return e, b.store(e)
}

func (b *book) Save(_ context.Context, e ledger.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	stored, _, err := b.load(e.Dataset)
	if err != nil {
		return err
	}
	if stored.Generation != e.Generation {
		return fmt.Errorf("save: %w", ledger.ErrFenced)
	}
	e.ConsecutiveSkips, e.LastSkip = stored.ConsecutiveSkips, stored.LastSkip
	return b.store(e)
}

func (b *book) Load(_ context.Context, dataset string) (ledger.Entry, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.load(dataset)
}

func (b *book) Skip(_ context.Context, dataset string, now time.Time, holder string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, _, err := b.load(dataset)
	if err != nil {
		return err
	}
	e.ConsecutiveSkips++
	e.LastSkip = &ledger.Skip{At: now.UTC(), Holder: holder}
	return b.store(e)
}
