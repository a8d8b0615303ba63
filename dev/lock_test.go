package dev_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev"
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

	require.NoError(t, release())
	release, err = dev.Lock(dir)
	require.NoError(t, err, "a released directory has no owner")
	require.NoError(t, release())
}
