package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"lancekeeper/internal/ledger"
)

func TestRewritesShrinkAndGrow(t *testing.T) {
	t.Parallel()
	var e ledger.Entry
	require.Zero(t, e.RewriteWon(1_000).TaskFragments, "any number at first")
	e = e.RewriteLost(1_000)
	require.Equal(t, 500, e.TaskFragments)
	e = e.RewriteLost(500).RewriteLost(250)
	require.Equal(t, 125, e.TaskFragments)
	require.Equal(t, 125, e.RewriteWon(80).TaskFragments, "a smaller one says nothing")
	require.Equal(t, 250, e.RewriteWon(125).TaskFragments)
	for range 10 {
		e = e.RewriteLost(e.TaskFragments)
	}
	require.Equal(t, 4, e.TaskFragments)
	for range 20 {
		e = e.RewriteWon(e.TaskFragments)
	}
	require.Zero(t, e.TaskFragments, "forgotten in the end")
}
