package compose_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/gobuild"
)

// patience bounds each wait of a test.
const patience = time.Minute

// variable is one of the environment in docker-compose.yml, with its default.
var variable = regexp.MustCompile(`\$\{(\w+):-(\w+)\}`)

// stack is what the file brings up, without containers: the same commands and environments, on servers of this test.
type stack struct {
	t        *testing.T
	f        file
	bin      string
	replace  *strings.Replacer
	postgres *dev.Postgres
	nats     *natsserver.Server
}

// newStack starts the servers as the file does: Postgres with its first script, NATS with its configuration.
func newStack(t *testing.T) *stack {
	t.Helper()
	dir := t.TempDir()
	s := &stack{t: t, f: load(t), bin: t.TempDir()}
	require.NoError(t, gobuild.Build("", s.bin, "../../cmd/worker", "../../cmd/quipu", "../../cmd/journal-verify"))
	s.postgres = devtest.Cluster(t, dev.PostgresOptions{Databases: []string{"quipu"}})
	psql := exec.CommandContext(t.Context(), "psql", "-v", "ON_ERROR_STOP=1", "--no-psqlrc", s.postgres.DSN("quipu"), "-f", s.mounted("postgres", "/docker-entrypoint-initdb.d/logins.sql"))
	psql.Env = append(os.Environ(), s.environment("postgres")...)
	out, err := psql.CombinedOutput()
	require.NoError(t, err, string(out))

	text, err := os.ReadFile(s.mounted("nats", "/etc/nats/quipu.conf"))
	require.NoError(t, err)
	require.Contains(t, strings.Join(s.f.Services["nats"].Command, " "), "--config /etc/nats/quipu.conf")
	given := s.f.Services["nats"].Environment
	text = regexp.MustCompile(`\$QUIPU_\w+`).ReplaceAllFunc(text, func(name []byte) []byte {
		return []byte(variable.ReplaceAllString(given[string(name[1:])], "$2"))
	})
	config := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(config, text, 0o600))
	opts, err := natsserver.ProcessConfigFile(config)
	require.NoError(t, err)
	opts.Host, opts.Port, opts.JetStream, opts.StoreDir = "127.0.0.1", natsserver.RANDOM_PORT, true, filepath.Join(dir, "nats")
	s.nats = devtest.NATSOf(t, opts)

	at := func(dsn string) string { return dsn[strings.LastIndex(dsn, "@")+1:] }
	database, _, _ := strings.Cut(at(s.postgres.DSN("quipu")), "/")
	s.replace = strings.NewReplacer("@postgres:5432", "@"+database, "@nats:4222", "@"+s.nats.Addr().String(), "0.0.0.0:9090", "127.0.0.1:0", "0.0.0.0:8400", "0.0.0.0:0")
	return s
}

// mounted is the file of the repository that a service sees at a path.
func (s *stack) mounted(service, path string) string {
	s.t.Helper()
	for _, v := range s.f.Services[service].Volumes {
		if source, target, _ := strings.Cut(strings.TrimSuffix(v, ":ro"), ":"); target == path {
			return filepath.Join("../..", source)
		}
	}
	require.FailNow(s.t, "nothing is mounted", "%s in %s", path, service)
	return ""
}

// environment is that of a service, without what is for a collector.
func (s *stack) environment(service string) (env []string) {
	for name, value := range s.f.Services[service].Environment {
		if strings.HasPrefix(name, "OTEL_") {
			continue
		}
		if value = variable.ReplaceAllString(value, "$2"); s.replace != nil {
			value = s.replace.Replace(value)
		}
		if name == "QUIPU_FLOWS" {
			value = s.mounted(service, value)
		}
		env = append(env, name+"="+value)
	}
	return env
}

// command is what a service runs, with arguments instead of its own if there are some.
func (s *stack) command(service string, args ...string) *exec.Cmd {
	d := s.f.Services[service]
	line := slices.Clone(d.Entrypoint)
	if len(line) == 0 {
		line = []string{"worker"} // that of the image
	}
	if len(args) == 0 {
		args = d.Command
	}
	for _, a := range args {
		line = append(line, s.replace.Replace(a))
	}
	name := line[0]
	if name != "sh" {
		name = filepath.Join(s.bin, name)
	}
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), name, line[1:]...)
	cmd.Env = append([]string{"PATH=" + s.bin + ":" + os.Getenv("PATH"), "USER=ada"}, s.environment(service)...)
	return cmd
}

// once runs a service to its end, and returns what it printed.
func (s *stack) once(service string, args ...string) string {
	s.t.Helper()
	out, err := s.command(service, args...).CombinedOutput()
	require.NoError(s.t, err, "%s %q: %s", service, args, out)
	return string(out)
}

// start runs a service until the test ends. It has said what is to be waited for.
func (s *stack) start(service, until string) *devtest.Log {
	s.t.Helper()
	w := &devtest.Log{}
	cmd := s.command(service)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() {
		require.NoError(s.t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(s.t, cmd.Wait(), "%s: %s", service, w)
	})
	require.Eventually(s.t, func() bool {
		return strings.Contains(w.String(), until)
	}, patience, 10*time.Millisecond, "%s: %s", service, w)
	return w
}

// S8, S4: the commands and environments of docker-compose.yml bring up a space in which each part has a login with
// the least rights, at Postgres and at NATS; a job runs, and its journal is proved.
func TestS8ComposeRunsWithLeastRoles(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.once("space")
	s.once("space") // once more, as with each `docker compose up`
	logs := map[string]*devtest.Log{}
	t.Cleanup(func() {
		for service, log := range logs {
			if t.Failed() {
				t.Logf("%s said:\n%s", service, log)
			}
		}
	})
	for _, service := range []string{"engine", "worker-a", "worker-b", "retention"} {
		logs[service] = s.start(service, "msg=ready")
	}
	page := s.start("console", "console: http")

	require.Contains(t, s.once("client", "start", "hello", "hello-1", "--input", `{"name": "Ada"}`), "hello-1")
	require.Contains(t, s.once("client", "wait", "hello-1", "--timeout", patience.String()), "Hello, Ada")
	require.Contains(t, s.once("operator", "why", "hello-1"), "completed")
	require.Contains(t, s.once("verifier"), "0 open obligations: proved")
	log := s.once("owner", "space", "log")
	require.Equal(t, 6, strings.Count(log, "granted "), log)
	require.Equal(t, 6, strings.Count(log, " owner "), log)

	token := strings.TrimSpace(s.once("owner", "token", "create", "ada", "--role", "operator"))
	port := regexp.MustCompile(`console: http://\S*?:(\d+)`).FindStringSubmatch(page.String())
	require.NotNil(t, port, page.String())
	require.Equal(t, http.StatusUnauthorized, s.ask(port[1], ""))
	require.Equal(t, http.StatusOK, s.ask(port[1], token))
	for service, w := range logs {
		require.NotContains(t, w.String(), "permission", service)
		require.NotContains(t, w.String(), "level=ERROR", service)
	}
	require.NotContains(t, logs["retention"].String(), "owner", "it may make and drop partitions")
	s.holdsLeastRoles()
}

// ask asks the console for jobs.
func (s *stack) ask(port, token string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/api/v1/jobs", http.NoBody)
	require.NoError(s.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Host = "console.example" // as seen from another container
	got, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = got.Body.Close() }()
	_, _ = io.Copy(io.Discard, got.Body)
	return got.StatusCode
}

// holdsLeastRoles says that each login is in the role of its name and in no other, and is no superuser.
func (s *stack) holdsLeastRoles() {
	s.t.Helper()
	admin, err := pgx.Connect(s.t.Context(), s.postgres.DSN("quipu"))
	require.NoError(s.t, err)
	defer func() { _ = admin.Close(s.t.Context()) }()
	rows, err := admin.Query(s.t.Context(), `SELECT l.rolname || ' ' || coalesce(string_agg(g.rolname, ' ' ORDER BY g.rolname), '')
		FROM pg_roles l LEFT JOIN pg_auth_members m ON m.member = l.oid LEFT JOIN pg_roles g ON g.oid = m.roleid AND NOT (l.rolname = 'owner' AND g.rolname LIKE 'quipu\_%')
		WHERE l.rolcanlogin AND NOT l.rolsuper GROUP BY l.rolname ORDER BY l.rolname`)
	require.NoError(s.t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s.t, err)
	require.Equal(s.t, []string{
		"client quipu_shop_client", "engine quipu_shop_engine", "operator quipu_shop_operator", "owner ",
		"retention owner quipu_shop_retention", "verifier quipu_shop_verifier", "worker quipu_shop_worker",
	}, got)
	login := regexp.MustCompile(`^(postgres|nats)://(\w+):`)
	for name, d := range s.f.Services {
		if d.Build == "" {
			continue
		}
		want, _, _ := strings.Cut(name, "-")
		switch want {
		case "space":
			want = "owner"
		case "console":
			want = "operator"
		}
		got := login.FindStringSubmatch(variable.ReplaceAllString(d.Environment["QUIPU_POSTGRES"], "$2"))
		require.NotNil(s.t, got, name)
		require.Equal(s.t, want, got[2], "the login of %s", name)
		if url := d.Environment["QUIPU_NATS"]; url != "" {
			got = login.FindStringSubmatch(variable.ReplaceAllString(url, "$2"))
			require.Contains(s.t, []string{want, "client"}, got[2], "the user of %s", name)
		}
	}
}

// S4: the users of nats.conf have the rights that the program prints for the command above each, and no others.
func TestS4ComposeHasTheRightsThatArePrinted(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, gobuild.Build("", bin, "../../cmd/quipu"))
	text, err := os.ReadFile("../../deploy/compose/nats.conf")
	require.NoError(t, err)
	users := strings.Split(string(text), "    # quipu ")[1:]
	require.Len(t, users, 3)
	for _, user := range users {
		line, block, _ := strings.Cut(user, "\n")
		rights, err := exec.CommandContext(t.Context(), filepath.Join(bin, "quipu"), strings.Fields(line)...).Output()
		require.NoError(t, err, line)
		role := strings.Fields(line)[4]
		want := fmt.Sprintf("    {\n      user: %s, password: $QUIPU_%s_PASSWORD\n", role, strings.ToUpper(role))
		for l := range strings.Lines(string(rights)) {
			want += "      " + l
		}
		got, _, _ := strings.Cut(block, "\n    }\n")
		require.Equal(t, want, got+"\n", line)
	}
	compose := load(t)
	topics := regexp.MustCompile(`quipu grant worker worker (.*)`).FindStringSubmatch(strings.Join(compose.Services["space"].Command, "\n"))
	require.Contains(t, users[1], "--topic "+strings.Join(strings.Fields(topics[1]), " --topic ")+"\n", "the worker has the same topics at both servers")
}
