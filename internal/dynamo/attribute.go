package dynamo

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Text is a string attribute.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number is a number attribute.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Unsigned is a number attribute.
func Unsigned(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}

// ReadText returns "" for what is missing or of another type, as in items made by hand; ReadNumber and ReadBytes likewise.
func ReadText(item map[string]types.AttributeValue, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// ReadNumber reads a whole number that is not negative; else 0.
func ReadNumber(item map[string]types.AttributeValue, name string) uint64 {
	n, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	value, err := strconv.ParseUint(n.Value, 10, 64)
	if err != nil {
		return 0
	}
	return value
}

// ReadBytes reads a binary attribute; else nil.
func ReadBytes(item map[string]types.AttributeValue, name string) []byte {
	if b, ok := item[name].(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}
