package v21

import (
	"bytes"
	"encoding/binary"
	"math"

	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// The row index of a page is for those who read single rows; Decode does without.

// miniIndex says for each chunk, whose entries end at ends, how many rows end in it, and how many entries follow the last of these
// (miniblock.rs:build_repetition_index).
func miniIndex(rep []uint16, highest uint16, ends []int) []byte {
	var out []byte
	from := 0
	for i, to := range ends {
		rows, left := 0, 0
		for at := from; at < to; at++ {
			left++
			if at+1 == len(rep) || rep[at+1] == highest {
				rows, left = rows+1, 0
			}
		}
		if i == len(ends)-1 {
			left = 0
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(rows))
		out = binary.LittleEndian.AppendUint64(out, uint64(left))
		from = to
	}
	return out
}

// packIndex writes row offsets in the smallest width of 1, 2, 4 or 8 bytes that holds the last one.
func packIndex(index []int) []byte {
	last := uint64(index[len(index)-1])
	width := 8
	switch {
	case last <= math.MaxUint8:
		width = 1
	case last <= math.MaxUint16:
		width = 2
	case last <= math.MaxUint32:
		width = 4
	}
	dst := make([]byte, 0, width*len(index))
	for _, at := range index {
		dst = appendNumber(dst, width, uint64(at))
	}
	return dst
}

// Indexed says whether a page that was decoded to b has the row index that its rows ask for, or needs none.
func Indexed(layout *enc21pb.PageLayout, buffers [][]byte, b *encoding.Block) bool {
	sh, err := newShape(b.Layers)
	if err != nil {
		return false
	}
	switch l := layout.GetLayout().(type) {
	case *enc21pb.PageLayout_MiniBlockLayout:
		if sh.maxRep == 0 {
			return l.MiniBlockLayout.GetRepetitionIndexDepth() == 0
		}
		want, ok := miniEnds(l.MiniBlockLayout, buffers, len(b.Rep))
		return ok && l.MiniBlockLayout.GetRepetitionIndexDepth() == 1 && bytes.Equal(buffers[len(buffers)-1], miniIndex(b.Rep, sh.maxRep, want))
	case *enc21pb.PageLayout_FullZipLayout:
		return len(buffers) == 1 || bytes.Equal(buffers[1], packIndex(zipStarts(l.FullZipLayout, buffers[0], sh, b)))
	}
	return true
}

// miniEnds is where the entries of each chunk end. Not ok where the chunks' counts are not those of the page: old writers let them overflow.
func miniEnds(l *enc21pb.MiniBlockLayout, buffers [][]byte, entries int) (ends []int, ok bool) {
	width := 2
	if l.GetHasLargeChunk() {
		width = 4
	}
	end := 0
	for words, data := buffers[0], buffers[1]; len(words) > 0; words = words[width:] {
		end += int(binary.LittleEndian.Uint16(data))
		ends = append(ends, end)
		data = data[int(number(words, width)>>4+1)*miniAlign:]
	}
	return ends, end == entries
}

// zipStarts is where each row of a full-zip page begins, and at last where they end.
func zipStarts(l *enc21pb.FullZipLayout, data []byte, sh shape, b *encoding.Block) []int {
	control, fixed, prefix := controlWidth(int(l.GetBitsRep()+l.GetBitsDef())), int(l.GetBitsPerValue()/8), int(l.GetBitsPerOffset()/8)
	var starts []int
	at := 0
	for i := range max(len(b.Rep), len(b.Def), b.Rows) {
		if sh.maxRep == 0 || b.Rep[i] == sh.maxRep {
			starts = append(starts, at)
		}
		at += control
		switch def := defOf(b, i); {
		case def > sh.visible:
		case prefix == 0:
			at += fixed
		case def == 0:
			at += prefix + int(number(data[at:], prefix))
		}
	}
	return append(starts, at)
}

func defOf(b *encoding.Block, entry int) uint16 {
	if b.Def == nil {
		return 0
	}
	return b.Def[entry]
}
