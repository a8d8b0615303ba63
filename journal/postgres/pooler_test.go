package postgres

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// nobody is a user that a pooler runs as, since it refuses to run as root.
const nobody = 65534

// pooler starts PgBouncer in front of a server and returns the DSN through it. Where the program
// is not there, the test is skipped.
func pooler(t *testing.T, dsn, mode string, settings ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("pgbouncer is not installed: apt-get install pgbouncer runs this test")
	}
	u := must(url.Parse(dsn))(t)
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := l.Addr().(*net.TCPAddr)
	require.NoError(t, l.Close())
	dir := devtest.Dir(t)
	password, _ := u.User.Password()
	text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%s user=%s password=%s\n", u.Port(), u.User.Username(), password) +
		fmt.Sprintf("[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nauth_type = any\nunix_socket_dir =\n", address.Port) +
		"default_pool_size = 150\nmax_client_conn = 1000\npool_mode = " + mode + "\n" + strings.Join(settings, "\n")
	file := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	cmd := exec.Command(program, "-q", file)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	said := &strings.Builder{}
	cmd.Stderr = said
	p, err := dev.StartProcess(cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Stop(syscall.SIGINT, 10*time.Second, syscall.SIGKILL))
		if t.Failed() {
			t.Logf("pgbouncer said: %s", said)
		}
	})
	u.Host = address.String()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", u.Host)
		if err == nil {
			err = c.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond, "pgbouncer listens")
	return u.String()
}

// S6: behind PgBouncer in session mode the store keeps its whole contract.
func TestS6PoolerOfSessions(t *testing.T) {
	t.Parallel()
	pg := devtest.Cluster(t, dev.PostgresOptions{Databases: []string{"quipu"}, Settings: map[string]string{"max_connections": "200"}})
	dsn := pooler(t, pg.DSN("quipu"), "session")
	l := conforms(t, dsn, false)

	t.Run("backends", func(t *testing.T) {
		s := l.lend(t)
		defer s.Close()
		c := openCommitter(t, s.at)
		require.NotEqual(t, c.conn.pg.PID(), c.conn.pid, "the pooler gives a number of its own")
		var found int
		require.NoError(t, s.at.with(t.Context(), func(p *conn) error {
			return p.query(t.Context(), "resolve_terminate", func(row) error {
				found++
				return nil
			}, pInt(int64(c.conn.pid)), pText(c.conn.name))
		}))
		require.Equal(t, 1, found, "a commit of unknown outcome is ended at the server (J4)")
	})
}

// S6: behind a pooler that gives each transaction another backend nothing is opened, and the
// error names the setting.
func TestS6PoolerOfTransactions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode     string
		settings []string
	}{
		"transaction":             {"transaction", nil},
		"transaction, by turns":   {"transaction", []string{"server_round_robin = 1"}},
		"transaction, one server": {"transaction", []string{"default_pool_size = 1"}},
		"statement":               {"statement", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pooler(t, devtest.Postgres(t), c.mode, c.settings...)
			_, err := Open(t.Context(), Config{DSN: dsn, Space: "test-1", Migrating: true})
			require.ErrorIs(t, err, store.ErrLogin, "waiting does not help")
			require.ErrorContains(t, err, "pool_mode = transaction, or statement")
			require.ErrorContains(t, err, "set pool_mode = session")
		})
	}
}

// S6: a setting of the connection string that a pooler refuses is an error that waiting does not
// cure; and so is a pooler that does not clean its connections.
func TestS6PoolerRefusesASetting(t *testing.T) {
	t.Parallel()
	dsn := pooler(t, devtest.Postgres(t), "session", "server_reset_query =", "default_pool_size = 2")
	_, err := Open(t.Context(), Config{DSN: dsn + "&geqo=off", Space: "test-1", Migrating: true})
	require.ErrorIs(t, err, store.ErrLogin)
	require.ErrorContains(t, err, "a pooler refuses a setting of the connection string")
	require.ErrorContains(t, err, "geqo")

	s := must(Open(t.Context(), Config{DSN: dsn, Space: "test-1", Migrating: true}))(t)
	require.NoError(t, s.Migrate(t.Context()))
	c, err := s.Committer(t.Context(), true) // both backends of the pooler have statements now
	require.NoError(t, err)
	c.Close()
	s.Close()
	require.ErrorContains(t, failed(Open(t.Context(), Config{DSN: dsn, Space: "test-1"})), "server_reset_query = DISCARD ALL")
}
