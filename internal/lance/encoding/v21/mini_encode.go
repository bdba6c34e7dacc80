package v21

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/encoding/bitpack"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// Sizes of mini-block chunks.
const (
	chunkBytes     = 8 << 10  // of fixed-width values and of text to be compressed, about
	textChunkBytes = 4 << 10  // of plain text: readers read a chunk for each value that they look up
	wideChunkBytes = 16 << 10 // of wide text to be compressed
	wideMost       = 12 << 10 // the widest value of text to be compressed in chunks
	maxLog         = 12       // 4,096 values a chunk (miniblock.rs:MAX_MINIBLOCK_VALUES)
	maxChunk21     = 32 << 10
	maxRun         = 255
	miniPad        = 0xFE
	textPad        = 72
	compressFrom   = 32 << 10 // bytes of text in a page from which compression is tried
	maxLevels      = math.MaxUint16
)

// errLevels: a chunk would have more entries or bytes of levels, or more bytes, than its header can say.
var errLevels = errors.New("too many levels for a mini-block chunk")

// miniValues is how the values of a page are laid out: chunks of 2^n values each, the last one of what is left.
type miniValues struct {
	encoding *enc21pb.CompressiveEncoding
	buffers  int
	log      func(from int) int                   // n of the chunk that begins there, 1 at least
	whole    bool                                 // chunks cannot be smaller than log says
	append   func(from, to int) ([][]byte, error) // the buffers of a chunk

	dictionary      *enc21pb.CompressiveEncoding
	dictionaryItems int
	dictionaryBytes []byte
}

// miniPage writes values in chunks that readers decode one by one.
func (w *writer) miniPage(v *miniValues) (*enc21pb.PageLayout, [][]byte, error) {
	l := &enc21pb.MiniBlockLayout{
		ValueCompression: v.encoding, Layers: w.sh.proto(), NumBuffers: uint64(v.buffers), NumItems: uint64(w.values.N),
		HasLargeChunk: w.minor >= 2, Dictionary: v.dictionary, NumDictionaryItems: uint64(v.dictionaryItems),
	}
	c := &chunker{w: w, values: v, wide: w.minor >= 2}
	if w.rep != nil {
		c.rep = newLevelWriter(w.rep)
		l.RepCompression = c.rep.encoding()
		l.RepetitionIndexDepth = 1
	}
	if w.def != nil {
		c.def = newLevelWriter(w.def)
		l.DefCompression = c.def.encoding()
	}
	if err := c.runWithin(); err != nil {
		return nil, nil, err
	}
	buffers := [][]byte{c.words, c.data}
	if v.dictionary != nil {
		buffers = append(buffers, v.dictionaryBytes)
	}
	if w.rep != nil {
		buffers = append(buffers, miniIndex(w.rep, w.sh.maxRep, c.ends))
	}
	return &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_MiniBlockLayout{MiniBlockLayout: l}}, buffers, nil
}

// chunker writes the chunks of one page.
type chunker struct {
	w        *writer
	values   *miniValues
	wide     bool // 32-bit words and sizes
	rep, def levelWriter
	entry    int // next level to be written
	words    []byte
	data     []byte
	ends     []int // entry behind each chunk
}

// runWithin writes all chunks, smaller ones where one would be too large.
func (c *chunker) runWithin() error {
	for most := maxLog; ; most = max(1, most-3) {
		c.entry, c.words, c.data, c.ends = 0, nil, nil, nil
		err := c.run(most)
		if !errors.Is(err, errLevels) || c.values.whole || most == 1 {
			return err
		}
	}
}

// run writes all chunks, of at most 2^most values.
func (c *chunker) run(most int) error {
	n := c.w.values.N
	for from := 0; from < n; {
		log := min(c.values.log(from), most)
		if c.values.whole {
			log = c.values.log(from)
		}
		to := min(from+1<<log, n)
		if err := c.chunk(from, to, log); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// chunk writes values [from, to), 2^log of them, and the entries up to the last one; the last chunk takes all entries that
// are left, and says 0 for log.
func (c *chunker) chunk(from, to, log int) error {
	last := to == c.w.values.N
	buffers, err := c.values.append(from, to)
	if err != nil {
		return fmt.Errorf("values %d to %d: %w", from, to, err)
	}
	end := c.entriesTo(to-from, last)
	var rep, def []byte
	levels := 0
	if c.w.rep != nil {
		rep = c.rep.pack(c.w.rep[c.entry:end])
		levels = end - c.entry
	}
	if c.w.def != nil {
		def = c.def.pack(c.w.def[c.entry:end])
		levels = end - c.entry
	}
	if levels > maxLevels || len(rep) > maxLevels || len(def) > maxLevels {
		return errLevels
	}
	start := len(c.data)
	c.data = binary.LittleEndian.AppendUint16(c.data, uint16(levels))
	if c.w.rep != nil {
		c.data = binary.LittleEndian.AppendUint16(c.data, uint16(len(rep)))
	}
	if c.w.def != nil {
		c.data = binary.LittleEndian.AppendUint16(c.data, uint16(len(def)))
	}
	for _, b := range buffers {
		c.data = appendNumber(c.data, c.width(), uint64(len(b)))
	}
	c.data = pad(c.data, start)
	if c.w.rep != nil {
		c.data = pad(append(c.data, rep...), start)
	}
	if c.w.def != nil {
		c.data = pad(append(c.data, def...), start)
	}
	for _, b := range buffers {
		c.data = pad(append(c.data, b...), start)
	}
	size := len(c.data) - start
	if from == 0 {
		c.data = slices.Grow(c.data, size*(c.w.values.N/max(1, to))) // about what the others take
	}
	if !c.wide && size > maxChunk21 {
		return errLevels
	}
	if last {
		log = 0
	}
	c.words = appendNumber(c.words, c.width(), uint64(size/miniAlign-1)<<4|uint64(log))
	c.entry = end
	c.ends = append(c.ends, end)
	return nil
}

func (c *chunker) width() int {
	if c.wide {
		return 4
	}
	return 2
}

func pad(b []byte, start int) []byte {
	for (len(b)-start)%miniAlign != 0 {
		b = append(b, miniPad)
	}
	return b
}

// entriesTo is the entry behind the n-th value slot from here: entries without a slot that stand before a value belong to its
// chunk.
func (c *chunker) entriesTo(n int, last bool) int {
	if last {
		return c.w.entries
	}
	if c.w.sh.visible == c.w.sh.maxDef || c.w.def == nil {
		return c.entry + n
	}
	at := c.entry
	for n > 0 {
		if c.w.def[at] <= c.w.sh.visible {
			n--
		}
		at++
	}
	return at
}

// miniValues chooses the encoding of the values; nil if there is none that wide ones gain by.
func (w *writer) miniValues(wide bool) (*miniValues, error) {
	if v, err := w.dictionary(); v != nil || err != nil {
		return v, err
	}
	switch {
	case w.t.Kind == encoding.Bytes && wide:
		return w.wideText()
	case wide:
		return nil, nil //nolint:nilnil // to be zipped
	}
	switch w.t.Kind {
	case encoding.Bytes:
		return w.textValues()
	case encoding.Vector:
		return w.vectorValues(), nil
	case encoding.Fixed, encoding.Void:
	}
	return fixedValues(w.values.Fixed, w.t.Bits), nil
}

// logFor is the largest log of a number of values that take no more than so many bytes together, 1 at least.
func logFor(valueBits, limit int) func(int) int {
	log := bits.Len(uint(max(1, limit*8/max(1, valueBits)))) - 1
	return always(min(max(log, 1), maxLog))
}

func always(log int) func(int) int { return func(int) int { return log } }

// fixedValues chooses between plain, bit-packed and run-length values by their sizes.
func fixedValues(values []byte, width int) *miniValues {
	if width == 1 {
		return flatBits(values)
	}
	size := width / 8
	flat := &miniValues{encoding: flatEncoding(width), buffers: 1, log: logFor(width, chunkBytes), append: func(from, to int) ([][]byte, error) {
		return [][]byte{values[from*size : to*size]}, nil
	}}
	if !wordSize(width) {
		return flat
	}
	packed, runs := packedSize(values, width), runSize(values, size)
	switch {
	case runs < packed && runs < len(values):
		return &miniValues{encoding: runEncoding(width), buffers: 2, log: always(maxLog), append: func(from, to int) ([][]byte, error) {
			return appendRuns(values[from*size:to*size], size), nil
		}}
	case packed < len(values):
		return &miniValues{encoding: inlineEncoding(width), buffers: 1, log: always(bits.Len(bitpack.Group) - 1), whole: true, append: func(from, to int) ([][]byte, error) {
			return [][]byte{packInline(values[from*size:to*size], width)}, nil
		}}
	}
	return flat
}

func flatBits(values []byte) *miniValues {
	return &miniValues{encoding: flatEncoding(1), buffers: 1, log: always(maxLog), append: func(from, to int) ([][]byte, error) {
		return [][]byte{appendBits(nil, values[from:to])}, nil
	}}
}

// packedSize is the bytes of the values in bit-packed groups.
func packedSize(values []byte, width int) int {
	size, n := width/8, 0
	for len(values) > 0 {
		group := values[:min(len(values), bitpack.Group*size)]
		n += size + bitpack.Size(bitpack.Width(group, width))
		values = values[len(group):]
	}
	return n
}

// packInline packs one group, the last one filled up with zeros, behind a word that says its width.
func packInline(values []byte, wordBits int) []byte {
	width := bitpack.Width(values, wordBits)
	group := values
	if full := bitpack.Group * wordBits / 8; len(values) < full {
		group = make([]byte, full)
		copy(group, values)
	}
	dst := make([]byte, 0, wordBits/8+bitpack.Size(width))
	dst = appendNumber(dst, wordBits/8, uint64(width))
	return appendPacked(dst, group, wordBits, width)
}

// runSize is the bytes of the values as runs that end with each chunk.
func runSize(values []byte, size int) int {
	n, length := 0, 0
	for at := 0; at < len(values); at += size {
		same := at%(size<<maxLog) != 0 && bytes.Equal(values[at-size:at], values[at:at+size])
		if same && length < maxRun {
			length++
			continue
		}
		n += size + 1
		length = 1
	}
	return n
}

func appendRuns(values []byte, size int) [][]byte {
	var heads, lengths []byte
	for at := 0; at < len(values); at += size {
		v := values[at : at+size]
		if last := len(lengths) - 1; last >= 0 && lengths[last] < maxRun && bytes.Equal(heads[len(heads)-size:], v) {
			lengths[last]++
			continue
		}
		heads = append(heads, v...)
		lengths = append(lengths, 1)
	}
	return [][]byte{heads, lengths}
}

// vectorValues lays out item validity and items of each chunk's vectors.
func (w *writer) vectorValues() *miniValues {
	items, width := w.t.Items(), w.t.Width()
	v := &miniValues{encoding: w.fixedEncoding(w.t.Bits), buffers: 1, log: logFor(items*w.t.Bits, chunkBytes)}
	if w.values.ItemValid != nil {
		v.buffers = 2
	}
	v.append = func(from, to int) ([][]byte, error) {
		var out [][]byte
		if w.values.ItemValid != nil {
			out = append(out, appendBits(nil, w.values.ItemValid[from*items:to*items]))
		}
		values := w.values.Fixed[from*width : to*width]
		if w.t.Bits == 1 {
			values = appendBits(nil, values)
		}
		return append(out, values), nil
	}
	return v
}

// textValues lays out byte strings, compressed chunk by chunk where that pays.
func (w *writer) textValues() (*miniValues, error) {
	plain := &miniValues{encoding: variableEncoding(w.t.OffsetBits), buffers: 1, log: w.textLog(textChunkBytes), append: func(from, to int) ([][]byte, error) {
		return [][]byte{w.textChunk(from, to)}, nil
	}}
	if len(w.values.Data) < compressFrom {
		return plain, nil
	}
	packed := w.packedText(chunkBytes)
	pays, err := w.compresses(packed)
	if err != nil || !pays {
		return plain, err
	}
	return packed, nil
}

// wideText lays out text of wide values, as long as two of them fit into the largest chunk of 2.1, if compression pays: one
// by one, values shrink much less. nil if not.
func (w *writer) wideText() (*miniValues, error) {
	if len(w.values.Data) < compressFrom || w.widest() > wideMost {
		return nil, nil //nolint:nilnil // to be zipped
	}
	packed := w.packedText(wideChunkBytes)
	if pays, err := w.compresses(packed); err != nil || !pays {
		return nil, err
	}
	return packed, nil
}

// packedText compresses each chunk of about so many bytes.
func (w *writer) packedText(limit int) *miniValues {
	const scheme = enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_ZSTD
	enc := generalEncoding(scheme, variableEncoding(w.t.OffsetBits))
	return &miniValues{encoding: enc, buffers: 1, log: w.textLog(limit), append: func(from, to int) ([][]byte, error) {
		b, err := w.codec.Compress(scheme, w.textChunk(from, to))
		if err != nil {
			return nil, fmt.Errorf("compress text: %w", err)
		}
		return [][]byte{b}, nil
	}}
}

// compresses tries chunks from all over the page: they must shrink by a tenth.
func (w *writer) compresses(v *miniValues) (bool, error) {
	const samples = 8
	plain, packed := 0, 0
	for i := range samples {
		from := i * w.values.N / samples
		to := min(from+1<<v.log(from), w.values.N)
		buffers, err := v.append(from, to)
		if err != nil {
			return false, err
		}
		plain += w.textSize(from, to)
		packed += len(buffers[0])
	}
	return packed <= plain-plain/10, nil
}

// textSize is the bytes of a chunk of byte strings, about.
func (w *writer) textSize(from, to int) int {
	return (to-from+1)*w.t.OffsetBits/8 + w.values.Offsets[to] - w.values.Offsets[from]
}

// textLog gives each chunk as many values as keep it small, but two at least.
func (w *writer) textLog(limit int) func(int) int {
	return func(from int) int {
		log := maxLog
		for log > 1 && w.textSize(from, min(from+1<<log, w.values.N)) > limit {
			log--
		}
		return log
	}
}

// textChunk writes offsets from the start of the buffer, then the bytes, filled up to a whole offset.
func (w *writer) textChunk(from, to int) []byte {
	v, width := w.values, w.t.OffsetBits/8
	head := (to - from + 1) * width
	data := v.Data[v.Offsets[from]:v.Offsets[to]]
	dst := make([]byte, 0, head+len(data)+width)
	for _, at := range v.Offsets[from : to+1] {
		dst = appendNumber(dst, width, uint64(head+at-v.Offsets[from]))
	}
	dst = append(dst, data...)
	for len(dst)%width != 0 {
		dst = append(dst, textPad)
	}
	return dst
}
