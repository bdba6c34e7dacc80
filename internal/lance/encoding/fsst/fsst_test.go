package fsst_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding/fsst"
)

// table serializes symbols as official writers do.
func table(compressed bool, symbols ...string) []byte {
	b := make([]byte, fsst.TableSize)
	header := uint64(0x46535354)<<32 | uint64(len(symbols))
	if compressed {
		header |= 1 << 24
	}
	binary.LittleEndian.PutUint64(b, header)
	for i, s := range symbols {
		copy(b[8+8*i:], s)
		b[8+8*len(symbols)+i] = byte(len(s))
	}
	return b
}

func TestDecode(t *testing.T) {
	t.Parallel()
	parsed, err := fsst.ParseTable(table(true, "lance", "k", "eightest"))
	require.NoError(t, err)
	for _, c := range []struct {
		codes []byte
		want  string
	}{
		{nil, ""},
		{[]byte{0, 1, 2}, "lancekeightest"},
		{[]byte{255, 0, 255, 255, 1}, "\x00\xffk"},
	} {
		got, err := parsed.Decode([]byte("> "), c.codes)
		require.NoError(t, err)
		require.Equal(t, "> "+c.want, string(got))
	}
	_, err = parsed.Decode(nil, []byte{3})
	require.ErrorIs(t, err, lance.ErrCorrupt, "a code that is not in the table")
	_, err = parsed.Decode(nil, []byte{1, 255})
	require.ErrorIs(t, err, lance.ErrCorrupt, "an escape at the end")
}

func TestPlainTable(t *testing.T) {
	t.Parallel()
	parsed, err := fsst.ParseTable(table(false))
	require.NoError(t, err)
	got, err := parsed.Decode(nil, []byte{0, 255, 'x'})
	require.NoError(t, err)
	require.Equal(t, []byte{0, 255, 'x'}, got)
}

func TestTablesThatAreNone(t *testing.T) {
	t.Parallel()
	whole := table(true, "a", "bc")
	for name, b := range map[string][]byte{
		"empty":          nil,
		"cut":            whole[:100],
		"other magic":    append([]byte{2, 0, 0, 1, 'x', 'x', 'x', 'x'}, whole[8:]...),
		"symbol of none": table(true, "a", ""),
		"long symbol":    table(true, "a", "123456789"),
	} {
		_, err := fsst.ParseTable(b)
		require.ErrorIs(t, err, lance.ErrCorrupt, name)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(table(true, "lance", "k"), []byte{0, 1, 255, 7})
	f.Add(table(false), []byte("plain"))
	f.Fuzz(func(t *testing.T, header, codes []byte) {
		parsed, err := fsst.ParseTable(header)
		if err != nil {
			require.ErrorIs(t, err, lance.ErrCorrupt)
			return
		}
		plain, err := parsed.Decode(nil, codes)
		if err != nil {
			require.ErrorIs(t, err, lance.ErrCorrupt)
			return
		}
		require.LessOrEqual(t, len(plain), 8*len(codes))
	})
}
