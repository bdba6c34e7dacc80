package compact

import (
	"context"
	"errors"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/objstore"
)

// decoding says whether an error is about an object's content, not about reaching it.
func decoding(err error) bool {
	return errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported)
}

// blame puts an error down to a fragment where its files are at fault: damaged, not understood, or missing.
func blame(ctx context.Context, fragment uint64, err error) error {
	var already *FragmentError
	if ctx.Err() != nil || errors.As(err, &already) {
		return err
	}
	if decoding(err) || errors.Is(err, objstore.ErrNotExist) {
		return &FragmentError{Fragment: fragment, Err: err}
	}
	return err
}
