package manifest

import (
	"fmt"

	"lancekeeper/internal/lance"
	"lancekeeper/internal/lance/lancepb"
)

// Feature flags (lance-table src/feature_flags.rs).
const (
	FlagDeletionFiles      uint64 = 1 << 0
	FlagStableRowIDs       uint64 = 1 << 1
	FlagV2FormatDeprecated uint64 = 1 << 2
	FlagTableConfig        uint64 = 1 << 3
	FlagBasePaths          uint64 = 1 << 4
	FlagNoTransactionFiles uint64 = 1 << 5
	FlagOverlays           uint64 = 1 << 6
	FlagCoveringIndex      uint64 = 1 << 7
	FlagMixedFileVersions  uint64 = 1 << 8
	FlagReuseWithStableIDs uint64 = 1 << 9
	FlagTaggedReuse        uint64 = 1 << 10
	FlagHiddenLineage      uint64 = 1 << 11
	FlagFragmentTree       uint64 = 1 << 12
	FlagCoveringFields     uint64 = 1 << 13
	FlagManagedBlobs       uint64 = 1 << 14
	FlagUniqueFieldIDs     uint64 = 1 << 15
	FlagZoneStatistics     uint64 = 1 << 16
	FlagObjectMetadata     uint64 = 1 << 17
	firstUnknownFlag              = 18
	resetFlags                    = FlagDeletionFiles | FlagTableConfig | FlagBasePaths // set anew from the content at each commit
	pairedFlags                   = FlagMixedFileVersions | FlagTaggedReuse | FlagManagedBlobs | FlagZoneStatistics
	understoodReaderFlags         = FlagDeletionFiles | FlagStableRowIDs | FlagV2FormatDeprecated | FlagBasePaths | FlagCoveringIndex | FlagMixedFileVersions | FlagTaggedReuse | FlagHiddenLineage
	understoodWriterFlags         = understoodReaderFlags | FlagTableConfig | FlagNoTransactionFiles | FlagUniqueFieldIDs
)

// flagName is the format's word for a flag bit.
func flagName(bit int) string {
	names := [...]string{
		"deletion files", "stable row ids", "v2 format (deprecated)", "table config", "multiple base paths", "no transaction files", "data overlay files",
		"covering index", "data files of different versions", "fragment reuse index with stable row ids", "tagged fragment reuse index", "hidden row lineage columns",
		"fragment tree", "independent covering fields", "managed blobs", "non-reusable field ids", "zone statistics", "object metadata",
	}
	if bit < len(names) {
		return fmt.Sprintf("bit %d (%s)", bit, names[bit])
	}
	return fmt.Sprintf("bit %d", bit)
}

// Feature is one feature flag that a manifest has set.
type Feature struct {
	Name       string `json:"name"` // the bit, and the format's word for it
	Read       bool   `json:"read"` // in the flags for readers
	Write      bool   `json:"write"`
	Understood bool   `json:"understood"` // a dataset with it can be maintained
}

// Features lists the flags of a manifest, by bit.
func Features(m *Manifest) []Feature {
	reader, writer := m.GetReaderFeatureFlags(), m.GetWriterFeatureFlags()
	var out []Feature
	for rest := reader | writer; rest != 0; rest &= rest - 1 {
		bit := lowestBit(rest)
		mask := uint64(1) << bit
		out = append(out, Feature{
			Name: flagName(bit), Read: reader&mask != 0, Write: writer&mask != 0,
			Understood: reader&mask&^understoodReaderFlags == 0 && writer&mask&^understoodWriterFlags == 0,
		})
	}
	return out
}

// checkFlags refuses flags that are not understood, and words that contradict each other.
func checkFlags(object string, reader, writer uint64) error {
	if err := refuse(object, "reader feature flag", reader&^understoodReaderFlags); err != nil {
		return err
	}
	if err := refuse(object, "writer feature flag", writer&^understoodWriterFlags); err != nil {
		return err
	}
	if odd := (reader ^ writer) & pairedFlags; odd != 0 {
		return lance.Corrupt(object, "feature flag %s is set in one of the two words only", flagName(lowestBit(odd)))
	}
	return nil
}

func refuse(object, what string, bits uint64) error {
	if bits == 0 {
		return nil
	}
	return lance.Unsupported(what, flagName(lowestBit(bits)), object)
}

func lowestBit(bits uint64) int {
	bit := 0
	for bits&1 == 0 {
		bits >>= 1
		bit++
	}
	return bit
}

// RecomputeFlags sets both flag words for a manifest that is about to be written: what the content says anew, the rest as
// it was (lance-table src/feature_flags.rs:apply_feature_flags).
func RecomputeFlags(m *Manifest) {
	var both, writer uint64
	for _, f := range m.GetFragments() {
		if f.GetDeletionFile() != nil {
			both |= FlagDeletionFiles
			break
		}
	}
	if len(m.GetBasePaths()) > 0 {
		both |= FlagBasePaths
	}
	if len(m.GetConfig()) > 0 {
		writer |= FlagTableConfig
	}
	m.ReaderFeatureFlags = m.GetReaderFeatureFlags()&^resetFlags | both
	m.WriterFeatureFlags = m.GetWriterFeatureFlags()&^resetFlags | both | writer
}

// StableRowIDs says whether rows keep an id of their own through rewrites.
func StableRowIDs(m *Manifest) bool {
	return (m.GetReaderFeatureFlags()|m.GetWriterFeatureFlags())&FlagStableRowIDs != 0
}

// FileVersion is the data file version that new files of the dataset are written in; known is false where the manifest does
// not say and the files do not agree.
func FileVersion(m *Manifest) (major, minor int, known bool) {
	switch m.GetDataFormat().GetVersion() {
	case "0.1":
		return 0, 1, true
	case "2.0":
		return 2, 0, true
	case "2.1":
		return 2, 1, true
	case "2.2":
		return 2, 2, true
	case "2.3":
		return 2, 3, true
	case "":
		return inferFileVersion(m)
	}
	return 0, 0, false
}

func inferFileVersion(m *Manifest) (major, minor int, known bool) {
	for _, fragment := range m.GetFragments() {
		for _, file := range fragment.GetFiles() {
			a, b := DataFileVersion(file)
			if known && (a != major || b != minor) {
				return 0, 0, false
			}
			major, minor, known = a, b, true
		}
	}
	return major, minor, known
}

// DataFileVersion is the version of one data file as its manifest entry gives it: (0,1) for legacy, (2,n) otherwise
// (lance-file src/version.rs).
func DataFileVersion(f *lancepb.DataFile) (major, minor int) {
	major, minor = int(f.GetFileMajorVersion()), int(f.GetFileMinorVersion())
	switch {
	case major == 0 && minor == 3:
		return 2, 0
	case major == 0:
		return 0, 1
	}
	return major, minor
}
