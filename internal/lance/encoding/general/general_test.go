package general_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding/general"
	"lancekeeper/internal/lance/lancepb/enc21pb"
)

const (
	lz4  = enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_LZ4
	zstd = enc21pb.CompressionScheme_COMPRESSION_ALGORITHM_ZSTD
)

func compress(t testing.TB, scheme enc21pb.CompressionScheme, plain []byte) []byte {
	t.Helper()
	codec := general.New(1 << 20)
	defer codec.Close()
	packed, err := codec.Compress(scheme, plain)
	require.NoError(t, err)
	return packed
}

func TestBuffersComeBack(t *testing.T) {
	t.Parallel()
	codec := general.New(1 << 20)
	defer codec.Close()
	for _, scheme := range []enc21pb.CompressionScheme{lz4, zstd} {
		for _, plain := range [][]byte{[]byte("a"), []byte("0123456789"), bytes.Repeat([]byte("abc"), 10_000), make([]byte, 1<<20)} {
			packed, err := codec.Compress(scheme, plain)
			require.NoError(t, err)
			got, err := codec.Decompress(scheme, packed)
			require.NoError(t, err, "%v, %d bytes", scheme, len(plain))
			require.Equal(t, plain, got)
		}
	}
}

func TestFraming(t *testing.T) {
	t.Parallel()
	plain := bytes.Repeat([]byte("frame "), 50)
	require.Equal(t, uint32(len(plain)), binary.LittleEndian.Uint32(compress(t, lz4, plain)))
	packed := compress(t, zstd, plain)
	require.Equal(t, uint64(len(plain)), binary.LittleEndian.Uint64(packed))
	codec := general.New(1 << 20)
	defer codec.Close()
	bare, err := codec.Decompress(zstd, packed[8:])
	require.NoError(t, err, "a frame without prefix, as older writers left it")
	require.Equal(t, plain, bare)
}

func TestDamageAndBombsAreRefused(t *testing.T) {
	t.Parallel()
	plain := bytes.Repeat([]byte("frame "), 500)
	small := general.New(1000)
	defer small.Close()
	large := general.New(1 << 20)
	defer large.Close()
	for _, scheme := range []enc21pb.CompressionScheme{lz4, zstd} {
		packed := compress(t, scheme, plain)
		_, err := small.Decompress(scheme, packed)
		require.ErrorIs(t, err, lance.ErrUnsupported, "%v beyond the limit", scheme)
		_, err = large.Decompress(scheme, packed[:len(packed)-3])
		require.ErrorIs(t, err, lance.ErrCorrupt, "%v cut", scheme)
		_, err = large.Decompress(scheme, packed[:3])
		require.ErrorIs(t, err, lance.ErrCorrupt, "%v cut short", scheme)
		packed[0]++
		_, err = large.Decompress(scheme, packed)
		require.ErrorIs(t, err, lance.ErrCorrupt, "%v of another size", scheme)
	}
	hidden := compress(t, zstd, plain)[8:] // no prefix tells the size
	_, err := small.Decompress(zstd, hidden)
	require.ErrorIs(t, err, lance.ErrUnsupported)
	_, err = large.Decompress(enc21pb.CompressionScheme(9), plain)
	require.ErrorIs(t, err, lance.ErrUnsupported)
	_, err = large.Compress(enc21pb.CompressionScheme(9), plain)
	require.ErrorIs(t, err, lance.ErrUnsupported)
}

func FuzzDecompress(f *testing.F) {
	for _, plain := range [][]byte{[]byte("a"), bytes.Repeat([]byte("abc"), 100)} {
		f.Add(true, compress(f, zstd, plain))
		f.Add(true, compress(f, zstd, plain)[8:])
		f.Add(false, compress(f, lz4, plain))
	}
	f.Fuzz(func(t *testing.T, frame bool, packed []byte) {
		scheme := lz4
		if frame {
			scheme = zstd
		}
		codec := general.New(1 << 16)
		defer codec.Close()
		plain, err := codec.Decompress(scheme, packed)
		if err != nil {
			require.True(t, errors.Is(err, lance.ErrCorrupt) || errors.Is(err, lance.ErrUnsupported), "%v", err)
			return
		}
		require.LessOrEqual(t, len(plain), 1<<16)
	})
}
