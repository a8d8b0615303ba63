package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// console runs quipu console until stop, which returns what it logged.
func (s *space) console(args ...string) (page string, stop func() string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	var out, err clitest.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"console"}, args...),
			cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err, Getenv: clitest.Env(s.env)})
	}()
	require.Eventually(s.t, func() bool { return strings.Contains(out.String(), "\n") }, time.Minute, 10*time.Millisecond)
	return strings.TrimSpace(strings.TrimPrefix(out.String(), "console: ")), func() string {
		cancel()
		require.Zero(s.t, devtest.Await(s.t, "the end of the console", done), err.String())
		return err.String()
	}
}

// O6: quipu console serves the page until it is ended; a page that is followed does not hold it up.
func TestConsole(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", "{a: 1}")
	s.ok("", "start", "hello", "hello-1", "--input", `{"name": "Ada"}`)
	page, stop := s.console("--http", "127.0.0.1:0")
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
	require.Equal(t, "hello-1\n", s.ok("", "ls", "-k", "--api", page), "the API stands beside it")
	followed := get("/live?page=/jobs")
	defer followed.Body.Close()
	stop()
}

// O11: beyond loopback everybody has to say who they are, by TLS; flags that do not fit are refused.
func TestO11ConsoleBeyondLoopback(t *testing.T) {
	s := newSpace(t)
	for _, args := range [][]string{
		{"--http", "8400"},
		{"--tls-cert", "x"},
		{"--tls-cert", "x", "--tls-key", "y"},
		{"--proxy-from", "10.0.0.0/8"},
		{"--proxy-from", "ten", "--proxy-header", "X-User"},
		{"--proxy-role-header", "X-Role"},
		{"--http", "nowhere.invalid:1"},
	} {
		require.Contains(t, s.fails(cli.CodeUsage, "", append([]string{"console"}, args...)...).Err, args[0], args)
	}
	token := strings.TrimSpace(s.ok("", "token", "create", "ada"))
	certs := devtest.NewCertificates(t, "nobody")
	page, stop := s.console("--http", "0.0.0.0:0", "--tls-cert", certs.ServerCert, "--tls-key", certs.ServerKey)
	_, port, _ := strings.Cut(strings.TrimPrefix(page, "https://"), "]:")
	require.NotEmpty(t, port, page)
	roots := x509.NewCertPool()
	authority, readErr := os.ReadFile(certs.CA)
	require.NoError(t, readErr)
	require.True(t, roots.AppendCertsFromPEM(authority))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	ask := func(token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://localhost:"+port+"/jobs", nil)
		require.NoError(t, err)
		if token != "" {
			req.SetBasicAuth("", token) // as a browser does
		}
		r, err := client.Do(req)
		require.NoError(t, err)
		require.NotEmpty(t, r.Header.Get("Strict-Transport-Security"))
		require.NoError(t, r.Body.Close())
		return r.StatusCode
	}
	require.Equal(t, http.StatusUnauthorized, ask(""))
	require.Equal(t, http.StatusOK, ask(token))
	s.ok("", "token", "revoke", "ada")
	require.Equal(t, http.StatusUnauthorized, ask(token))
	client.CloseIdleConnections()
	require.NotContains(t, stop(), token)
}
