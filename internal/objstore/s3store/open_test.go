package s3store

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

func TestPathStyle(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]bool{
		"":                                   false,
		"https://s3.us-east-1.amazonaws.com": false,
		"https://minio.example.com:9000":     false,
		"http://127.0.0.1:9000":              true,
		"http://[::1]:9000":                  true,
		"http://localhost:9000":              true,
		"http://minio:9000":                  true,
		"not a url":                          false,
	} {
		require.Equal(t, want, pathStyle(endpoint), endpoint)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for path, uri := range map[string]string{"": "s3://bucket", "a": "s3://bucket/a", "a/b.lance": "s3://bucket/a/b.lance"} {
		s, err := New(s3.New(s3.Options{}), "bucket", path, Options{})
		require.NoError(t, err)
		require.Equal(t, uri, s.URI())
		require.True(t, s.Ordered())
	}
	for _, path := range []string{"/", "/a", "a/", "a//b", "..", "a/../b"} {
		_, err := New(s3.New(s3.Options{}), "bucket", path, Options{})
		require.Error(t, err, path)
	}
	s, err := New(s3.New(s3.Options{}), "fast--use1-az4--x-s3", "", Options{})
	require.NoError(t, err)
	require.False(t, s.Ordered(), "directory buckets list in any order")
}

// TestOpen: the region comes from the environment, and its absence is said at once.
func TestOpen(t *testing.T) {
	none := t.TempDir() + "/none"
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	_, err := Open(t.Context(), "bucket", "", Options{})
	require.ErrorContains(t, err, "AWS_REGION")
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://localhost:9")
	s, err := Open(t.Context(), "bucket", "a", Options{})
	require.NoError(t, err)
	require.True(t, s.client.Options().UsePathStyle)
	require.Equal(t, maxAttempts, s.client.Options().Retryer.MaxAttempts())
}
