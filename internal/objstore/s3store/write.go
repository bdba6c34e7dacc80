package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

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
		return s.hint(s.fail("write", key, err))
	}
	return nil
}

// hint adds to a write that was denied what often is the reason.
func (s *Store) hint(err error) error {
	if errors.Is(err, objstore.ErrDenied) && s.options.Encryption == "" {
		return fmt.Errorf("%w (a bucket's policy may demand an encryption header: --encryption)", err)
	}
	return err
}

func (s *Store) put(key string, data []byte) *s3.PutObjectInput {
	return &s3.PutObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.prefix + key), Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
		ServerSideEncryption: s.options.Encryption, SSEKMSKeyId: s.kms(), RequestPayer: s.payer(),
	}
}

// Copy copies an object inside the bucket, in one request: up to 5 GiB, as S3 has it.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	for _, key := range []string{from, to} {
		if err := objstore.CheckKey(key); err != nil {
			return err //nolint:wrapcheck // names the key
		}
	}
	source := strings.ReplaceAll((&url.URL{Path: s.bucket + "/" + s.prefix + from}).EscapedPath(), "+", "%2B")
	_, err := s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.prefix + to), CopySource: aws.String(source),
		ServerSideEncryption: s.options.Encryption, SSEKMSKeyId: s.kms(), RequestPayer: s.payer(),
	})
	if err != nil {
		return s.fail("copy", from, err)
	}
	return nil
}

// answer is what an attempt at a conditional put came to.
type answer int

const (
	written answer = iota
	exists
	again   // surely not written, for a passing reason
	unknown // no clear answer: perhaps written
	refused // surely not written, and never will be
)

// PutIfAbsent sends the put itself instead of leaving it to the SDK's retries, which would take their own success for another's:
// after an attempt without a clear answer, "it exists" proves nothing.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := objstore.CheckKey(key); err != nil {
		return err //nolint:wrapcheck // names the key
	}
	if err := ctx.Err(); err != nil {
		return s.fail("write", key, err)
	}
	pause := s.pauses()
	var doubt, last error
	for range conditionalAttempts {
		in := s.put(key, data)
		in.IfNoneMatch = aws.String("*")
		_, last = s.client.PutObject(ctx, in, func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
		switch verdict(last) {
		case written:
			return nil
		case exists:
			if doubt == nil {
				return s.fail("write", key, fmt.Errorf("%w: %w", objstore.ErrExists, last))
			}
			return s.doubtful(key, doubt, last)
		case refused:
			return s.doubtful(key, doubt, last)
		case unknown:
			doubt = last
		case again:
		}
		if err := wait(ctx, pause.NextBackOff()); err != nil {
			return s.doubtful(key, doubt, errors.Join(err, last))
		}
	}
	return s.doubtful(key, doubt, last)
}

// doubtful is the error of a conditional put whose last attempt failed: if an earlier one, or that one, may have written the
// object, then that is all there is to say, and no class of the last failure may hide it.
func (s *Store) doubtful(key string, doubt, last error) error {
	if doubt == nil {
		return s.hint(s.fail("write", key, last))
	}
	return fmt.Errorf("write %s/%s: %w: %w", s.URI(), key, objstore.ErrAmbiguous, errors.Join(doubt, last))
}

// verdict reads one answer. Where there is none, only an attempt that came to no connection, or failed before it was sent (no
// credentials, say), is surely without effect.
func verdict(err error) answer {
	if err == nil {
		return written
	}
	if status := statusOf(err); status != 0 {
		return verdictOn(status, codeOf(err))
	}
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return again
	}
	var unsent *smithyhttp.RequestSendError
	var ended *smithy.CanceledError
	if errors.As(err, &unsent) || errors.As(err, &ended) {
		return unknown
	}
	return refused
}

// verdictOn reads an answer's status. 412: the key is taken. 409: a conflicting request was under way and nothing was written.
// 429 and SlowDown come from the front, and RequestTimeout is sent for a body that did not arrive. Any other 5xx, and a success
// that can't be read, tell nothing.
func verdictOn(status int, code string) answer {
	switch status {
	case http.StatusPreconditionFailed:
		return exists
	case http.StatusTooManyRequests:
		return again
	}
	switch code {
	case "ConditionalRequestConflict", "OperationAborted", "SlowDown", "RequestTimeout":
		return again
	}
	if status < http.StatusMultipleChoices || status == http.StatusRequestTimeout || status >= http.StatusInternalServerError {
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
		return 0, s.hint(s.fail("upload", key, err))
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
