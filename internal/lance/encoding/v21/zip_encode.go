package v21

import (
	"fmt"
	"math"
	"math/bits"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// Sizes from which it is tried to compress each zipped value by itself. Official writers do from values of 32 KiB on
// (lance-encoding src/compression.rs), and have a symbol table for smaller ones.
const (
	bigValue = 1 << 10
	bigPage  = 32 << 10
)

// zipPage writes entries one after the other, each a control word and its value.
func (w *writer) zipPage() (*enc21pb.PageLayout, [][]byte, error) {
	if uint64(w.entries) > math.MaxUint32 {
		return nil, nil, lance.Unsupported("page", fmt.Sprintf("of %d entries", w.entries), "")
	}
	l := &enc21pb.FullZipLayout{
		BitsRep: uint32(levelBits(w.rep)), BitsDef: uint32(levelBits(w.def)),
		NumItems: uint32(w.entries), NumVisibleItems: uint32(w.values.N), Layers: w.sh.proto(),
	}
	var value func(dst []byte, slot int) []byte
	var size int
	if w.t.Kind == encoding.Bytes {
		packed, enc, err := w.zipStrings()
		if err != nil {
			return nil, nil, err
		}
		l.Details = &enc21pb.FullZipLayout_BitsPerOffset{BitsPerOffset: uint32(w.t.OffsetBits)}
		l.ValueCompression = enc
		width := w.t.OffsetBits / 8
		size = len(packed.Data) + width*packed.N
		value = func(dst []byte, slot int) []byte {
			if w.null != nil && w.null[slot] {
				return dst
			}
			v := packed.Data[packed.Offsets[slot]:packed.Offsets[slot+1]]
			return append(appendNumber(dst, width, uint64(len(v))), v...)
		}
	} else {
		each := w.zipWidth()
		l.Details = &enc21pb.FullZipLayout_BitsPerValue{BitsPerValue: uint32(8 * each)}
		l.ValueCompression = w.fixedEncoding(max(8, w.t.Bits))
		size = each * w.values.N
		value = w.appendFixed
	}
	data, index := w.zip(l, size, value)
	buffers := [][]byte{data}
	if w.t.Kind == encoding.Bytes || w.rep != nil {
		buffers = append(buffers, packIndex(index))
	}
	return &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_FullZipLayout{FullZipLayout: l}}, buffers, nil
}

// levelBits is the number of bits of the largest level.
func levelBits(levels []uint16) int {
	var or uint16
	for _, l := range levels {
		or |= l
	}
	return bits.Len16(or)
}

// zip returns the entries and the offset of each row in them, the end included.
func (w *writer) zip(l *enc21pb.FullZipLayout, size int, value func(dst []byte, slot int) []byte) ([]byte, []int) {
	width := controlWidth(int(l.GetBitsRep() + l.GetBitsDef()))
	if width == 0 && w.t.Kind != encoding.Bytes && w.values.ItemValid == nil {
		return w.values.Fixed, nil // as they are; there are no lists, so no index
	}
	data := make([]byte, 0, size+width*w.entries)
	index := make([]int, 0, w.rows+1)
	slot := 0
	for i := range w.entries {
		var rep, def uint16
		if w.rep != nil {
			rep = w.rep[i]
		}
		if w.def != nil {
			def = w.def[i]
		}
		if rep == w.sh.maxRep {
			index = append(index, len(data))
		}
		if width > 0 {
			data = appendNumber(data, width, uint64(rep)<<l.GetBitsDef()|uint64(def))
		}
		if def <= w.sh.visible {
			data = value(data, slot)
			slot++
		}
	}
	return data, append(index, len(data))
}

// zipStrings returns the values as they are zipped: each compressed by itself when they are big and that pays.
func (w *writer) zipStrings() (*encoding.Values, *enc21pb.CompressiveEncoding, error) {
	plain := variableEncoding(w.t.OffsetBits)
	if len(w.values.Data) < bigPage || w.widest() <= bigValue {
		return w.values, plain, nil
	}
	const scheme = enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_ZSTD
	if pays, err := w.valuesCompress(scheme); err != nil || !pays {
		return w.values, plain, err
	}
	packed := &encoding.Values{N: w.values.N, Offsets: make([]int, 1, w.values.N+1)}
	for i := range w.values.N {
		if w.null == nil || !w.null[i] {
			b, err := w.codec.Compress(scheme, w.value(i))
			if err != nil {
				return nil, nil, fmt.Errorf("compress value %d: %w", i, err)
			}
			packed.Data = append(packed.Data, b...)
		}
		packed.Offsets = append(packed.Offsets, len(packed.Data))
	}
	if len(packed.Data) >= len(w.values.Data) {
		return w.values, plain, nil
	}
	return packed, generalEncoding(scheme, plain), nil
}

// valuesCompress tries some values from all over the page: together they must shrink by a tenth.
func (w *writer) valuesCompress(scheme enc21pb.CompressionScheme) (bool, error) {
	const samples = 16
	plain, packed := 0, 0
	for i := range samples {
		value := w.value(i * w.values.N / samples)
		b, err := w.codec.Compress(scheme, value)
		if err != nil {
			return false, fmt.Errorf("compress a value: %w", err)
		}
		plain += len(value)
		packed += len(b)
	}
	return packed <= plain-plain/10, nil
}

// zipWidth is the bytes of a zipped fixed-width value: item validity, then items.
func (w *writer) zipWidth() int {
	n := w.t.Width()
	if w.values.ItemValid != nil {
		n += (w.t.Items() + 7) / 8
	}
	return n
}

// appendFixed adds a zipped fixed-width value.
func (w *writer) appendFixed(dst []byte, slot int) []byte {
	if w.values.ItemValid != nil {
		n := w.t.Items()
		dst = appendBits(dst, w.values.ItemValid[slot*n:(slot+1)*n])
	}
	return append(dst, w.value(slot)...)
}

// appendBits packs one bit a byte, least significant first.
func appendBits(dst, flags []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, (len(flags)+7)/8)...)
	for i, f := range flags {
		dst[at+i/8] |= f & 1 << (i % 8)
	}
	return dst
}

// fixedEncoding describes plain values of the column, items in bits bits. Only the innermost list can have null items.
func (w *writer) fixedEncoding(bits int) *enc21pb.CompressiveEncoding {
	enc := flatEncoding(bits)
	for i := len(w.t.Dims) - 1; i >= 0; i-- {
		enc = &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_FixedSizeList{FixedSizeList: &enc21pb.FixedSizeList{
			ItemsPerValue: uint64(w.t.Dims[i]), Values: enc,
			HasValidity: w.values.ItemValid != nil && i == len(w.t.Dims)-1,
		}}}
	}
	return enc
}
