package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"lancekeeper/internal/durable"
)

// FileOptions configure a FileLocker. All are required.
type FileOptions struct {
	Dir   string // where the locks are; made if it is not there
	Owner string // for people: who holds it
	Now   func() time.Time
}

// FileLocker keeps leases in a folder, one lock file a dataset. The operating system holds the lock and frees it when the
// process ends, however it ends, so these leases have no end and need no heartbeat. It keeps apart the processes of one machine.
type FileLocker struct {
	o FileOptions
}

// NewFile returns a locker on a folder.
func NewFile(o FileOptions) *FileLocker { return &FileLocker{o: o} }

// fileRecord lies beside the lock file: the generation, which must outlive every holder, and who holds or held the lock.
type fileRecord struct {
	Dataset    string    `json:"dataset"`
	Generation uint64    `json:"generation"`
	Owner      string    `json:"owner,omitempty"` // empty when free
	Host       string    `json:"host,omitempty"`
	PID        int       `json:"pid,omitempty"`
	Acquired   time.Time `json:"acquired,omitzero"`
	Expires    time.Time `json:"expires,omitzero"` // when the holder means to be done
	Released   time.Time `json:"released,omitzero"`
}

// Acquire takes the lease on a dataset. until is only written down, for people. *HeldError if another holds it.
func (k *FileLocker) Acquire(_ context.Context, dataset string, until time.Time) (*Lease, error) {
	h := k.holding(dataset)
	if err := h.take(); err != nil {
		return nil, err
	}
	now := k.o.Now()
	generation, err := h.nextGeneration(now)
	if err == nil {
		host, _ := os.Hostname() // only for people
		h.record = fileRecord{
			Dataset: dataset, Generation: generation, Owner: k.o.Owner,
			Host: host, PID: os.Getpid(), Acquired: now.UTC(), Expires: until.UTC(),
		}
		err = h.write()
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dataset, errors.Join(err, h.lock.Close()))
	}
	return &Lease{
		dataset: dataset, owner: k.o.Owner, generation: generation, holding: h,
		now: k.o.Now, granted: now, until: until,
	}, nil
}

// Break tells whether there is anything to break: a lock whose process is gone is free already (nil); one that is held is
// held by a running process (*HeldError), which is to be ended instead.
func (k *FileLocker) Break(_ context.Context, dataset, _ string) error {
	h := k.holding(dataset)
	if err := h.take(); err != nil {
		return err
	}
	return h.lock.Close()
}

func (k *FileLocker) holding(dataset string) *fileHolding {
	base := filepath.Join(k.o.Dir, durable.Name(dataset))
	return &fileHolding{locker: k, dataset: dataset, path: base + ".lock", beside: base + ".lock.json", lock: flock.New(base + ".lock")}
}

// fileHolding is one lease, held or asked for.
type fileHolding struct {
	locker  *FileLocker
	dataset string
	path    string
	beside  string
	lock    *flock.Flock
	record  fileRecord
}

func (h *fileHolding) take() error {
	if err := os.MkdirAll(h.locker.o.Dir, 0o700); err != nil {
		return fmt.Errorf("lock %s: %w", h.dataset, err)
	}
	locked, err := h.lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", h.dataset, err)
	}
	if locked {
		// Somebody may have removed the file after it was opened: then another may lock its successor.
		if err := h.intact(); err != nil {
			return errors.Join(err, h.lock.Close())
		}
		return nil
	}
	record, err := h.read()
	if err != nil {
		record = fileRecord{} // held all the same; by whom is not known
	}
	held := &HeldError{
		Dataset: h.dataset, Owner: record.Owner, Since: record.Acquired, Until: record.Expires, Generation: record.Generation,
		Advice: "the lock ends with its process",
	}
	if record.PID != 0 {
		held.Advice = fmt.Sprintf("the lock ends with process %d on %s", record.PID, record.Host)
	}
	return held
}

// read returns the record beside the lock; an empty one if there is none yet.
func (h *fileHolding) read() (fileRecord, error) {
	data, err := os.ReadFile(h.beside)
	if errors.Is(err, fs.ErrNotExist) {
		return fileRecord{}, nil
	}
	if err != nil {
		return fileRecord{}, fmt.Errorf("read the record of a lock: %w", err)
	}
	var r fileRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return fileRecord{}, fmt.Errorf("read the record of a lock %s: %w", h.beside, err)
	}
	return r, nil
}

// nextGeneration raises the fence. The first one is the clock's second, so that it does not fall even if the record was removed.
func (h *fileHolding) nextGeneration(now time.Time) (uint64, error) {
	record, err := h.read()
	if err != nil {
		return 0, err
	}
	if record.Generation == 0 {
		return uint64(max(now.Unix(), 0)) + 1, nil
	}
	return record.Generation + 1, nil
}

func (h *fileHolding) write() error {
	data, err := json.Marshal(h.record)
	if err != nil {
		return fmt.Errorf("encode the record of a lock: %w", err)
	}
	return durable.WriteFile(h.beside, data)
}

func (h *fileHolding) renew(context.Context, time.Time) error { return nil }

// intact looks whether the lock file is still the one that is locked: if somebody removed it, another may hold its successor.
func (h *fileHolding) intact() error {
	ours, err := h.lock.Stat()
	if err != nil {
		return fmt.Errorf("%w: the lock file of %s: %w", ErrLost, h.dataset, err)
	}
	named, err := os.Stat(h.path)
	if err != nil {
		return fmt.Errorf("%w: the lock file of %s: %w", ErrLost, h.dataset, err)
	}
	if !os.SameFile(ours, named) {
		return fmt.Errorf("%w: the lock file of %s was replaced", ErrLost, h.dataset)
	}
	return nil
}

func (h *fileHolding) release(context.Context) error {
	lost := h.intact()
	var err error
	if lost == nil {
		h.record = fileRecord{Dataset: h.dataset, Generation: h.record.Generation, Released: h.locker.o.Now().UTC()}
		err = h.write()
	}
	err = errors.Join(err, h.lock.Close())
	if lost != nil {
		return lost
	}
	if err != nil {
		return fmt.Errorf("release the lock on %s: %w", h.dataset, err)
	}
	return nil
}
