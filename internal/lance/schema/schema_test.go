package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/encoding"
	"lancekeeper/internal/lance/lancepb"
	"lancekeeper/internal/lance/schema"
)

func field(logical string) *lancepb.Field {
	return &lancepb.Field{Name: "c", ParentId: -1, LogicalType: logical, Nullable: true}
}

func TestColumnsOfEachTypeThatCanBeRewritten(t *testing.T) {
	t.Parallel()
	fixed := func(bits int) encoding.Type { return encoding.Type{Kind: encoding.Fixed, Bits: bits} }
	for logical, want := range map[string]encoding.Type{
		"bool": fixed(1), "int8": fixed(8), "uint16": fixed(16), "halffloat": fixed(16), "float": fixed(32), "double": fixed(64),
		"date32:day": fixed(32), "date64:ms": fixed(64), "time32:s": fixed(32), "time64:ns": fixed(64), "duration:us": fixed(64),
		"timestamp:us:-": fixed(64), "timestamp:ns:Europe/Berlin": fixed(64), "timestamp:s:+02:00": fixed(64),
		"decimal:128:10:2": fixed(128), "decimal:256:40:-3": fixed(256), "fixed_size_binary:16": fixed(128),
		"string": {Kind: encoding.Bytes, OffsetBits: 32, Text: true}, "large_string": {Kind: encoding.Bytes, OffsetBits: 64, Text: true},
		"binary": {Kind: encoding.Bytes, OffsetBits: 32}, "large_binary": {Kind: encoding.Bytes, OffsetBits: 64},
		"fixed_size_list:float:384":                  {Kind: encoding.Vector, Bits: 32, Dims: []int{384}},
		"fixed_size_list:lance.bfloat16:3":           {Kind: encoding.Vector, Bits: 16, Dims: []int{3}},
		"fixed_size_list:fixed_size_list:double:3:2": {Kind: encoding.Vector, Bits: 64, Dims: []int{2, 3}},
		"fixed_size_list:timestamp:us:-:2":           {Kind: encoding.Vector, Bits: 64, Dims: []int{2}},
	} {
		t.Run(logical, func(t *testing.T) {
			t.Parallel()
			columns, err := schema.Columns([]*lancepb.Field{field(logical)})
			require.NoError(t, err)
			require.Equal(t, []schema.Column{{Name: "c", Type: want, Nullable: true}}, columns)
		})
	}
}

func TestOtherTypesAreNamed(t *testing.T) {
	t.Parallel()
	for _, logical := range []string{
		"null", "struct", "list", "list.struct", "large_list", "map", "dict:string:int32:false", "blob", "json", "interval:months", "decimal:32:4:2",
		"fixed_size_list:struct:3", "fixed_size_list:bool:8", "fixed_size_list:string:2", "fixed_size_list:float:0", "fixed_size_list:float:-1",
		"fixed_size_list:float", "fixed_size_binary:0", "fixed_size_binary:x", "timestamp:weeks:-", "", "int128",
	} {
		_, err := schema.Columns([]*lancepb.Field{field(logical)})
		require.ErrorIs(t, err, lance.ErrUnsupported, logical)
		require.ErrorContains(t, err, "column c", logical)
	}
}

func TestBlobsAndChildrenAreRefused(t *testing.T) {
	t.Parallel()
	blob := field("large_binary")
	blob.Metadata = map[string][]byte{"lance-encoding:blob": []byte("true")}
	_, err := schema.Columns([]*lancepb.Field{blob})
	require.ErrorIs(t, err, lance.ErrUnsupported)
	child := field("int32")
	child.ParentId = 0
	_, err = schema.Columns([]*lancepb.Field{child})
	require.ErrorIs(t, err, lance.ErrUnsupported)
	_, err = schema.Columns(nil)
	require.ErrorIs(t, err, lance.ErrUnsupported)
}

func TestDamagedIDs(t *testing.T) {
	t.Parallel()
	_, err := schema.Columns([]*lancepb.Field{field("int32"), field("int32")})
	require.ErrorIs(t, err, lance.ErrCorrupt)
	negative := field("int32")
	negative.Id = -2
	_, err = schema.Columns([]*lancepb.Field{negative})
	require.ErrorIs(t, err, lance.ErrCorrupt)
}
