// Package general compresses and decompresses whole buffers in the framing of Lance files (lance-format/lance
// rust/lance-encoding/src/encodings/physical/block.rs).
package general

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

// Bytes before the compressed ones: the plain size, 32 bits for lz4 and 64 for zstd.
const (
	lz4Prefix  = 4
	zstdPrefix = 8
)

// zstdMagic begins a zstd frame.
const zstdMagic = 0xFD2FB528

// Codec decompresses and compresses. It keeps its working memory between calls, so use one for many buffers. It is not for
// concurrent use.
type Codec struct {
	limit      int
	zstdReader *zstd.Decoder
	zstdWriter *zstd.Encoder
	lz4Writer  *lz4.Compressor // a large table, which decoding does not need
}

// New returns a codec that decompresses buffers of at most limit plain bytes.
func New(limit int) *Codec { return &Codec{limit: limit} }

// Close releases the codec's working memory.
func (c *Codec) Close() {
	if c.zstdReader != nil {
		c.zstdReader.Close()
		c.zstdReader = nil
	}
}

// Decompress returns the plain bytes of src. More of them than the codec's limit is class lance.ErrUnsupported, damage is
// lance.ErrCorrupt.
func (c *Codec) Decompress(scheme enc21pb.CompressionScheme, src []byte) ([]byte, error) {
	switch scheme {
	case enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_LZ4:
		return c.unpackLZ4(src)
	case enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_ZSTD:
		return c.unpackZstd(src)
	default:
		return nil, lance.Unsupported("compression scheme", scheme.String(), "")
	}
}

// Compress returns src compressed, with its prefix. The scheme is lz4 or zstd; src is below 4 GiB.
func (c *Codec) Compress(scheme enc21pb.CompressionScheme, src []byte) ([]byte, error) {
	switch scheme {
	case enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_LZ4:
		return c.packLZ4(src)
	case enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_ZSTD:
		return c.packZstd(src)
	default:
		return nil, lance.Unsupported("compression scheme", scheme.String(), "")
	}
}

func (c *Codec) unpackLZ4(src []byte) ([]byte, error) {
	if len(src) < lz4Prefix {
		return nil, lance.Corrupt("", "lz4 buffer of %d bytes", len(src))
	}
	size := uint64(binary.LittleEndian.Uint32(src))
	body := src[lz4Prefix:]
	if size > uint64(len(body))*256 { // a block grows at most 255 times
		return nil, lance.Corrupt("", "lz4 block of %d bytes says that it holds %d", len(body), size)
	}
	if size > uint64(c.limit) {
		return nil, tooLarge(size)
	}
	dst := make([]byte, size)
	n, err := lz4.UncompressBlock(body, dst)
	if err != nil || uint64(n) != size { //nolint:nilerr // the class is ours, the cause is in the text
		return nil, lance.Corrupt("", "lz4 block of %d bytes: %d of %d plain bytes, %v", len(body), n, size, err)
	}
	return dst, nil
}

func (c *Codec) packLZ4(src []byte) ([]byte, error) {
	if uint64(len(src)) > math.MaxUint32 {
		return nil, lance.Unsupported("lz4 buffer", fmt.Sprintf("of %d bytes", len(src)), "")
	}
	if c.lz4Writer == nil {
		c.lz4Writer = &lz4.Compressor{}
	}
	dst := make([]byte, lz4Prefix+lz4.CompressBlockBound(len(src)))
	binary.LittleEndian.PutUint32(dst, uint32(len(src)))
	n, err := c.lz4Writer.CompressBlock(src, dst[lz4Prefix:])
	if err != nil {
		return nil, fmt.Errorf("compress %d bytes with lz4: %w", len(src), err)
	}
	return dst[:lz4Prefix+n], nil
}

// unpackZstd reads a frame after a size prefix, or a bare frame as older writers left it.
func (c *Codec) unpackZstd(src []byte) ([]byte, error) {
	frame := src
	var size uint64
	prefixed := len(src) >= zstdPrefix && !isBareFrame(src)
	if prefixed {
		size = binary.LittleEndian.Uint64(src)
		frame = src[zstdPrefix:]
		if size > uint64(c.limit) {
			return nil, tooLarge(size)
		}
	}
	if c.zstdReader == nil {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(c.limit)))
		if err != nil {
			return nil, fmt.Errorf("open zstd decoder: %w", err)
		}
		c.zstdReader = r
	}
	var header zstd.Header
	if err := header.Decode(frame); err != nil {
		return nil, lance.Corrupt("", "zstd frame of %d bytes: %v", len(frame), err)
	}
	if header.HasFCS && header.FrameContentSize > uint64(c.limit) {
		return nil, tooLarge(header.FrameContentSize)
	}
	dst, err := c.zstdReader.DecodeAll(frame, nil)
	if err != nil {
		return nil, lance.Corrupt("", "zstd frame of %d bytes: %v", len(frame), err)
	}
	if len(dst) > c.limit {
		return nil, tooLarge(uint64(len(dst)))
	}
	if prefixed && uint64(len(dst)) != size {
		return nil, lance.Corrupt("", "zstd frame holds %d bytes, its prefix says %d", len(dst), size)
	}
	return dst, nil
}

// isBareFrame follows the reader of lance-encoding: the magic, and the reserved-by-size bit of the frame descriptor clear.
func isBareFrame(b []byte) bool {
	return len(b) > 4 && binary.LittleEndian.Uint32(b) == zstdMagic && b[4]&0x10 == 0
}

func (c *Codec) packZstd(src []byte) ([]byte, error) {
	if c.zstdWriter == nil {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return nil, fmt.Errorf("open zstd encoder: %w", err)
		}
		c.zstdWriter = w
	}
	dst := make([]byte, zstdPrefix, zstdPrefix+len(src)/2)
	binary.LittleEndian.PutUint64(dst, uint64(len(src)))
	return c.zstdWriter.EncodeAll(src, dst), nil
}

func tooLarge(size uint64) error {
	return lance.Unsupported("compressed buffer", fmt.Sprintf("with %d plain bytes", size), "")
}
