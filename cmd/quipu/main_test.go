package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func TestDocumented(t *testing.T) { clitest.Documented(t, newCommand(cli.Streams{})) }

func TestVersion(t *testing.T) {
	t.Parallel()
	r := clitest.Do(t, run, nil, "", "--version")
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Out, "quipu version "+cli.Build())
}

// TestUsage: faults that need no server are found before one is asked.
func TestUsage(t *testing.T) {
	t.Parallel()
	none := map[string]string{"QUIPU_DEV": filepath.Join(t.TempDir(), "none")}
	some := map[string]string{"QUIPU_POSTGRES": "postgres://127.0.0.1:1/x"}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		code int
		said string
	}{
		"no database":      {nil, []string{"ls"}, cli.CodeUsage, "QUIPU_POSTGRES"},
		"no worker dev":    {none, []string{"ls"}, cli.CodeFailed, "worker dev --data"},
		"database away":    {some, []string{"ls"}, cli.CodeFailed, "unavailable"},
		"API away":         {nil, []string{"ls", "--api", "http://127.0.0.1:1"}, cli.CodeFailed, "quipu ls: the API does not answer: "},
		"no DSN":           {nil, []string{"ls", "--postgres", "not a dsn"}, cli.CodeUsage, "quipu ls: --postgres (QUIPU_POSTGRES): not a connection string such as postgres://user@host:5432/db: "},
		"no URL":           {some, []string{"ls", "--nats", "http://u:secret@a"}, cli.CodeUsage, "quipu ls: --nats (QUIPU_NATS) is not like nats://host:4222 (several are separated by commas); number 1: the scheme \"http\""},
		"space":            {some, []string{"ls", "--space", "Über"}, cli.CodeUsage, "space"},
		"NATS CA":          {some, []string{"wait", "k", "--nats", "nats://127.0.0.1:1", "--nats-ca", "/none"}, cli.CodeUsage, "--nats-ca (QUIPU_NATS_CA) /none cannot be used: "},
		"format":           {some, []string{"ls", "-o", "xml"}, cli.CodeUsage, "table or json"},
		"format, variable": {map[string]string{"QUIPU_OUTPUT": "xml"}, []string{"flows"}, cli.CodeUsage, "table or json"},
		"command":          {nil, []string{"frob"}, cli.CodeUsage, `unknown command "frob"`},
		"no arguments":     {some, []string{"start"}, cli.CodeUsage, "quipu start: missing: FLOW\nusage: quipu start FLOW [KEY]"},
		"one too many":     {some, []string{"ls", "x"}, cli.CodeUsage, "quipu ls: \"x\": no arguments are taken\nusage: quipu ls [flags]"},
		"a directory":      {some, []string{"check", "testdata"}, cli.CodeFailed, "quipu check: testdata: is a directory\n"},
		"command below":    {some, []string{"dead", "reslove", "7"}, cli.CodeUsage, `unknown command "reslove" for "quipu dead"`},
		"stdin as key":     {some, []string{"start", "f", "-"}, cli.CodeUsage, "KEY cannot be -"},
		"lines and key":    {some, []string{"start", "-", "key"}, cli.CodeUsage, "no other argument"},
		"lines and input":  {some, []string{"start", "-", "--input", "{}"}, cli.CodeUsage, "no other argument"},
		"no input file":    {some, []string{"start", "f", "k", "--input", "@/none"}, cli.CodeFailed, "/none"},
		"state":            {some, []string{"ls", "--state", "odd"}, cli.CodeUsage, "use one of"},
		"a state of two":   {some, []string{"ls", "--state", "open,odd"}, cli.CodeUsage, "\"odd\": use one of"},
		"from":             {some, []string{"ls", "--from", "yesterday"}, cli.CodeUsage, "--from \"yesterday\": use a time such as"},
		"to":               {some, []string{"ls", "--to", "-1h"}, cli.CodeUsage, "--to \"-1h\": use a time"},
		"watched limit":    {some, []string{"ls", "--watch", "--limit", "0"}, cli.CodeUsage, "--watch shows 1 to 1000 jobs"},
		"watched count":    {some, []string{"ls", "--watch", "--count"}, cli.CodeUsage, "[count watch] were all set"},
		"limit":            {some, []string{"ls", "--limit", "-1"}, cli.CodeUsage, "--limit"},
		"timeout":          {some, []string{"wait", "k", "--timeout", "-1s"}, cli.CodeUsage, "--timeout"},
		"dead limit":       {some, []string{"dead", "ls", "--limit", "-1"}, cli.CodeUsage, "--limit"},
		"dead id":          {some, []string{"dead", "retry", "x7"}, cli.CodeUsage, "dead ls"},
		"dead code":        {some, []string{"dead", "fail", "7", "--code", "200"}, cli.CodeUsage, "400 to 599"},
		"result":           {some, []string{"dead", "resolve", "7", "--result", "{"}, codeRefused, "no JSON"},
		"result and ids":   {some, []string{"dead", "resolve", "-", "--result", "-"}, cli.CodeUsage, "@FILE"},
		"done, result":     {some, []string{"dead", "done", "7", "--result", "JSON"}, codeRefused, `is no JSON: JSON: put what the effect's function would have returned, for example '"wired"'`},
		"done, effect":     {some, []string{"dead", "done", "7", "--result", "1", "--effect", "charge"}, cli.CodeUsage, "64 hexadecimal digits"},
		"retry, effect":    {some, []string{"dead", "retry", "7", "8", "--effect", strings.Repeat("0", 64)}, cli.CodeUsage, "of one dead letter"},
		"effect of two":    {some, []string{"show", "a", "b", "--effect", "charge"}, cli.CodeUsage, "at most 1"},
		"payload":          {some, []string{"signal", "t", "k", "{"}, codeRefused, "no JSON"},
		"all is not kept":  {some, []string{"signal", "t", "k", "--all", "--keep", "1h"}, cli.CodeUsage, "not kept"},
		"no key to signal": {some, []string{"signal", "t"}, cli.CodeUsage, "quipu signal: missing: KEY\nusage: quipu signal TOPIC KEY ["},
		"no argument":      {some, []string{"call"}, cli.CodeUsage, "missing: TOPIC and KEY\n"},
		"no job":           {some, []string{"wait"}, cli.CodeUsage, "missing: KEY\nusage: quipu wait KEY..."},
		"too many":         {some, []string{"activate", "a", "1", "x"}, cli.CodeUsage, "\"x\": at most 2 arguments are taken, these are 3\nusage: quipu activate FLOW VERSION"},
		"why limit":        {some, []string{"why", "k", "--limit", "-1"}, cli.CodeUsage, "--limit"},
		"show lines":       {some, []string{"show", "k", "--lines", "0"}, cli.CodeUsage, "--lines"},
		"replay at":        {some, []string{"replay", "k", "--at", "-1"}, cli.CodeUsage, "--at"},
		"replay at zero":   {some, []string{"replay", "k", "--at", "0"}, cli.CodeUsage, "counted from 1"},
		"no flow file":     {some, []string{"deploy", "/none.yaml"}, cli.CodeFailed, "/none.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := clitest.Do(t, run, c.env, "", c.args...)
			require.Equal(t, c.code, r.Code, r.Err)
			require.Contains(t, r.Err, c.said)
			require.Empty(t, r.Out)
		})
	}
}

// The help of a command is about that command, and says where the flags are that all have.
func TestHelpIsAboutTheCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"activate", "--help"}, {"dead", "retry", "--help"}} {
		r := clitest.Do(t, run, nil, "", args...)
		require.Zero(t, r.Code)
		require.NotContains(t, r.Out, "--nats")
		require.Contains(t, r.Out, "\n\nFlags of every command: quipu --help\n")
	}
	require.Contains(t, clitest.Do(t, run, nil, "", "--help").Out, "--nats")
}

// TestFlowFaults: all faults of all files with their places, also of standard
// input.
func TestFlowFaults(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: a\nversion: \"1\"\ncolour: red\nactivities:\n  x: {type: worker}\n"), 0o644))
	r := clitest.Do(t, run, map[string]string{"QUIPU_POSTGRES": "postgres://127.0.0.1:1/x"}, `{"flow": 1}`, "deploy", path, "-")
	require.Equal(t, codeRefused, r.Code, r.Err)
	require.Contains(t, r.Err, path+":3:1: ")
	require.Contains(t, r.Err, path+":5:")
	require.Contains(t, r.Err, "-:1:")
	require.Contains(t, r.Err, "2 of 2 files have faults; nothing was deployed")
}

// TestDevFileIsFound: --postgres wins over --dev, --dev over QUIPU_POSTGRES.
func TestDevFileIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, cli.DevFile{Postgres: "postgres://127.0.0.1:2/dev", NATS: "nats://dev", Space: "devspace"}.Write(dir))
	for name, c := range map[string]struct {
		env                   map[string]string
		args                  []string
		postgres, nats, space string
	}{
		"dev":      {nil, []string{"--dev", dir}, "postgres://127.0.0.1:2/dev", "nats://dev", "devspace"},
		"variable": {map[string]string{"QUIPU_DEV": dir}, nil, "postgres://127.0.0.1:2/dev", "nats://dev", "devspace"},
		"space of the variable": {
			map[string]string{"QUIPU_DEV": dir, "QUIPU_SPACE": "v"},
			nil,
			"postgres://127.0.0.1:2/dev", "nats://dev", "v",
		},
		"dev over variable": {
			map[string]string{"QUIPU_POSTGRES": "postgres://v"},
			[]string{"--dev", dir, "--space", "other"},
			"postgres://127.0.0.1:2/dev", "nats://dev", "other",
		},
		"flag over dev":         {map[string]string{"QUIPU_DEV": dir}, []string{"--postgres", "postgres://f"}, "postgres://f", "", ""},
		"variable over its dev": {map[string]string{"QUIPU_DEV": dir, "QUIPU_POSTGRES": "postgres://v", "QUIPU_NATS": "nats://v"}, nil, "postgres://v", "nats://v", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &app{streams: cli.Streams{Getenv: clitest.Env(c.env)}}
			cmd := a.flowsCommand()
			a.persistent(cmd.Flags())
			require.NoError(t, cmd.Flags().Parse(c.args))
			require.NoError(t, a.configure(cmd))
			require.Equal(t, []string{c.postgres, c.nats, c.space}, []string{a.postgres, a.nats, a.space})
		})
	}
}

// A command that does not reach the database says where to look.
func TestTheDatabaseIsAway(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	dev := filepath.Join(dir, cli.DefaultDevDir)
	require.NoError(t, os.Mkdir(dev, 0o700))
	require.NoError(t, cli.DevFile{Postgres: "postgres://127.0.0.1:2/dev", Space: "devspace"}.Write(dev))
	ls := func(env map[string]string, args ...string) string {
		return clitest.Do(t, run, env, "", append([]string{"ls"}, args...)...).Err
	}
	require.Contains(t, ls(map[string]string{"QUIPU_DEV": dev}), "is the `worker dev` of "+dev+" still running?")
	require.Contains(t, ls(nil), "is the `worker dev` of "+cli.DefaultDevDir+" still running?")
	require.NotContains(t, ls(nil, "--postgres", "postgres://127.0.0.1:1/x"), "worker dev", "it is not that one's database")

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	require.NoError(t, cli.DevFile{Postgres: "postgres://" + silent.Addr().String() + "/dev"}.Write(dev))
	said := ls(nil)
	require.Contains(t, said, "it may be overloaded, stopped, or cut off")
	require.NotContains(t, said, "worker dev", "somebody listens there")
}

// A collector that is silent holds a command up for a moment only, and the command says so.
func TestSilentCollector(t *testing.T) {
	t.Parallel()
	var errs strings.Builder
	a := &app{streams: cli.Streams{Err: &errs}}
	var waits time.Duration
	a.flush(t.Context(), func(ctx context.Context) error {
		until, bounded := ctx.Deadline()
		require.True(t, bounded)
		waits = time.Until(until)
		<-ctx.Done()
		return fmt.Errorf("upload: %w", ctx.Err())
	})
	require.LessOrEqual(t, waits, time.Second)
	require.Contains(t, errs.String(), "the collector (OTEL_EXPORTER_OTLP_ENDPOINT) did not answer within 500ms")
}
