package commit

import (
	"context"
	"errors"
	"fmt"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

// Verdict says whose a version is.
type Verdict int

// Verdicts.
const (
	Unknown Verdict = iota // it is there, but its transaction is not to be had
	Ours
	Theirs
	Absent // nobody has it yet
)

// Resolve finds out whether a version was made by the transaction with the given uuid (lance src/io/commit.rs:
// verify_commit_outcome). An error means that it could not be looked up.
func Resolve(ctx context.Context, store objstore.Store, version uint64, uuid string) (Verdict, error) {
	for _, scheme := range []manifest.Scheme{manifest.V2, manifest.V1} {
		t, found, err := transactionOf(ctx, store, dataset.Version{Number: version, Key: manifest.Key(version, scheme)})
		switch {
		case err != nil:
			return Unknown, fmt.Errorf("look up who made version %d: %w", version, err)
		case !found:
			continue
		case t == nil:
			return Unknown, nil
		case t.GetUuid() == uuid:
			return Ours, nil
		}
		return Theirs, nil
	}
	return Absent, nil
}

// transactionOf reads the transaction of a version; nil if it left none. found is false where the version does not exist.
func transactionOf(ctx context.Context, store objstore.Store, v dataset.Version) (t *lancepb.Transaction, found bool, err error) {
	proof, err := dataset.ReadProof(ctx, store, v)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("read version %d: %w", v.Number, err)
	}
	if proof.Transaction != nil {
		return proof.Transaction, true, nil
	}
	m := proof.Manifest
	if m == nil {
		if m, err = dataset.ReadManifest(ctx, store, v); err != nil {
			return nil, true, fmt.Errorf("read version %d: %w", v.Number, err)
		}
	}
	t, err = dataset.ReadTransaction(ctx, store, m)
	if err != nil {
		return nil, true, fmt.Errorf("read the transaction of version %d: %w", v.Number, err)
	}
	return t, true, nil
}
