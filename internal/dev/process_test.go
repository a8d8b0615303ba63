package dev_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// shell starts a script and waits for its first line.
func shell(t *testing.T, script string) *dev.Process {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	p, err := dev.StartProcess(cmd)
	require.NoError(t, err)
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return p
}

// TestProcess: Stop waits for an end in order, kills a process that takes too long, and leaves
// alone one that has ended.
func TestProcess(t *testing.T) {
	t.Parallel()
	const long = time.Minute
	p := shell(t, `trap 'exit 0' TERM; echo; while :; do sleep 0.05; done`)
	require.Nil(t, p.State())
	require.NoError(t, p.Stop(syscall.SIGTERM, long, syscall.SIGKILL))
	devtest.Await(t, "the end of the process", p.Exited())
	require.True(t, p.State().Success())
	require.NoError(t, p.Stop(syscall.SIGKILL, long, syscall.SIGKILL))

	deaf := shell(t, `trap '' TERM; echo; while :; do sleep 0.05; done`)
	require.NoError(t, deaf.Stop(syscall.SIGTERM, time.Millisecond, syscall.SIGKILL))
	require.Equal(t, "signal: killed", deaf.State().String())

	_, err := dev.StartProcess(exec.Command(filepath.Join(t.TempDir(), "none")))
	require.ErrorContains(t, err, "none")
}
