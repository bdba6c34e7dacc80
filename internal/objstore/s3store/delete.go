package s3store

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"lancekeeper/internal/objstore"
)

const (
	batchKeys      = 1000 // of one DeleteObjects request
	deleteParallel = 4    // requests at once
	keyAttempts    = 5    // for keys that the store reports as failed for a passing reason
)

// Delete removes objects by batches, a few at a time. What fails for a passing reason is tried again.
func (s *Store) Delete(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	for _, key := range keys {
		if err := objstore.CheckKey(key); err != nil {
			return nil, err //nolint:wrapcheck // names the key
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("delete %d objects: %w", len(keys), err)
	}
	var mu sync.Mutex
	var failed []objstore.KeyError
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(deleteParallel)
	for batch := range slices.Chunk(keys, batchKeys) {
		group.Go(func() error {
			faults, err := s.batch(inner, batch)
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, faults...)
			return err
		})
	}
	return failed, group.Wait() //nolint:wrapcheck // names bucket and keys
}

// batch removes up to 1,000 objects, repeating for the keys that failed for a passing reason.
func (s *Store) batch(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, maxBackoff
	var final []objstore.KeyError
	for attempt := 1; ; attempt++ {
		faults, err := s.once(ctx, keys)
		if err != nil {
			return final, err
		}
		var passing []objstore.KeyError
		for _, f := range faults {
			if attempt < keyAttempts && transient(f.Code) {
				passing = append(passing, f)
			} else {
				final = append(final, f)
			}
		}
		if len(passing) == 0 {
			return final, nil
		}
		keys = keys[:0:0]
		for _, f := range passing {
			keys = append(keys, f.Key)
		}
		select {
		case <-ctx.Done():
			return append(final, passing...), s.fail("delete in", "", ctx.Err())
		case <-time.After(pause.NextBackOff()):
		}
	}
}

func transient(code string) bool {
	switch code {
	case "InternalError", "SlowDown", "ServiceUnavailable", "OperationAborted", "RequestTimeout":
		return true
	}
	return false
}

// once sends one request, or one for each key where the batch can't name it or the server has no batches.
func (s *Store) once(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	var faults []objstore.KeyError
	objects := make([]types.ObjectIdentifier, 0, len(keys))
	for _, key := range keys {
		if !plain(key) {
			if f := s.single(ctx, key); f != nil {
				faults = append(faults, *f)
			}
			continue
		}
		objects = append(objects, types.ObjectIdentifier{Key: aws.String(s.prefix + key)})
	}
	if len(objects) == 0 {
		return faults, nil
	}
	out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &s.bucket, RequestPayer: s.payer(), Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)},
	})
	if statusOf(err) == http.StatusNotImplemented || codeOf(err) == "NotImplemented" {
		return s.singles(ctx, keys)
	}
	if err != nil {
		return faults, s.fail(fmt.Sprintf("delete %d objects in", len(objects)), "", err)
	}
	for _, e := range out.Errors {
		if aws.ToString(e.Code) == "NoSuchKey" {
			continue
		}
		faults = append(faults, s.fault(aws.ToString(e.Key)[min(len(s.prefix), len(aws.ToString(e.Key))):], aws.ToString(e.Code), aws.ToString(e.Message)))
	}
	return faults, nil
}

func (s *Store) fault(key, code, message string) objstore.KeyError {
	f := objstore.KeyError{Key: key, Code: code, Err: fmt.Errorf("%s", message)} //nolint:err113 // the store's own words
	switch code {
	case "AccessDenied":
		f.Err = fmt.Errorf("%w: %s", objstore.ErrDenied, message)
	case "SlowDown", "ServiceUnavailable":
		f.Err = fmt.Errorf("%w: %s", objstore.ErrThrottled, message)
	}
	return f
}

func (s *Store) singles(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	var faults []objstore.KeyError
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return faults, s.fail("delete", key, err)
		}
		if f := s.single(ctx, key); f != nil {
			faults = append(faults, *f)
		}
	}
	return faults, nil
}

func (s *Store) single(ctx context.Context, key string) *objstore.KeyError {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key), RequestPayer: s.payer()})
	if err == nil || codeOf(err) == "NoSuchKey" {
		return nil
	}
	return &objstore.KeyError{Key: key, Code: codeOf(err), Err: s.fail("delete", key, err)}
}

// plain says whether XML 1.0, in which a batch is sent, can name a key.
func plain(key string) bool {
	if !utf8.ValidString(key) {
		return false
	}
	for _, r := range key {
		if unicode.IsControl(r) || r == '\uFFFE' || r == '\uFFFF' {
			return false
		}
	}
	return true
}
