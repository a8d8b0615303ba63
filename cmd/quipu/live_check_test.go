package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// check says what a pipeline needs to know: whether files are good, and whether what is open fits.
func TestCheckAgainstOpen(t *testing.T) {
	s := newSpace(t)
	s.deploy("naps", "1", "sleep", `{for: 1h}`)
	s.ok("", "start", "naps", "n-1", "--input", `{"name":"Ada"}`)
	file := func(topic string) string {
		path := filepath.Join(t.TempDir(), "naps.yaml")
		text := strings.NewReplacer("FLOW", "naps", "VERSION", "1", "TOPIC", topic, "INPUT", `{for: 1h}`).Replace(flows)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	require.Equal(t, "1 open job: all fit\n", s.ok("", "check", "--against-open", file("sleep"), "--topics", "echo,sleep"))
	require.Empty(t, s.ok("", "check", "--against-open", "-o", "json"))
	require.Empty(t, s.ok("", "check", file("other")), "the file alone has no fault")

	r := s.fails(codeRefused, "", "check", "--against-open", file("other"))
	require.Equal(t, "flow naps version 1: it is deployed with other content: give the changed flow a new version\n", r.Out)
	require.Equal(t, "quipu check: 1 open job, 1 misfit\n", r.Err)

	r = s.fails(codeRefused, "", "check", "--against-open", "--topics", "echo", "-o", "json")
	o := objects(t, r.Out)[0]
	require.Equal(t, "n-1", o["key"])
	require.Equal(t, "sleep", o["topic"])
	require.Contains(t, o["error"], "which this build does not serve")

	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("flow: bad\n"), 0o644))
	require.Contains(t, s.fails(codeRefused, "", "check", bad).Err, "quipu check: 1 of 1 files have faults")
	s.fails(cli.CodeUsage, "", "check")
	s.fails(cli.CodeUsage, "", "check", bad, "--topics", "a")
}
