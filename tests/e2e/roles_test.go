package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal/postgres"
)

// leastRoles lets the processes of the tests log in with the least rights (S8): engines, and who
// starts and waits, as an engine; handlers in a runtime of their own, as a worker of their topics.
var leastRoles = os.Getenv("QUIPU_LEAST_ROLES") != ""

// made numbers the logins.
var made atomic.Int64

// logins are those of a space under least roles.
type logins struct {
	owner  *quipu.Runtime
	admin  *pgx.Conn
	engine string // its connection string
}

// least makes the roles of the space, and the login of its engines. The user's tables are open to
// all logins.
func (e *env) least() {
	e.t.Helper()
	rt, err := quipu.Open(e.t.Context(), quipu.Config{Postgres: e.dsn, Space: e.space})
	require.NoError(e.t, err)
	e.t.Cleanup(rt.Close)
	require.NoError(e.t, rt.Roles(e.t.Context()))
	e.logins = &logins{owner: rt, admin: e.connect()}
	_, err = e.logins.admin.Exec(e.t.Context(), `ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO PUBLIC`)
	require.NoError(e.t, err)
	name, dsn := e.login("engine")
	_, err = e.logins.admin.Exec(e.t.Context(), fmt.Sprintf("GRANT %s TO %s", postgres.RoleName(e.space, "engine"), name))
	require.NoError(e.t, err)
	e.logins.engine = dsn
}

// login makes a login without rights.
func (e *env) login(role string) (name, dsn string) {
	e.t.Helper()
	u, err := url.Parse(e.dsn)
	require.NoError(e.t, err)
	name = fmt.Sprintf("%s_%d_%s", role, made.Add(1), u.Path[1:])
	_, err = e.logins.admin.Exec(e.t.Context(), fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'secret'", name))
	require.NoError(e.t, err)
	u.User = url.UserPassword(name, "secret")
	return name, u.String()
}

// worker makes the login of a worker of these topics.
func (e *env) worker(topics []string) (dsn string) {
	e.t.Helper()
	name, dsn := e.login("worker")
	require.NoError(e.t, below.Of(e.logins.owner).(*postgres.Store).GrantWorker(context.WithoutCancel(e.t.Context()), name, topics))
	return dsn
}

// engineOf is what remains of a process when its handlers have a runtime of their own.
func engineOf(cfg quipu.Config) quipu.Config {
	cfg.Workers, cfg.Roles = nil, []quipu.Role{quipu.RoleEngine, quipu.RoleSchedule}
	return cfg
}

// workersOf is that runtime.
func workersOf(cfg quipu.Config, dsn string) quipu.Config {
	cfg.Postgres, cfg.Roles = dsn, []quipu.Role{quipu.RoleWorkers}
	return cfg
}
