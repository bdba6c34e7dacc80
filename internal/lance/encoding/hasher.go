package encoding

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Hasher computes a hash of a column's values in order: which are null, the lists and structs around them, and the bytes of
// all others. It does not depend on how rows are cut into blocks, nor on whether a block without nulls could have had some.
type Hasher struct {
	t Type
	// Three streams, so that bytes are hashed in long runs: the entries' levels, each with how often it repeats; lengths of
	// byte strings and null items of vectors; the values' bytes.
	levels, details, bytes *xxhash.Digest
	level                  uint32 // of the entries counted in run: repetition, then meaning
	run                    uint64
	whole                  uint64 // vectors since the last one with a null item
	scratch                []byte
}

// NewHasher begins a hash of a column's values.
func NewHasher(t Type) *Hasher {
	return &Hasher{t: t, levels: xxhash.New(), details: xxhash.New(), bytes: xxhash.New()}
}

// Add hashes the rows of a block. What lies under null slots does not count.
func (h *Hasher) Add(b *Block) {
	if b.Rep == nil && b.Def == nil {
		h.count(0, uint64(b.Rows))
		h.values(&b.Values, 0, b.Values.N)
		return
	}
	meaning, visible := Meanings(b.Layers), uint16(0)
	for _, l := range b.Layers {
		list, null, _ := l.traits()
		if list {
			break
		}
		if null {
			visible++
		}
	}
	from, slot := 0, 0 // slots [from, slot) have values
	for i := range max(len(b.Rep), len(b.Def)) {
		var level uint32
		var def uint16
		if b.Rep != nil {
			level = uint32(b.Rep[i]) << 16
		}
		if b.Def != nil {
			def = b.Def[i]
		}
		h.count(level|uint32(meaning[def]), 1)
		if def > visible {
			continue
		}
		if def > 0 {
			h.values(&b.Values, from, slot)
			from = slot + 1
		}
		slot++
	}
	h.values(&b.Values, from, slot)
}

// count notes n more entries of a level.
func (h *Hasher) count(level uint32, n uint64) {
	if level == h.level || n == 0 {
		h.run += n
		return
	}
	h.end(h.levels)
	h.level, h.run = level, n
}

// end writes the entries counted so far.
func (h *Hasher) end(to *xxhash.Digest) {
	if h.run == 0 {
		return
	}
	h.scratch = binary.AppendUvarint(h.scratch[:0], uint64(h.level))
	h.scratch = binary.AppendUvarint(h.scratch, h.run)
	_, _ = to.Write(h.scratch) // never fails
}

// values hashes slots [from, to), which all have a value.
func (h *Hasher) values(v *Values, from, to int) {
	if from == to {
		return
	}
	if h.t.Kind != Bytes {
		width := h.t.Width()
		_, _ = h.bytes.Write(v.Fixed[from*width : to*width]) // never fails
		h.items(v.ItemValid, from, to)
		return
	}
	_, _ = h.bytes.Write(v.Data[v.Offsets[from]:v.Offsets[to]]) // never fails
	h.scratch = h.scratch[:0]
	for i := from; i < to; i++ {
		h.scratch = binary.AppendUvarint(h.scratch, uint64(v.Offsets[i+1]-v.Offsets[i]))
	}
	_, _ = h.details.Write(h.scratch) // never fails
}

// items hashes which items of vectors are null: for each vector with some, how many stand before it without, how many items
// are null, and which.
func (h *Hasher) items(valid []byte, from, to int) {
	if valid == nil {
		h.whole += uint64(to - from)
		return
	}
	items := h.t.Items()
	for i := from; i < to; i++ {
		nulls := 0
		flags := valid[i*items : (i+1)*items]
		for _, f := range flags {
			nulls += 1 - int(f)
		}
		if nulls == 0 {
			h.whole++
			continue
		}
		h.scratch = binary.AppendUvarint(h.scratch[:0], h.whole)
		h.scratch = binary.AppendUvarint(h.scratch, uint64(nulls))
		for at, f := range flags {
			if f == 0 {
				h.scratch = binary.AppendUvarint(h.scratch, uint64(at))
			}
		}
		_, _ = h.details.Write(h.scratch) // never fails
		h.whole = 0
	}
}

// Sum is the hash of all that was added. More may be added after it.
func (h *Hasher) Sum() uint64 {
	levels := *h.levels
	h.end(&levels)
	var sums []byte
	for _, d := range []*xxhash.Digest{&levels, h.details, h.bytes} {
		sums = binary.LittleEndian.AppendUint64(sums, d.Sum64())
	}
	return xxhash.Sum64(sums)
}
