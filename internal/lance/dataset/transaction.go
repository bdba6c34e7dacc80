package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/objstore"
)

// TransactionFolder is where transaction files lie, below the dataset's root.
const TransactionFolder = "_transactions/"

// Limits of what ReadTransactionOf reads of a manifest that is larger than one tail.
const (
	proofTail    = 64 << 10
	proofSection = 8 << 20 // a larger transaction is not read as proof
)

// ReadTransaction returns the transaction that made a version: the inline copy, else the file that the manifest names; nil
// if there is neither.
func ReadTransaction(ctx context.Context, store objstore.Store, m *manifest.Manifest) (*lancepb.Transaction, error) {
	if m.Transaction != nil {
		return m.Transaction, nil
	}
	name := m.GetTransactionFile()
	if name == "" {
		return nil, nil //nolint:nilnil // no transaction is not an error: old writers and clean-ups leave none
	}
	key := TransactionFolder + name
	if err := objstore.CheckKey(key); err != nil {
		return nil, lance.Corrupt(key, "name of the transaction file: %v", err)
	}
	data, _, err := store.Get(ctx, key)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("read transaction %s: %w", key, err)
	}
	var t lancepb.Transaction
	if err := proto.Unmarshal(data, &t); err != nil {
		return nil, lance.Corrupt(key, "transaction: %v", err)
	}
	return &t, nil
}

// Proof is what a manifest file says, cheaply, of the commit that made it.
type Proof struct {
	Manifest    *manifest.Manifest   // the whole manifest, where it was small enough to be read at once; else nil
	Transaction *lancepb.Transaction // inline; nil if there is none or it is too large
}

// ReadProof reads as much of a version's manifest file as is needed to know its transaction: one tail of 64 KiB, which holds
// all of a small manifest; of a larger one also the head of the sections in front of the message, and the transaction's own
// bytes up to 8 MiB. ErrCorrupt where footer, lengths or messages do not fit.
func ReadProof(ctx context.Context, store objstore.Store, v Version) (*Proof, error) {
	tail, size, err := store.GetTail(ctx, v.Key, proofTail)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", v.Key, err)
	}
	position, err := manifest.Footer(v.Key, tail, size)
	if err != nil {
		return nil, fmt.Errorf("manifest of version %d: %w", v.Number, err)
	}
	if size <= int64(len(tail)) {
		m, err := manifest.Decode(v.Key, tail)
		if err != nil {
			return nil, fmt.Errorf("decode manifest of version %d: %w", v.Number, err)
		}
		if m.GetVersion() != v.Number {
			return nil, lance.Corrupt(v.Key, "it says that it is version %d, its name says %d", m.GetVersion(), v.Number)
		}
		return &Proof{Manifest: m, Transaction: m.Transaction}, nil
	}
	t, known, err := sectionBefore(ctx, store, v.Key, position)
	if err != nil {
		return nil, err
	}
	if !known {
		m, err := ReadManifest(ctx, store, v)
		if err != nil {
			return nil, err
		}
		return &Proof{Manifest: m, Transaction: m.Transaction}, nil
	}
	return &Proof{Transaction: t}, nil
}

// sectionBefore walks the length-prefixed sections in front of the manifest message. The first byte tells which one it is:
// an index section begins with field 1 as bytes, a transaction with field 1 as a number or field 2. known is false where something
// else stands there: old engines keep dictionaries in front of the sections.
func sectionBefore(ctx context.Context, store objstore.Store, key string, end int64) (t *lancepb.Transaction, known bool, err error) {
	const indexSectionTag = 0x0a
	for at := int64(0); at+5 <= end; {
		head, err := store.GetRange(ctx, key, at, 5)
		if err != nil {
			return nil, false, fmt.Errorf("read manifest %s: %w", key, err)
		}
		length := int64(binary.LittleEndian.Uint32(head))
		if length > end-at-4 {
			return nil, false, nil
		}
		if head[4] == indexSectionTag {
			at += 4 + length
			continue
		}
		if length > proofSection {
			return nil, true, nil // too large to serve as proof
		}
		body, err := store.GetRange(ctx, key, at+4, length)
		if err != nil {
			return nil, false, fmt.Errorf("read manifest %s: %w", key, err)
		}
		t := &lancepb.Transaction{}
		if proto.Unmarshal(body, t) != nil || t.GetUuid() == "" {
			return nil, false, nil //nolint:nilerr // it is something else
		}
		return t, true, nil
	}
	return nil, true, nil // no transaction is inlined
}
