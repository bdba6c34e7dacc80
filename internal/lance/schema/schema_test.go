package schema_test

import (
	"slices"
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
		"json": {Kind: encoding.Bytes, OffsetBits: 64}, "null": fixed(8), "fixed_size_list:bool:8": {Kind: encoding.Vector, Bits: 1, Dims: []int{8}},
		"dict:string:int8:false":                     {Kind: encoding.Bytes, OffsetBits: 32, Text: true, KeyBits: 8, MaxKeys: 128},
		"dict:int64:uint16:false":                    {Kind: encoding.Fixed, Bits: 64, KeyBits: 16, MaxKeys: 65536},
		"dict:binary:uint64:true":                    {Kind: encoding.Bytes, OffsetBits: 32, KeyBits: 64, MaxKeys: 1 << 31},
		"fixed_size_list:float:384":                  {Kind: encoding.Vector, Bits: 32, Dims: []int{384}},
		"fixed_size_list:lance.bfloat16:3":           {Kind: encoding.Vector, Bits: 16, Dims: []int{3}},
		"fixed_size_list:fixed_size_list:double:3:2": {Kind: encoding.Vector, Bits: 64, Dims: []int{2, 3}},
		"fixed_size_list:timestamp:us:-:2":           {Kind: encoding.Vector, Bits: 64, Dims: []int{2}},
	} {
		t.Run(logical, func(t *testing.T) {
			t.Parallel()
			columns, err := schema.Columns([]*lancepb.Field{field(logical)})
			require.NoError(t, err)
			require.Equal(t, []schema.Column{{Name: "c", Type: want, Layers: []encoding.Layer{encoding.AllValidItem}, Nullable: true, Path: []int32{0}}}, columns)
		})
	}
}

func TestOtherTypesAreNamed(t *testing.T) {
	t.Parallel()
	for _, logical := range []string{
		"dict:string:float:false", "dict:bool:int8:false", "dict:string:int8", "dict:dict:string:int8:false", "blob", "interval:months", "decimal:32:4:2",
		"fixed_size_list:struct:3", "fixed_size_list:string:2", "fixed_size_list:float:0", "fixed_size_list:float:-1",
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
	packed := field("struct")
	packed.Metadata = map[string][]byte{"lance-encoding:packed": []byte("true")}
	child := field("int32")
	child.Id, child.ParentId = 1, 0
	_, err = schema.Columns([]*lancepb.Field{packed, child})
	require.ErrorIs(t, err, lance.ErrUnsupported)
	_, err = schema.Columns([]*lancepb.Field{field("fixed_size_list:struct:2"), child})
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

func TestNestedColumns(t *testing.T) {
	t.Parallel()
	child := func(id, parent int32, name, logical string) *lancepb.Field {
		return &lancepb.Field{Id: id, ParentId: parent, Name: name, LogicalType: logical}
	}
	top := func(id int32, name, logical string) *lancepb.Field {
		f := child(id, -1, name, logical)
		f.Nullable = id%2 == 0
		return f
	}
	const item, list = encoding.AllValidItem, encoding.AllValidList
	columns, err := schema.Columns([]*lancepb.Field{
		top(0, "a", "list.struct"), child(1, 0, "item", "struct"), child(2, 1, "x", "int32"), child(3, 1, "y", "list"), child(4, 3, "item", "string"),
		top(5, "m", "map"), child(6, 5, "entries", "struct"), child(7, 6, "key", "string"), child(8, 6, "value", "double"),
		top(9, "n", "int64"),
	})
	require.NoError(t, err)
	text := encoding.Type{Kind: encoding.Bytes, OffsetBits: 32, Text: true}
	require.Equal(t, []schema.Column{
		{Field: 2, Name: "a.item.x", Type: encoding.Type{Bits: 32}, Layers: []encoding.Layer{item, item, list}, Top: 0, Nullable: true, Path: []int32{0, 1, 2}},
		{Field: 4, Name: "a.item.y.item", Type: text, Layers: []encoding.Layer{item, list, item, list}, Top: 0, Nullable: true, Path: []int32{0, 1, 3, 4}},
		{Field: 7, Name: "m.entries.key", Type: text, Layers: []encoding.Layer{item, item, list}, Top: 5, Path: []int32{5, 6, 7}, Since: 2},
		{Field: 8, Name: "m.entries.value", Type: encoding.Type{Bits: 64}, Layers: []encoding.Layer{item, item, list}, Top: 5, Path: []int32{5, 6, 8}, Since: 2},
		{Field: 9, Name: "n", Type: encoding.Type{Bits: 64}, Layers: []encoding.Layer{item}, Top: 9, Path: []int32{9}},
	}, columns)
	later, err := schema.Lay(columns, 2)
	require.NoError(t, err)
	require.Equal(t, schema.Physical{Fields: []int32{2, 4, 7, 8, 9}, Leaves: [][]int{{0}, {1}, {2}, {3}, {4}}}, later)
	_, err = schema.Lay(columns, 0)
	require.ErrorIs(t, err, lance.ErrUnsupported)
	require.ErrorContains(t, err, "m.entries.key")
	first, err := schema.Lay(slices.Delete(columns, 2, 4), 0)
	require.NoError(t, err)
	require.Equal(t, schema.Physical{Fields: []int32{0, 1, 2, 3, 4, 9}, Leaves: [][]int{{0, 1, 2}, {0, 1, 3, 4}, {5}}}, first)
	for name, fields := range map[string][]*lancepb.Field{
		"orphan":          {top(0, "a", "int32"), child(1, 7, "x", "int32")},
		"cycle":           {top(0, "a", "int32"), child(1, 2, "x", "struct"), child(2, 1, "y", "struct")},
		"list of nothing": {top(0, "a", "list")},
		"list of two":     {top(0, "a", "list"), child(1, 0, "x", "int32"), child(2, 0, "y", "int32")},
	} {
		_, err := schema.Columns(fields)
		require.ErrorIs(t, err, lance.ErrCorrupt, name)
	}
}
