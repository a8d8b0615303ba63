package examples_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// console is the address of the console and the API in docs/api.md; a test uses a free port.
const console = "127.0.0.1:8400"

// O10: the commands of docs/api.md work, and answer what it says.
func TestO10Document(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/api.md")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "```sh\n")
	block, _, closed := strings.Cut(after, "```")
	require.True(t, closed)
	worker, commands, _ := strings.Cut(block, "\n")
	worker, _, _ = strings.Cut(worker, " #")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free := l.Addr().String()
	require.NoError(t, l.Close())
	dir := place(t)
	work(t, dir, worker+" --console "+free)
	out := sh(t, dir, strings.ReplaceAll(commands, console, free))
	for _, line := range []string{
		`"key":"trip-1"`, `"start":"new"`, `"duplicate":false,"reached":`,
		`"output":{"decision":{"by":"Grace"},"reminders":0,"status":"approved"}`, "event: ended", `"ok":true`, `"code":"invalid_input"`, "trip-1  approval",
	} {
		require.Contains(t, out, line)
	}
	exported, err := os.ReadFile(filepath.Join(dir, "trip-1.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(exported), "trip-1")
}
