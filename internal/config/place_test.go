package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/config"
)

func TestDatasetKeyOfS3(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"s3://bucket/path/t.lance":                     "s3://bucket/path/t.lance",
		"s3://bucket/path/t.lance/":                    "s3://bucket/path/t.lance",
		"s3://bucket//path/./x/../t.lance//":           "s3://bucket/path/t.lance",
		"S3://bucket/path/t.lance":                     "s3://bucket/path/t.lance",
		"s3://bucket/a%20b.lance":                      "s3://bucket/a b.lance",
		"s3://bucket/a b.lance":                        "s3://bucket/a b.lance",
		"s3://bucket/100%":                             "s3://bucket/100%",
		"s3://bucket":                                  "s3://bucket",
		"s3://bucket/":                                 "s3://bucket",
		"s3+ddb://bucket/path/t.lance?ddbTableName=T":  "s3://bucket/path/t.lance",
		"s3+ddb://bucket/path/t.lance/?ddbTableName=T": "s3://bucket/path/t.lance",
	} {
		got, err := config.DatasetKey(uri)
		require.NoError(t, err, uri)
		require.Equal(t, want, got, uri)
		again, err := config.DatasetKey(got)
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

func TestDatasetKeyOfAPath(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	table := filepath.Join(dir, "a table.lance")
	require.NoError(t, os.Mkdir(table, 0o700))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(table, link))
	for _, spelling := range []string{
		table, table + "/", dir + "/./x/../a table.lance", link, "file://" + table, "file://localhost" + table + "/",
		"file://" + dir + "/a%20table.lance", "FILE://" + link,
	} {
		got, err := config.DatasetKey(spelling)
		require.NoError(t, err)
		require.Equal(t, table, got, spelling)
	}
	got, err := config.DatasetKey(filepath.Join(link, "not", "there"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(table, "not", "there"), got, "links are followed in what exists")

	got, err = config.DatasetKey("relative.lance")
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(got))
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	p, err := config.ParsePlace("s3+ddb://bucket/a/t.lance?ddbTableName=commits")
	require.NoError(t, err)
	require.Equal(t, config.Place{Kind: config.External, Bucket: "bucket", Path: "a/t.lance", Table: "commits"}, p)
	p, err = config.ParsePlace("s3://bucket/a/t.lance/")
	require.NoError(t, err)
	require.Equal(t, config.Place{Kind: config.S3, Bucket: "bucket", Path: "a/t.lance"}, p)
	p, err = config.ParsePlace("file:///a/../b")
	require.NoError(t, err)
	require.Equal(t, config.Place{Kind: config.Local, Path: "/b"}, p)
}

func TestPlacesThatAreRefused(t *testing.T) {
	t.Parallel()
	for uri, why := range map[string]string{
		"":                               "must name a place",
		" ":                              "must name a place",
		"gs://b/t":                       "gs:// is not supported: supported are s3://",
		"az://b/t":                       "az:// is not supported",
		"https://b/t":                    "https:// is not supported",
		"memory://t":                     "memory:// is not supported",
		"db://t":                         "db:// is not supported",
		"s3://":                          "no bucket name",
		"s3:///t":                        "no bucket name",
		"s3://b ucket/t":                 "no bucket name",
		"s3://bucket/../t":               "leads out of its bucket",
		"s3://bucket/%2e%2e/t":           "leads out of its bucket",
		"s3://bucket/t?versionId=1":      "no parameters",
		"s3+ddb://bucket/t":              "?ddbTableName=TABLE",
		"s3+ddb://bucket/t?other=x":      "?ddbTableName=TABLE",
		"s3+ddb://bucket/t?ddbTableName": "?ddbTableName=TABLE",
		"file://relative/t":              "three slashes",
		"file:///%zz":                    "decode the path",
		"s3://bucket/%00":                "zero byte",
		"a\x00b":                         "zero byte",
	} {
		_, err := config.DatasetKey(uri)
		require.ErrorContains(t, err, why, uri)
	}
}

func TestOnePlaceIsOneDataset(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := config.Resolve(config.Input{Datasets: []string{
		"s3://bucket/t/", "s3://bucket/t", dir, "file://" + dir, "s3+ddb://bucket/v?ddbTableName=T", "s3+ddb://bucket/v/?ddbTableName=T", "s3://bucket/u",
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"s3://bucket/t/", dir, "s3+ddb://bucket/v?ddbTableName=T", "s3://bucket/u"}, c.Datasets, "the first spelling stays")

	for _, other := range []string{"s3://bucket/t", "s3+ddb://bucket/t?ddbTableName=U"} {
		_, err := config.Resolve(config.Input{Datasets: []string{"s3+ddb://bucket/t?ddbTableName=T", other}})
		require.ErrorContains(t, err, "one dataset has one manifest store")
	}
}
