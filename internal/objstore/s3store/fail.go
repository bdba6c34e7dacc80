package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithymiddleware "github.com/aws/smithy-go/middleware"
	"github.com/cenkalti/backoff/v5"

	"lancekeeper/internal/objstore"
)

// fail gives an error of the SDK the store's class, and names the operation, bucket and key.
func (s *Store) fail(what, key string, err error) error {
	where := s.URI()
	if key != "" {
		where += "/" + key
	}
	if class := s.class(err); class != nil {
		return fmt.Errorf("%s %s: %w: %w", what, where, class, err)
	}
	return fmt.Errorf("%s %s: %w", what, where, err)
}

// NoBucketError says that the bucket is not there: a setting, not a missing object.
type NoBucketError struct{ Bucket string }

// Error names the bucket.
func (e *NoBucketError) Error() string { return fmt.Sprintf("bucket %s does not exist", e.Bucket) }

// class is nil where none fits. An answer without a body, such as a HEAD's, has a status only.
func (s *Store) class(err error) error {
	if class := s.classOf(codeOf(err)); class != nil {
		return class
	}
	switch statusOf(err) {
	case http.StatusNotFound:
		return objstore.ErrNotExist
	case http.StatusForbidden, http.StatusUnauthorized:
		return objstore.ErrDenied
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return objstore.ErrThrottled
	}
	return nil
}

// classOf is the class of an error code of the store.
func (s *Store) classOf(code string) error {
	switch code {
	case "NoSuchBucket":
		return &NoBucketError{Bucket: s.bucket}
	case "NoSuchKey", "NotFound":
		return objstore.ErrNotExist
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
		"AllAccessDisabled", "AccountProblem", "Forbidden":
		return objstore.ErrDenied
	case "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "ServiceUnavailable":
		return objstore.ErrThrottled
	}
	return nil
}

func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// statusOf is the HTTP status of the last answer, 0 if there was none.
func statusOf(err error) int {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

func awsServerTime(metadata smithymiddleware.Metadata) (time.Time, bool) {
	return middleware.GetServerTime(metadata)
}

// pauses between attempts of our own grow, and differ between processes.
func (s *Store) pauses() *backoff.ExponentialBackOff {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.Multiplier, pause.MaxInterval = s.firstPause, 2, maxBackoff
	return pause
}

// wait is over after d, or with the context's error before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ctx.Err()
	}
}

// ended is the context's error where that is why a request failed.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return err
}
