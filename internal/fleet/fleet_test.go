package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/fleet"
	"lancekeeper/internal/objstore/memstore"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys []string
		want fleet.Found
		none bool
	}{
		"nothing":                   {none: true},
		"other things":              {keys: []string{"a.lance/readme.txt", "b/_versions/1.manifest", "c.txt"}, none: true},
		"a dataset":                 {keys: []string{"_versions/1.manifest", "data/x.lance"}, want: fleet.Found{Self: true}},
		"a root":                    {keys: []string{"b.lance/_versions/1.manifest", "a.lance/_versions/1.manifest", "__manifest/_versions/1.manifest", "a.lance-old/_versions/1.manifest"}, want: fleet.Found{Datasets: []string{"__manifest", "a.lance", "b.lance"}}},
		"a root with namespaces":    {keys: []string{"a.lance/_versions/1.manifest", "__manifest/_versions/1.manifest", "0a1b2c3d_team$t/_versions/1.manifest", "0a1b2c3d_empty/x", "other/_versions/1.manifest", "0A1B2C3D_team$t/_versions/1.manifest"}, want: fleet.Found{Datasets: []string{"0a1b2c3d_team$t", "__manifest", "a.lance"}}},
		"namespaces, no catalog":    {keys: []string{"a.lance/_versions/1.manifest", "0a1b2c3d_team$t/_versions/1.manifest"}, want: fleet.Found{Datasets: []string{"a.lance"}}},
		"a dataset that is a root":  {keys: []string{"_versions/1.manifest", "a.lance/_versions/1.manifest"}, want: fleet.Found{Self: true, Datasets: []string{"a.lance"}}},
		"deeper ones are not found": {keys: []string{"a.lance/_versions/1.manifest", "a.lance/b.lance/_versions/1.manifest"}, want: fleet.Found{Datasets: []string{"a.lance"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New("mem://root", time.Now)
			for _, key := range c.keys {
				require.NoError(t, store.Put(t.Context(), key, nil))
			}
			found, err := fleet.Find(t.Context(), store)
			if c.none {
				var nothing *fleet.NothingFoundError
				require.ErrorAs(t, err, &nothing)
				require.ErrorContains(t, err, "mem://root")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, found)
		})
	}
}
