package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
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
	pg := devtest.ClusterIn(t, dir, dev.PostgresOptions{Databases: []string{"quipu"}})
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

// The commands of docs/tutorial.md, as they stand there; its code is that of the example.
func TestPageOfTheTutorial(t *testing.T) {
	t.Parallel()
	worker, commands, _ := strings.Cut(page(t, "tutorial.md"), "\n")
	require.Equal(t, "bin/worker dev --flows examples/tutorial --watch", worker)
	dir := place(t)
	work(t, dir, worker)
	out := sh(t, dir, commands)
	t.Log(out)
	for _, says := range []string{
		`order-1  completed  {"parcel":`, "order-2  completed", "taken over by", `order-3  completed  {"parcel":"collected"`,
		"confirmed by an operator", "3 proved, 0 violated", "order-3 ", "VIOLATED", "\nrefused\n",
	} {
		require.Contains(t, out, says)
	}
	bank, err := os.ReadFile(filepath.Join(dir, ".quipu/bank.txt"))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(bank), "\n"), "%s", bank)
	carrier, err := os.ReadFile(filepath.Join(dir, ".quipu/carrier.txt"))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(carrier), "\n"), "%s", carrier)
}

// The code in docs/tutorial.md is that of the example, word for word.
func TestTutorialShowsItsCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/tutorial.md")
	require.NoError(t, err)
	for language, name := range map[string]string{"go": "tutorial/shop/main.go", "yaml": "tutorial/order.yaml"} {
		code, err := os.ReadFile(name)
		require.NoError(t, err)
		blocks := strings.Split(string(text), "```"+language+"\n")[1:]
		require.NotEmpty(t, blocks)
		for _, rest := range blocks {
			block, _, closed := strings.Cut(rest, "```")
			require.True(t, closed)
			require.Contains(t, string(code), block)
		}
	}
}
