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

// class is nil where none fits.
func (s *Store) class(err error) error {
	if code := codeOf(err); code != "" {
		switch code {
		case "NoSuchBucket":
			return &NoBucketError{Bucket: s.bucket}
		case "NoSuchKey", "NotFound":
			return objstore.ErrNotExist
		case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AllAccessDisabled", "Forbidden":
			return objstore.ErrDenied
		case "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "ServiceUnavailable":
			return objstore.ErrThrottled
		}
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

// ended is the context's error where that is why a request failed.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return err
}
