// Package places opens where datasets are, and finds the datasets of a root.
package places

import (
	"context"
	"fmt"

	"lancekeeper/internal/config"
	"lancekeeper/internal/fleet"
	"lancekeeper/internal/lance"
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

// Find opens every place and lists the datasets there. A place that can't be opened, or holds none, is a Dataset whose Open
// fails, so that it is counted and named like any other failure.
func Find(ctx context.Context, uris []string) []Dataset {
	var out []Dataset
	seen := map[string]struct{}{}
	for _, uri := range uris {
		for _, d := range find(ctx, uri) {
			if _, twice := seen[d.Key]; !twice {
				seen[d.Key] = struct{}{}
				out = append(out, d)
			}
		}
	}
	return out
}

func find(ctx context.Context, uri string) []Dataset {
	broken := func(key string, err error) []Dataset {
		return []Dataset{{Key: key, URI: uri, Open: func(context.Context) (objstore.Store, error) { return nil, err }}}
	}
	place, err := config.ParsePlace(uri)
	if err != nil {
		return broken(uri, fmt.Errorf("%s: %w", uri, err))
	}
	store, err := open(ctx, place)
	if err != nil {
		return broken(place.Key(), err)
	}
	found, err := fleet.Find(ctx, store)
	if err != nil {
		return broken(place.Key(), err)
	}
	var out []Dataset
	if found.Self {
		out = append(out, Dataset{Key: place.Key(), URI: store.URI(), Open: func(context.Context) (objstore.Store, error) { return store, nil }})
	}
	for _, name := range found.Datasets {
		out = append(out, Dataset{
			Key: place.Key() + "/" + name, URI: store.URI() + "/" + name,
			Open: func(context.Context) (objstore.Store, error) { return objstore.Sub(store, name) },
		})
	}
	return out
}

// open returns the store of a place.
func open(ctx context.Context, p config.Place) (objstore.Store, error) {
	switch p.Kind {
	case config.Local:
		return filestore.Open(p.Path) //nolint:wrapcheck // names the folder
	case config.S3:
		return s3store.Open(ctx, p.Bucket, p.Path, s3store.Options{}) //nolint:wrapcheck // names the bucket
	case config.External:
	}
	return nil, lance.Unsupported("commit protocol", "external manifest store (s3+ddb)", p.Key())
}
