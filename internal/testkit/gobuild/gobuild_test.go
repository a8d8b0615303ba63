package gobuild

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program can be run as soon as it is there, although the process starts others all the time.
func TestAProgramCanBeRunAtOnce(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("true")
	require.NoError(t, err)
	program, err = filepath.EvalSymlinks(program)
	require.NoError(t, err)
	dir, done := t.TempDir(), make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.Command(program).Run()
				}
			}
		})
	}
	defer others.Wait()
	defer close(done)
	for n := range 100 {
		to := filepath.Join(dir, strconv.Itoa(n))
		require.NoError(t, take(program, to))
		require.NoError(t, exec.Command(to).Run())
	}
}
