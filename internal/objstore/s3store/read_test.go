package s3store

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
)

// TestClasses: every read gives an answer the same class.
func TestClasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{404, "NoSuchKey", objstore.ErrNotExist},
		{403, "AccessDenied", objstore.ErrDenied},
		{403, "InvalidAccessKeyId", objstore.ErrDenied},
		{403, "SignatureDoesNotMatch", objstore.ErrDenied},
		{400, "ExpiredToken", objstore.ErrDenied},
		{503, "SlowDown", objstore.ErrThrottled},
		{429, "TooManyRequests", objstore.ErrThrottled},
		{404, "NoSuchBucket", &NoBucketError{}},
		{500, "InternalError", errUnclassed},
		{400, "InvalidRequest", errUnclassed},
	} {
		store := serve(t, &server{always: refuse(c.status, c.code)}, Options{})
		for name, read := range reads(t.Context(), store) {
			want := c.want
			if name == "stat" && c.status == http.StatusBadRequest {
				want = errUnclassed // a HEAD's answer has no code
			}
			err := read()
			requireClass(t, want, err)
			require.ErrorContains(t, err, "s3://bucket/root", "%s %s", name, c.code)
		}
	}
}

func reads(ctx context.Context, s *Store) map[string]func() error {
	return map[string]func() error{
		"stat":    func() error { _, err := s.Stat(ctx, "a"); return err },
		"get":     func() error { _, _, err := s.Get(ctx, "a"); return err },
		"range":   func() error { _, err := s.GetRange(ctx, "a", 0, 1); return err },
		"tail":    func() error { _, _, err := s.GetTail(ctx, "a", 1); return err },
		"folders": func() error { _, err := s.Folders(ctx, ""); return err },
		"list": func() (last error) {
			for _, err := range s.List(ctx, "", "") {
				last = err
			}
			return last
		},
		"clock": func() error { _, err := s.Now(ctx); return err },
	}
}

// TestStatAsksForTheBucketOnce: a HEAD's 404 does not say what is missing.
func TestStatAsksForTheBucketOnce(t *testing.T) {
	t.Parallel()
	web := &server{always: func(r *reply) {
		if r.request.Method == http.MethodHead {
			refuse(404, "")(r)
			return
		}
		say(200, "<ListBucketResult></ListBucketResult>")(r)
	}}
	store := serve(t, web, Options{})
	for range 3 {
		_, err := store.Stat(t.Context(), "a")
		requireClass(t, objstore.ErrNotExist, err)
	}
	require.Equal(t, 4, web.count(), "%v", web.seen())
}

// TestBodiesThatBreakOff are asked for again, and never taken for whole.
func TestBodiesThatBreakOff(t *testing.T) {
	t.Parallel()
	short := func(r *reply) {
		r.Header().Set("Content-Length", "10")
		r.Header().Set("Content-Range", "bytes 0-9/10")
		r.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(r, "01234")
	}
	whole := say(206, "0123456789", "Content-Range", "bytes 0-9/10")
	web := &server{script: []func(*reply){short, short}, always: whole}
	data, err := serve(t, web, Options{}).GetRange(t.Context(), "a", 0, 10)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(data))
	require.Equal(t, 3, web.count())

	web = &server{always: short}
	_, _, err = serve(t, web, Options{}).Get(t.Context(), "a")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, bodyAttempts, web.count())
}

// TestBodyThatStalls is given up and asked for again, though the caller's context has no end.
func TestBodyThatStalls(t *testing.T) {
	t.Parallel()
	stallsAfter := func(some string) func(*reply) {
		return func(r *reply) {
			r.Header().Set("Content-Length", "10")
			r.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(r, some)
			_ = http.NewResponseController(r.ResponseWriter).Flush()
			<-r.request.Context().Done()
		}
	}
	web := &server{script: []func(*reply){stallsAfter(""), stallsAfter("01234")}, always: say(200, "0123456789")}
	store := serve(t, web, Options{})
	store.stall = 50 * time.Millisecond
	data, _, err := store.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(data))
	web.always = stallsAfter("0")
	_, _, err = store.Get(t.Context(), "a")
	require.ErrorIs(t, err, errStalled)
	require.NotErrorIs(t, err, context.Canceled, "the caller cancelled nothing")
}

// TestServerWithoutRanges: the whole object must not pass for a part of it.
func TestServerWithoutRanges(t *testing.T) {
	t.Parallel()
	store := serve(t, &server{always: say(200, "0123456789")}, Options{})
	data, err := store.GetRange(t.Context(), "a", 0, 10)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(data))
	_, err = store.GetRange(t.Context(), "a", 10, 10)
	require.ErrorIs(t, err, errOtherRange)
	_, err = store.GetRange(t.Context(), "a", 0, 5)
	require.Error(t, err)
	_, _, err = store.GetTail(t.Context(), "a", 5)
	require.Error(t, err)
	tail, size, err := store.GetTail(t.Context(), "a", 100)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(tail))
	require.EqualValues(t, 10, size)
}

func TestTail(t *testing.T) {
	t.Parallel()
	web := &server{always: say(206, "6789", "Content-Range", "bytes 6-9/10")}
	store := serve(t, web, Options{})
	tail, size, err := store.GetTail(t.Context(), "a", 4)
	require.NoError(t, err)
	require.Equal(t, "6789", string(tail))
	require.EqualValues(t, 10, size)
	require.Equal(t, "bytes=-4", web.headers[0].Get("Range"))
	web.always = refuse(416, "InvalidRange")
	tail, size, err = store.GetTail(t.Context(), "a", 4)
	require.NoError(t, err)
	require.Empty(t, tail)
	require.Zero(t, size)
	web.always = say(206, "6789", "Content-Range", "bytes 6-9/many")
	_, _, err = store.GetTail(t.Context(), "a", 4)
	require.Error(t, err)
}

// TestListPages: markers of folders are no objects, and a page that fails ends the listing with an error.
func TestListPages(t *testing.T) {
	t.Parallel()
	page := func(token string, keys ...string) func(*reply) {
		var body strings.Builder
		fmt.Fprintf(&body, "<ListBucketResult><IsTruncated>%t</IsTruncated><NextContinuationToken>%s</NextContinuationToken>", token != "", token)
		for _, key := range keys {
			fmt.Fprintf(&body, `<Contents><Key>%s</Key><Size>3</Size><ETag>"e"</ETag><LastModified>2026-01-02T03:04:05.000Z</LastModified></Contents>`, key)
		}
		return say(200, body.String()+"</ListBucketResult>")
	}
	web := &server{script: []func(*reply){page("t1", "root/d/", "root/d/a"), page("t2"), page("", "root/d/b")}}
	store := serve(t, web, Options{})
	var keys []string
	for o, err := range store.List(t.Context(), "d/", "d/0") {
		require.NoError(t, err)
		require.Equal(t, objstore.Object{Key: o.Key, Size: 3, ETag: "e", Modified: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, o)
		keys = append(keys, o.Key)
	}
	require.Equal(t, []string{"d/a", "d/b"}, keys)
	require.Contains(t, web.seen()[0], "start-after=root%2Fd%2F0")
	web.script = []func(*reply){page("t1", "root/d/a"), refuse(403, "AccessDenied")}
	keys = nil
	var last error
	for o, err := range store.List(t.Context(), "d/", "") {
		if last = err; err == nil {
			keys = append(keys, o.Key)
		}
	}
	require.Equal(t, []string{"d/a"}, keys)
	require.ErrorIs(t, last, objstore.ErrDenied)
}

func TestClock(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web := &server{always: say(200, "<ListBucketResult></ListBucketResult>", "Date", at.Format(http.TimeFormat))}
	s := serve(t, web, Options{})
	now, err := s.Now(t.Context())
	require.NoError(t, err)
	require.True(t, at.Equal(now), "%v", now)
	require.Equal(t, []string{"GET /bucket?list-type=2&max-keys=1&prefix=root%2F"}, web.seen())
	for range s.List(t.Context(), "data/", "") {
		t.Fatal("there is nothing")
	}
	now, err = s.Now(t.Context())
	require.NoError(t, err)
	require.WithinRange(t, now, at, at.Add(time.Hour))
	require.Len(t, web.seen(), 2, "a listing tells the time")
}
