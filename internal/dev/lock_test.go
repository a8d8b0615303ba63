package dev_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
)

func TestLockNamesTheHolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	release, err := dev.Lock(dir)
	require.NoError(t, err)

	_, err = dev.Lock(dir)
	var locked *dev.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, os.Getpid(), locked.PID)
	require.ErrorContains(t, err, dir)

	defer inherit(t, filepath.Join(dir, "lock"))()
	require.NoError(t, release())
	release, err = dev.Lock(dir)
	require.NoError(t, err, "a released directory has no owner, though a child has the file")
	require.NoError(t, release())
}

// inherit has an open file of this process once more, as a child has it that was just forked.
func inherit(t *testing.T, path string) (end func()) {
	t.Helper()
	const files = "/proc/self/fd"
	all, err := os.ReadDir(files)
	require.NoError(t, err)
	for _, f := range all {
		if to, _ := os.Readlink(filepath.Join(files, f.Name())); to != path {
			continue
		}
		fd, err := strconv.Atoi(f.Name())
		require.NoError(t, err)
		twin, err := syscall.Dup(fd)
		require.NoError(t, err)
		return func() { _ = syscall.Close(twin) }
	}
	t.Fatal("nobody has ", path)
	return nil
}
