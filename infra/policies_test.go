//go:build template

package infra

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// transformed is the template after the SAM transform: with the roles, schedules and retries that it makes.
func transformed(t *testing.T) template {
	t.Helper()
	python := os.Getenv("LANCEKEEPER_TEST_PYTHON_AWS")
	if python == "" {
		t.Skip("LANCEKEEPER_TEST_PYTHON_AWS names no interpreter with aws-sam-cli: run `make template`")
	}
	out, err := exec.CommandContext(t.Context(), python, "testdata/transform.py", "../template.yaml").Output()
	require.NoError(t, err)
	var tmpl template
	require.NoError(t, json.Unmarshal(out, &tmpl))
	return tmpl
}

type statement struct {
	Sid       string
	Effect    string
	Action    any // one, or several
	Resource  any
	Condition any
}

func (s statement) actions(t *testing.T) []string {
	t.Helper()
	if one, ok := s.Action.(string); ok {
		return []string{one}
	}
	many, ok := s.Action.([]any)
	require.True(t, ok, s.Sid)
	var actions []string
	for _, a := range many {
		actions = append(actions, a.(string))
	}
	return actions
}

// statements of a function's role, those under a condition of the template included.
func statements(t *testing.T, role resource) []statement {
	t.Helper()
	p := properties[struct {
		ManagedPolicyArns []any
		Policies          []struct {
			PolicyDocument struct{ Statement []json.RawMessage }
		}
	}](t, role)
	for _, arn := range p.ManagedPolicyArns {
		text, err := json.Marshal(arn)
		require.NoError(t, err)
		require.Contains(t, string(text), "service-role/AWSLambdaBasicExecutionRole", "only the right to write logs is ready-made")
	}
	var all []statement
	for _, policy := range p.Policies {
		for _, raw := range policy.PolicyDocument.Statement {
			var conditional struct {
				If []json.RawMessage `json:"Fn::If"`
			}
			require.NoError(t, json.Unmarshal(raw, &conditional))
			if conditional.If != nil {
				raw = conditional.If[1]
			}
			var s statement
			require.NoError(t, json.Unmarshal(raw, &s))
			all = append(all, s)
		}
	}
	require.NotEmpty(t, all)
	return all
}

func TestRolesMayDoOnlyWhatIsNeeded(t *testing.T) {
	t.Parallel()
	tmpl := transformed(t)
	want := map[string][]string{
		"MaintainFunctionRole": {
			"s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload",
			"dynamodb:GetItem", "dynamodb:UpdateItem", "kms:Decrypt", "kms:GenerateDataKey",
			"dynamodb:DescribeTable", "dynamodb:Query", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem", // of the manifest table
		},
		"ReportFunctionRole":           {"s3:ListBucket", "s3:GetObject", "dynamodb:GetItem", "kms:Decrypt", "dynamodb:DescribeTable", "dynamodb:Query", "dynamodb:GetItem"}, // nothing that writes
		"MaintainFunctionScheduleRole": {"lambda:InvokeFunction"},
		"ReportFunctionScheduleRole":   {"lambda:InvokeFunction"},
	}
	for name, r := range tmpl.Resources {
		if r.Type != "AWS::IAM::Role" {
			require.NotContains(t, r.Type, "AWS::IAM::", name)
			continue
		}
		require.Contains(t, want, name)
		var got []string
		for _, s := range statements(t, r) {
			require.Equal(t, "Allow", s.Effect)
			require.NotEqual(t, "*", s.Resource, "%s %s", name, s.Sid)
			got = append(got, s.actions(t)...)
			if strings.HasPrefix(s.actions(t)[0], "s3:ListBucket") {
				require.NotNil(t, s.Condition, "%s lists only below its prefix", name)
			}
		}
		for _, action := range got {
			require.NotContains(t, action, "*", name)
		}
		require.ElementsMatch(t, want[name], got, name)
		delete(want, name)
	}
	require.Empty(t, want)
}

// Who has no external manifest store gives no right to any other table.
func TestManifestTableOnlyIfConfigured(t *testing.T) {
	t.Parallel()
	conditional := 0
	for _, r := range transformed(t).Resources {
		if r.Type != "AWS::IAM::Role" {
			continue
		}
		p := properties[struct {
			Policies []struct {
				PolicyDocument struct{ Statement []json.RawMessage }
			}
		}](t, r)
		for _, policy := range p.Policies {
			for _, raw := range policy.PolicyDocument.Statement {
				if !strings.Contains(string(raw), "ManifestTable") {
					continue
				}
				var c struct {
					If []json.RawMessage `json:"Fn::If"`
				}
				require.NoError(t, json.Unmarshal(raw, &c))
				require.Len(t, c.If, 3)
				require.JSONEq(t, `"HasManifestTable"`, string(c.If[0]))
				require.JSONEq(t, `{"Ref":"AWS::NoValue"}`, string(c.If[2]))
				conditional++
			}
		}
	}
	require.Equal(t, 2, conditional)
}

func TestNoInvocationIsRepeated(t *testing.T) {
	t.Parallel()
	configs, schedules := 0, 0
	for name, r := range transformed(t).Resources {
		switch r.Type {
		case "AWS::Lambda::EventInvokeConfig":
			configs++
			p := properties[struct{ MaximumRetryAttempts, MaximumEventAgeInSeconds *int }](t, r)
			require.NotNil(t, p.MaximumRetryAttempts, name)
			require.Zero(t, *p.MaximumRetryAttempts, name)
			require.NotNil(t, p.MaximumEventAgeInSeconds, name)
			require.LessOrEqual(t, *p.MaximumEventAgeInSeconds, 3600, "%s: no event is older than the schedule's interval", name)
		case "AWS::Scheduler::Schedule":
			schedules++
			p := properties[struct {
				State  any
				Target struct{ Input any }
			}](t, r)
			require.Equal(t, "{}", p.Target.Input, "%s: without an input Scheduler sends an envelope", name)
			if strings.HasPrefix(name, "Maintain") {
				require.NotNil(t, p.State, "%s can be disabled", name)
			}
		case "AWS::Lambda::Function":
			p := properties[struct {
				Runtime, Handler string
				Architectures    []any
				LoggingConfig    map[string]any
			}](t, r)
			require.Equal(t, "provided.al2023", p.Runtime, name)
			require.Equal(t, "bootstrap", p.Handler, name)
			require.Len(t, p.Architectures, 1, name)
			require.Equal(t, "Architecture", ref(p.Architectures[0]), name)
			require.Equal(t, "JSON", p.LoggingConfig["LogFormat"], name)
			require.Contains(t, p.LoggingConfig, "LogGroup", name)
		}
	}
	require.Equal(t, 2, configs)
	require.Equal(t, 2, schedules)
}

// A binary for another processor, or one that needs a library, is seen only after the deployment.
func TestBuiltBinaries(t *testing.T) {
	t.Parallel()
	build := os.Getenv("LANCEKEEPER_TEST_BUILD")
	if build == "" {
		t.Skip("LANCEKEEPER_TEST_BUILD names no folder with built functions: run `make template`")
	}
	for arch, machine := range map[string]elf.Machine{"arm64": elf.EM_AARCH64, "amd64": elf.EM_X86_64} {
		for _, function := range []string{"maintain", "report"} {
			path := filepath.Join(build, arch, function, "bootstrap")
			binary, err := elf.Open(path)
			require.NoError(t, err)
			require.Equal(t, machine, binary.Machine, path)
			for _, program := range binary.Progs {
				require.NotEqual(t, elf.PT_INTERP, program.Type, "%s must not be linked dynamically", path)
			}
			require.NoError(t, binary.Close())
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.NotZero(t, info.Mode()&0o100, "%s must be executable", path)
			require.Less(t, info.Size(), int64(50<<20), "%s must stay small", path)
		}
	}
}
