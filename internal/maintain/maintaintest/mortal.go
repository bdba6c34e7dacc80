// Package maintaintest has what tests of passes need.
package maintaintest

import (
	"context"
	"time"

	"lancekeeper/internal/ledger"
	"lancekeeper/internal/objstore/faultstore"
)

// Mortal is a ledger that takes part in the faults of a store: what a killed process would not have written is not written,
// and its writes are numbered with the store's.
type Mortal struct {
	*ledger.File
	Faults *faultstore.Store
}

// Begin is one mutation.
func (m Mortal) Begin(ctx context.Context, dataset string, generation uint64, now time.Time, owner string) (e ledger.Entry, err error) {
	err = m.Faults.Mutation(ctx, "ledger begin", dataset, func() error {
		e, err = m.File.Begin(ctx, dataset, generation, now, owner)
		return err //nolint:wrapcheck // a wrapper adds nothing
	})
	return e, err
}

// Save is one mutation.
func (m Mortal) Save(ctx context.Context, e ledger.Entry) error {
	return m.Faults.Mutation(ctx, "ledger save", e.Dataset, func() error {
		return m.File.Save(ctx, e) //nolint:wrapcheck // a wrapper adds nothing
	})
}
