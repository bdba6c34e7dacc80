package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"lancekeeper/internal/objstore"
)

// bodyAttempts: the SDK does not retry an answer that breaks off in the body.
const bodyAttempts = 4

// List pages through a prefix.
func (s *Store) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		if err := objstore.CheckPrefix(prefix); err != nil {
			yield(objstore.Object{}, err)
			return
		}
		in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.prefix + prefix), RequestPayer: s.payer()}
		if startAfter != "" && s.Ordered() {
			in.StartAfter = aws.String(s.prefix + startAfter)
		}
		pages := s3.NewListObjectsV2Paginator(s.client, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(objstore.Object{}, s.fail("list", prefix, err))
				return
			}
			s.hear(page.ResultMetadata)
			for _, o := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(o.Key), s.prefix)
				if key == "" || strings.HasSuffix(key, "/") || key <= startAfter {
					continue // folder markers are no objects of ours
				}
				object := objstore.Object{Key: key, Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified), ETag: strings.Trim(aws.ToString(o.ETag), `"`)}
				if !yield(object, nil) {
					return
				}
			}
		}
	}
}

// Folders lists one level.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	if err := objstore.CheckPrefix(prefix); err != nil {
		return nil, err //nolint:wrapcheck // names the prefix
	}
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{
		Bucket: &s.bucket, Prefix: aws.String(s.prefix + prefix), Delimiter: aws.String("/"), RequestPayer: s.payer(),
	})
	var names []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.fail("list the folders of", prefix, err)
		}
		for _, p := range page.CommonPrefixes {
			name := strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), s.prefix+prefix), "/")
			if name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names) // the store orders them with the slash behind
	return slices.Compact(names), nil
}

// Stat looks up one object.
func (s *Store) Stat(ctx context.Context, key string) (objstore.Object, error) {
	if err := objstore.CheckKey(key); err != nil {
		return objstore.Object{}, err //nolint:wrapcheck // names the key
	}
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key), RequestPayer: s.payer()})
	if err != nil {
		return objstore.Object{}, s.missing(ctx, s.fail("look up", key, err))
	}
	return objstore.Object{
		Key: key, Size: aws.ToInt64(out.ContentLength), Modified: aws.ToTime(out.LastModified), ETag: strings.Trim(aws.ToString(out.ETag), `"`),
	}, nil
}

// missing tells a missing object from a missing bucket, which a HEAD answers alike. It asks once in a store's life.
func (s *Store) missing(ctx context.Context, err error) error {
	if !errors.Is(err, objstore.ErrNotExist) || s.bucketSeen.Load() {
		return err
	}
	var none *NoBucketError
	if _, asked := s.Now(ctx); errors.As(asked, &none) {
		return asked
	}
	return err
}

// Get reads a whole object.
func (s *Store) Get(ctx context.Context, key string) ([]byte, objstore.Object, error) {
	data, out, err := s.read(ctx, key, "")
	if err != nil {
		return nil, objstore.Object{}, err
	}
	return data, objstore.Object{
		Key: key, Size: int64(len(data)), Modified: aws.ToTime(out.LastModified), ETag: strings.Trim(aws.ToString(out.ETag), `"`),
	}, nil
}

// GetRange reads exactly length bytes.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := objstore.CheckKey(key); err != nil {
		return nil, err //nolint:wrapcheck // names the key
	}
	if offset < 0 || length < 0 {
		return nil, fmt.Errorf("read %s: range %d+%d", key, offset, length)
	}
	if length == 0 {
		o, err := s.Stat(ctx, key)
		if err == nil && offset > o.Size {
			err = fmt.Errorf("read %s from %d of %d: %w", key, offset, o.Size, io.ErrUnexpectedEOF)
		}
		return nil, err
	}
	data, out, err := s.read(ctx, key, fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	if statusOf(err) == http.StatusRequestedRangeNotSatisfiable {
		return nil, fmt.Errorf("read %s from %d: %w", key, offset, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, err
	}
	if got := aws.ToString(out.ContentRange); !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", offset)) && (got != "" || offset > 0) {
		return nil, fmt.Errorf("read %s from %d: %w: %q", key, offset, errOtherRange, got)
	}
	if int64(len(data)) != length {
		return nil, fmt.Errorf("read %s: %d bytes from %d, not %d: %w", key, len(data), offset, length, io.ErrUnexpectedEOF)
	}
	return data, nil
}

// GetTail reads the last bytes; the size comes with the answer.
func (s *Store) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	if n <= 0 {
		o, err := s.Stat(ctx, key)
		return nil, o.Size, err
	}
	data, out, err := s.read(ctx, key, fmt.Sprintf("bytes=-%d", n))
	if statusOf(err) == http.StatusRequestedRangeNotSatisfiable {
		return nil, 0, nil // S3's answer for an empty object
	}
	if err != nil {
		return nil, 0, err
	}
	size := int64(len(data))
	if _, total, ok := strings.Cut(aws.ToString(out.ContentRange), "/"); ok {
		if size, err = strconv.ParseInt(total, 10, 64); err != nil {
			return nil, 0, fmt.Errorf("read %s: content range %q: %w", key, aws.ToString(out.ContentRange), err)
		}
	}
	if int64(len(data)) != min(n, size) {
		return nil, 0, fmt.Errorf("read %s: the last %d bytes of %d, not %d: %w", key, len(data), size, n, io.ErrUnexpectedEOF)
	}
	return data, size, nil
}

// read gets an object or a range of it; an answer that breaks off is asked for again.
func (s *Store) read(ctx context.Context, key, byteRange string) ([]byte, *s3.GetObjectOutput, error) {
	if err := objstore.CheckKey(key); err != nil {
		return nil, nil, err //nolint:wrapcheck // names the key
	}
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key), RequestPayer: s.payer()}
	if byteRange != "" {
		in.Range = &byteRange
	}
	for attempt := 1; ; attempt++ {
		data, out, err := s.attempt(ctx, in)
		if err == nil {
			return data, out, nil
		}
		if !errors.Is(err, errBrokeOff) || ctx.Err() != nil || attempt == bodyAttempts {
			return nil, nil, s.fail("read", key, ended(ctx, err))
		}
	}
}

var (
	errBrokeOff   = errors.New("the answer broke off")
	errStalled    = errors.New("no more bytes came")
	errOtherRange = errors.New("the store answered with another range")
)

// attempt makes one request, and gives it up when its body comes no further.
func (s *Store) attempt(ctx context.Context, in *s3.GetObjectInput) ([]byte, *s3.GetObjectOutput, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	out, err := s.client.GetObject(inner, in)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // read wraps it
	}
	watch := time.AfterFunc(s.stall, cancel)
	defer watch.Stop()
	data, err := body(out, func() { watch.Reset(s.stall) })
	switch {
	case err == nil:
		return data, out, nil
	case inner.Err() != nil && ctx.Err() == nil: // err would read as if the caller had cancelled
		err = fmt.Errorf("after %d bytes: %w in %v", len(data), errStalled, s.stall)
	}
	return nil, nil, fmt.Errorf("%w: %w", errBrokeOff, err)
}

// body reads an answer whole, and no less than it says it has. It reports every step forward.
func body(out *s3.GetObjectOutput, progress func()) ([]byte, error) {
	defer out.Body.Close() //nolint:errcheck // nothing can be lost by it
	length := aws.ToInt64(out.ContentLength)
	data := make([]byte, 0, max(length, 0)+1)
	for {
		n, err := out.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if n > 0 {
			progress()
		}
		if err == io.EOF { //nolint:errorlint // readers return it as it is
			break
		}
		if err != nil {
			return data, fmt.Errorf("after %d bytes: %w", len(data), err)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
	if out.ContentLength != nil && int64(len(data)) != length {
		return data, fmt.Errorf("%d bytes of %d: %w", len(data), length, io.ErrUnexpectedEOF)
	}
	return data, nil
}
