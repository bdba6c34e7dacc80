//go:build template

package infra

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// template is template.yaml, or what the SAM transform makes of it, as far as tests look.
type template struct {
	Parameters map[string]parameter
	Globals    struct {
		Function struct {
			Environment struct{ Variables map[string]any }
		}
	}
	Resources map[string]resource
	Outputs   map[string]struct{ Value any }
}

type parameter struct {
	Default        any
	AllowedPattern string
	AllowedValues  []any
}

type resource struct {
	Type                string
	DeletionPolicy      string
	UpdateReplacePolicy string
	Metadata            struct{ BuildMethod string }
	Properties          json.RawMessage
}

// properties decodes the properties of a resource.
func properties[T any](t *testing.T, r resource) T {
	t.Helper()
	var into T
	require.NoError(t, json.Unmarshal(r.Properties, &into))
	return into
}

// read reads the template as it is written. Short forms of functions become long ones.
func read(t *testing.T) template {
	t.Helper()
	data, err := os.ReadFile("../template.yaml")
	require.NoError(t, err)
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal(data, &document))
	written, err := json.Marshal(plain(t, document.Content[0]))
	require.NoError(t, err)
	var out template
	require.NoError(t, json.Unmarshal(written, &out))
	require.NotEmpty(t, out.Resources)
	return out
}

func plain(t *testing.T, n *yaml.Node) any {
	t.Helper()
	require.NotEqual(t, yaml.AliasNode, n.Kind, "line %d: CloudFormation takes no aliases", n.Line)
	require.Empty(t, n.Anchor, "line %d: CloudFormation takes no anchors", n.Line)
	name, isFunction := strings.CutPrefix(n.Tag, "!")
	if !isFunction || strings.HasPrefix(name, "!") {
		return value(t, n)
	}
	untagged := *n
	untagged.Tag = ""
	if name != "Ref" {
		name = "Fn::" + name
	}
	return map[string]any{name: value(t, &untagged)}
}

func value(t *testing.T, n *yaml.Node) any {
	t.Helper()
	switch n.Kind {
	case yaml.MappingNode:
		members := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			members[n.Content[i].Value] = plain(t, n.Content[i+1])
		}
		return members
	case yaml.SequenceNode:
		items := []any{}
		for _, item := range n.Content {
			items = append(items, plain(t, item))
		}
		return items
	default:
		var scalar any
		require.NoError(t, n.Decode(&scalar))
		return scalar
	}
}

// ref is the name in {"Ref": name}, or empty.
func ref(v any) string {
	members, _ := v.(map[string]any)
	name, _ := members["Ref"].(string)
	return name
}

func TestFunctionsAreBuiltByTheMakefile(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	found := 0
	for name, r := range read(t).Resources {
		if r.Type != "AWS::Serverless::Function" {
			continue
		}
		found++
		require.Equal(t, "makefile", r.Metadata.BuildMethod, name)
		require.Regexp(t, `(?m)^build-`+name+`:`, string(makefile))
	}
	require.Equal(t, 2, found)
}

// No linter sees a malformed schedule: it would be refused only while the stack is made.
func TestScheduleExpressions(t *testing.T) {
	t.Parallel()
	p := read(t).Parameters["ScheduleExpression"]
	pattern := regexp.MustCompile(p.AllowedPattern)
	for _, good := range []string{p.Default.(string), "rate(30 minutes)", "cron(0 3 * * ? *)"} {
		require.Regexp(t, pattern, good)
	}
	for _, bad := range []string{"rote(1 hour)", "rate(0 hours)", "rate(1 fortnight)", "1h", "cron()", ""} {
		require.NotRegexp(t, pattern, bad)
	}
}

func TestConfinement(t *testing.T) {
	t.Parallel()
	parameters := read(t).Parameters
	prefix := regexp.MustCompile(parameters["Prefix"].AllowedPattern)
	for _, good := range []string{"", "db", "a/b c/t.lance"} {
		require.Regexp(t, prefix, good)
	}
	for _, bad := range []string{"/", "/db", "db/", "*", "db*", "a/?", "${aws:username}"} {
		require.NotRegexp(t, prefix, bad)
	}
	datasets := regexp.MustCompile(parameters["Datasets"].AllowedPattern)
	for _, good := range []string{"s3://b/t.lance", "s3://b/t.lance, s3://b/u.lance"} {
		require.Regexp(t, datasets, good)
	}
	for _, bad := range []string{"", "t.lance", "s3://", "s3://b/t.lance,"} {
		require.NotRegexp(t, datasets, bad)
	}
}
