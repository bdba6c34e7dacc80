//go:build oracle

package difftest

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func decode(t *testing.T, data json.RawMessage, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, into), string(data))
}

// place returns a prefix of the test's own in the bucket of test/services.
func place(t *testing.T) string {
	t.Helper()
	return "s3://" + Env(t, "LANCEKEEPER_TEST_BUCKET") + "/" + t.Name()
}

// TestPassOnS3 is the same as on disk, through a real S3 server.
func TestPassOnS3(t *testing.T) {
	t.Parallel()
	for _, recipe := range []string{"upserts", "deletes", "types", "v1names", "indexed"} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			made := MakeAt(t, place(t), recipe)
			before := Dump(t, made.URI)
			got := newKeeper(t).good(t, made.URI)
			after := Dump(t, made.URI)
			Same(t, before, after)
			require.Len(t, only(after).Versions, 1)
			require.Positive(t, got.Pruning.VersionsRemoved)
			NoMissingNoDead(t, made.URI)
			Use(t, made.URI)
		})
	}
}

// TestTwoKeepers: with ledgers of their own neither knows of the other, so that the lease does not help.
func TestTwoKeepers(t *testing.T) {
	t.Parallel()
	made := MakeAt(t, place(t), "upserts", "--count", "200")
	before := Dump(t, made.URI)
	var commands [2]*exec.Cmd
	var said [2]bytes.Buffer
	for i := range commands {
		commands[i] = newKeeper(t).command(t, "--grace", "0s", "--allow-short-grace", made.URI)
		commands[i].Stdout, commands[i].Stderr = &said[i], &said[i]
		require.NoError(t, commands[i].Start())
	}
	for i := range commands {
		if err := commands[i].Wait(); err != nil {
			t.Logf("keeper %d: %v: %s", i, err, said[i].String())
		}
	}
	after := Dump(t, made.URI)
	Same(t, before, after)
	require.Empty(t, Files(t, made.URI).Missing)
	newKeeper(t).good(t, made.URI)
	Same(t, before, Dump(t, made.URI))
	require.Empty(t, Files(t, made.URI).Missing)
	Use(t, made.URI)
}

// TestBesideLiveWriters: two official writers upsert keys of their own while passes run; they check that they lost nothing.
func TestBesideLiveWriters(t *testing.T) {
	t.Parallel()
	made := MakeAt(t, place(t), "upserts")
	before := only(Dump(t, made.URI))
	finished := make(chan error, 2)
	var said [2]bytes.Buffer
	for i := range said {
		writer := Command(t, "write.py", made.URI, "--seconds", "10", "--writer", string(rune('1'+i)))
		writer.Stdout, writer.Stderr = &said[i], &said[i]
		require.NoError(t, writer.Start())
		go func() { finished <- writer.Wait() }()
	}
	keep, removed, passes := newKeeper(t), 0, 0
	for running := 2; running > 0; passes++ {
		select {
		case err := <-finished:
			require.NoError(t, err, "%s%s", said[0].String(), said[1].String())
			running--
		default:
		}
		results, code, complaint := keep.run(t, "--grace", "1h", made.URI)
		require.Contains(t, []int{0, 3}, code, complaint)
		removed += results[0].Pruning.VersionsRemoved
	}
	require.GreaterOrEqual(t, removed, len(before.Versions)-1, "what was old at the start is gone")
	keep.good(t, made.URI)
	require.Empty(t, Files(t, made.URI).Missing)
	after := only(Dump(t, made.URI))
	require.GreaterOrEqual(t, after.Rows, before.Rows)
	t.Logf("%d passes beside %s%s", passes, said[0].String(), said[1].String())
	Use(t, made.URI)
}
