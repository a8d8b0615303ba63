package clitest

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

var update = flag.Bool("update", false, "write the command's part of docs/cli.md anew")

// Run is the entry function of a command.
type Run func(ctx context.Context, args []string, s cli.Streams) int

// Result is the outcome of a command.
type Result struct {
	Code     int
	Out, Err string
}

// patience bounds a command.
const patience = 2 * time.Minute

// Do runs a command with its own standard input and environment. One that goes on for minutes is told
// to end.
func Do(t testing.TB, run Run, env map[string]string, stdin string, args ...string) Result {
	t.Helper()
	var out, errs Buffer
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	code := run(ctx, args, cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs, Getenv: Env(env)})
	return Result{Code: code, Out: out.String(), Err: errs.String()}
}

// Env returns a look-up function for a map.
func Env(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

// Buffer is a bytes.Buffer for several goroutines.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns everything that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Documented compares the command's part of docs/cli.md with the command: every subcommand, flag,
// variable and default. With -update it rewrites that part.
func Documented(t testing.TB, root *cobra.Command) {
	t.Helper()
	path := docs(t)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	want := Reference(root)
	got, replaced, ok := Section(string(text), root.Name(), want)
	require.True(t, ok, "docs/cli.md has no part for %s", root.Name())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(replaced), 0o644))
		return
	}
	require.Equal(t, want, got, "docs/cli.md: go test ./cmd/... -p 1 -run Documented -update writes it anew")
}

// docs returns the path of docs/cli.md in the module of the test.
func docs(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "docs", "cli.md")
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test")
	return ""
}
