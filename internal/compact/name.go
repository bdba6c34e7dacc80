package compact

import (
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// NewFileName makes a name for a data file as official writers do: 24 bits of a random uuid as digits, most significant
// first, so that names spread over a store's partitions, and the rest as hexadecimal digits
// (lance src/dataset/fragment/write.rs:generate_random_filename).
func NewFileName() string {
	id := uuid.New()
	var b strings.Builder
	for _, x := range id[:3] {
		for bit := 7; bit >= 0; bit-- {
			b.WriteByte('0' + x>>bit&1)
		}
	}
	b.WriteString(hex.EncodeToString(id[3:]))
	return b.String() + ".lance"
}
