package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/transport/nats"
)

// leastRoles lets the processes of the tests log in with the least rights on both servers (S4, S8):
// engines; handlers in a runtime of their own, as a worker of their topics; and who only starts,
// waits, decides and looks, as an operator on Postgres and as a client on NATS.
var leastRoles = os.Getenv("QUIPU_LEAST_ROLES") != ""

// made numbers the logins.
var made atomic.Int64

// logins are those of a space under least roles.
type logins struct {
	owner            *quipu.Runtime
	admin            *pgx.Conn
	engine, operator string       // connection strings
	log              *devtest.Log // of the NATS server

	mu    sync.Mutex
	users map[string]*natsserver.User // of NATS, by name
}

// least makes the roles of the space, the logins of its engines and operators, and a NATS server on
// which nobody has a right but by its user. The user's tables are open to all logins.
func (e *env) least() {
	e.t.Helper()
	rt, err := quipu.Open(e.t.Context(), quipu.Config{Postgres: e.Postgres, Space: e.Space})
	require.NoError(e.t, err)
	e.t.Cleanup(rt.Close)
	require.NoError(e.t, rt.CreateRoles(e.t.Context()))
	e.logins = &logins{owner: rt, admin: e.connect(), log: &devtest.Log{}, users: map[string]*natsserver.User{}}
	_, err = e.logins.admin.Exec(e.t.Context(), `ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO PUBLIC`)
	require.NoError(e.t, err)
	for role, dsn := range map[string]*string{"engine": &e.logins.engine, "operator": &e.logins.operator} {
		var name string
		name, *dsn = e.login(role)
		_, err = e.logins.admin.Exec(e.t.Context(), fmt.Sprintf("GRANT %s TO %s", postgres.RoleName(e.Space, role), name))
		require.NoError(e.t, err)
	}
	e.t.Cleanup(func() { require.NotContains(e.t, e.logins.log.String(), "Violation", "NATS refused nothing (S4)") })
	e.NATS = devtest.NATSWith(e.t,
		dev.NATSOptions{Login: e.logins.user, Log: slog.New(slog.NewTextHandler(e.logins.log, nil))})
}

// login makes a login of Postgres without rights.
func (e *env) login(role string) (name, dsn string) {
	e.t.Helper()
	u, err := url.Parse(e.Postgres)
	require.NoError(e.t, err)
	name = fmt.Sprintf("%s_%d_%s", role, made.Add(1), u.Path[1:])
	_, err = e.logins.admin.Exec(e.t.Context(), fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'secret'", name))
	require.NoError(e.t, err)
	u.User = url.UserPassword(name, "secret")
	return name, u.String()
}

// worker makes the logins of a worker of these topics.
func (e *env) worker(topics []string) (dsn, url string) {
	e.t.Helper()
	name, dsn := e.login("worker")
	require.NoError(e.t, below.Of(e.logins.owner).GrantWorker(context.WithoutCancel(e.t.Context()), name, topics))
	return dsn, e.user(nats.Worker, topics...)
}

// urlOf is the URL of NATS for a user.
func (e *env) urlOf(user string) string {
	return strings.Replace(e.NATS.URL(), "//", "//"+url.UserPassword(user, "secret").String()+"@", 1)
}

// ownerOfNATS is the URL of NATS for who may do everything there.
func (e *env) ownerOfNATS() string {
	e.t.Helper()
	if e.logins == nil {
		return e.NATS.URL()
	}
	const name = "owner"
	e.logins.mu.Lock()
	defer e.logins.mu.Unlock()
	e.logins.users[name] = devtest.User(e.t, name, "permissions: { publish: '>', subscribe: '>' }")
	return e.urlOf(name)
}

// user is the URL of NATS for a part. Its user has the rights that `quipu nats-permissions` prints.
func (e *env) user(part nats.Part, topics ...string) string {
	e.t.Helper()
	rights, err := nats.RightsOf(nats.Config{Space: e.Space}, part, topics)
	require.NoError(e.t, err)
	name := nats.Inbox(e.Space, part, topics) // differs as the rights do
	e.logins.mu.Lock()
	defer e.logins.mu.Unlock()
	e.logins.users[name] = devtest.User(e.t, name, rights.String())
	return e.urlOf(name)
}

// user is a client of NATS by its name; nil: there is none.
func (l *logins) user(name, _ string) *natsserver.User {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.users[name]
}

// engineOf is what remains of a process when its handlers have a runtime of their own.
func engineOf(cfg quipu.Config) quipu.Config {
	cfg.Workers, cfg.Roles = nil, []quipu.Role{quipu.RoleEngine, quipu.RoleSchedule}
	return cfg
}

// workersOf is that runtime, with its logins on both servers.
func workersOf(cfg quipu.Config, postgres, nats string) quipu.Config {
	cfg.Postgres, cfg.NATS, cfg.Roles = postgres, nats, []quipu.Role{quipu.RoleWorkers}
	return cfg
}
