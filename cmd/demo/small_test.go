package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/testkit/gobuild"
)

// TestSmallDemo runs the whole demo with few orders: the built binaries, the real
// servers, the kill, the checks.
func TestSmallDemo(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, gobuild.Build("../..", bin, "./cmd/worker", "./cmd/journal-verify"))
	r := clitest.Do(t, run, nil, "", "--bin", bin, "--orders", "40")
	require.Zero(t, r.Code, "%s%s", r.Out, r.Err)
	for _, said := range []string{"Killed worker-b", "journals verified           40        40", "Every number fits"} {
		require.Contains(t, r.Out, said)
	}
	require.NotContains(t, r.Out, "Logs and data", "what fits is cleaned up")
}

// TestFailureKeepsTheData: and says where it is.
func TestFailureKeepsTheData(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	r := clitest.Do(t, run, nil, "", "--timeout", "1ns")
	require.Equal(t, cli.CodeFailed, r.Code)
	require.Contains(t, r.Out, "Logs and data are in "+dir)
	kept, err := filepath.Glob(filepath.Join(dir, "quipu-demo-*", "nats"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
}
