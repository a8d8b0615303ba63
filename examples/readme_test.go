package examples_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/gobuild"
)

// paysvc is the address of the payment service in the READMEs; a test uses a free port.
const paysvc = "127.0.0.1:7780"

// bin holds the commands.
var bin string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quipu-examples-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin = dir
	if err := gobuild.Build("", dir, "../cmd/worker", "../cmd/quipu", "../cmd/journal-verify", "../cmd/demo/paysvc", "./saga/trips", "./tutorial/shop"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return devtest.Run(m)
}

// TestReadmes: the commands in a README work and print what it says.
func TestReadmes(t *testing.T) {
	t.Parallel()
	for name, says := range map[string][]string{
		"approval":   {`trip-1  completed  {"decision":{"by":"Grace"},"reminders":0,"status":"approved"}`},
		"quotes":     {`parcel-1  completed  {"best":{"carrier":"alpha","price":12.9}`, `parcel-2  completed  {"booked":{"offer":{"carrier":"beta","price":14.5}}}`},
		"polling":    {`settle-1  completed  {"asked":`, `"amount":12.5`},
		"family":     {`ada-1  completed  {"account":{"number":"DE-ada"},"checked_by":"Grace"`, "ada-1/survey-", ") will be interrupted"},
		"javascript": {`"label":"Lima / 1200 g"`, "(another language, or just ended)", `"why":"40000 g is too heavy"`},
		"saga":       {`"policy":"Ada-Lima"`, "failed with code 402: the card is declined", "waits for signal trip.confirmed", "cancel flight", "trip-3/call.undo-"},
		"nightly":    {`nightly@2030-01-02T01:00:00Z  completed  {"closed":"main"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker, commands := script(t, name)
			dir := place(t)
			if name == "javascript" {
				install(t) // or it is skipped
			}
			work(t, dir, worker)
			out := sh(t, dir, commands)
			t.Log(out)
			for _, line := range says {
				require.Contains(t, out, line)
			}
		})
	}
}

// script splits the commands of a README: the worker and the rest.
func script(t *testing.T, name string) (worker, commands string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(name, "README.md"))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "```sh\n")
	block, _, closed := strings.Cut(after, "```")
	require.True(t, closed, "the README has a block of commands")
	worker, commands, _ = strings.Cut(block, "\n")
	require.True(t, strings.HasPrefix(worker, "bin/worker dev"), worker)
	return worker, commands
}

// place makes a directory with bin, examples and .quipu where a reader has them. Postgres runs as
// its own user, so others may enter it.
func place(t *testing.T) string {
	t.Helper()
	dir := devtest.Dir(t)
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	// A copy, so that files which commands create do not end up in the repository.
	require.NoError(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(here)))
	require.NoError(t, os.Symlink(bin, filepath.Join(dir, "bin")))
	return dir
}

// work runs the worker until the test ends. Its cluster is a copy of one that was made before.
func work(t *testing.T, dir, command string) {
	t.Helper()
	devtest.Seed(t, filepath.Join(dir, ".quipu", "postgres"), "quipu")
	var log devtest.Log
	cmd := exec.Command("sh", "-c", "exec "+command)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &log, &log, drain
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // one that has ended is reported below
		err := devtest.Await(t, "the end of the worker", ended)
		require.NoError(t, err, "worker:\n%s", &log)
	})
	for began := time.Now(); ; time.Sleep(glance) {
		if _, err := os.Stat(filepath.Join(dir, ".quipu", "dev.json")); err == nil {
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the worker ended before it was ready: %v\n%s", err, &log)
		default:
			require.Less(t, time.Since(began), patience, "the worker is not ready")
		}
	}
}

// sh runs commands as a reader does, one after another, with env added. Each must succeed.
func sh(t *testing.T, dir, commands string, env ...string) string {
	t.Helper()
	free := freeAddress(t)
	commands = strings.ReplaceAll(commands, paysvc, free)
	commands = strings.ReplaceAll(commands, "bin/paysvc", "bin/paysvc --addr "+free)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// Background processes of a failed command end with the shell.
	cmd := exec.CommandContext(ctx, "sh", "-c", "set -ex\ntrap 'kill $! 2>/dev/null || :' EXIT\n"+commands)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir, cmd.WaitDelay = dir, 15*time.Second // a program built with the race detector takes a second to end
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
