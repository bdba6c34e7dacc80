//go:build oracle

package difftest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// asked is what queries find through the index of one dataset.
type asked struct {
	Answers   map[string][]int64 `json:"answers"`
	Used      bool               `json:"used"`
	Fragments int                `json:"fragments"`
}

// indexPolicyCase is a policy over datasets of every kind of index, and what becomes of their fragments: seven, of which the index
// covers five.
type indexPolicyCase struct {
	policy    string
	stable    bool
	fragments map[string]int // by kind; those not named: others
	others    int
}

// TestIndexKinds: under each policy, for each kind of index, with and without stable row ids, queries through the index find the
// same rows before and after a pass, which are those of a scan; and the index is still used where the policy keeps it.
func TestIndexKinds(t *testing.T) {
	t.Parallel()
	const kinds, left, merged = 10, 6, 2 // left: the two uncovered ones are merged; merged: the covered ones too
	addresses := map[string]int{"BTREE": left, "ZONEMAP": left, "BLOOMFILTER": left}
	for _, c := range []indexPolicyCase{
		{"leave", false, nil, left},
		{"leave", true, nil, left},
		{"auto", false, nil, left},
		{"auto", true, addresses, merged},
		{"uncover", false, nil, merged},
		{"uncover", true, nil, merged},
	} {
		t.Run(fmt.Sprintf("%s, stable row ids: %t", c.policy, c.stable), func(t *testing.T) {
			t.Parallel()
			var args []string
			if c.stable {
				args = append(args, "--stable")
			}
			made := Make(t, "indices", args...)
			var before, after map[string]asked
			python(t, &before, "ask.py", made.URI)
			require.Len(t, before, kinds)
			results, code, said := newKeeper(t).run(t, "--grace", "0s", "--allow-short-grace", "--index-policy", c.policy, made.URI)
			require.Zero(t, code, "%+v\n%s", results, said)
			python(t, &after, "ask.py", made.URI)
			require.Len(t, after, kinds)
			for kind, b := range before {
				a, want := after[kind], c.others
				if n, ok := c.fragments[kind]; ok {
					want = n
				}
				require.Equal(t, b.Answers, a.Answers, kind)
				require.True(t, b.Used, kind)
				if c.policy != "uncover" { // where nothing is covered any more there is nothing to use
					require.True(t, a.Used, kind)
				}
				require.Equal(t, want, a.Fragments, kind)
			}
		})
	}
}
