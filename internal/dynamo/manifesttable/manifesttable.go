// Package manifesttable reads and writes the versions of a dataset in the DynamoDB table of an external manifest store.
package manifesttable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"lancekeeper/internal/awslog"
	"lancekeeper/internal/config"
	"lancekeeper/internal/dynamo"
	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/manifeststore"
	"lancekeeper/internal/objstore"
)

// Attributes of a row (lance-table src/io/commit/dynamodb.rs).
const (
	attributeBase      = "base_uri" // hash key: the dataset's path in its bucket, without slashes around it
	attributeVersion   = "version"  // range key
	attributePath      = "path"     // of the manifest, in the bucket
	attributeSize      = "size"
	attributeCommitter = "committer"
)

// committer is who writes rows; the official writers' is "lancedb".
const committer = "lancekeeper"

// detached is the bit of versions that are no part of the history.
const detached = uint64(1) << 63

// Client is what is asked of DynamoDB; *dynamodb.Client has it.
type Client interface {
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, options ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
}

// Table is one dataset's part of a table. Make it with Open or New.
type Table struct {
	client Client
	caller dynamo.Caller
	base   string

	mu      sync.Mutex
	checked bool // the key schema is as it must be
}

var _ manifeststore.Table = (*Table)(nil)

// Open returns the part of a table for the dataset at a path in its bucket, with the SDK's standard configuration. Nothing is
// asked of the table yet. log takes what the SDK has to say.
func Open(ctx context.Context, table, path string, log *slog.Logger) (*Table, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(awslog.New(log)))
	if err != nil {
		return nil, fmt.Errorf("configure access to table %s: %w", table, err)
	}
	return New(dynamodb.NewFromConfig(cfg), table, path), nil
}

// New uses the given client.
func New(client Client, table, path string) *Table {
	return &Table{client: client, caller: dynamo.Caller{Table: table}, base: path}
}

// call makes one call, after a first look at whether the table is one.
func call[T any](ctx context.Context, t *Table, what string, do func(ctx context.Context) (T, error)) (T, error) {
	if err := t.check(ctx); err != nil {
		var none T
		return none, err
	}
	out, err := dynamo.Do(ctx, t.caller, what, do)
	return out, t.name(err)
}

// name tells a table that is not there by the parameter that named it.
func (t *Table) name(err error) error {
	var setting *config.Error
	if errors.As(err, &setting) {
		return &config.Error{Setting: "ddbTableName", Value: t.caller.Table, Detail: setting.Detail}
	}
	return err
}

// check refuses a table that has other keys: it is another's.
func (t *Table) check(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.checked {
		return nil
	}
	out, err := dynamo.Do(ctx, t.caller, "look at the manifest table", func(ctx context.Context) (*dynamodb.DescribeTableOutput, error) {
		return t.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.caller.Table})
	})
	if err != nil {
		return t.name(err)
	}
	keys := map[types.KeyType]string{}
	for _, k := range out.Table.KeySchema {
		keys[k.KeyType] = aws.ToString(k.AttributeName)
	}
	if keys[types.KeyTypeHash] != attributeBase || keys[types.KeyTypeRange] != attributeVersion {
		return &config.Error{Setting: "ddbTableName", Value: t.caller.Table, Detail: fmt.Sprintf("is no table of manifests: its keys are %q and %q, and must be %q and %q",
			keys[types.KeyTypeHash], keys[types.KeyTypeRange], attributeBase, attributeVersion)}
	}
	t.checked = true
	return nil
}

// Latest is the highest row.
func (t *Table) Latest(ctx context.Context) (manifeststore.Row, bool, error) {
	in := t.query("base_uri = :base", map[string]types.AttributeValue{})
	in.ScanIndexForward, in.Limit = aws.Bool(false), aws.Int32(1)
	out, err := call(ctx, t, "find the latest version", func(ctx context.Context) (*dynamodb.QueryOutput, error) { return t.client.Query(ctx, in) })
	if err != nil || len(out.Items) == 0 {
		return manifeststore.Row{}, false, err
	}
	row, err := t.row(out.Items[0])
	return row, err == nil, err
}

// Row is the row of one version.
func (t *Table) Row(ctx context.Context, version uint64) (manifeststore.Row, bool, error) {
	in := &dynamodb.GetItemInput{TableName: &t.caller.Table, ConsistentRead: aws.Bool(true), Key: t.key(version)}
	out, err := call(ctx, t, fmt.Sprintf("look up version %d", version), func(ctx context.Context) (*dynamodb.GetItemOutput, error) { return t.client.GetItem(ctx, in) })
	if err != nil || len(out.Item) == 0 {
		return manifeststore.Row{}, false, err
	}
	row, err := t.row(out.Item)
	return row, err == nil, err
}

// Rows are the rows of versions from first to last.
func (t *Table) Rows(ctx context.Context, first, last uint64) ([]manifeststore.Row, error) {
	if last < first {
		return nil, nil
	}
	in := t.query("base_uri = :base AND version BETWEEN :first AND :last", map[string]types.AttributeValue{
		":first": dynamo.Unsigned(first), ":last": dynamo.Unsigned(last),
	})
	var rows []manifeststore.Row
	for {
		out, err := call(ctx, t, "list the versions", func(ctx context.Context) (*dynamodb.QueryOutput, error) { return t.client.Query(ctx, in) })
		if err != nil {
			return nil, err
		}
		for _, item := range out.Items {
			row, err := t.row(item)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		if len(out.LastEvaluatedKey) == 0 {
			return rows, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// Claim writes the row of a version that has none.
func (t *Table) Claim(ctx context.Context, row manifeststore.Row) error {
	return t.put(ctx, row, "claim", "attribute_not_exists(base_uri) AND attribute_not_exists(version)", objstore.ErrExists)
}

// Repoint replaces the row of a version; ErrNotExist where there is none.
func (t *Table) Repoint(ctx context.Context, row manifeststore.Row) error {
	return t.put(ctx, row, "finish", "attribute_exists(base_uri) AND attribute_exists(version)", objstore.ErrNotExist)
}

func (t *Table) put(ctx context.Context, row manifeststore.Row, what, condition string, unmet error) error {
	item := t.key(row.Version)
	item[attributePath] = dynamo.Text(t.base + "/" + row.Path)
	item[attributeCommitter] = dynamo.Text(committer)
	if row.Size > 0 {
		item[attributeSize] = dynamo.Number(row.Size)
	}
	in := &dynamodb.PutItemInput{TableName: &t.caller.Table, Item: item, ConditionExpression: &condition}
	_, err := call(ctx, t, fmt.Sprintf("%s version %d", what, row.Version), func(ctx context.Context) (*dynamodb.PutItemOutput, error) { return t.client.PutItem(ctx, in) })
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return fmt.Errorf("%s version %d in table %s: %w", what, row.Version, t.caller.Table, unmet)
	}
	return err
}

// Forget removes a row, if it still names that path. One that is gone, or names another, is none of ours.
func (t *Table) Forget(ctx context.Context, row manifeststore.Row) error {
	in := &dynamodb.DeleteItemInput{
		TableName: &t.caller.Table, Key: t.key(row.Version), ConditionExpression: aws.String("attribute_not_exists(#path) OR #path = :path"),
		ExpressionAttributeNames:  map[string]string{"#path": attributePath}, // a reserved word
		ExpressionAttributeValues: map[string]types.AttributeValue{":path": dynamo.Text(t.base + "/" + row.Path)},
	}
	_, err := call(ctx, t, fmt.Sprintf("forget version %d", row.Version), func(ctx context.Context) (*dynamodb.DeleteItemOutput, error) { return t.client.DeleteItem(ctx, in) })
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return nil
	}
	return err
}

func (t *Table) query(condition string, values map[string]types.AttributeValue) *dynamodb.QueryInput {
	values[":base"] = dynamo.Text(t.base)
	return &dynamodb.QueryInput{TableName: &t.caller.Table, ConsistentRead: aws.Bool(true), KeyConditionExpression: &condition, ExpressionAttributeValues: values}
}

func (t *Table) key(version uint64) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attributeBase: dynamo.Text(t.base), attributeVersion: dynamo.Unsigned(version)}
}

// row reads an item. A size that is missing is not known, as in old rows.
func (t *Table) row(item map[string]types.AttributeValue) (manifeststore.Row, error) {
	r := manifeststore.Row{Version: dynamo.ReadNumber(item, attributeVersion)}
	where := fmt.Sprintf("row %s, version %d of table %s", t.base, r.Version, t.caller.Table)
	if r.Version == 0 {
		return r, lance.Corrupt(where, "its version is no whole number above 0")
	}
	if r.Version&detached != 0 {
		return r, lance.Unsupported("external manifest store", "with a detached version", where)
	}
	path, ok := strings.CutPrefix(dynamo.ReadText(item, attributePath), t.base+"/")
	if !ok {
		return r, lance.Corrupt(where, "its path %q is not below the dataset", dynamo.ReadText(item, attributePath))
	}
	r.Path = path
	if _, given := item[attributeSize]; given {
		size := dynamo.ReadNumber(item, attributeSize)
		if size == 0 || size > 1<<62 {
			return r, lance.Corrupt(where, "its size is no number of bytes")
		}
		r.Size = int64(size)
	}
	return r, nil
}
