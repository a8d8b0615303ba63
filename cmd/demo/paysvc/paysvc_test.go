package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

func TestRunServesUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"--addr", "127.0.0.1:0"}, cli.Streams{Out: in, Err: io.Discard})
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(line)+"/stats", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
	cancel()
	require.Equal(t, cli.CodeOK, devtest.Await(t, "the end of the service", done))
	require.Equal(t, cli.CodeUsage, run(t.Context(), []string{"--port", "1"}, cli.Streams{Out: io.Discard, Err: io.Discard}))
}

func TestDocumented(t *testing.T) { clitest.Documented(t, newCommand()) }
