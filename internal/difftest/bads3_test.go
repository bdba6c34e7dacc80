//go:build oracle

package difftest

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBadPlacesOnS3: a missing bucket and a lack of permission fail by name, and the dataset stays as it is.
func TestBadPlacesOnS3(t *testing.T) {
	t.Parallel()
	made := MakeAt(t, place(t), "upserts", "--count", "4")
	before := tree(t, Folder(t, made.URI))
	for name, c := range map[string]struct {
		uri, class, named string
		environment       []string
	}{
		"missing bucket": {uri: "s3://no-such-bucket-here/db/t.lance", class: "other", named: "no-such-bucket-here"},
		"missing prefix": {uri: place(t) + "/nothing/t.lance", class: "other", named: "nothing/t.lance"},
		"no permission":  {uri: made.URI, class: "denied", named: made.URI, environment: []string{"AWS_SECRET_ACCESS_KEY=" + strings.Repeat("x", 20)}},
		"missing table":  {uri: strings.Replace(made.URI, "s3://", "s3+ddb://", 1) + "?ddbTableName=no-such-table", class: "config", named: "no-such-table"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := newKeeper(t).command(t, "--grace", "0s", "--allow-short-grace", c.uri)
			command.Env = append(os.Environ(), c.environment...)
			var stdout bytes.Buffer
			command.Stdout = &stdout
			require.Error(t, command.Run())
			require.Equal(t, 1, command.ProcessState.ExitCode())
			var doc struct{ Results []result }
			require.NoError(t, json.Unmarshal(stdout.Bytes(), &doc), stdout.String())
			require.Len(t, doc.Results, 1)
			require.Equal(t, c.class, doc.Results[0].Error.Class, doc.Results[0].Error.Message)
			require.Contains(t, doc.Results[0].Error.Message, c.named)
			require.Equal(t, before, tree(t, Folder(t, made.URI)))
		})
	}
}
