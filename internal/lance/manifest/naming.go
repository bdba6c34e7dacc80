package manifest

import (
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Folder is where manifests lie, below the dataset's root.
const Folder = "_versions/"

// HintName is the version hint file of stores that do not list in order (lance-table src/io/commit.rs:VERSION_HINT_FILE).
const HintName = "latest_version_hint.json"

const (
	suffix       = ".manifest"
	v2Digits     = 20
	detachedMask = uint64(1) << 63
)

// Scheme is how attached manifests are named (lance-table src/io/commit.rs:ManifestNamingScheme).
type Scheme int

// Schemes. V1 names are `<version>.manifest`; V2 names `<20 digits>.manifest` of u64::MAX minus the version, so that the
// newest sorts first.
const (
	V1 Scheme = 1
	V2 Scheme = 2
)

// Kind is what a name in the manifest folder stands for.
type Kind int

// Kinds of name.
const (
	Other     Kind = iota // nothing that is known: foreign
	Attached              // a version of the history
	Detached              // a version outside the history: bit 63 is set
	Staging               // `<final name>-<uuid>`: a manifest not yet published by a two-step commit
	Hint                  // the version hint
	Temporary             // `.tmp…`, or `<final name>#<n>`: a local writer's unfinished object
)

// Name is a parsed name.
type Name struct {
	Kind    Kind
	Version uint64 // Attached, Detached, Staging
	Scheme  Scheme // Attached, and Staging of an attached version
}

// ParseName parses a name in the manifest folder (no slashes). Only exact names are versions.
func ParseName(base string) Name {
	switch {
	case base == HintName:
		return Name{Kind: Hint}
	case strings.HasPrefix(base, ".tmp"):
		return Name{Kind: Temporary}
	}
	if final, ok := temporaryOf(base); ok && parseFinal(final).Kind != Other {
		return Name{Kind: Temporary}
	}
	if final, ok := stagingOf(base); ok {
		name := parseFinal(final)
		if name.Kind != Other {
			return Name{Kind: Staging, Version: name.Version, Scheme: name.Scheme}
		}
	}
	return parseFinal(base)
}

// temporaryOf cuts the `#<n>` that a local writer puts behind an object under way (object_store local.rs:staged_upload_path).
func temporaryOf(base string) (string, bool) {
	final, n, ok := strings.Cut(base, "#")
	if !ok || !decimal(n) {
		return "", false
	}
	return final, true
}

// stagingOf cuts the `-<uuid>` of a staging manifest.
func stagingOf(base string) (string, bool) {
	at := strings.Index(base, suffix+"-")
	if at < 0 {
		return "", false
	}
	id := base[at+len(suffix)+1:]
	if len(id) != 36 || uuid.Validate(id) != nil {
		return "", false
	}
	return base[:at+len(suffix)], true
}

func parseFinal(base string) Name {
	stem, ok := strings.CutSuffix(base, suffix)
	if !ok {
		return Name{}
	}
	if rest, ok := strings.CutPrefix(stem, "d"); ok {
		n, ok := number(rest)
		if !ok || n&detachedMask == 0 {
			return Name{}
		}
		return Name{Kind: Detached, Version: n}
	}
	n, ok := number(stem)
	if !ok {
		return Name{}
	}
	if len(stem) == v2Digits {
		n = math.MaxUint64 - n
		if n == 0 || n&detachedMask != 0 {
			return Name{}
		}
		return Name{Kind: Attached, Version: n, Scheme: V2}
	}
	if n == 0 || n&detachedMask != 0 {
		return Name{}
	}
	return Name{Kind: Attached, Version: n, Scheme: V1}
}

// number takes the canonical decimal form only: two names must never stand for one version.
func number(s string) (uint64, bool) {
	if !decimal(s) || (len(s) > 1 && s[0] == '0' && len(s) != v2Digits) {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

func decimal(s string) bool {
	if s == "" {
		return false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// FileName is the name of an attached version.
func FileName(version uint64, scheme Scheme) string {
	if scheme == V1 {
		return strconv.FormatUint(version, 10) + suffix
	}
	digits := strconv.FormatUint(math.MaxUint64-version, 10)
	return strings.Repeat("0", v2Digits-len(digits)) + digits + suffix
}

// Key is the object key of an attached version.
func Key(version uint64, scheme Scheme) string { return Folder + FileName(version, scheme) }
