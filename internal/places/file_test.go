package places_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/places"
)

func TestOpenFile(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	folder := t.TempDir()
	for uri, want := range map[string][2]string{
		"s3://bucket/db/t.lance/data/x.lance": {"s3://bucket/db/t.lance/data", "x.lance"},
		"s3://bucket/x.lance":                 {"s3://bucket", "x.lance"},
		folder + "/x.lance":                   {folder, "x.lance"},
	} {
		store, key, err := places.OpenFile(t.Context(), uri, places.Options{})
		require.NoError(t, err)
		require.Equal(t, want, [2]string{store.URI(), key})
	}
}
