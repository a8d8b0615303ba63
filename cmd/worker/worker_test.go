package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func TestDocumented(t *testing.T) { clitest.Documented(t, newCommand(cli.Streams{})) }

// hello is a flow of one step.
const hello = `flow: hello
version: "VERSION"
activities:
  start: {type: trigger}
  greet: {type: worker, topic: echo, input: {text: "NOTE ${ start.output.name }"}}
output: {text: "${ greet.output.text }"}
transitions: {start: [greet]}
`

// flowDir makes a directory with files; names and texts alternate.
func flowDir(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(files[i+1]), 0o644))
	}
	return dir
}

func version(v, note string) string {
	return strings.NewReplacer("VERSION", v, "NOTE", note).Replace(hello)
}

// TestUsage: faults that need no server are found before one is asked.
func TestUsage(t *testing.T) {
	t.Parallel()
	servers := []string{"--postgres", "postgres://127.0.0.1:1/x", "--nats", "nats://127.0.0.1:1"}
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		said string
	}{
		"no servers":      {nil, nil, "missing: --postgres (QUIPU_POSTGRES) and --nats (QUIPU_NATS); "},
		"no NATS":         {servers[:2], nil, "missing: --nats (QUIPU_NATS); "},
		"no database":     {servers[2:], nil, "missing: --postgres (QUIPU_POSTGRES); "},
		"no DSN":          {[]string{"--postgres", "not a dsn", "--nats", "nats://127.0.0.1:1"}, nil, "--postgres (QUIPU_POSTGRES): "},
		"role":            {append(servers, "--roles", "engine,cook"), nil, `"cook"`},
		"no port":         {append(servers, "--http", "8080"), nil, "127.0.0.1:9090"},
		"log":             {servers, map[string]string{"QUIPU_LOG": "xml"}, "text or json"},
		"level":           {append(servers, "--log-level", "loud"), nil, "debug, info"},
		"negative":        {append(servers, "--concurrency", "-1"), nil, "--concurrency -1"},
		"negative time":   {append(servers, "--lease", "-1s"), nil, "--lease -1s"},
		"too many":        {append(servers, "--concurrency", "16385"), nil, "--concurrency 16385: at most 16384"},
		"no secrets":      {append(servers, "--secrets", "/none"), nil, "--secrets: /none: no such file or directory"},
		"too large":       {append(servers, "--max-batch", "501"), nil, "--max-batch 501: at most 500"},
		"too many lanes":  {append(servers, "--lanes", "1025"), nil, "--lanes 1025: at most 1024"},
		"too short":       {append(servers, "--lease", "1ms"), nil, "30ms to 1h"},
		"too many copies": {append(servers, "--nats-replicas", "6"), nil, "--nats-replicas (QUIPU_NATS_REPLICAS) is 6, allowed are 1 to 5"},
		"too soon":        {servers, map[string]string{"QUIPU_NATS_MAX_AGE": "10m"}, "--nats-max-age (QUIPU_NATS_MAX_AGE) is 10m0s: at least 1h0m0s"},
		"no bytes":        {append(servers, "--nats-max-mib", "-1"), nil, "--nats-max-mib -1"},
		"no key":          {append(servers, "--nats-cert", "c.pem"), nil, "--nats-key (QUIPU_NATS_KEY) is missing: there is a certificate"},
		"no such port":    {[]string{"dev", "--data", t.TempDir(), "--nats-port", "99999"}, nil, "1 to 65535"},
		"variable":        {servers, map[string]string{"QUIPU_MAX_BATCH": "many"}, "QUIPU_MAX_BATCH"},
		"no directory":    {append(servers, "--flows", filepath.Join(t.TempDir(), "none")), nil, "--flows"},
		"http-allow":      {append(servers, "--http-allow", "10.0.0.0/8,http://x"), nil, `http-allow "http://x"`},
		"http-deny":       {servers, map[string]string{"QUIPU_HTTP_DENY": "10.0.0.0/8,x:80"}, `http-deny "x:80"`},
		"argument":        {[]string{"now"}, nil, "unknown command"},
		"space":           {append(servers, "--space", "Über"), nil, `space "Über": a lower-case letter`},
		"dev's argument":  {[]string{"dev", "now"}, nil, `"now": no arguments are taken`},
		"servers only":    {[]string{"dev", "--servers-only", "--http", ":0", "--flows", "x"}, nil, "leave out --flows, --http,"},
		"and console":     {[]string{"dev", "--servers-only", "--console", "127.0.0.1:0"}, nil, "leave out --console,"},
		"of a variable": {
			[]string{"dev", "--servers-only"}, map[string]string{"QUIPU_CONSOLE": "127.0.0.1:0", "QUIPU_DRAIN": "1s"}, "leave out --console,",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := clitest.Do(t, run, c.env, "", c.args...)
			require.Equal(t, cli.CodeUsage, r.Code, r.Err)
			require.Contains(t, r.Err, c.said)
		})
	}
}

// TestFlowFaults: all faults of all files, with their places, and exit code 3.
func TestFlowFaults(t *testing.T) {
	t.Parallel()
	dir := flowDir(t,
		"a.yaml", "flow: a\nversion: \"1\"\nactivities:\n  start: {type: trigger, colour: red}\n  x: {type: worker}\n",
		"sub/b.json", `{"flow": "b"`,
		"sub/good.yml", version("1", "hi"),
		"notes.txt", "not a flow",
		".hidden/c.yaml", "no: flow",
	)
	r := clitest.Do(t, run, map[string]string{"QUIPU_FLOWS": dir, "QUIPU_POSTGRES": "postgres://127.0.0.1:1/x", "QUIPU_NATS": "nats://127.0.0.1:1"}, "")
	require.Equal(t, codeFlows, r.Code, r.Err)
	require.Contains(t, r.Err, filepath.Join(dir, "a.yaml")+":4:")
	require.Contains(t, r.Err, "colour")
	require.Contains(t, r.Err, filepath.Join(dir, "a.yaml")+":5:")
	require.Contains(t, r.Err, filepath.Join(dir, "sub/b.json")+":1:")
	require.Contains(t, r.Err, "2 of 3 flow files have faults; nothing was deployed")
}

// An address without a host is for this machine alone; any other is taken as it is (O4).
func TestO4ListensWhereItIsTold(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		":9090": "127.0.0.1:9090", "0.0.0.0:9090": "0.0.0.0:9090", "[::]:0": "[::]:0", "db.example:1": "db.example:1",
	} {
		addr, err := listenOn(given)
		require.NoError(t, err)
		require.Equal(t, want, addr)
	}
}

// O4: whoever asks /readyz often does not ask the servers often, and learns no names from them.
func TestO4ReadinessIsAskedSeldom(t *testing.T) {
	t.Parallel()
	p, err := openPage(t.Context(), "127.0.0.1:0", http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, p.close()) }()
	status, _ := get(t, p.URL()+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status, "it is starting")
	why := errors.New("user quipu at db.example")
	for said, err := range map[string]error{
		"the database does not answer":                                      why,
		"the database is another one than the space's: see quipu recover":   fmt.Errorf("%w: %w: %w", quipu.ErrNotReady, quipu.ErrAnotherDatabase, why),
		"the process takes no work: the streams of the space cannot be had": fmt.Errorf("%w: the streams of the space cannot be had: %w", quipu.ErrNotReady, why),
		"the process takes no work: it is starting":                         fmt.Errorf("%w: it is starting", quipu.ErrNotReady),
	} {
		asked := 0
		p.mu.Lock()
		p.asked = time.Time{}
		p.mu.Unlock()
		p.asks(func(context.Context) error { asked++; return err })
		for range 10 {
			status, text := get(t, p.URL()+"/readyz")
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Equal(t, said+"\n", text)
		}
		require.Less(t, asked, 10)
	}
}
