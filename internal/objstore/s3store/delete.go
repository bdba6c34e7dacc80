package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"lancekeeper/internal/objstore"
)

const (
	batchKeys      = 1000 // of one DeleteObjects request
	deleteParallel = 4    // batches at once
	singleParallel = 8    // single deletes at once, of one batch
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
	err := group.Wait() // before failed is read
	return failed, err  //nolint:wrapcheck // names bucket and keys
}

// batch removes up to 1,000 objects, repeating for the keys that failed for a passing reason.
func (s *Store) batch(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	pause := s.pauses()
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
		if err := wait(ctx, pause.NextBackOff()); err != nil {
			return append(final, passing...), s.fail("delete in", "", err)
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
	var named []types.ObjectIdentifier
	var others []string
	for _, key := range keys {
		if plain(key) {
			named = append(named, types.ObjectIdentifier{Key: aws.String(s.prefix + key)})
		} else {
			others = append(others, key)
		}
	}
	if len(named) == 0 {
		return s.singles(ctx, others)
	}
	out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &s.bucket, RequestPayer: s.payer(), Delete: &types.Delete{Objects: named, Quiet: aws.Bool(!s.deleted.CompareAndSwap(false, true))},
	})
	if noBatches(err) {
		return s.singles(ctx, keys)
	}
	if err != nil {
		return nil, s.fail(fmt.Sprintf("delete %d objects in", len(named)), "", err)
	}
	for _, d := range out.Deleted {
		s.note(d.DeleteMarker)
	}
	var faults []objstore.KeyError
	for _, e := range out.Errors {
		if code := aws.ToString(e.Code); code != "NoSuchKey" {
			faults = append(faults, s.fault(strings.TrimPrefix(aws.ToString(e.Key), s.prefix), code, aws.ToString(e.Message)))
		}
	}
	more, err := s.singles(ctx, others)
	return append(faults, more...), err
}

// note remembers that a delete made a marker.
func (s *Store) note(marker *bool) {
	if aws.ToBool(marker) {
		s.hides.Store(true)
	}
}

// noBatches says whether a server does not know the batch request, or not in the form that the SDK sends it.
func noBatches(err error) bool {
	if err == nil {
		return false
	}
	switch codeOf(err) {
	case "NotImplemented", "MalformedXML", "MethodNotAllowed", "MissingContentMD5":
		return true
	}
	return statusOf(err) == http.StatusNotImplemented
}

func (s *Store) fault(key, code, message string) objstore.KeyError {
	err := errors.New(message) //nolint:err113 // the store's own words
	if class := s.classOf(code); class != nil {
		err = fmt.Errorf("%w: %s", class, message)
	}
	return objstore.KeyError{Key: key, Code: code, Err: err}
}

// singles removes one by one, several at a time.
func (s *Store) singles(ctx context.Context, keys []string) ([]objstore.KeyError, error) {
	var mu sync.Mutex
	var faults []objstore.KeyError
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(singleParallel)
	for _, key := range keys {
		group.Go(func() error {
			fault, err := s.single(inner, key)
			if fault != nil {
				mu.Lock()
				defer mu.Unlock()
				faults = append(faults, *fault)
			}
			return err
		})
	}
	err := group.Wait() // before faults is read
	return faults, err  //nolint:wrapcheck // names bucket and key
}

// single removes one object. What the store says of the key is its own failure; no answer, or no bucket, is one of the whole.
func (s *Store) single(ctx context.Context, key string) (*objstore.KeyError, error) {
	out, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key), RequestPayer: s.payer()})
	switch code := codeOf(err); {
	case err == nil:
		s.note(out.DeleteMarker)
		return nil, nil //nolint:nilnil // gone
	case code == "NoSuchKey":
		return nil, nil //nolint:nilnil // gone
	case code == "", code == "NoSuchBucket":
		return nil, s.fail("delete", key, err)
	default:
		return &objstore.KeyError{Key: key, Code: code, Err: s.fail("delete", key, err)}, nil
	}
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
