package main

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// serve puts the API before the space, and returns its URL. nats is the URL of NATS that it asks, if any.
func (s *space) serve(nats string) string {
	s.t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	rt, err := quipu.Open(s.t.Context(), quipu.Config{Postgres: s.env["QUIPU_POSTGRES"], NATS: nats, NoMigrate: true, Logger: quiet})
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
	far := &space{t: t, env: map[string]string{"QUIPU_API": s.serve(s.env["QUIPU_NATS"]), "QUIPU_TOKEN": strings.TrimSpace(s.ok("", "token", "create", "ada", "--role", "operator")), "USER": "eve"}}

	require.Contains(t, far.ok("", "start", "hello", "k1", "--input", `{"name":"Ada"}`, "--tag", "vip"), "k1 started (job ")
	require.Contains(t, far.ok("", "start", "hello", "k1", "--input", `{"name":"Ada"}`), "was started already")
	require.Contains(t, far.fails(codeRefused, "", "start", "hello", "k1", "--input", `{"name":"Bob"}`).Err, "quipu show k1")
	require.Contains(t, far.fails(codeRefused, "", "start", "hello", "k2", "--input", `{}`).Err, "invalid_input")
	require.Equal(t, "k1  completed  {\"text\":\"Ada\"}\n", far.ok("", "wait", "k1"))
	require.Contains(t, far.fails(codeNotFound, "", "wait", "none").Err, "none")
	require.Equal(t, "k1\n", far.ok("", "ls", "--tag", "vip", "--state", "completed", "-k"))
	o := objects(t, far.ok("", "ls", "-o", "json"))
	require.Equal(t, "hello", o[0]["flow"])
	require.NotEmpty(t, o[0]["head"])
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

	require.Contains(t, far.ok("", "fork", "k1", "--at", "1", "--as", "k1-again", "--reason", "the handler is mended"), "k1-again goes on from entry 1 of k1 as job ")
	far.ok("", "wait", "k1-again")
	s.inOrder(s.ok("", "log", "k1"), "the job completed", "ada (login quipu): fork (the handler is mended), from an earlier entry, as job k1-again")
	require.Contains(t, far.fails(codeRefused, "", "fork", "k1", "--at", "1", "--as", "k1-again").Err, "take another one")
	far.fails(codeNotFound, "", "fork", "none", "--at", "1", "--as", "k9")

	require.Contains(t, far.fails(cli.CodeUsage, "", "fsck", "k1").Err, "fsck needs the database")
	require.Contains(t, far.fails(cli.CodeUsage, "", "show", "k1", "--effect", "call").Err, "show needs the database")
	require.Contains(t, far.fails(cli.CodeUsage, "", "ls", "--count").Err, "counts of the API")
	require.Contains(t, far.fails(cli.CodeUsage, "", "ls", "--api", "ftp://x").Err, "--api")
	far.env["QUIPU_TOKEN"] = "quipu_no"
	require.Contains(t, far.fails(cli.CodeFailed, "", "ls").Err, "unauthenticated")
}

// O11: somebody without a password of the database deploys and activates flows, and the space's own chain
// has the name of the token.
func TestO11RemoteFlows(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `"${ start.output.name }"`)
	far := &space{t: t, env: map[string]string{
		"QUIPU_API": s.serve(""), "QUIPU_TOKEN": strings.TrimSpace(s.ok("", "token", "create", "grace", "--role", "operator")),
	}}
	require.Contains(t, far.deploy("hello", "2", "echo", `"two"`, "--inactive"), "flow hello version 2 deployed, new jobs take version 1; `quipu activate hello 2`")
	require.Contains(t, far.ok("", "activate", "hello", "2"), "new jobs of flow hello take version 2")
	require.Equal(t, "flow hello version 1 was deployed, new jobs take version 2; `quipu activate hello 1` changes that\n", far.deploy("hello", "1", "echo", `"${ start.output.name }"`))
	o := objects(t, far.deploy("hello", "3", "echo", `"three"`, "-o", "json"))
	require.Equal(t, []any{true, true}, []any{o[0]["fresh"], o[0]["active"]})
	for _, args := range [][]string{
		{"flows"}, {"flows", "-o", "json"}, {"flows", "show", "hello", "2"}, {"flows", "diff", "hello", "1", "2"},
	} {
		require.Equal(t, s.ok("", args...), far.ok("", args...), args)
	}
	s.inOrder(s.ok("", "space", "log"), "active=no", "flow=hello version=2", "activated ", "grace", "before=1 flow=hello version=2")
	faulty := filepath.Join(t.TempDir(), "faulty.yaml")
	require.NoError(t, os.WriteFile(faulty, []byte("flow: hello\nversion: \"3\"\nactivities: {start: {type: trigger}}\n"), 0o600))
	require.Contains(t, far.fails(codeRefused, "", "deploy", faulty).Err, "give the changed flow a new version")
	far.fails(codeNotFound, "", "activate", "hello", "9")
	require.Contains(t, far.fails(codeNotFound, "", "flows", "show", "hello", "9").Err, "`quipu flows` lists what is deployed")
	require.Contains(t, far.fails(codeNotFound, "", "ls", "--flow", "none").Err, "no version of flow none is deployed")
}

// far is the space by the API, asked without NATS, with a token of the role.
func (s *space) far(role string) *space {
	return &space{t: s.t, env: map[string]string{
		"QUIPU_API": s.serve(""), "QUIPU_TOKEN": strings.TrimSpace(s.ok("", "token", "create", "ada", "--role", role)),
	}}
}

// O10: each command prints the same by token and by password, as text and in JSON.
func TestO10RemoteSaysTheSame(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `"${ start.output.name }"`)
	s.deploy("cut", "1", "cut", `{OnRetry: again}`)
	for name, text := range map[string]string{
		"closed": closed, "open": open, "declined": declined, "function": functionFlow, "panics": panicFlow,
	} {
		s.deployText(name, text)
	}
	far := s.far("operator")
	s.ok("", "start", "hello", "done", "--input", `{"name":"<Ada> & Eve"}`, "--tag", "vip")
	s.ok("", "start", "function", "book")
	s.ok("", "start", "panics", "panics")
	s.ok("", "start", "declined", "declined")
	s.ok("", "start", "cut", "parked", "--input", `{"name":"Ada"}`)
	s.ok("", "start", "open", "open")
	s.fails(codeEnded, "", "wait", "done", "book", "panics", "declined", "--timeout", "1m")
	require.Contains(t, far.ok("", "resume", "declined", "--reason", "once more"), "declined goes on as generation 2, job ")
	s.fails(codeEnded, "", "wait", "declined", "--timeout", "1m")
	s.dead(1)
	s.why("open", "which is open", "nap sleeps", "feed waits", "review waits", "asked waits", "items: 0 of", "charge was sent")

	same := func(args ...string) {
		require.Eventually(t, func() bool { // what depends on the time is asked for until it stands still
			was, by := s.do("", args...), far.do("", args...)
			if was != by && was != s.do("", args...) {
				return false
			}
			require.Equal(t, was, by, args)
			return true
		}, time.Minute, time.Millisecond, args)
	}
	old := objects(t, s.ok("", "show", "declined", "-o", "json"))[0]["resumes"].(string)
	guid := objects(t, s.ok("", "messages", "done", "-o", "json"))[2]["guid"].(string)
	for _, key := range []string{"done", "book", "declined", "parked", "open"} {
		for _, args := range [][]string{
			{"show", "--digits"}, {"log", "--digits"}, {"why", "--digits"}, {"messages"}, {"replay"}, {"trace"},
		} {
			args = append(args, key)
			same(args...)
			same(append(args, "-o", "json")...)
		}
	}
	for _, line := range []string{
		"show open " + old, "log panics book/pay", "log --raw panics", "why open --limit 1", "messages done --at 2",
		"replay book --at 3 -o json", "export done open/child",
	} {
		same(strings.Fields(line)...)
	}
	same("messages", "done", "--guid", guid[:9])
	same("trace", "book", "--svg")
	for _, args := range [][]string{
		{"ls"}, {"ls", "--parent", "open"}, {"ls", "--tag", "vip"}, {"dead", "ls"}, {"dead", "ls", "--all", "--flow", "cut"},
	} {
		same(args...)
		same(append(args, "-o", "json")...)
	}
	require.Contains(t, far.ok("", "log", "-f", "done"), "the job completed")
	s.inOrder(far.ok("", "top"), "default  processes: engine 1", "jobs: ", "/s begin\n", "dead letters: parked", "TOPIC", "echo ", "FLOW", "open ")
	for _, line := range []string{
		"show none", "why none", "log none", "trace none", "replay none", "export none", "resume none", "resume done",
		"resume open", "messages done --at 99", "messages done --guid zz", "replay done --at 99", "export done none",
	} {
		args := strings.Fields(line)
		require.Equal(t, s.do("", args...).Code, far.do("", args...).Code, args)
	}
}

// O11: by a viewer's token no command prints a payload.
func TestO11RemoteViewer(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `"${ start.output.name }"`)
	s.ok("", "start", "hello", "done", "--input", `{"name":"Eve"}`)
	s.ok("", "wait", "done", "--timeout", "1m")
	far := s.far("viewer")
	shown := far.ok("", "show", "done")
	s.inOrder(shown, "input    (not shown to a viewer)", "output   (not shown to a viewer)", "step  done", "in     (not shown to a viewer)")
	require.NotContains(t, shown+far.ok("", "log", "--raw", "done")+far.ok("", "why", "done"), "Eve")
	require.NotContains(t, far.ok("", "replay", "done", "-o", "json")+far.ok("", "trace", "done", "-o", "json"), "Eve")
	require.Contains(t, far.fails(cli.CodeFailed, "", "export", "done").Err, "may not see")
}
