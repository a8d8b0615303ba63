package postgres

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// loginOf makes a login with one of the roles of the space, and returns its connection string.
func loginOf(t *testing.T, s *Store, role string) string {
	t.Helper()
	u := must(url.Parse(s.cfg.DSN))(t)
	name := strings.ToLower("quipu_" + role + "_" + rand.Text()[:10])
	require.NoError(t, s.run(t, "CREATE ROLE "+name+" LOGIN PASSWORD 'secret'; GRANT "+RoleName(s.cfg.Space, role)+" TO "+name))
	t.Cleanup(func() { require.NoError(t, s.run(t, "DROP ROLE "+name)) })
	u.User = url.UserPassword(name, "secret")
	return u.String()
}

// holds inserts the marker of a batch that the committer will write next, and keeps the insert open.
func holds(t *testing.T, s *Store, dsn string, c *committer) *pgx.Conn {
	t.Helper()
	thief := must(pgx.Connect(t.Context(), dsn))(t)
	t.Cleanup(func() { _ = thief.Close(context.Background()) })
	session, seq := c.Session()
	must(thief.Exec(t.Context(), "BEGIN"))(t)
	must(thief.Exec(t.Context(), "INSERT INTO "+s.schema+".batches (session, seq, at) VALUES ($1, $2, 1)", [16]byte(session), seq+1))(t)
	return thief
}

// J4, S8: somebody holds the insert of another login's next marker open, as a client or a worker, longer than a
// commit may take, and then commits it. That login's commit neither waits for it nor takes it for its own. Within one
// login it would do both: so nobody learns the sessions of others, and each process has a login of its own.
func TestAMarkerThatIsHeldOpen_S8(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "held1" })
	require.NoError(t, s.Roles(t.Context()))
	engine := loginOf(t, s, "engine")
	for name, thief := range map[string]string{"client": loginOf(t, s, "client"), "worker": loginOf(t, s, "worker"), "same": engine} {
		t.Run(name, func(t *testing.T) {
			e := must(Open(t.Context(), Config{DSN: engine, Space: "held1", CommitTimeout: 500 * time.Millisecond}))(t)
			t.Cleanup(e.Close)
			id := startJobs(t, s, name)[0]
			c := openCommitter(t, e)
			st := load(t, c, store.Want{Job: id, Instances: []collation.InstanceKey{work}})
			at := st.Job.Head.Seq
			held := holds(t, s, thief, c)
			done := make(chan error, 1)
			go func() {
				done <- c.Commit(context.WithoutCancel(t.Context()), []store.Chained{chained(st, grow(st, 0))})
			}()
			if name != "same" {
				require.NoError(t, devtest.Await(t, "the commit, beside a marker that is held", done))
				must(held.Exec(t.Context(), "COMMIT"))(t)
				st = load(t, c, store.Want{Job: id, Instances: []collation.InstanceKey{work}})
				require.Equal(t, at+1, st.Job.Head.Seq, "what was acknowledged is there")
				require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 1))}))
				return
			}
			waitFor(t, s, "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%resolve_marker%' AND datname = current_database()")
			must(held.Exec(t.Context(), "COMMIT"))(t)
			require.NoError(t, devtest.Await(t, "the outcome of the commit", done), "it is taken for the batch's own")
			require.Equal(t, at, must(s.Job(t.Context(), id))(t).Head.Seq, "and nothing was committed")
		})
	}
}

// J4, S8: nor does a marker of another login say that a batch was committed whose answer was lost, or was taken away.
func TestAMarkerOfAnotherLoginSaysNothing_S8(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "held2" })
	require.NoError(t, s.Roles(t.Context()))
	e := must(Open(t.Context(), Config{DSN: loginOf(t, s, "engine"), Space: "held2"}))(t)
	t.Cleanup(e.Close)
	for _, role := range []string{"client", "worker"} {
		for _, taken := range []bool{false, true} {
			m := marker{session: newSession(), seq: 1}
			thief := must(pgx.Connect(t.Context(), loginOf(t, s, role)))(t)
			must(thief.Exec(t.Context(), "INSERT INTO "+s.schema+".batches (session, seq, at, taken) VALUES ($1, 1, 1, $2)", [16]byte(m.session), taken))(t)
			require.NoError(t, thief.Close(t.Context()))
			committed, err := e.outcome(t.Context(), m)
			require.NoError(t, err)
			require.False(t, committed, "it was not")
			own := marker{session: m.session, seq: 2}
			require.NoError(t, e.with(t.Context(), func(c *conn) error {
				return c.transact(t.Context(), step{"write_marker", [][]byte{pUUID(own.session), pInt(own.seq), pInts()}, nil})
			}))
			committed, err = e.outcome(t.Context(), own)
			require.NoError(t, err)
			require.True(t, committed, "it was")
		}
	}
}
