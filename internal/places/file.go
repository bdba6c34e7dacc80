package places

import (
	"context"
	"path"
	"path/filepath"

	"lancekeeper/internal/config"
	"lancekeeper/internal/objstore"
)

// FileError says why a text names no file.
type FileError struct{ Detail string }

// Error says it.
func (e *FileError) Error() string { return e.Detail }

// OpenFile opens the folder of one file, s3://bucket/key or a local path, and gives the file's name in it. *FileError where uri is
// neither.
func OpenFile(ctx context.Context, uri string, o Options) (store objstore.Store, key string, err error) {
	p, err := config.ParsePlace(uri)
	if err != nil {
		return nil, "", &FileError{Detail: err.Error()}
	}
	switch {
	case p.Kind == config.External:
		return nil, "", &FileError{Detail: "a file is named as s3://bucket/key or by a local path"}
	case p.Kind == config.S3 && p.Path == "":
		return nil, "", &FileError{Detail: "names a bucket and no file in it"}
	case p.Kind == config.S3:
		p.Path, key = path.Split(p.Path)
		p.Path = path.Clean(p.Path)
		if p.Path == "." {
			p.Path = ""
		}
	default:
		p.Path, key = filepath.Dir(p.Path), filepath.Base(p.Path)
	}
	if store, err = open(ctx, p, o); err != nil {
		return nil, "", err
	}
	return store, key, nil
}
