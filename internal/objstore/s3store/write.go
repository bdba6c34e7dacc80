package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/cenkalti/backoff/v5"

	"lancekeeper/internal/objstore"
)

// conditionalAttempts bounds how often a conditional put is sent.
const conditionalAttempts = 8

// Put writes or replaces an object.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	if err := objstore.CheckKey(key); err != nil {
		return err //nolint:wrapcheck // names the key
	}
	if _, err := s.client.PutObject(ctx, s.put(key, data)); err != nil {
		return s.fail("write", key, err)
	}
	return nil
}

func (s *Store) put(key string, data []byte) *s3.PutObjectInput {
	return &s3.PutObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.prefix + key), Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
		ServerSideEncryption: s.options.Encryption, SSEKMSKeyId: s.kms(), RequestPayer: s.payer(),
	}
}

// answer is what an attempt at a conditional put came to.
type answer int

const (
	written answer = iota
	exists
	again   // surely not written: throttled, or another's request was under way
	unknown // no clear answer: perhaps written
	refused
)

// PutIfAbsent sends the put itself instead of leaving it to the SDK's retries, which would take their own success for another's:
// after an attempt without a clear answer, "it exists" proves nothing.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := objstore.CheckKey(key); err != nil {
		return err //nolint:wrapcheck // names the key
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, maxBackoff
	var doubt error
	var last error
	for range conditionalAttempts {
		in := s.put(key, data)
		in.IfNoneMatch = aws.String("*")
		_, err := s.client.PutObject(ctx, in, func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
		last = err
		switch verdict(err) {
		case written:
			return nil
		case exists:
			if doubt != nil {
				return s.fail("write", key, fmt.Errorf("%w: it exists after an attempt without an answer: %w", objstore.ErrAmbiguous, doubt))
			}
			return s.fail("write", key, fmt.Errorf("%w: %w", objstore.ErrExists, err))
		case refused:
			if doubt != nil {
				return s.fail("write", key, fmt.Errorf("%w: %w", objstore.ErrAmbiguous, errors.Join(doubt, err)))
			}
			return s.fail("write", key, err)
		case unknown:
			doubt = err
		case again:
		}
		select {
		case <-ctx.Done():
			if doubt != nil {
				return s.fail("write", key, fmt.Errorf("%w: %w", objstore.ErrAmbiguous, ended(ctx, doubt)))
			}
			return s.fail("write", key, ended(ctx, err))
		case <-time.After(pause.NextBackOff()):
		}
	}
	if doubt != nil {
		return s.fail("write", key, fmt.Errorf("%w: %w", objstore.ErrAmbiguous, doubt))
	}
	return s.fail("write", key, last)
}

// verdict reads one answer. 412: the key is taken. 409: a conflicting request is under way and nothing was written. 429 and 503
// come from the front before anything is done. Any other 5xx, and no answer at all, tell nothing.
func verdict(err error) answer {
	if err == nil {
		return written
	}
	switch status := statusOf(err); {
	case status == http.StatusPreconditionFailed:
		return exists
	case status == http.StatusConflict && codeOf(err) == "ConditionalRequestConflict",
		status == http.StatusTooManyRequests,
		status == http.StatusServiceUnavailable && codeOf(err) == "SlowDown":
		return again
	case status >= http.StatusInternalServerError, status == 0, status == http.StatusRequestTimeout:
		return unknown
	}
	return refused
}

// Upload streams an object: in one request if it is small, else in parts, which appear together at the end.
func (s *Store) Upload(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := objstore.CheckKey(key); err != nil {
		return 0, err //nolint:wrapcheck // names the key
	}
	// Not ReadFull: a source that breaks off with ErrUnexpectedEOF must not look like one that ends.
	head, err := io.ReadAll(io.LimitReader(r, partBytes))
	if err != nil {
		return 0, fmt.Errorf("upload %s: %w", key, err)
	}
	if len(head) < partBytes {
		if err := s.Put(ctx, key, head); err != nil {
			return 0, err
		}
		return int64(len(head)), nil
	}
	counted := &counter{r: io.MultiReader(bytes.NewReader(head), r)}
	in := &transfermanager.UploadObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.prefix + key), Body: counted, SSEKMSKeyID: s.kms(),
		ServerSideEncryption: tmtypes.ServerSideEncryption(s.options.Encryption), RequestPayer: tmtypes.RequestPayer(s.payer()),
	}
	if _, err := s.uploads.UploadObject(ctx, in); err != nil {
		if counted.err != nil {
			return 0, fmt.Errorf("upload %s: %w", key, counted.err)
		}
		return 0, s.fail("upload", key, err)
	}
	return counted.n, nil
}

// counter counts what is read, and keeps the reader's own error apart from the store's.
type counter struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err //nolint:wrapcheck // a reader
}
