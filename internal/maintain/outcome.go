package maintain

import (
	"context"
	"errors"

	"lancekeeper/internal/budget"
	"lancekeeper/internal/compact"
	"lancekeeper/internal/config"
	"lancekeeper/internal/lance"
	"lancekeeper/internal/ledger"
	"lancekeeper/internal/lock"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/prune"
)

// Classes of failure in the result document and the ledger.
const (
	classUnsupported = "unsupported"
	classCorrupt     = "corrupt"
	classMismatch    = "mismatch"
	classLock        = "lock"
	classDenied      = "denied"
	classThrottled   = "throttled"
	classConfig      = "config"
	classOther       = "other"
)

// judge says what an error makes of a pass: the one place where errors become outcomes. Fault is nil for the outcomes that
// are no failure. A spent budget or an ended context is partial; a held lock is skipped; everything else is failed.
func judge(err error) (Outcome, *Fault) {
	var held *lock.HeldError
	switch {
	case err == nil:
		return OK, nil
	case errors.As(err, &held):
		return Skipped, nil
	case errors.Is(err, lock.ErrLost), errors.Is(err, ledger.ErrFenced):
		return Failed, fault(classLock, err)
	case errors.Is(err, budget.ErrSpent), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Partial, nil
	}
	return Failed, fault(classOf(err), err)
}

// classOf names the class of a failure.
func classOf(err error) string {
	var mismatch *compact.MismatchError
	var setting *config.Error
	var tagged *prune.TaggedError
	switch {
	case errors.As(err, &mismatch):
		return classMismatch
	case errors.Is(err, lance.ErrUnsupported):
		return classUnsupported
	case errors.Is(err, lance.ErrCorrupt):
		return classCorrupt
	case errors.Is(err, objstore.ErrDenied):
		return classDenied
	case errors.Is(err, objstore.ErrThrottled):
		return classThrottled
	case errors.As(err, &setting), errors.As(err, &tagged):
		return classConfig
	default:
		return classOther
	}
}

// fault puts an error into the result document, with the object it names.
func fault(class string, err error) *Fault {
	f := &Fault{Class: class, Message: err.Error()}
	var unsupported *lance.UnsupportedError
	var corrupt *lance.CorruptError
	var mismatch *compact.MismatchError
	switch {
	case errors.As(err, &unsupported):
		f.Object = unsupported.Object
	case errors.As(err, &corrupt):
		f.Object = corrupt.Object
	case errors.As(err, &mismatch):
		f.Object = mismatch.File
	}
	return f
}
