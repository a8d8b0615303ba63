package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// goesOn runs a command that does not end until stop is called, which returns its exit code.
func (s *space) goesOn(out io.Writer, args ...string) (stop func() int) {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan int, 1)
	var errs clitest.Buffer
	go func() {
		ended <- run(ctx, args, cli.Streams{In: strings.NewReader(""), Out: out, Err: &errs, Getenv: clitest.Env(s.env)})
	}()
	s.t.Cleanup(cancel)
	return func() int {
		cancel()
		code := devtest.Await(s.t, "the end of the command", ended)
		require.Empty(s.t, errs.String())
		return code
	}
}

func (s *space) becomes(out *clitest.Buffer, parts ...string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		rest, found := out.String(), true
		for _, part := range parts {
			if _, rest, found = strings.Cut(rest, part); !found {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond, "%q in order", parts)
}

// What is no terminal gets a line for each job that is new or has another state, and no line twice.
func TestLsWatchAddsLines(t *testing.T) {
	s := newSpace(t)
	s.deployText("closed", closed)
	s.deploy("hello", "1", "echo", `{a: 1}`)
	s.ok("", "start", "hello", "h-1", "--input", `{"name":"Ada"}`)
	s.ok("", "wait", "h-1")
	var lines, keys, objs clitest.Buffer
	stop := []func() int{
		s.goesOn(&lines, "ls", "--watch"), s.goesOn(&keys, "ls", "-w", "--keys", "--state", "completed"), s.goesOn(&objs, "ls", "-w", "-o", "json", "--flow", "closed"),
	}
	s.becomes(&lines, "h-1")
	s.becomes(&keys, "h-1\n")
	s.ok("", "start", "closed", "n-1")
	s.becomes(&lines, "KEY", "h-1", "completed", "n-1", "open")
	s.becomes(&objs, `"state":"open"`)
	s.ok("", "signal", "gate", "n-1", "1")
	s.becomes(&lines, "KEY", "h-1", "completed", "n-1", "open", "n-1", "completed")
	s.becomes(&keys, "h-1\n", "n-1\n")
	s.becomes(&objs, `"state":"open"`, `"state":"completed"`)
	for _, stop := range stop {
		require.Equal(t, cli.CodeInterrupted, stop())
	}
	require.Equal(t, 4, strings.Count(lines.String(), "\n"), lines.String())
	require.Equal(t, "h-1\nn-1\n", keys.String())
	require.Len(t, objects(t, objs.String()), 2)
	require.NotContains(t, lines.String(), "\x1b")
}

// A terminal shows the list as it is now: each frame over the one before, within its size.
func TestLsWatchDrawsAgain(t *testing.T) {
	s := newSpace(t)
	s.deploy("naps", "1", "sleep", `{for: 1500ms}`)
	var out clitest.Buffer
	stop := s.goesOn(clitest.Terminal(t, 60, 5, &out), "ls", "--watch")
	s.becomes(&out, "\x1b[2J", "\x1b[H", "0 jobs")
	for _, key := range []string{"n-1", "n-2", "n-3"} {
		s.ok("", "start", "naps", key, "--input", `{"name":"Ada"}`)
	}
	s.ok("", "wait", "n-1", "n-2", "n-3")
	s.becomes(&out, "3 jobs", "n-3", "completed")
	require.Equal(t, cli.CodeInterrupted, stop())
	require.Equal(t, 1, strings.Count(out.String(), "\x1b[2J"))
	for _, frame := range strings.Split(out.String(), "\x1b[H")[1:] {
		lines := strings.Split(strings.TrimSuffix(frame, "\x1b[J"), "\r\n")
		require.LessOrEqual(t, len(lines), 5, frame)
		for _, line := range lines {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\x1b[K"))), 60, line)
		}
	}
}

// What was printed is remembered of a bounded number of jobs.
func TestToldIsBounded(t *testing.T) {
	t.Parallel()
	var told told
	for i := range 3 * maxTold {
		id := journal.JobID{byte(i), byte(i >> 8), byte(i >> 16)}
		require.False(t, told.before(id, journal.JobOpen))
		require.True(t, told.before(id, journal.JobOpen))
		require.False(t, told.before(id, journal.JobFailed))
		require.LessOrEqual(t, len(told.last)+len(told.older), 2*maxTold)
	}
	require.Equal(t, maxTold, len(told.older))
}
