package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// Kind is where a place is kept.
type Kind string

// Kinds of places. With External another store than the bucket decides which manifest is the latest.
const (
	Local    Kind = "local"
	S3       Kind = "s3"
	External Kind = "s3+ddb"
)

// Place is a dataset, or a root with datasets, taken apart.
type Place struct {
	Kind   Kind
	Bucket string // not Local
	Path   string // Local: absolute; else the key without slashes around it, empty for the whole bucket
	Table  string // External: the DynamoDB table that holds its manifests
}

const supported = "supported are s3://bucket/path, s3+ddb://bucket/path?ddbTableName=TABLE and local paths"

var (
	scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	bucket = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,254}$`) // what a store really takes is its own affair
)

// ParsePlace reads where a dataset is. Two spellings of one place are the same Place.
func ParsePlace(uri string) (Place, error) {
	if strings.TrimSpace(uri) == "" {
		return Place{}, errors.New("must name a place: " + supported)
	}
	match := scheme.FindStringSubmatch(uri)
	if match == nil {
		return localPlace(uri)
	}
	rest := uri[len(match[0]):]
	switch name := strings.ToLower(match[1]); name {
	case "file":
		return filePlace(rest)
	case "s3":
		return s3Place(rest)
	case "s3+ddb":
		return externalPlace(rest)
	default:
		return Place{}, fmt.Errorf("%s:// is not supported: %s", name, supported)
	}
}

// DatasetKey is the canonical name of a place, as lock and ledger know it: s3://bucket/path, or an absolute path. A dataset
// with an external manifest store has the name that it has in its bucket.
func DatasetKey(uri string) (string, error) {
	p, err := ParsePlace(uri)
	if err != nil {
		return "", err
	}
	return p.Key(), nil
}

// Key is what DatasetKey returns.
func (p Place) Key() string {
	if p.Kind == Local {
		return p.Path
	}
	return strings.TrimSuffix("s3://"+p.Bucket+"/"+p.Path, "/")
}

func s3Place(rest string) (Place, error) {
	name, path, _ := strings.Cut(rest, "/")
	if !bucket.MatchString(name) {
		return Place{}, fmt.Errorf("%q is no bucket name", name)
	}
	if strings.Contains(path, "?") {
		return Place{}, errors.New("an s3:// place takes no parameters after ?")
	}
	key, err := cleanKey(path)
	if err != nil {
		return Place{}, err
	}
	return Place{Kind: S3, Bucket: name, Path: key}, nil
}

func externalPlace(rest string) (Place, error) {
	place, parameters, _ := strings.Cut(rest, "?")
	p, err := s3Place(place)
	if err != nil {
		return Place{}, err
	}
	values, err := url.ParseQuery(parameters)
	if err != nil || len(values) != 1 || values.Get("ddbTableName") == "" {
		return Place{}, errors.New("an s3+ddb:// place takes one parameter: ?ddbTableName=TABLE")
	}
	p.Kind, p.Table = External, values.Get("ddbTableName")
	return p, nil
}

// cleanKey drops empty and dot segments. Percent escapes are decoded, as the official engine does.
func cleanKey(path string) (string, error) {
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	if strings.ContainsRune(path, 0) {
		return "", errors.New("must not hold a zero byte")
	}
	var kept []string
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "", ".":
		case "..":
			if len(kept) == 0 {
				return "", errors.New("leads out of its bucket: it has more .. than folders")
			}
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, segment)
		}
	}
	return strings.Join(kept, "/"), nil
}

func filePlace(rest string) (Place, error) {
	path := strings.TrimPrefix(rest, "localhost")
	if !strings.HasPrefix(path, "/") {
		return Place{}, errors.New("a file:// place has three slashes and an absolute path: file:///data/t.lance")
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return Place{}, fmt.Errorf("decode the path: %w", err)
	}
	return localPlace(decoded)
}

func localPlace(path string) (Place, error) {
	if strings.ContainsRune(path, 0) {
		return Place{}, errors.New("must not hold a zero byte")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Place{}, fmt.Errorf("find the absolute path: %w", err)
	}
	return Place{Kind: Local, Path: resolveLinks(absolute)}, nil
}

// resolveLinks follows symbolic links in as much of the path as exists.
func resolveLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolveLinks(parent), filepath.Base(path))
}
