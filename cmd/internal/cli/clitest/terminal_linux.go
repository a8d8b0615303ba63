package clitest

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Terminal opens a terminal of a size, in characters. Everything that is written to it goes to to.
func Terminal(t testing.TB, width, height int, to io.Writer) *os.File {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(outer.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)) // unlock
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	inner, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t,
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)}))
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(to, outer) // ends with EIO when nobody has the terminal open
	}()
	t.Cleanup(func() {
		_ = inner.Close()
		<-read
		_ = outer.Close()
	})
	return inner
}
