package faults

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// otherBuild kills the victim; a worker of another build takes over, and one of
// this build works beside it (F18).
func (c *cell) otherBuild() {
	c.kill()
	c.others = append(c.others, startProcess(c.t, c.lane.other, c.config()))
}

// buildOther builds the worker of another commit: QUIPU_FAULTS_OTHER, or the
// oldest that has the schema of today. The error says why there is none.
func buildOther(t *testing.T) (program string, err error) {
	commit := os.Getenv("QUIPU_FAULTS_OTHER")
	if commit == "" {
		schema := "../../journal/postgres/migrations"
		out, err := exec.Command("git", "log", "-1", "--format=%H", "--", "worker_test.go", schema).Output()
		if err != nil {
			return "", fmt.Errorf("this is no checkout with a history: %w", err)
		}
		if commit = strings.TrimSpace(string(out)); commit == "" {
			return "", fmt.Errorf("the history does not go back to a worker of another build")
		}
	}
	dir := t.TempDir()
	archive := exec.Command("git", "archive", commit)
	archive.Dir = "../.."
	tar, err := archive.Output()
	if err != nil {
		return "", fmt.Errorf("git archive %s: %w", commit, err)
	}
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(tar)
	out, err := unpack.CombinedOutput()
	require.NoError(t, err, "%s", out)
	program = filepath.Join(dir, "other")
	compile := exec.Command("go", "test", "-c", "-tags", "faults", "-o", program, "./tests/faults")
	compile.Dir = dir
	out, err = compile.CombinedOutput()
	require.NoError(t, err, "build the worker of %s: %s", commit, out)
	t.Logf("the other build is that of %s", commit)
	return program, nil
}
