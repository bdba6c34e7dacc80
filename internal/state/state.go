// Package state opens what passes remember: locks and ledger, in one DynamoDB table or one folder.
package state

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"lancekeeper/internal/awslog"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/lock"
)

// Locker gives the lease on a dataset.
type Locker interface {
	Acquire(ctx context.Context, dataset string, until time.Time) (*lock.Lease, error)
}

// Ledger keeps what passes did.
type Ledger interface {
	Begin(ctx context.Context, dataset string, generation uint64, now time.Time, owner string) (ledger.Entry, error)
	Save(ctx context.Context, entry ledger.Entry) error
	Load(ctx context.Context, dataset string) (ledger.Entry, bool, error)
	Skip(ctx context.Context, dataset string, now time.Time, holder string) error
}

// State is locks and ledger of one deployment.
type State struct {
	Locker Locker
	Ledger Ledger
}

// Open uses the table, if one is named, else the folder. owner says to people who holds a lock; log takes what the AWS SDK has to say.
func Open(ctx context.Context, table, folder, owner string, log *slog.Logger) (State, error) {
	if table == "" {
		return State{
			Locker: lock.NewFile(lock.FileOptions{Dir: filepath.Join(folder, "locks"), Owner: owner, Now: time.Now}),
			Ledger: ledger.NewFile(filepath.Join(folder, "ledger")),
		}, nil
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(awslog.New(log)))
	if err != nil {
		return State{}, fmt.Errorf("configure access to table %s: %w", table, err)
	}
	client := dynamodb.NewFromConfig(cfg)
	return State{
		Locker: lock.NewDynamo(client, lock.DynamoOptions{Table: table, Owner: owner, Now: time.Now}),
		Ledger: ledger.NewDynamo(client, table),
	}, nil
}

// Owner names this process: the function's log stream in Lambda, else host and process.
func Owner() string {
	if name, stream := os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), os.Getenv("AWS_LAMBDA_LOG_STREAM_NAME"); name != "" {
		return name + " " + stream
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}
