package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/dev"
	"github.com/quipu-journal/quipu/dev/devtest"
)

// page returns the commands of a document, in their order, without those that name its servers.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../docs", name))
	require.NoError(t, err)
	var commands strings.Builder
	for rest := string(text); ; {
		_, after, found := strings.Cut(rest, "```sh\n")
		if !found {
			return commands.String()
		}
		block, next, closed := strings.Cut(after, "```")
		require.True(t, closed)
		for line := range strings.Lines(block) {
			if !strings.HasPrefix(line, "export ") {
				commands.WriteString(line)
			}
		}
		rest = next
	}
}

// The commands of docs/operations.md, as they stand there, on a cluster that has nothing else.
func TestPageAboutOperations(t *testing.T) {
	t.Parallel()
	dir := place(t)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "flows"), os.DirFS("hello")))
	pg, err := devtest.Start(t.Context(), filepath.Join(dir, "pg"), dev.PostgresOptions{Databases: []string{"quipu"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, pg.Stop(dev.StopImmediate)) }()
	owner := pg.DSN("quipu")
	_, at, _ := strings.Cut(owner, "@")
	commands := strings.ReplaceAll(page(t, "operations.md"), "127.0.0.1:8080", freeAddress(t))
	out := sh(t, dir, commands, "PATH="+bin+":"+os.Getenv("PATH"), "QUIPU_SPACE=shop", "QUIPU_NATS="+devtest.NATS(t).URL(),
		"QUIPU_POSTGRES="+owner, "ENGINE=postgres://engine_1:change%20me@"+at)
	t.Log(out)
	for _, says := range []string{"engine-1", `"Hello, Ada`, "1 job, 3 entries, 0 open obligations: proved.", " kB"} {
		require.Contains(t, out, says)
	}
}
