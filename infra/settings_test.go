//go:build template

package infra

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/config"
	"lancekeeper/internal/dynamo"
)

// Every variable of the functions is a setting, and the defaults of the parameters are those of the settings.
func TestEnvironmentIsThatOfTheSettings(t *testing.T) {
	t.Parallel()
	tmpl := read(t)
	var environ []string
	for name, v := range tmpl.Globals.Function.Environment.Variables {
		text := "s3://bucket/db"
		switch parameter := ref(v); parameter {
		case "Datasets":
		case "StateTable":
			text = "lancekeeper-StateTable-1"
		default:
			require.Contains(t, tmpl.Parameters, parameter, name)
			text = fmt.Sprint(tmpl.Parameters[parameter].Default)
			if n, number := tmpl.Parameters[parameter].Default.(float64); number {
				text = strconv.FormatFloat(n, 'f', -1, 64)
			}
		}
		environ = append(environ, name+"="+text)
	}
	got, err := config.Resolve(config.Input{Environ: environ, Function: true})
	require.NoError(t, err)
	bare, err := config.Resolve(config.Input{Environ: []string{"LANCEKEEPER_DATASETS=s3://bucket/db", "LANCEKEEPER_TABLE=" + got.Table}, Function: true})
	require.NoError(t, err)
	for key, want := range bare.Effective() {
		require.Equal(t, want.Value, got.Effective()[key].Value, key)
	}
}

func TestIndexPoliciesAndLogLevelsAreThoseOfTheSettings(t *testing.T) {
	t.Parallel()
	for name, variable := range map[string]string{"IndexPolicy": "LANCEKEEPER_INDEX_POLICY", "LogLevel": "LANCEKEEPER_LOG_LEVEL"} {
		allowed := read(t).Parameters[name].AllowedValues
		require.NotEmpty(t, allowed)
		for _, v := range allowed {
			_, err := config.Resolve(config.Input{Environ: []string{"LANCEKEEPER_DATASETS=s3://b/t.lance", fmt.Sprintf("%s=%v", variable, v)}})
			require.NoError(t, err)
		}
	}
}

func TestEventsAreUnderstood(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("events/*.json")
	require.NoError(t, err)
	require.Len(t, files, 5)
	resolve := func(t *testing.T, event []byte) config.Config {
		t.Helper()
		c, err := config.Resolve(config.Input{
			Environ: []string{"LANCEKEEPER_DATASETS=s3://bucket/db", "LANCEKEEPER_TABLE=lancekeeper"}, Event: event, Function: true, FunctionTimeout: 15 * time.Minute,
		})
		require.NoError(t, err)
		return c
	}
	nothing := resolve(t, nil)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			event, err := os.ReadFile(file)
			require.NoError(t, err)
			c := resolve(t, event)
			switch filepath.Base(file) {
			case "scheduled.json", "scheduler.json":
				require.Equal(t, nothing, c, "a schedule changes no setting")
			case "backlog.json":
				require.True(t, c.UntilDrained)
			case "dry-run.json":
				require.True(t, c.DryRun)
			case "manual.json":
				require.Len(t, c.Datasets, 1)
			default:
				require.Fail(t, "say here what this event is for")
			}
		})
	}
}

func TestTableIsThatOfLockAndLedger(t *testing.T) {
	t.Parallel()
	table := read(t).Resources["StateTable"]
	require.Equal(t, "AWS::DynamoDB::Table", table.Type)
	require.Equal(t, "Retain", table.DeletionPolicy)
	require.Equal(t, "Retain", table.UpdateReplacePolicy)
	p := properties[struct {
		BillingMode               string
		DeletionProtectionEnabled bool
		KeySchema                 []struct{ AttributeName, KeyType string }
		AttributeDefinitions      []struct{ AttributeName, AttributeType string }
		TimeToLiveSpecification   struct {
			AttributeName string
			Enabled       bool
		}
		PointInTimeRecoverySpecification struct{ PointInTimeRecoveryEnabled bool }
	}](t, table)
	require.Equal(t, "PAY_PER_REQUEST", p.BillingMode)
	require.True(t, p.DeletionProtectionEnabled)
	require.True(t, p.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled)
	require.True(t, p.TimeToLiveSpecification.Enabled)
	require.Equal(t, dynamo.ExpiryAttribute, p.TimeToLiveSpecification.AttributeName)
	require.Len(t, p.KeySchema, 2)
	require.Equal(t, dynamo.PartitionKey, p.KeySchema[0].AttributeName)
	require.Equal(t, "HASH", p.KeySchema[0].KeyType)
	require.Equal(t, dynamo.SortKey, p.KeySchema[1].AttributeName)
	require.Equal(t, "RANGE", p.KeySchema[1].KeyType)
	for _, a := range p.AttributeDefinitions {
		require.Equal(t, "S", a.AttributeType)
	}
}
