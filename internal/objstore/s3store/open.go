// Package s3store keeps objects in an S3 bucket, below a prefix.
package s3store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"lancekeeper/internal/awslog"
	"lancekeeper/internal/objstore"
)

const (
	// connections kept open to one host: as many as requests are made side by side.
	connections   = 128
	maxAttempts   = 8 // of one request, throttled or failed; the pauses between them grow
	firstPause    = 100 * time.Millisecond
	maxBackoff    = 10 * time.Second
	answerTimeout = 30 * time.Second // until a request's headers are there, and then some byte of the body
	partBytes     = 8 << 20          // of a multipart upload, and the size up to which an object is put in one request
	uploadParts   = 3                // of one object at once
)

// Encryption is how S3 encrypts what is written, in its own words.
type Encryption = types.ServerSideEncryption

// Options are what a bucket's policy may ask for.
type Options struct {
	Encryption    Encryption // empty: the bucket's default
	KMSKeyID      string
	RequesterPays bool
	BucketOwner   string // account that must own the bucket, else every request is denied; empty: any
	Checksums     Checksums
	Log           *slog.Logger // for what the SDK has to say; nil: nowhere
}

// Checksums says when requests carry checksums and answers are checked by theirs.
type Checksums int

// Choices. By default wherever the SDK can on AWS, and only where the request demands it where an endpoint is set: other
// makers' stores may refuse them.
const (
	ChecksumsDefault Checksums = iota
	ChecksumsSupported
	ChecksumsRequired
)

// checksums are the SDK's words for a choice.
func checksums(choice Checksums, endpoint string) (aws.RequestChecksumCalculation, aws.ResponseChecksumValidation) {
	if choice == ChecksumsSupported || choice == ChecksumsDefault && endpoint == "" {
		return aws.RequestChecksumCalculationWhenSupported, aws.ResponseChecksumValidationWhenSupported
	}
	return aws.RequestChecksumCalculationWhenRequired, aws.ResponseChecksumValidationWhenRequired
}

// Store is an objstore.Store in a bucket. Make it with Open or New.
type Store struct {
	client  *s3.Client
	uploads *transfermanager.Client
	bucket  string
	prefix  string // "" or ending in a slash
	options Options

	firstPause time.Duration // before the second of our own attempts; the next ones are longer
	stall      time.Duration // in which some byte of an answer's body must come
	bucketSeen atomic.Bool   // a "not found" then means the object
	heard      atomic.Pointer[heard]
	deleted    atomic.Bool // a batch was sent that is answered key by key, which tells whether deletes hide
	hides      atomic.Bool // a delete made a marker: the bucket has, or had, versioning
}

// Open returns a store below s3://bucket/path, with the SDK's standard configuration. Nothing is asked of the bucket yet.
func Open(ctx context.Context, bucket, path string, o Options) (*Store, error) {
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
		t.ResponseHeaderTimeout = answerTimeout
	})
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(transport), config.WithRetryer(retryer), config.WithLogger(awslog.New(o.Log)))
	if err != nil {
		return nil, fmt.Errorf("configure access to bucket %s: %w", bucket, err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("configure access to bucket %s: no region is set (AWS_REGION)", bucket)
	}
	return New(s3.NewFromConfig(cfg, func(so *s3.Options) {
		so.UsePathStyle = so.UsePathStyle || pathStyle(endpoint(so))
		so.RequestChecksumCalculation, so.ResponseChecksumValidation = checksums(o.Checksums, endpoint(so))
		so.DisableLogOutputChecksumValidationSkipped = true // parts of objects have none
	}), bucket, path, o)
}

// New returns a store that uses the given client.
func New(client *s3.Client, bucket, path string, o Options) (*Store, error) {
	if o.BucketOwner != "" {
		client = s3.New(client.Options(), func(so *s3.Options) {
			so.APIOptions = append(so.APIOptions, smithyhttp.SetHeaderValue("x-amz-expected-bucket-owner", o.BucketOwner))
		})
	}
	s := &Store{client: client, bucket: bucket, options: o, firstPause: firstPause, stall: answerTimeout}
	if path != "" {
		if err := objstore.CheckKey(path); err != nil {
			return nil, fmt.Errorf("open s3://%s/%s: %w", bucket, path, err)
		}
		s.prefix = path + "/"
	}
	s.uploads = transfermanager.New(client, func(to *transfermanager.Options) {
		to.PartSizeBytes, to.Concurrency, to.FailTimeout = partBytes, uploadParts, answerTimeout
		to.RequestChecksumCalculation = client.Options().RequestChecksumCalculation
	})
	return s, nil
}

// retryer tries more often than the SDK's standard, slows all requests down together when the store throttles, and has no
// token bucket: that would let one burst of 503s fail whatever comes next, without waiting.
func retryer() aws.Retryer {
	return retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) {
		o.StandardOptions = append(o.StandardOptions, func(so *retry.StandardOptions) {
			so.MaxAttempts, so.MaxBackoff, so.RateLimiter = maxAttempts, maxBackoff, ratelimit.None
		})
	})
}

// endpoint is the one set for S3, "" where there is none. The client's options do not show one that comes from the environment.
func endpoint(o *s3.Options) string {
	if o.BaseEndpoint != nil {
		return *o.BaseEndpoint
	}
	if e := os.Getenv("AWS_ENDPOINT_URL_S3"); e != "" {
		return e
	}
	return os.Getenv("AWS_ENDPOINT_URL")
}

// pathStyle says whether buckets are named in the path, since the endpoint's host can't have names in front of it.
func pathStyle(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return false
	}
	host := u.Hostname()
	return net.ParseIP(host) != nil || host == "localhost" || !strings.Contains(host, ".")
}

// URI is s3://bucket/path.
func (s *Store) URI() string {
	return strings.TrimSuffix("s3://"+s.bucket+"/"+s.prefix, "/")
}

// Hides says whether a delete so far made a marker instead of freeing what it deleted, as in a bucket with versioning.
func (s *Store) Hides() bool { return s.hides.Load() }

// Ordered is true for general purpose buckets; directory buckets (S3 Express) do not list in order.
func (s *Store) Ordered() bool { return !strings.HasSuffix(s.bucket, "--x-s3") }

// heard is when the store answered, by its clock and by this machine's.
type heard struct{ theirs, ours time.Time }

// hear notes the Date of an answer.
func (s *Store) hear(answer middleware.Metadata) {
	if at, ok := awsServerTime(answer); ok {
		s.heard.Store(&heard{theirs: at, ours: time.Now()})
	}
}

// Now is the Date of the last listing and the time since. Where nothing was listed yet one request is made for it.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if last := s.heard.Load(); last != nil {
		return last.theirs.Add(time.Since(last.ours)), nil
	}
	out, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: &s.bucket, Prefix: &s.prefix, MaxKeys: aws.Int32(1), RequestPayer: s.payer(),
	})
	if err != nil {
		return time.Time{}, s.fail("ask the clock of", "", err)
	}
	s.bucketSeen.Store(true)
	if at, ok := awsServerTime(out.ResultMetadata); ok {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("ask the clock of %s: %w", s.URI(), errNoDate)
}

var errNoDate = errors.New("the answer has no date")

func (s *Store) payer() types.RequestPayer {
	if s.options.RequesterPays {
		return types.RequestPayerRequester
	}
	return ""
}

func (s *Store) kms() *string {
	if s.options.KMSKeyID == "" {
		return nil
	}
	return &s.options.KMSKeyID
}
