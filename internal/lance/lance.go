// Package lance holds the two classes of error that the format engine below it returns.
package lance

import (
	"errors"
	"fmt"
)

// ErrUnsupported is the class of errors about things that are valid but not understood here: a feature flag,
// a manifest field, an encoding, a column type, an index kind. The thing is left alone and counted.
var ErrUnsupported = errors.New("unsupported")

// ErrCorrupt is the class of errors about bytes that break the format. Nothing of the dataset is deleted.
var ErrCorrupt = errors.New("corrupt")

// UnsupportedError names one thing that is not understood.
type UnsupportedError struct {
	What   string // kind of thing, for example "writer feature flag", "encoding", "column type"
	Name   string // which one, for example "bit 18", "list", "fixed_size_list:struct"
	Object string // where it stands: an object's key, a column's path; may be empty
}

// Error says what is not supported, and where.
func (e *UnsupportedError) Error() string {
	if e.Object == "" {
		return fmt.Sprintf("unsupported %s %s", e.What, e.Name)
	}
	return fmt.Sprintf("%s: unsupported %s %s", e.Object, e.What, e.Name)
}

// Is reports that the error is of class ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// Unsupported returns an *UnsupportedError.
func Unsupported(what, name, object string) error {
	return &UnsupportedError{What: what, Name: name, Object: object}
}

// CorruptError says how an object's bytes break the format.
type CorruptError struct {
	Object string // key of the object; codecs that do not know it leave it empty
	Detail string
}

// Error says which object is damaged, and how.
func (e *CorruptError) Error() string {
	if e.Object == "" {
		return "corrupt: " + e.Detail
	}
	return fmt.Sprintf("%s is corrupt: %s", e.Object, e.Detail)
}

// Is reports that the error is of class ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Corrupt returns a *CorruptError; object may be empty where the caller will wrap it with the key.
func Corrupt(object, format string, args ...any) error {
	return &CorruptError{Object: object, Detail: fmt.Sprintf(format, args...)}
}
