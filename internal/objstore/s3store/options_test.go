package s3store_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/s3store"
)

// headers are those of one put and one get, as a server sees them.
func headers(t *testing.T, o s3store.Options) map[string]http.Header {
	t.Helper()
	var mu sync.Mutex
	seen := map[string]http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.Method] = r.Header.Clone()
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
	} {
		t.Setenv(name, value)
	}
	s, err := s3store.Open(t.Context(), "bucket", "db", o)
	require.NoError(t, err)
	require.NoError(t, s.PutIfAbsent(t.Context(), "x", []byte("1")))
	_, _, err = s.Get(t.Context(), "x")
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	return seen
}

// K3: a bucket's policy may demand an encryption header, a key, a payer, and its owner's name, on every request.
func TestWhatABucketAsksFor(t *testing.T) {
	seen := headers(t, s3store.Options{Encryption: "aws:kms", KMSKeyID: "alias/mine", RequesterPays: true, BucketOwner: "123456789012"})
	put, get := seen[http.MethodPut], seen[http.MethodGet]
	require.Equal(t, "aws:kms", put.Get("X-Amz-Server-Side-Encryption"))
	require.Equal(t, "alias/mine", put.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"))
	for _, h := range []http.Header{put, get} {
		require.Equal(t, "requester", h.Get("X-Amz-Request-Payer"))
		require.Equal(t, "123456789012", h.Get("X-Amz-Expected-Bucket-Owner"))
	}
	require.Empty(t, headers(t, s3store.Options{})[http.MethodPut].Get("X-Amz-Server-Side-Encryption"))
}

// K2: stores of other makers may refuse checksums; whoever runs one that takes them can ask for them.
func TestChecksums(t *testing.T) {
	for choice, want := range map[s3store.Checksums]bool{s3store.ChecksumsSupported: true, s3store.ChecksumsRequired: false, s3store.ChecksumsDefault: false} {
		put := headers(t, s3store.Options{Checksums: choice})[http.MethodPut]
		got := put.Get("X-Amz-Checksum-Crc32") != "" || put.Get("X-Amz-Trailer") != ""
		require.Equal(t, want, got, "%d: %v", choice, put)
	}
}

// B7: a bucket with versioning answers deletes with markers, whether in batches or one by one. Nobody needs to ask it.
func TestDeletesThatOnlyHide(t *testing.T) {
	for name, c := range map[string]struct {
		key, answer, marker string
		hides               bool
	}{
		"batch":                    {"x", `<DeleteResult><Deleted><Key>db/x</Key><DeleteMarker>true</DeleteMarker><DeleteMarkerVersionId>v</DeleteMarkerVersionId></Deleted></DeleteResult>`, "", true},
		"batch, without versions":  {"x", `<DeleteResult><Deleted><Key>db/x</Key></Deleted></DeleteResult>`, "", false},
		"single":                   {"x\x01", "", "true", true},
		"single, without versions": {"x\x01", "", "", false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.marker != "" {
				w.Header().Set("X-Amz-Delete-Marker", c.marker)
			}
			_, _ = w.Write([]byte(c.answer))
		}))
		for name, value := range map[string]string{
			"AWS_ENDPOINT_URL_S3": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
		} {
			t.Setenv(name, value)
		}
		s, err := s3store.Open(t.Context(), "bucket", "db", s3store.Options{})
		require.NoError(t, err)
		require.False(t, s.Hides())
		failed, err := s.Delete(t.Context(), []string{c.key})
		require.NoError(t, err, name)
		require.Empty(t, failed)
		below, err := objstore.Sub(s, "t.lance")
		require.NoError(t, err)
		hider, found := objstore.As[objstore.Hider](below)
		require.True(t, found)
		require.Equal(t, c.hides, hider.Hides(), name)
		server.Close()
	}
}

// K3: who meets a policy that demands encryption is told how to satisfy it.
func TestDeniedWritesHintAtEncryption(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<Error><Code>AccessDenied</Code><Message>no</Message></Error>"))
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
	} {
		t.Setenv(name, value)
	}
	for encryption, hinted := range map[s3store.Encryption]bool{"": true, "aws:kms": false} {
		s, err := s3store.Open(t.Context(), "bucket", "db", s3store.Options{Encryption: encryption})
		require.NoError(t, err)
		_, uploaded := s.Upload(t.Context(), "x", strings.NewReader("1"))
		for _, err := range []error{s.Put(t.Context(), "x", nil), s.PutIfAbsent(t.Context(), "x", nil), uploaded} {
			require.ErrorIs(t, err, objstore.ErrDenied)
			require.Equal(t, hinted, strings.Contains(err.Error(), "--encryption"), err.Error())
		}
		_, _, err = s.Get(t.Context(), "x")
		require.NotContains(t, err.Error(), "--encryption")
	}
}

// What the SDK has to say goes where the program's own lines go, as JSON.
func TestLog(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "soon") }))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
	} {
		t.Setenv(name, value)
	}
	var out bytes.Buffer
	s, err := s3store.Open(t.Context(), "bucket", "db", s3store.Options{Log: slog.New(slog.NewJSONHandler(&out, nil))})
	require.NoError(t, err)
	_, _, err = s.Get(t.Context(), "x")
	require.NoError(t, err)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), out.String())
	require.Contains(t, line["detail"], "Date header")
}
