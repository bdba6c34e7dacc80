//go:build oracle

package difftest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/lance/dataset"
	"lancekeeper/internal/maintain"
	"lancekeeper/internal/objstore/faultstore"
	"lancekeeper/internal/objstore/filestore"
)

// history is a random history that the official engine makes step by step, and checks.
type history struct {
	t     *testing.T
	uri   string
	said  *bufio.Scanner
	write io.Writer
}

func newHistory(t *testing.T, seed uint64) history {
	t.Helper()
	h := history{t: t, uri: filepath.Join(t.TempDir(), "history.lance")}
	script := Command(t, "history.py", h.uri, strconv.FormatUint(seed, 10))
	in, err := script.StdinPipe()
	require.NoError(t, err)
	out, err := script.StdoutPipe()
	require.NoError(t, err)
	script.Stderr = os.Stderr
	require.NoError(t, script.Start())
	t.Cleanup(func() { _ = in.Close(); _ = script.Wait() })
	h.write, h.said = in, bufio.NewScanner(out)
	h.said.Buffer(nil, 1<<20)
	return h
}

type told struct {
	Did, Wrong []string
	Pinned     []uint64 // versions that tags and branches hold
}

func (h history) ask(what string) (answer told) {
	h.t.Helper()
	_, err := fmt.Fprintln(h.write, what)
	require.NoError(h.t, err)
	require.True(h.t, h.said.Scan(), "the script ended: %v", h.said.Err())
	require.NoError(h.t, json.Unmarshal(h.said.Bytes(), &answer), h.said.Text())
	return answer
}

// versions are those that are listed, ascending.
func (h history) versions() []dataset.Version {
	h.t.Helper()
	store, err := filestore.Open(h.uri)
	require.NoError(h.t, err)
	l, err := dataset.List(h.t.Context(), store)
	require.NoError(h.t, err)
	return l.Versions
}

// must are those of the listed versions that a pass must leave which makes some itself.
func must(listed []dataset.Version, pinned []uint64, s maintain.Settings, made int) []uint64 {
	last := len(listed) - 1
	for i, v := range listed {
		superseded := time.Duration(0) // by what the pass makes
		if i < last {
			superseded = time.Since(listed[i+1].Modified)
		}
		if last+made-i < s.Keep || i == last && made == 0 || superseded < s.Grace-time.Minute {
			pinned = append(pinned, v.Number)
		}
	}
	return pinned
}

// TestHistories: whatever the official engine has done, and however a policy is set and a pass cut off, each version that is
// listed, each tag, each branch and each detached version reads whole, with the rows that it had; what references and policy
// hold is there.
func TestHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // to be repeated
			h, state, said := newHistory(t, seed), t.TempDir(), []string{}
			removed, killed := 0, 0
			for range 12 {
				before := h.ask("step")
				s := maintain.Settings{
					Grace: []time.Duration{0, time.Hour, 48 * time.Hour}[rng.IntN(3)], Keep: 1 + rng.IntN(4), UnverifiedAge: 7 * 24 * time.Hour,
					TargetRows: []uint64{10, 1 << 20}[rng.IntN(2)], IndexPolicy: "auto", Compact: rng.IntN(2) == 0, Prune: true, MemoryBytes: 64 << 20,
				}
				had := h.versions()
				kill := 0
				if rng.IntN(2) == 0 {
					kill = 1 + rng.IntN(12)
				}
				side := faultstore.When(rng.IntN(2))
				said = append(said, fmt.Sprintf("%v; grace %s keep %d compact %t kill %d", before.Did, s.Grace, s.Keep, s.Compact, kill))
				result, store := passWithFaults(t, h.uri, state, s, func(f *faultstore.Store) {
					if kill > 0 {
						f.KillAt(kill, side)
					}
				})
				removed += result.Pruning.VersionsRemoved
				if store.Killed() {
					killed++
				} else {
					require.Equal(t, maintain.OK, result.Outcome, "%s\n%q", result.Reason, said)
				}
				require.Empty(t, h.ask("check").Wrong, "%q", said)
				has := h.versions()
				listed := []uint64{}
				for _, v := range has {
					listed = append(listed, v.Number)
				}
				made := int(has[len(has)-1].Number - had[len(had)-1].Number)
				require.Subset(t, listed, must(had, before.Pinned, s, made), "%q", said)
			}
			require.Positive(t, removed)
			t.Logf("%d versions removed, %d of 12 passes killed", removed, killed)
		})
	}
}
