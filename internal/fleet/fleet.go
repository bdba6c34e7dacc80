// Package fleet finds the datasets under a root.
package fleet

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lancekeeper/internal/objstore"
)

// catalog is the dataset in which a LanceDB directory catalog keeps its tables; it needs upkeep like any other
// (lance-namespace-impls src/dir/manifest.rs:MANIFEST_TABLE_NAME).
const catalog = "__manifest"

// child is the folder of a table in a child namespace of that catalog: `<8 hex>_<ns>$<table>`, without the ending of the others
// (lance-namespace-impls src/dir/manifest.rs:generate_dir_name). Only a root with a catalog has such.
var child = regexp.MustCompile(`^[0-9a-f]{8}_.+$`)

// NothingFoundError says that a place is neither a dataset nor a folder of datasets.
type NothingFoundError struct{ URI string }

// Error names the place.
func (e *NothingFoundError) Error() string {
	return fmt.Sprintf("%s is neither a Lance dataset (no _versions folder) nor a folder of datasets (no *.lance folder with one)", e.URI)
}

// Found is what stands at a place: the dataset itself (Self), or the names of the datasets directly below it. A place can
// be both: then Datasets is filled too, and whoever maintains the place itself must keep to the format's own folders.
type Found struct {
	Self     bool
	Datasets []string // folder names below the place, ascending
}

// Find looks at one place: a dataset, or a root whose `*.lance` folders are datasets, and where it has a catalog, the catalog's own
// table and those of child namespaces.
// A folder counts only if it holds `_versions/`. *NothingFoundError if there is none.
func Find(ctx context.Context, place objstore.Store) (Found, error) {
	names, err := place.Folders(ctx, "")
	if err != nil {
		return Found{}, fmt.Errorf("look for datasets in %s: %w", place.URI(), err)
	}
	found := Found{Self: slices.Contains(names, "_versions")}
	cataloged := slices.Contains(names, catalog)
	for _, name := range names {
		if !strings.HasSuffix(name, ".lance") && name != catalog && (!cataloged || !child.MatchString(name)) {
			continue
		}
		inner, err := place.Folders(ctx, name+"/")
		if err != nil {
			return Found{}, fmt.Errorf("look for a dataset in %s/%s: %w", place.URI(), name, err)
		}
		if slices.Contains(inner, "_versions") {
			found.Datasets = append(found.Datasets, name)
		}
	}
	if !found.Self && len(found.Datasets) == 0 {
		return Found{}, &NothingFoundError{URI: place.URI()}
	}
	return found, nil
}
