package v21

import (
	"fmt"
	"math"
	"math/rand/v2"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// When values are replaced by indices into a dictionary (lance-encoding structural_encoder.rs:should_dictionary_encode).
const (
	dictionaryFrom  = 100    // values in the page
	dictionaryMost  = 100000 // distinct values
	dictionaryBytes = 8 << 20
	indexBits       = 32
)

// sampleSize is the values looked at before a large page is searched for equal ones.
const sampleSize = 8 << 10

// hardlyRepeats guesses from a sample of a large page that nearly all values differ: some 40,000 distinct ones pass.
func (w *writer) hardlyRepeats() bool {
	if w.values.N < 8*sampleSize {
		return false
	}
	r := rand.New(rand.NewPCG(uint64(w.values.N), 0)) // the same choice for the same page
	seen := make(map[string]struct{}, sampleSize)
	looked := 0
	for range sampleSize {
		i := r.IntN(w.values.N)
		if w.null == nil || !w.null[i] {
			looked++
			seen[string(w.value(i))] = struct{}{}
		}
	}
	return len(seen) > looked*9/10
}

// dictionary returns the values as indices where many are equal and that is smaller; nil where it is not.
func (w *writer) dictionary() (*miniValues, error) {
	n := w.values.N
	if n < dictionaryFrom || !w.mayRepeat() || w.hardlyRepeats() {
		return nil, nil //nolint:nilnil // no dictionary is no error
	}
	items, indices := w.distinct(min(n/2, dictionaryMost), dictionaryBytes, indexBits)
	if items == nil {
		return nil, nil //nolint:nilnil // as above
	}
	v := fixedValues(indices, indexBits)
	if err := w.dictionaryItems(v, items); err != nil {
		return nil, err
	}
	raw := len(w.values.Fixed) + len(w.values.Data) + len(w.values.Offsets)*w.t.OffsetBits/8
	if w.t.Kind == encoding.Fixed {
		raw = min(raw, fixedSize(w.values.Fixed, w.t.Bits))
	}
	if packed := fixedSize(indices, indexBits) + len(v.dictionaryBytes); packed > raw*8/10 {
		return nil, nil //nolint:nilnil // as above
	}
	return v, nil
}

// keyed returns the values of an Arrow dictionary column: readers want a dictionary whatever it costs, and keys of the column's
// own width.
func (w *writer) keyed() (*miniValues, error) {
	items, indices := w.distinct(w.t.MaxKeys, math.MaxInt32, w.t.KeyBits)
	if items == nil {
		return nil, encoding.ErrKeys
	}
	v := fixedValues(indices, w.t.KeyBits)
	return v, w.dictionaryItems(v, items)
}

// distinct lists the values that occur, in the order of their first, and for each slot which one it has; 0 for null ones. nil
// if there are more than most values or bytes.
func (w *writer) distinct(most, bytes, bits int) (items *encoding.Values, indices []byte) {
	seen := make(map[string]int, min(most, 1024))
	items = &encoding.Values{Offsets: []int{0}}
	indices = make([]byte, 0, w.values.N*bits/8)
	for i := range w.values.N {
		if w.null != nil && w.null[i] {
			indices = appendNumber(indices, bits/8, 0)
			continue
		}
		value := w.value(i)
		at, ok := seen[string(value)]
		if !ok {
			if at = len(seen); at >= most || len(items.Data)+len(value) > bytes {
				return nil, nil
			}
			seen[string(value)] = at
			items.Data = append(items.Data, value...)
			items.Offsets = append(items.Offsets, len(items.Data))
		}
		indices = appendNumber(indices, bits/8, uint64(at))
	}
	items.N = len(seen)
	return items, indices
}

// mayRepeat says whether readers of the version take dictionaries of this type: text always, 128 bits always, 64 from 2.2.
func (w *writer) mayRepeat() bool {
	switch w.t.Kind {
	case encoding.Bytes:
		return true
	case encoding.Fixed:
		return w.t.Bits == 128 || w.t.Bits == 64 && w.minor >= 2
	case encoding.Vector, encoding.Void:
	}
	return false
}

// fixedSize is the bytes that values take in their best form.
func fixedSize(values []byte, width int) int {
	if !wordSize(width) {
		return len(values)
	}
	return min(len(values), packedSize(values, width), runSize(values, width/8))
}

// dictionaryItems encodes the distinct values, compressed from 2.2 on where that is smaller.
func (w *writer) dictionaryItems(v *miniValues, items *encoding.Values) error {
	plain := items.Data
	enc := flatEncoding(w.t.Bits)
	if w.t.Kind == encoding.Bytes {
		plain, enc = stringsBlock(items, w.t.OffsetBits), variableEncoding(w.t.OffsetBits)
	}
	v.dictionary, v.dictionaryItems, v.dictionaryBytes = enc, items.N, plain
	if w.minor < 2 {
		return nil
	}
	const scheme = enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_LZ4
	packed, err := w.codec.Compress(scheme, plain)
	if err != nil {
		return fmt.Errorf("compress a dictionary of %d items: %w", items.N, err)
	}
	if len(packed) < len(plain) {
		v.dictionary, v.dictionaryBytes = generalEncoding(scheme, enc), packed
	}
	return nil
}
