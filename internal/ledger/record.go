package ledger

import (
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// format is the number of the encoding below. An entry of a higher one is not touched.
const format = 1

// maxJournal bounds what a stored journal may unfold to.
const maxJournal = 64 << 20

// record is an entry as it is stored, in a table's item or a file. The first members are kept apart from the rest because
// Begin and Skip change them alone, in one atomic write.
type record struct {
	Dataset    string   `json:"dataset"`
	Generation uint64   `json:"generation"`
	Skips      int      `json:"skips,omitempty"`
	LastSkip   *Skip    `json:"lastSkip,omitempty"`
	Started    *Started `json:"started,omitempty"`
	Unfinished *Started `json:"unfinished,omitempty"`
	State      string   `json:"state,omitempty"` // the rest, as JSON
	Sweep      []byte   `json:"sweep,omitempty"` // the journal: a JSON array of names, zstd
}

// state is what record.State holds.
type state struct {
	Format int `json:"format"`
	Entry
}

// encode makes a record of an entry; *TooLargeError if it does not fit into an item.
func encode(e Entry) (record, error) {
	r := record{
		Dataset: e.Dataset, Generation: e.Generation, Skips: e.ConsecutiveSkips, LastSkip: e.LastSkip,
		Started: e.Started, Unfinished: e.Unfinished,
	}
	rest := e
	rest.Dataset, rest.Generation, rest.ConsecutiveSkips = "", 0, 0
	rest.LastSkip, rest.Started, rest.Unfinished, rest.Sweep = nil, nil, nil, nil
	data, err := json.Marshal(state{Format: format, Entry: rest})
	if err != nil {
		return record{}, fmt.Errorf("encode the ledger entry of %s: %w", e.Dataset, err)
	}
	r.State = string(data)
	if r.Sweep, err = pack(e.Sweep); err != nil {
		return record{}, fmt.Errorf("encode the journal of %s: %w", e.Dataset, err)
	}
	if size := len(r.State) + len(r.Sweep); size > MaxBytes {
		return record{}, &TooLargeError{Dataset: e.Dataset, Bytes: size, Names: len(e.Sweep)}
	}
	return r, nil
}

// entry decodes a record.
func (r record) entry() (Entry, error) {
	s := state{Format: format}
	if r.State != "" {
		if err := json.Unmarshal([]byte(r.State), &s); err != nil {
			return Entry{}, fmt.Errorf("decode the ledger entry of %s: %w", r.Dataset, err)
		}
	}
	if s.Format != format {
		return Entry{}, fmt.Errorf("decode the ledger entry of %s: it has format %d, this program knows %d", r.Dataset, s.Format, format)
	}
	for key := range s.Quarantine {
		if _, err := parseFragmentSet(key); err != nil {
			return Entry{}, fmt.Errorf("decode the quarantine of %s: %w", r.Dataset, err)
		}
	}
	e := s.Entry
	e.Dataset, e.Generation, e.ConsecutiveSkips, e.LastSkip = r.Dataset, r.Generation, r.Skips, r.LastSkip
	e.Started, e.Unfinished = r.Started, r.Unfinished
	var err error
	if e.Sweep, err = unpack(r.Sweep); err != nil {
		return Entry{}, fmt.Errorf("decode the journal of %s: %w", r.Dataset, err)
	}
	if e.FirstSeen.IsZero() && e.Started != nil {
		e.FirstSeen = e.Started.At
	}
	return e, nil
}

func pack(names []string) ([]byte, error) {
	if len(names) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(names)
	if err != nil {
		return nil, fmt.Errorf("encode names: %w", err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, fmt.Errorf("compress names: %w", err)
	}
	packed := encoder.EncodeAll(data, nil)
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("compress names: %w", err)
	}
	return packed, nil
}

func unpack(packed []byte) ([]string, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxJournal))
	if err != nil {
		return nil, fmt.Errorf("decompress names: %w", err)
	}
	defer decoder.Close()
	data, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("decompress names: %w", err)
	}
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return nil, fmt.Errorf("decode names: %w", err)
	}
	return names, nil
}

// begun is the record after a pass began on it. ok is false if a later one has already.
func (r record) begun(s Started) (next record, ok bool) {
	if r.Generation == s.Generation && r.Started != nil && r.Started.Owner == s.Owner && r.Started.At.Equal(s.At) {
		return r, true // begun already, by this very call
	}
	if r.Generation >= s.Generation {
		return r, false
	}
	r.Generation, r.Unfinished, r.Started, r.Skips = s.Generation, r.Started, &s, 0
	return r, true
}

func fenced(dataset string, stored, ours uint64) error {
	return fmt.Errorf("ledger entry of %s: %w: generation %d is stored, ours is %d", dataset, ErrFenced, stored, ours)
}
