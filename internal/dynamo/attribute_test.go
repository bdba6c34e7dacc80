package dynamo_test

import (
	"math"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"lancekeeper/internal/dynamo"
)

func TestAttributes(t *testing.T) {
	t.Parallel()
	item := map[string]types.AttributeValue{
		"text": dynamo.Text("x"), "number": dynamo.Number(7), "negative": dynamo.Number(-7),
		"unsigned": dynamo.Unsigned(math.MaxUint64), "bytes": &types.AttributeValueMemberB{Value: []byte{1}},
	}
	require.Equal(t, "x", dynamo.ReadText(item, "text"))
	require.Equal(t, uint64(7), dynamo.ReadNumber(item, "number"))
	require.Equal(t, uint64(math.MaxUint64), dynamo.ReadNumber(item, "unsigned"))
	require.Equal(t, []byte{1}, dynamo.ReadBytes(item, "bytes"))

	for _, name := range []string{"missing", "bytes", "negative"} {
		require.Empty(t, dynamo.ReadText(item, name))
		require.Zero(t, dynamo.ReadNumber(item, name))
	}
	require.Nil(t, dynamo.ReadBytes(item, "text"))
}
