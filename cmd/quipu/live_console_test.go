package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
)

// O6: quipu console serves the page on loopback, and nowhere else, until it is ended; a page that is
// followed does not hold it up.
func TestConsole(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.deploy("hello", "1", "echo", "{a: 1}")
	s.ok("", "start", "hello", "hello-1", "--input", `{"name": "Ada"}`)
	for _, addr := range []string{"0.0.0.0:0", "example.com:80", "[2001:db8::1]:80", "8400"} {
		require.Contains(t, s.fails(cli.CodeUsage, "", "console", "--http", addr).Err, "--http", addr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, err clitest.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"console", "--http", "127.0.0.1:0"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err, Env: clitest.Env(s.env)})
	}()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "\n") }, time.Minute, 10*time.Millisecond)
	page := strings.TrimSpace(strings.TrimPrefix(out.String(), "console: "))
	get := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+path, nil)
		require.NoError(t, err)
		r, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		return r
	}
	r := get("/jobs")
	text, readErr := io.ReadAll(r.Body)
	require.NoError(t, readErr)
	require.NoError(t, r.Body.Close())
	require.Contains(t, string(text), ">hello-1</a>")
	followed := get("/live?page=/jobs")
	defer followed.Body.Close()
	cancel()
	require.Zero(t, <-done, err.String())
}
