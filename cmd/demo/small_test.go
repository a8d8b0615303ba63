package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/dev/gobuild"
)

// TestSmallDemo runs the whole demo with few orders: the built binaries, the real
// servers, the kill, the checks.
func TestSmallDemo(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, gobuild.Build("../..", bin, "./cmd/worker", "./cmd/quipu", "./cmd/journal-verify", "./cmd/demo/paysvc"))
	lines := clitest.Do(t, run, nil, "", "gen", "--count", "120")
	require.Zero(t, lines.Code, lines.Err)
	file := filepath.Join(t.TempDir(), "orders.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(lines.Out), 0o644))

	r := clitest.Do(t, run, nil, "", "--bin", bin, "--orders", file, "--flow", "../../examples/orders/order.yaml")
	require.Zero(t, r.Code, "%s%s", r.Out, r.Err)
	for _, said := range []string{"Killed worker-b", "in the journals of 120 orders", "Every number fits"} {
		require.Contains(t, r.Out, said)
	}
	require.NotContains(t, r.Out, "Data and logs", "what fits is cleaned up")
}
