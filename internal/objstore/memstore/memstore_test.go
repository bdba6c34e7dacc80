package memstore_test

import (
	"testing"
	"time"

	"lancekeeper/internal/objstore"
	"lancekeeper/internal/objstore/memstore"
	"lancekeeper/internal/objstore/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) objstore.Store{
		"ordered": func(*testing.T) objstore.Store { return memstore.New("mem://ordered", time.Now) },
		"unordered": func(*testing.T) objstore.Store {
			s := memstore.New("mem://unordered", time.Now)
			s.Unordered()
			return s
		},
		"sub": func(t *testing.T) objstore.Store {
			t.Helper()
			outer := memstore.New("mem://s", time.Now)
			if err := outer.Put(t.Context(), "deeper-not/x", []byte("x")); err != nil {
				t.Fatal(err)
			}
			inner, err := objstore.Sub(outer, "deeper")
			if err != nil {
				t.Fatal(err)
			}
			return inner
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, open)
		})
	}
}
