package manifest

import (
	"encoding/json"
	"fmt"

	"lancekeeper/internal/lance"
)

// hint is the content of the version hint file.
type hint struct {
	Version uint64 `json:"version"`
}

// DecodeHint reads a version hint file. It is never authority: readers probe upwards from it.
func DecodeHint(data []byte) (version uint64, err error) {
	var h hint
	if err := json.Unmarshal(data, &h); err != nil || h.Version == 0 {
		return 0, lance.Corrupt(Folder+HintName, "version hint %q", data)
	}
	return h.Version, nil
}

// EncodeHint writes a version hint file as official writers do.
func EncodeHint(version uint64) []byte { return fmt.Appendf(nil, `{"version":%d}`, version) }
