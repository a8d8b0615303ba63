package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/view"
)

// running is a command in the background.
type running struct {
	t        *testing.T
	stop     context.CancelFunc
	done     chan int
	out, err clitest.Buffer
}

func start(t *testing.T, env map[string]string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, stop: cancel, done: make(chan int, 1)}
	go func() {
		r.done <- run(ctx, args,
			cli.Streams{In: strings.NewReader(""), Out: &r.out, Err: &r.err, Getenv: clitest.Env(env)})
	}()
	t.Cleanup(func() { r.end() })
	return r
}

// end stops the command and returns its exit code, the same every time.
func (r *running) end() int {
	r.stop()
	code := devtest.Await(r.t, "the end of the command, which said "+r.err.String(), r.done)
	r.done <- code
	return code
}

// until waits for a condition, as long as the command runs.
func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(2 * time.Minute)
	for !ok() {
		select {
		case code := <-r.done:
			r.done <- code
			r.t.Fatalf("ended with %d before %s: %s", code, what, r.err.String())
		case <-deadline:
			r.t.Fatalf("%s did not come: %s", what, r.err.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ready waits for dev.json.
func (r *running) ready(dir string) cli.DevFile {
	r.t.Helper()
	r.until("dev.json", func() bool { _, err := os.Stat(cli.DevPath(dir)); return err == nil })
	file, err := cli.ReadDevFile(dir)
	require.NoError(r.t, err)
	return file
}

// dataDir returns a directory that Postgres's own user can enter, so that the cluster is in it,
// also for root, and is removed with it.
func dataDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(devtest.Dir(t), "data")
}

// dataOf is a dataDir with the cluster of a `worker dev` that ran there.
func dataOf(t *testing.T) string {
	t.Helper()
	data := dataDir(t)
	devtest.Seed(t, filepath.Join(data, "postgres"), database)
	return data
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// runJob runs a job of the flow hello as a client.
func runJob(t *testing.T, file cli.DevFile, key string) string {
	t.Helper()
	rt, err := quipu.Open(t.Context(),
		quipu.Config{Postgres: file.Postgres, NATS: file.NATS, Space: file.Space, NoMigrate: true})
	require.NoError(t, err)
	defer rt.Close()
	job, err := rt.Start(t.Context(), "hello", key, map[string]string{"name": "Ada"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := rt.Wait(ctx, job)
	require.NoError(t, err)
	return string(out)
}

// TestDev: it becomes ready, refuses a second one, stops, and starts again.
func TestDev(t *testing.T) {
	t.Parallel()
	flows := flowDir(t, "hello.yaml", version("1", "Hello,"))
	data := dataDir(t)
	first := start(t, nil, "dev", "--data", data, "--flows", flows, "--http", ":0")
	file := first.ready(data)
	require.Equal(t, os.Getpid(), file.PID)
	require.JSONEq(t, `{"text":"Hello, Ada"}`, runJob(t, file, "order-4711"))
	for _, path := range []string{"/healthz", "/readyz"} {
		status, text := get(t, file.HTTP+path)
		require.Equal(t, http.StatusOK, status, text)
	}
	_, metrics := get(t, file.HTTP+"/metrics")
	require.Contains(t, metrics, `quipu_transitions_total{quipu_space="default"} `)
	require.Contains(t, metrics, `quipu_jobs{quipu_flow="hello",quipu_space="default",quipu_state="open"} 0`)
	require.Contains(t, metrics, `quipu_sessions{quipu_role="engine",quipu_space="default"} 1`)
	require.Contains(t, metrics, `quipu_lanes_unpulled{quipu_space="default"} `)
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, hidden := range []string{"order-4711", "Ada", "postgres:", "nats:", "127.0.0.1", host, "go_info"} {
		require.NotContains(t, metrics, hidden, "whoever asks learns flows and topics, and nothing else (O4)")
	}
	for _, path := range []string{"/", "/debug/pprof/", "/debug/vars"} {
		status, _ := get(t, file.HTTP+path)
		require.Equal(t, http.StatusNotFound, status, path)
	}
	require.Contains(t, first.out.String(), "quipu --dev "+data+" start hello KEY")
	_, said, found := strings.Cut(first.out.String(), "  console   ")
	require.True(t, found, "the address of the console (O6)")
	console, _, _ := strings.Cut(said, "\n")
	status, page := get(t, console+"/jobs")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, ">order-4711</a>")
	require.NotContains(t, first.out.String()+first.err.String(), "postgres://quipu:", "no password is printed (4.5)")

	second := clitest.Do(t, run, nil, "", "dev", "--data", data)
	require.Equal(t, codeInUse, second.Code, second.Err)
	require.Contains(t, second.Err, "another `worker dev` has the directory")
	require.FileExists(t, cli.DevPath(data), "the second one leaves the first one's file")

	require.Zero(t, first.end(), first.err.String())
	require.NoFileExists(t, cli.DevPath(data))

	require.NoError(t, file.Write(data)) // as a kill leaves it behind
	flows = flowDir(t, "h.yaml", version("2", "Bye,"))
	again := start(t, map[string]string{"QUIPU_DATA": data, "QUIPU_FLOWS": flows}, "dev", "--watch")
	again.until("ready", func() bool { return strings.Contains(again.out.String(), "is ready") })
	next := again.ready(data)
	require.Equal(t, file.Postgres, next.Postgres, "the same port and password")
	require.Equal(t, file.NATS, next.NATS)
	require.Empty(t, next.HTTP)
	require.JSONEq(t, `{"text":"Hello, Ada"}`, runJob(t, next, "order-4711"), "the first run's job")
	require.JSONEq(t, `{"text":"Bye, Ada"}`, runJob(t, next, "two"), "the new version is active")
	again.edits(t, next, filepath.Join(flows, "h.yaml"))
	require.Zero(t, again.end(), again.err.String())

	stale := clitest.Do(t, run, nil, "", "dev", "--data", data, "--flows", flowDir(t, "h.yaml", version("2", "Other,")))
	require.Equal(t, codeFlows, stale.Code, stale.Err)
	require.Contains(t, stale.Err, "give the changed flow a new version, or let --watch deploy each edit")
}

// edits has --watch deploy edits of the file of version 2: two with versions of their own, a faulty one,
// and the first one once more, which is there already.
func (r *running) edits(t *testing.T, file cli.DevFile, path string) {
	t.Helper()
	rt, err := quipu.Open(t.Context(),
		quipu.Config{Postgres: file.Postgres, NATS: file.NATS, Space: file.Space, NoMigrate: true})
	require.NoError(t, err)
	defer rt.Close()
	bad := "flow: hello\nversion: \"2\"\nactivities:\n  start: {type: trigger, colour: red}\n"
	for i, edit := range []struct{ text, active, said string }{
		{version("2", "One,"), "2-dev.1", "One, Ada"},
		{version("2", "Two,"), "2-dev.2", "Two, Ada"},
		{bad, "2-dev.2", "Two, Ada"},
		{version("2", "One,"), "2-dev.1", "One, Ada"},
		{version("3", "Three,"), "3", "Three, Ada"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(edit.text), 0o644))
		r.until(edit.active, func() bool {
			flows, err := rt.Flows(t.Context())
			require.NoError(t, err)
			return slices.ContainsFunc(flows, func(f view.FlowVersion) bool {
				return f.Flow == "hello" && f.Version == edit.active && f.Active
			}) && (edit.text != bad || strings.Contains(r.err.String(), path+":4:"))
		})
		require.JSONEq(t, `{"text":"`+edit.said+`"}`, runJob(t, file, "edit-"+strconv.Itoa(i)))
	}
	require.Contains(t, r.err.String(), "h.yaml was not deployed: new jobs go on with the version before")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "new.yaml"), []byte(bad), 0o644))
	r.until("a fault of a new file", func() bool {
		return strings.Contains(r.err.String(), "new.yaml was not deployed, and no version of it was before")
	})
}

// TestPostgresEnds: worker dev does not go on without its database.
func TestPostgresEnds(t *testing.T) {
	t.Parallel()
	data := dataOf(t)
	servers := start(t, nil, "dev", "--data", data, "--servers-only")
	servers.ready(data)
	text, err := os.ReadFile(filepath.Join(data, "postgres", "data", "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGQUIT))
	code := devtest.Await(t, "the end of the servers", servers.done)
	servers.done <- code
	require.Equal(t, cli.CodeFailed, code)
	require.Contains(t, servers.err.String(), "ended by itself")
	require.NoFileExists(t, cli.DevPath(data))
}

// TestServersOnly: workers are other processes.
func TestServersOnly(t *testing.T) {
	t.Parallel()
	data := dataOf(t)
	servers := start(t, nil, "dev", "--data", data, "--servers-only", "--space", "shop")
	file := servers.ready(data)
	require.Equal(t, "shop", file.Space)
	servers.until("say who works", func() bool { return strings.Contains(servers.out.String(), "start your workers with QUIPU_DEV="+data) })
	env := map[string]string{
		"QUIPU_POSTGRES": file.Postgres, "QUIPU_NATS": file.NATS, "QUIPU_SPACE": file.Space,
		"QUIPU_FLOWS": flowDir(t, "hello.yaml", version("1", "Hello,")),
	}
	engine := start(t, env, "--roles", "engine", "--log", "json")
	handlers := start(t, map[string]string{"QUIPU_DEV": data}, "--roles", "workers", "--name", "handlers")
	engine.until("work", func() bool { return strings.Contains(engine.err.String(), `"msg":"ready"`) })
	handlers.until("work", func() bool { return strings.Contains(handlers.err.String(), `msg=ready`) })
	require.JSONEq(t, `{"text":"Hello, Ada"}`, runJob(t, file, "one"))
	require.Contains(t, engine.err.String(), `"msg":"preflight"`, "what was checked is printed (4.4)")
	require.Zero(t, engine.end(), engine.err.String())
	require.Zero(t, handlers.end(), handlers.err.String())
	require.Contains(t, handlers.err.String(), "drained")
	require.Zero(t, servers.end(), servers.err.String())
}

// TestPreflightRefuses_4_4: a database that would lose what it acknowledged.
func TestPreflightRefuses_4_4(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t) + "&synchronous_commit=off"
	r := clitest.Do(t, run, nil, "", "--postgres", dsn, "--nats", devtest.NATS(t).URL())
	require.Equal(t, codePreflight, r.Code, r.Err)
	require.Contains(t, r.Err, "synchronous_commit")
	r = clitest.Do(t, run, nil, "", "--postgres", dsn, "--nats", devtest.NATS(t).URL(), "--accept", "sloth")
	require.Equal(t, cli.CodeUsage, r.Code, r.Err)
	require.Contains(t, r.Err, "synchronous-commit-off can be accepted")
}

// TestFlowVersions: a directory deploys new versions and does not go back to old ones.
func TestFlowVersions(t *testing.T) {
	t.Parallel()
	dsn, nats := devtest.Postgres(t), devtest.NATS(t).URL()
	deploy := func(dir string, says string) {
		t.Helper()
		w := start(t, nil, "--postgres", dsn, "--nats", nats, "--flows", dir)
		w.until(says, func() bool { return strings.Contains(w.err.String(), "msg=ready") })
		require.Contains(t, w.err.String(), says)
		require.Zero(t, w.end(), w.err.String())
	}
	one, two := flowDir(t, "h.yaml", version("1", "a")), flowDir(t, "h.yaml", version("2", "b"))
	deploy(one, `msg="flow deployed" flow=hello version=1`)
	deploy(two, `msg="flow deployed" flow=hello version=2`)
	deploy(one, "active=2") // an old process restarts
	r := clitest.Do(t, run, nil, "", "--postgres", dsn, "--nats", nats, "--flows", flowDir(t, "h.yaml", version("1", "changed")))
	require.Equal(t, codeFlows, r.Code, r.Err)
	require.Contains(t, r.Err, "give the changed flow a new version")
}

// TestTheClockNeedsNoNATS: a process that starts jobs by the clock, or removes
// expired ones, does it with the database alone (T8).
func TestTheClockNeedsNoNATS(t *testing.T) {
	t.Parallel()
	w := start(t, map[string]string{"QUIPU_POSTGRES": devtest.Postgres(t)}, "--roles", "schedule,retention")
	w.until("work", func() bool { return strings.Contains(w.err.String(), `roles="[schedule retention]"`) })
	require.Zero(t, w.end(), w.err.String())
	r := clitest.Do(t, run, nil, "", "--postgres", "postgres://127.0.0.1:1/x", "--roles", "schedule,engine")
	require.Equal(t, cli.CodeUsage, r.Code, r.Err)
	require.Contains(t, r.Err, "QUIPU_NATS")
}

// TestServersAway: an error that says which one, not a hang.
func TestServersAway(t *testing.T) {
	t.Parallel()
	r := clitest.Do(t, run, nil, "", "--postgres", "postgres://127.0.0.1:1/x", "--nats", devtest.NATS(t).URL(), "--wait", "2s")
	require.Equal(t, cli.CodeFailed, r.Code, r.Err)
	require.Contains(t, r.Err, "postgres")
	require.Contains(t, r.Err, "waits for it")
	require.Contains(t, r.Err, "after 2s (--wait)")

	r = clitest.Do(t, run, nil, "", "--postgres", "postgres://127.0.0.1:1/x", "--nats", "nats://127.0.0.1:2", "--wait", "1s")
	require.Equal(t, cli.CodeFailed, r.Code, r.Err)
	for _, said := range []string{"after 1s (--wait)", "127.0.0.1:1", "127.0.0.1:2"} {
		require.Contains(t, r.Err, said, "both are away")
	}
}

// TestAWrongLoginIsNoServerAway: nobody waits for a password or a database that will not come.
func TestAWrongLoginIsNoServerAway(t *testing.T) {
	t.Parallel()
	dsn, err := url.Parse(devtest.Postgres(t))
	require.NoError(t, err)
	password, database := *dsn, *dsn
	password.User = url.UserPassword(dsn.User.Username(), "wrong")
	database.Path = "/nowhere"
	for says, wrong := range map[string]url.URL{"refuses the user or the password": password, "there is no database nowhere": database} {
		for _, nats := range []string{devtest.NATS(t).URL(), "nats://127.0.0.1:2"} {
			r := clitest.Do(t, run, nil, "", "--postgres", wrong.String(), "--nats", nats, "--wait", "4s")
			require.Equal(t, cli.CodeFailed, r.Code, r.Err)
			require.Contains(t, r.Err, says)
			require.NotContains(t, r.Err, "waits for it")
			require.NotContains(t, r.Err, "(--wait)")
		}
	}
}

// TestServersComeLater: a worker that was started before its servers takes work once they are up,
// and ends at once if it is told to before that.
func TestServersComeLater(t *testing.T) {
	t.Parallel()
	data := dataOf(t)
	servers := start(t, nil, "dev", "--data", data, "--servers-only")
	file := servers.ready(data)
	require.Zero(t, servers.end(), servers.err.String())
	env := map[string]string{"QUIPU_POSTGRES": file.Postgres, "QUIPU_NATS": file.NATS}
	worker, impatient := start(t, env), start(t, env)
	for _, w := range []*running{worker, impatient} {
		w.until("the wait", func() bool {
			return strings.Contains(w.err.String(), "a server is away") || strings.Contains(w.err.String(), "nats")
		})
	}
	require.Equal(t, cli.CodeInterrupted, impatient.end(), impatient.err.String())
	again := start(t, nil, "dev", "--data", data, "--servers-only")
	require.Equal(t, file.Postgres, again.ready(data).Postgres, "the same port")
	worker.until("work", func() bool { return strings.Contains(worker.err.String(), "msg=ready") })
	require.Zero(t, worker.end(), worker.err.String())
	require.Zero(t, again.end(), again.err.String())
}
