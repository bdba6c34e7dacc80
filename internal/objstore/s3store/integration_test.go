//go:build integration

package s3store_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/s3store"
	"lancekeeper/internal/objstore/storetest"
)

func bucket(t *testing.T) string {
	t.Helper()
	name := os.Getenv("LANCEKEEPER_TEST_BUCKET")
	require.NotEmpty(t, name, "LANCEKEEPER_TEST_BUCKET is not set: run this through make test or test/run")
	return name
}

func TestContract(t *testing.T) {
	t.Parallel()
	name := bucket(t)
	storetest.Run(t, func(t *testing.T) objstore.Store {
		t.Helper()
		s, err := s3store.Open(t.Context(), name, "contract/"+uuid.NewString(), s3store.Options{})
		require.NoError(t, err)
		return s
	})
}

func TestMissingBucketIsNamed(t *testing.T) {
	t.Parallel()
	bucket(t)
	s, err := s3store.Open(t.Context(), "no-such-bucket-here", "x", s3store.Options{})
	require.NoError(t, err)
	_, err = s.Folders(t.Context(), "")
	var missing *s3store.NoBucketError
	require.ErrorAs(t, err, &missing)
	require.NotErrorIs(t, err, objstore.ErrNotExist)
	require.Contains(t, err.Error(), "no-such-bucket-here")
}

func TestWrongKeyIsDenied(t *testing.T) {
	name := bucket(t)
	t.Setenv("AWS_SECRET_ACCESS_KEY", strings.Repeat("x", 20))
	s, err := s3store.Open(t.Context(), name, "x", s3store.Options{})
	require.NoError(t, err)
	_, _, err = s.Get(t.Context(), "a")
	require.ErrorIs(t, err, objstore.ErrDenied)
	_, err = s.Folders(t.Context(), "")
	require.ErrorIs(t, err, objstore.ErrDenied)
}
