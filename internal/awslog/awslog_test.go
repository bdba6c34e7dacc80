package awslog_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/aws/smithy-go/logging"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/awslog"
)

func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := awslog.New(slog.New(slog.NewJSONHandler(&out, nil)))
	logging.WithContext(t.Context(), log).Logf(logging.Debug, "not seen at level info")
	logging.WithContext(t.Context(), log).Logf(logging.Warn, "%d of\n%s", 1, `"two"`)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), out.String())
	require.Equal(t, "WARN", line["level"])
	require.Equal(t, "1 of\n\"two\"", line["detail"])
	require.Equal(t, "aws sdk", line["msg"])
	awslog.New(nil).Logf(logging.Warn, "nowhere")
}
