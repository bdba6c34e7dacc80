package s3store

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
)

// TestPutIfAbsent: what each way to answer leads to, and how many requests it takes.
func TestPutIfAbsent(t *testing.T) {
	t.Parallel()
	type steps = []func(*reply)
	slow, broken := refuse(503, "SlowDown"), refuse(500, "InternalError")
	taken, denied := refuse(412, "PreconditionFailed"), refuse(403, "AccessDenied")
	for name, c := range map[string]struct {
		script   steps
		want     error // nil: written
		requests int
	}{
		"written":                                  {nil, nil, 1},
		"taken":                                    {steps{taken}, objstore.ErrExists, 1},
		"throttled, then written":                  {steps{slow, refuse(429, "TooManyRequests"), slow}, nil, 4},
		"throttled, then taken":                    {steps{slow, taken}, objstore.ErrExists, 2},
		"conflict, then written":                   {steps{refuse(409, "ConditionalRequestConflict")}, nil, 2},
		"conflict, then taken":                     {steps{refuse(409, "OperationAborted"), taken}, objstore.ErrExists, 2},
		"body late, then written":                  {steps{refuse(400, "RequestTimeout")}, nil, 2},
		"500, not written, then written":           {steps{broken}, nil, 2},
		"500, but written":                         {steps{but(broken)}, objstore.ErrAmbiguous, 2},
		"500, then taken by another":               {steps{broken, taken}, objstore.ErrAmbiguous, 2},
		"503 of another kind, then taken":          {steps{refuse(503, "ServiceUnavailable"), taken}, objstore.ErrAmbiguous, 2},
		"gateway time-out, but written":            {steps{but(say(504, "<html>"))}, objstore.ErrAmbiguous, 2},
		"answer lost, but written":                 {steps{but(lost)}, objstore.ErrAmbiguous, 2},
		"connection lost, not written":             {steps{lost}, nil, 2},
		"lost, throttled, taken":                   {steps{lost, slow, taken}, objstore.ErrAmbiguous, 3},
		"lost, then denied":                        {steps{but(lost), denied}, objstore.ErrAmbiguous, 2},
		"denied":                                   {steps{denied}, objstore.ErrDenied, 1},
		"throttled, then denied":                   {steps{slow, denied}, objstore.ErrDenied, 2},
		"no bucket":                                {steps{refuse(404, "NoSuchBucket")}, &NoBucketError{}, 1},
		"throttled again and again":                {steps{slow, slow, slow, slow, slow, slow, slow, slow}, objstore.ErrThrottled, 8},
		"broken again and again":                   {steps{broken, broken, broken, broken, broken, broken, broken, broken}, objstore.ErrAmbiguous, 8},
		"lost once, then throttled again and ...":  {steps{lost, slow, slow, slow, slow, slow, slow, slow}, objstore.ErrAmbiguous, 8},
		"bad request":                              {steps{refuse(400, "InvalidRequest")}, errUnclassed, 1},
		"lost again and again, though written":     {steps{but(lost), lost, lost, lost, lost, lost, lost, lost}, objstore.ErrAmbiguous, 8},
		"conflict after a lost answer, then taken": {steps{but(lost), refuse(409, "ConditionalRequestConflict")}, objstore.ErrAmbiguous, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := &server{script: c.script}
			store := serve(t, web, Options{})
			err := store.PutIfAbsent(t.Context(), "_versions/1.manifest", []byte("ours"))
			requireClass(t, c.want, err)
			require.Equal(t, c.requests, web.count(), "%v", web.seen())
			for i, header := range web.headers {
				require.Equal(t, "*", header.Get("If-None-Match"), "request %d", i)
			}
			if c.want == nil {
				require.Equal(t, "ours", web.objects["/bucket/root/_versions/1.manifest"])
			} else {
				require.ErrorContains(t, err, "s3://bucket/root")
			}
		})
	}
}

var errUnclassed = errors.New("no class")

// requireClass: the error is of this class and of no other, since callers act on the first that fits.
func requireClass(t *testing.T, want, err error) {
	t.Helper()
	if want == nil {
		require.NoError(t, err)
		return
	}
	require.Error(t, err)
	var bucket *NoBucketError
	require.Equal(t, errors.As(want, &bucket), errors.As(err, &bucket), "%v", err)
	for _, class := range []error{
		objstore.ErrNotExist, objstore.ErrExists, objstore.ErrThrottled, objstore.ErrDenied, objstore.ErrAmbiguous,
	} {
		require.Equal(t, errors.Is(want, class), errors.Is(err, class), "%v: %v", class, err)
	}
}

// TestPutIfAbsentCutOff: a context that ends while the put is under way leaves a doubt, one that ended before leaves none.
func TestPutIfAbsentCutOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	web := &server{always: func(r *reply) {
		r.do()
		cancel()
		<-r.request.Context().Done()
	}}
	store := serve(t, web, Options{})
	err := store.PutIfAbsent(ctx, "a", []byte("ours"))
	require.ErrorIs(t, err, objstore.ErrAmbiguous)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, web.count())
	err = store.PutIfAbsent(ctx, "b", []byte("ours"))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, objstore.ErrAmbiguous)
	require.Equal(t, 1, web.count())
}

func TestPutIfAbsentDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	web := &server{always: func(r *reply) { <-r.request.Context().Done() }}
	err := serve(t, web, Options{}).PutIfAbsent(ctx, "a", nil)
	require.ErrorIs(t, err, objstore.ErrAmbiguous)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestPutIfAbsentUnsent: what never left is no doubt.
func TestPutIfAbsentUnsent(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := "http://" + free.Addr().String()
	require.NoError(t, free.Close())
	for name, o := range map[string]s3.Options{
		"nobody there": {BaseEndpoint: &nobody, Credentials: aws.AnonymousCredentials{}},
		"no credentials": {BaseEndpoint: &nobody, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errUnclassed
		})},
	} {
		o.Region, o.UsePathStyle = "us-east-1", true
		store, err := New(s3.New(o), "bucket", "", Options{})
		require.NoError(t, err)
		store.firstPause = time.Microsecond
		err = store.PutIfAbsent(t.Context(), "a", nil)
		requireClass(t, errUnclassed, err)
		require.ErrorContains(t, err, "s3://bucket/a", name)
	}
}

// TestPutIsRepeated: without a condition a repetition changes nothing, so it is left to the SDK.
func TestPutIsRepeated(t *testing.T) {
	t.Parallel()
	web := &server{script: []func(*reply){but(lost), refuse(503, "SlowDown")}}
	store := serve(t, web, Options{Encryption: "aws:kms", KMSKeyID: "some-key", RequesterPays: true, BucketOwner: "123456789012"})
	require.NoError(t, store.Put(t.Context(), "a b/ü+%", []byte("x")))
	require.Equal(t, "x", web.objects["/bucket/root/a b/ü+%"])
	require.Len(t, web.headers, 3)
	for _, header := range web.headers {
		require.Empty(t, header.Get("If-None-Match"))
		require.Equal(t, "aws:kms", header.Get("X-Amz-Server-Side-Encryption"))
		require.Equal(t, "some-key", header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"))
		require.Equal(t, "requester", header.Get("X-Amz-Request-Payer"))
		require.Equal(t, "123456789012", header.Get("X-Amz-Expected-Bucket-Owner"))
		require.Contains(t, header.Get("Authorization"), "x-amz-expected-bucket-owner", "it is signed")
	}
}

// multipart answers the requests of a multipart upload.
func multipart(r *reply) {
	query := r.request.URL.Query()
	switch {
	case query.Has("uploads"):
		say(200, "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>")(r)
	case r.request.Method == http.MethodDelete:
		say(204, "")(r)
	case r.request.Method == http.MethodPost:
		say(200, `<CompleteMultipartUploadResult><ETag>"e-2"</ETag></CompleteMultipartUploadResult>`)(r)
	default:
		say(200, "", "ETag", `"e"`)(r)
	}
}

func TestUploadInParts(t *testing.T) {
	t.Parallel()
	web := &server{always: multipart}
	store := serve(t, web, Options{BucketOwner: "123456789012"})
	n, err := store.Upload(t.Context(), "a", io.LimitReader(zeros{}, 20<<20))
	require.NoError(t, err)
	require.EqualValues(t, 20<<20, n)
	require.ElementsMatch(t, []string{
		"POST /bucket/root/a?uploads=", "PUT /bucket/root/a?partNumber=1&uploadId=u1", "PUT /bucket/root/a?partNumber=2&uploadId=u1",
		"PUT /bucket/root/a?partNumber=3&uploadId=u1", "POST /bucket/root/a?uploadId=u1",
	}, web.seen())
	for _, header := range web.headers {
		require.Equal(t, "123456789012", header.Get("X-Amz-Expected-Bucket-Owner"))
	}
}

// TestBrokenUploadIsAborted: parts that stay behind would be paid for and seen by nobody.
func TestBrokenUploadIsAborted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // of one case
		end    io.Reader
		always func(*reply)
		want   error
	}{
		"source": {t.Context(), iotest.ErrReader(errUnclassed), multipart, errUnclassed},
		"source, and no abort": {t.Context(), iotest.ErrReader(errUnclassed), func(r *reply) {
			if r.request.Method == http.MethodDelete {
				refuse(403, "AccessDenied")(r)
				return
			}
			multipart(r)
		}, errUnclassed},
		"truncated": {t.Context(), iotest.ErrReader(io.ErrUnexpectedEOF), multipart, io.ErrUnexpectedEOF},
		"cancelled": {ctx, io.MultiReader(iotest.ErrReader(io.EOF), cancels(cancel), io.LimitReader(zeros{}, 20<<20)), multipart, context.Canceled},
		"denied": {t.Context(), strings.NewReader(""), func(r *reply) {
			if r.request.URL.Query().Get("partNumber") == "2" {
				refuse(403, "AccessDenied")(r)
				return
			}
			multipart(r)
		}, objstore.ErrDenied},
	} {
		web := &server{always: c.always}
		_, err := serve(t, web, Options{}).Upload(c.ctx, "a", io.MultiReader(io.LimitReader(zeros{}, 20<<20), c.end))
		require.ErrorIs(t, err, c.want, name)
		seen := web.seen()
		require.Equal(t, "DELETE /bucket/root/a?uploadId=u1", seen[len(seen)-1], name)
		require.NotContains(t, seen, "POST /bucket/root/a?uploadId=u1", name)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// cancels ends a context when a reader comes to it.
type cancels context.CancelFunc

func (c cancels) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}
