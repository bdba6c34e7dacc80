package s3store

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

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
		return objstore.Object{}, s.fail("look up", key, err)
	}
	return objstore.Object{
		Key: key, Size: aws.ToInt64(out.ContentLength), Modified: aws.ToTime(out.LastModified), ETag: strings.Trim(aws.ToString(out.ETag), `"`),
	}, nil
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
	data, _, err := s.read(ctx, key, fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	if statusOf(err) == http.StatusRequestedRangeNotSatisfiable {
		return nil, fmt.Errorf("read %s from %d: %w", key, offset, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, err
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
		out, err := s.client.GetObject(ctx, in)
		if err != nil {
			return nil, nil, s.fail("read", key, err)
		}
		data, err := body(out)
		if err == nil {
			return data, out, nil
		}
		if ctx.Err() != nil || attempt == bodyAttempts {
			return nil, nil, s.fail("read", key, ended(ctx, err))
		}
	}
}

// body reads an answer whole, and no less than it says it has.
func body(out *s3.GetObjectOutput) ([]byte, error) {
	defer out.Body.Close() //nolint:errcheck // nothing can be lost by it
	length := aws.ToInt64(out.ContentLength)
	data := make([]byte, 0, max(length, 0)+1)
	for {
		n, err := out.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF { //nolint:errorlint // readers return it as it is
			break
		}
		if err != nil {
			return nil, fmt.Errorf("after %d bytes: %w", len(data), err)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
	if out.ContentLength != nil && int64(len(data)) != length {
		return nil, fmt.Errorf("%d bytes of %d: %w", len(data), length, io.ErrUnexpectedEOF)
	}
	return data, nil
}
