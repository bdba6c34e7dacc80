package state_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/state"
)

// What the SDK has to say goes where the program's own lines go, as JSON.
func TestLog(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", "soon")
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
	} {
		t.Setenv(name, value)
	}
	var out bytes.Buffer
	st, err := state.Open(t.Context(), "table", "", "test", slog.New(slog.NewJSONHandler(&out, nil)))
	require.NoError(t, err)
	_, found, err := st.Ledger.Load(t.Context(), "s3://b/t.lance")
	require.NoError(t, err)
	require.False(t, found)
	var line map[string]any
	require.NoError(t, json.NewDecoder(&out).Decode(&line))
	require.Contains(t, line["detail"], "Date header")
}
