package main

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// serve puts the API before the space, and returns its URL.
func (s *space) serve() string {
	s.t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	rt, err := quipu.Open(s.t.Context(), quipu.Config{Postgres: s.env["QUIPU_POSTGRES"], NATS: s.env["QUIPU_NATS"], NoMigrate: true, Logger: quiet})
	require.NoError(s.t, err)
	guard := access.New(access.Config{Tokens: rt.Tokens().Who, Logger: quiet})
	server := httptest.NewServer(guard.Wrap(api.New(rt, api.Config{Guard: guard, Logger: quiet})))
	s.t.Cleanup(func() {
		server.Close()
		rt.Close()
	})
	return server.URL
}

// O10: somebody without a password of the database works by the API, with the same answers and
// exit codes.
func TestO10Remote(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `"${ start.output.name }"`)
	s.deploy("cut", "1", "cut", `{OnRetry: again}`)
	s.deployText("review", "flow: review\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n  hook: {type: hook, signal: order.reviewed, key: one}\ntransitions: {start: [hook]}\n")
	far := &space{t: t, env: map[string]string{"QUIPU_API": s.serve(), "QUIPU_TOKEN": strings.TrimSpace(s.ok("", "token", "create", "ada", "--role", "operator")), "USER": "eve"}}

	require.Contains(t, far.ok("", "start", "hello", "k1", "--input", `{"name":"Ada"}`, "--tag", "vip"), "k1 started (job ")
	require.Contains(t, far.ok("", "start", "hello", "k1", "--input", `{"name":"Ada"}`), "was started already")
	require.Contains(t, far.fails(codeRefused, "", "start", "hello", "k1", "--input", `{"name":"Bob"}`).Err, "quipu show k1")
	require.Contains(t, far.fails(codeRefused, "", "start", "hello", "k2", "--input", `{}`).Err, "invalid_input")
	require.Equal(t, "k1  completed  {\"text\":\"Ada\"}\n", far.ok("", "wait", "k1"))
	require.Contains(t, far.fails(codeNotFound, "", "wait", "none").Err, "none")
	require.Equal(t, "k1\n", far.ok("", "ls", "--tag", "vip", "--state", "completed", "-k"))
	o := objects(t, far.ok("", "ls", "-o", "json"))
	require.Equal(t, "hello", o[0]["flow"])
	require.NotContains(t, o[0], "head")
	shown := far.ok("", "show", "k1")
	require.Contains(t, shown, "state    completed with code 200")
	require.Contains(t, shown, `"text": "Ada"`)

	require.Contains(t, far.ok("", "signal", "order.reviewed", "one", "--id", "s1"), "is kept for")
	require.Contains(t, far.ok("", "signal", "order.reviewed", "one", "--id", "s1"), "was sent before")
	far.ok("", "start", "review", "r1")
	far.ok("", "wait", "r1")
	far.fails(codeNotFound, "", "signal", "order.reviewed", "one", "--all")
	far.ok("", "start", "review", "r2")
	require.Contains(t, far.ok("", "interrupt", "r2", "--reason", "enough"), "will be interrupted")
	require.Contains(t, far.fails(codeEnded, "", "wait", "r2").Out, "410 interrupted: enough")
	far.fails(codeStale, "", "interrupt", "r2")

	far.ok("", "start", "cut", "c1", "--input", `{"name":"Ada"}`)
	require.Contains(t, far.fails(codeTimeout, "", "wait", "c1", "--timeout", "3s").Err, "waits for a person")
	require.Equal(t, "1\n", far.ok("", "dead", "ls", "--flow", "cut", "--ids"))
	require.Contains(t, far.fails(cli.CodeUsage, "", "dead", "retry", "1", "--who", "bob").Err, "name of the token")
	far.ok("", "dead", "retry", "1", "--reason", "the provider is back")
	far.ok("", "wait", "c1")
	log := s.ok("", "log", "c1")
	require.Contains(t, log, "ada", "the journal has the name of the token")
	require.NotContains(t, log, "eve")
	far.fails(codeStale, "", "dead", "retry", "1")

	require.Contains(t, far.fails(cli.CodeUsage, "", "log", "k1").Err, "log needs the database")
	require.Contains(t, far.fails(cli.CodeUsage, "", "ls", "--count").Err, "counts of the API")
	require.Contains(t, far.fails(cli.CodeUsage, "", "ls", "--api", "ftp://x").Err, "--api")
	far.env["QUIPU_TOKEN"] = "quipu_no"
	require.Contains(t, far.fails(cli.CodeFailed, "", "ls").Err, "unauthenticated")
}
