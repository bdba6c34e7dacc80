// Package places opens where datasets are, and finds the datasets of a root.
package places

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"strings"

	"lancekeeper/internal/config"
	"lancekeeper/internal/dynamo/manifesttable"
	"lancekeeper/internal/fleet"
	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/manifeststore"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/filestore"
	"lancekeeper/internal/objstore/s3store"
)

// Dataset is one dataset to work on, or a place that could not be looked into: Open then says why.
type Dataset struct {
	Key  string // canonical: one place has one key, however it is spelled
	URI  string // for people
	Open func(ctx context.Context) (objstore.Store, error)
}

// Options are what the stores of places need beside their address.
type Options struct{ S3 s3store.Options }

// OptionsOf are those that settings ask for. log takes what the AWS SDK has to say.
func OptionsOf(c config.Config, log *slog.Logger) Options {
	o := s3store.Options{
		Encryption: s3store.Encryption(c.Encryption), KMSKeyID: c.KMSKey, RequesterPays: c.RequesterPays, BucketOwner: c.BucketOwner, Log: log,
	}
	switch c.Checksums {
	case config.ChecksumsSupported:
		o.Checksums = s3store.ChecksumsSupported
	case config.ChecksumsRequired:
		o.Checksums = s3store.ChecksumsRequired
	}
	return Options{S3: o}
}

// Find opens every place and lists the datasets there. A place that can't be opened, or holds none, is a Dataset whose Open
// fails, so that it is counted and named like any other failure.
func Find(ctx context.Context, uris []string, o Options) []Dataset {
	var out []Dataset
	seen := map[string]struct{}{}
	for _, uri := range uris {
		for _, d := range find(ctx, uri, o) {
			if _, twice := seen[d.Key]; !twice {
				seen[d.Key] = struct{}{}
				out = append(out, d)
			}
		}
	}
	return out
}

func find(ctx context.Context, uri string, o Options) []Dataset {
	broken := func(key string, err error) []Dataset {
		return []Dataset{{Key: key, URI: uri, Open: func(context.Context) (objstore.Store, error) { return nil, err }}}
	}
	place, err := config.ParsePlace(uri)
	if err != nil {
		return broken(uri, fmt.Errorf("%s: %w", uri, err))
	}
	store, err := open(ctx, place, o)
	if err != nil {
		return broken(place.Key(), err)
	}
	found, err := fleet.Find(ctx, store)
	if err != nil {
		return broken(place.Key(), err)
	}
	var out []Dataset
	if found.Self {
		out = append(out, Dataset{Key: place.Key(), URI: people(place, store.URI()), Open: func(ctx context.Context) (objstore.Store, error) {
			return versioned(ctx, place, "", store, o.S3.Log)
		}})
	}
	for _, name := range found.Datasets {
		out = append(out, Dataset{
			Key: place.Key() + "/" + name, URI: people(place, store.URI()+"/"+name),
			Open: func(ctx context.Context) (objstore.Store, error) {
				sub, err := objstore.Sub(store, name)
				if err != nil {
					return nil, err //nolint:wrapcheck // names the folder
				}
				return versioned(ctx, place, name, sub, o.S3.Log)
			},
		})
	}
	return out
}

// people is how a dataset is called: by the scheme that it was given with.
func people(p config.Place, uri string) string {
	if p.Kind == config.External {
		return string(config.External) + strings.TrimPrefix(uri, string(config.S3))
	}
	return uri
}

// versioned is the store of a dataset at a place, or in a folder below it: with an external manifest store, one whose versions
// that decides.
func versioned(ctx context.Context, p config.Place, folder string, store objstore.Store, log *slog.Logger) (objstore.Store, error) {
	if p.Kind != config.External {
		return store, nil
	}
	table, err := manifesttable.Open(ctx, p.Table, path.Join(p.Path, folder), log)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the table
	}
	return manifeststore.New(store, table, people(p, store.URI())) //nolint:wrapcheck // names the dataset
}

// open returns the store of a place.
func open(ctx context.Context, p config.Place, o Options) (objstore.Store, error) {
	switch p.Kind {
	case config.Local:
		return filestore.Open(p.Path) //nolint:wrapcheck // names the folder
	case config.S3, config.External:
		return s3store.Open(ctx, p.Bucket, p.Path, o.S3) //nolint:wrapcheck // names the bucket
	}
	return nil, lance.Unsupported("place", string(p.Kind), p.Key())
}
