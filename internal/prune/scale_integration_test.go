//go:build integration

package prune_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFullScale: 250,000 versions, each with three files, go within one invocation of 15 minutes and far below 512 MiB.
func TestFullScale(t *testing.T) {
	for name, step := range map[string]time.Duration{"young": 2 * time.Second, "old": 8 * time.Hour} {
		took, heap, _ := drain(t, 250_000, step)
		require.Less(t, took, 15*time.Minute, name)
		require.Less(t, heap, uint64(300<<20), name)
	}
}
