package s3store

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

// server is an S3 that does what no real one does on demand. Its objects are real enough for conditional puts.
type server struct {
	mu       sync.Mutex
	objects  map[string]string
	requests []string       // method, path and query of each
	headers  []http.Header  // of each
	script   []func(*reply) // what happens to each request in turn; when it is used up, all goes well
	always   func(*reply)   // what happens to those after the script
}

// reply is one request and its answer.
type reply struct {
	http.ResponseWriter

	request *http.Request
	body    string
	server  *server
}

// serve starts the server and a store on it whose pauses are short. The store is below s3://bucket/root.
func serve(t *testing.T, s *server, o Options) *Store {
	t.Helper()
	s.objects = map[string]string{}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	client := s3.New(s3.Options{
		BaseEndpoint: &web.URL, UsePathStyle: true, Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		Retryer: retry.NewStandard(func(so *retry.StandardOptions) {
			so.MaxAttempts, so.Backoff = 3, retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		}),
	})
	store, err := New(client, "bucket", "root", o)
	require.NoError(t, err)
	store.firstPause = time.Microsecond
	return store
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // given up by the client before all of it was sent: nothing is done, as with S3
	}
	s.mu.Lock()
	query := r.URL.Query()
	query.Del("x-id")
	s.requests = append(s.requests, strings.TrimSuffix(r.Method+" "+r.URL.Path+"?"+query.Encode(), "?"))
	s.headers = append(s.headers, r.Header.Clone())
	step := s.always
	if len(s.script) > 0 {
		step, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	answer := &reply{ResponseWriter: w, request: r, body: string(body), server: s}
	if step == nil {
		step = well
	}
	step(answer)
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// well: the request does what it should.
func well(r *reply) {
	if status := r.do(); status != http.StatusOK {
		refuse(status, "PreconditionFailed")(r)
	}
}

// do does it, and says what the answer would be.
func (r *reply) do() int {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if r.request.Method != http.MethodPut {
		return http.StatusOK
	}
	if _, there := r.server.objects[r.request.URL.Path]; there && r.request.Header.Get("If-None-Match") == "*" {
		return http.StatusPreconditionFailed
	}
	r.server.objects[r.request.URL.Path] = r.body
	return http.StatusOK
}

// refuse: nothing is done, and that is said.
func refuse(status int, code string) func(*reply) {
	return func(r *reply) {
		r.Header().Set("Content-Type", "application/xml")
		r.WriteHeader(status)
		if r.request.Method != http.MethodHead {
			_, _ = fmt.Fprintf(r, "<Error><Code>%s</Code><Message>for a test</Message></Error>", code)
		}
	}
}

// but: it is done, and the answer is another's.
func but(answer func(*reply)) func(*reply) {
	return func(r *reply) {
		r.do()
		answer(r)
	}
}

// lost: the connection ends without an answer.
func lost(r *reply) {
	taken, _, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		_ = taken.Close()
	}
}

// say answers with this body and these headers.
func say(status int, body string, headers ...string) func(*reply) {
	return func(r *reply) {
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header().Set(headers[i], headers[i+1])
		}
		r.WriteHeader(status)
		_, _ = io.WriteString(r, body)
	}
}

// batch is the request of a DeleteObjects.
type batch struct {
	Quiet  bool
	Object []struct{ Key string }
}

// failKeys answers a DeleteObjects with an error for each of these keys.
func failKeys(codes map[string]string) func(*reply) {
	return func(r *reply) {
		var answer strings.Builder
		answer.WriteString("<DeleteResult>")
		for key, code := range codes {
			answer.WriteString("<Error><Key>")
			_ = xml.EscapeText(&answer, []byte(key))
			fmt.Fprintf(&answer, "</Key><Code>%s</Code><Message>for a test</Message></Error>", code)
		}
		answer.WriteString("</DeleteResult>")
		say(http.StatusOK, answer.String())(r)
	}
}
