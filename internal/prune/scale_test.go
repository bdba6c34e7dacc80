package prune_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/lance/deletion"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/manifest"
	"lancekeeper/internal/lance/txn"
	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/meterstore"
	"lancekeeper/internal/prune"
)

// What S3 publishes for one prefix, and latencies that it commonly has.
const (
	writesASecond = 3500 // each key of a batch counts
	readsASecond  = 5500
	pageLatency   = 100 * time.Millisecond
	getLatency    = 30 * time.Millisecond
	batchLatency  = 200 * time.Millisecond
	firstVersion  = 1_000_001 // so that all names are of one length
)

// archive is a store with a long history whose objects are made when they are asked for: it takes hardly any memory of its own. Each
// version replaces the one fragment, with a data file, a deletion file and a transaction. It answers as fast as S3, by the clock of
// a synctest bubble.
type archive struct {
	objstore.Store // what a clean-up must not ask for panics

	template *manifest.Manifest
	versions int
	made     func(i int) time.Time
	size     int64

	mu     sync.Mutex
	gone   map[dataset.Class][]bool
	write  time.Time // when the next write, or read, has its turn
	read   time.Time
	asked  int
	peak   uint64
	before uint64
}

// newArchive has a history of which the last version was made just now, and each other one step before the next.
func newArchive(t *testing.T, versions int, step time.Duration) *archive {
	t.Helper()
	y := newYard(t)
	m, err := dataset.ReadManifest(t.Context(), y.store, y.append(3))
	require.NoError(t, err)
	now := time.Now()
	a := &archive{template: m, versions: versions, gone: map[dataset.Class][]bool{}, made: func(i int) time.Time {
		return now.Add(-step * time.Duration(versions-1-i))
	}}
	for _, class := range archived() {
		a.gone[class] = make([]bool, versions)
	}
	data, err := manifest.Encode(a.manifest(0))
	require.NoError(t, err)
	a.size = int64(len(data))
	a.before = live()
	return a
}

func archived() []dataset.Class {
	return []dataset.Class{dataset.DeletionFile, dataset.Transaction, dataset.ManifestAttached, dataset.Data}
}

// live is the heap in use.
func live() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func (a *archive) fragment(i int) *lancepb.DataFragment {
	f := proto.CloneOf(a.template.GetFragments()[0])
	f.Id = uint64(firstVersion + i)
	f.Files[0].Path = fmt.Sprintf("%036d.lance", firstVersion+i)
	f.DeletionFile = &lancepb.DeletionFile{ReadVersion: uint64(firstVersion + i - 1), Id: uint64(firstVersion + i), NumDeletedRows: 1}
	return f
}

func transactionID(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i) }

func (a *archive) manifest(i int) *manifest.Manifest {
	m := &manifest.Manifest{Manifest: proto.CloneOf(a.template.Manifest)}
	f := a.fragment(i)
	version, highest := uint64(firstVersion+i), uint32(f.GetId())
	m.Version, m.MaxFragmentId, m.Fragments = version, &highest, []*lancepb.DataFragment{f}
	m.TransactionFile = txn.FileName(version-1, transactionID(i))
	m.Transaction = &lancepb.Transaction{ReadVersion: version - 1, Uuid: transactionID(i), Operation: &lancepb.Transaction_Update_{
		Update: &lancepb.Transaction_Update{RemovedFragmentIds: []uint64{f.GetId() - 1}, NewFragments: m.GetFragments()},
	}}
	manifest.RecomputeFlags(m)
	return m
}

func (a *archive) key(class dataset.Class, i int) string {
	switch class {
	case dataset.DeletionFile:
		return deletion.Key(uint64(firstVersion+i), &lancepb.DeletionFile{ReadVersion: uint64(firstVersion + i - 1), Id: uint64(firstVersion + i)})
	case dataset.Transaction:
		return txn.Key(uint64(firstVersion+i-1), transactionID(i))
	case dataset.ManifestAttached:
		return manifest.Key(uint64(firstVersion+i), manifest.V2)
	default:
		return fmt.Sprintf("%s%036d.lance", dataset.DataFolder, firstVersion+i)
	}
}

// index is the inverse of key.
func (a *archive) index(key string) (class dataset.Class, i int, ok bool) {
	class = dataset.Classify(key)
	base := key[strings.LastIndex(key, "/")+1:]
	switch class {
	case dataset.ManifestAttached:
		i = int(manifest.ParseName(base).Version) - firstVersion //nolint:gosec // small
	case dataset.DeletionFile, dataset.Transaction, dataset.Data:
		number, _, _ := strings.Cut(strings.TrimSuffix(base, ".lance"), "-")
		n, err := strconv.Atoi(number)
		if err != nil {
			return class, 0, false
		}
		i = n - firstVersion
		if class == dataset.Transaction {
			i++
		}
	default:
		return class, 0, false
	}
	return class, i, i >= 0 && i < a.versions && !a.gone[class][i]
}

// wait is the turn of n requests at a rate, and the time until the answer. Now and then it looks at the heap.
func (a *archive) wait(turn *time.Time, n int, rate float64, latency time.Duration) {
	a.mu.Lock()
	if now := time.Now(); turn.Before(now) {
		*turn = now
	}
	*turn = turn.Add(time.Duration(float64(n) / rate * float64(time.Second)))
	until := turn.Add(latency)
	a.mu.Unlock()
	time.Sleep(time.Until(until))
}

// look is called with each page and batch.
func (a *archive) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked++; a.asked%150 == 0 {
		a.peak = max(a.peak, live()-min(a.before, live()))
	}
}

func (a *archive) URI() string                            { return "s3://bucket/archive.lance" }
func (a *archive) Ordered() bool                          { return true }
func (a *archive) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (a *archive) List(_ context.Context, prefix, _ string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		n := 0
		page := func() {
			if n%1000 == 0 {
				a.wait(&a.read, 1, readsASecond, pageLatency)
				a.look()
			}
			n++
		}
		for _, class := range archived() {
			for j := range a.versions {
				i := j
				if class == dataset.ManifestAttached {
					i = a.versions - 1 - j
				}
				if a.gone[class][i] {
					continue
				}
				key := a.key(class, i)
				if !strings.HasPrefix(key, prefix) {
					break
				}
				page()
				if !yield(objstore.Object{Key: key, Size: a.size, Modified: a.made(i), ETag: fmt.Sprintf("%032x", i)}, nil) {
					return
				}
			}
		}
		if n == 0 {
			page()
		}
	}
}

func (a *archive) Get(_ context.Context, key string) ([]byte, objstore.Object, error) {
	a.wait(&a.read, 1, readsASecond, getLatency)
	class, i, ok := a.index(key)
	if !ok || class != dataset.ManifestAttached {
		return nil, objstore.Object{}, fmt.Errorf("get %s: %w", key, objstore.ErrNotExist)
	}
	data, err := manifest.Encode(a.manifest(i))
	return data, objstore.Object{Key: key, Size: int64(len(data)), Modified: a.made(i), ETag: fmt.Sprintf("%032x", i)}, err
}

func (a *archive) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	data, _, err := a.Get(ctx, key)
	return data[max(0, int64(len(data))-n):], int64(len(data)), err
}

func (a *archive) Delete(_ context.Context, keys []string) ([]objstore.KeyError, error) {
	for batch := range slices.Chunk(keys, 1000) {
		a.wait(&a.write, len(batch), writesASecond, batchLatency)
		a.look()
		for _, key := range batch {
			class, i, ok := a.index(key)
			if !ok {
				return nil, fmt.Errorf("delete %s: %w", key, objstore.ErrNotExist) // nothing is removed twice
			}
			a.gone[class][i] = true
		}
	}
	return nil, nil
}

// left counts what is there by class.
func (a *archive) left() map[dataset.Class]int {
	out := map[dataset.Class]int{}
	for class, gone := range a.gone {
		for _, g := range gone {
			if !g {
				out[class]++
			}
		}
	}
	return out
}

// drain makes one pass over a history and returns how long it took by the store's clock, how much heap it had at most, and what
// it asked for.
func drain(t *testing.T, versions int, step time.Duration) (took time.Duration, heap uint64, asked meterstore.Counts) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(t, versions, step)
		store, began := meterstore.New(a), time.Now()
		plan, err := prune.MakePlan(t.Context(), prune.Input{Store: store, Policy: prune.Policy{Keep: 1, UnverifiedAge: week}, Now: began})
		require.NoError(t, err)
		require.Len(t, plan.Expired, versions-1)
		r, err := prune.Sweep(t.Context(), store, plan, prune.Hooks{
			Guard: func(context.Context) error { return nil }, Journal: func(context.Context, []string) error {
				time.Sleep(getLatency)
				return nil
			},
		})
		require.NoError(t, err)
		require.Equal(t, versions-1, r.Versions)
		require.Zero(t, r.Remaining)
		require.Equal(t, map[dataset.Class]int{dataset.DeletionFile: 1, dataset.Transaction: 1, dataset.ManifestAttached: 1, dataset.Data: 1}, a.left())
		took, heap, asked = time.Since(began), a.peak, store.Counts()
	})
	t.Logf("%d versions: %s, %d MiB, %+v", versions, took, heap>>20, asked)
	return took, heap, asked
}

// TestScale: both histories at a tenth of the size that an invocation must manage, within a tenth of its time; see TestFullScale.
func TestScale(t *testing.T) {
	for name, step := range map[string]time.Duration{"young": time.Second, "old": 8 * time.Hour} {
		took, heap, asked := drain(t, 25_000, step)
		require.Less(t, took, 90*time.Second, name)
		require.Less(t, heap, uint64(40<<20), name)
		if name == "old" {
			require.Less(t, asked.List+asked.Get, int64(250), "0.01 requests a version, beside deletes, where no file needs proof")
		}
	}
}
