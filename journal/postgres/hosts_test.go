package postgres

import (
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// at returns the DSN with other hosts.
func at(t *testing.T, dsn string, hosts ...string) string {
	t.Helper()
	u := must(url.Parse(dsn))(t)
	u.Host = strings.Join(hosts, ",")
	return u.String()
}

// hostOf returns host and port of a DSN.
func hostOf(t *testing.T, dsn string) string {
	t.Helper()
	u := must(url.Parse(dsn))(t)
	return u.Host
}

// silent is a host that takes connections and never says a word. asked counts them.
func silent(t *testing.T) (host string, asked *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	asked = new(atomic.Int64)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			defer c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); group.Wait() })
	return l.Addr().String(), asked
}

// S6: the first host does not answer, the second does until it goes, and then the third. Every
// kind of connection finds its way: the pool, a committer, the session, and the one that listens.
func TestS6SeveralHosts(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	one, dsnOne := through(t, dsn)
	two, dsnTwo := through(t, dsn)
	gone, asked := silent(t)
	s := openIn(t, at(t, dsn, gone, hostOf(t, dsnOne), hostOf(t, dsnTwo)), func(c *Config) {
		c.ConnectTimeout = 3 * time.Second
	})
	id := startJobs(t, s, "k")[0]
	c := openCommitter(t, s)
	session := must(s.OpenSession(t.Context(), store.Process{Name: "p", Lease: time.Hour}))(t)
	told := make(chan struct{}, 100)
	listened := make(chan error, 1)
	listen := func() { listened <- s.Announced(t.Context(), func() { told <- struct{}{} }) }
	go listen()
	devtest.Await(t, "the listener, or what it hears", told)
	require.Zero(t, two.Trips(), "the first host that answers has all")
	before := asked.Load()
	require.Positive(t, before)
	must(s.dial(t.Context()))(t).leave()
	require.Equal(t, before, asked.Load(), "the silent host is asked behind the one that answered")

	one.Refuse()
	one.Reset()
	require.Error(t, devtest.Await(t, "the end of the listener", listened))
	go listen()
	devtest.Await(t, "the listener, or what it hears", told)
	require.Eventually(t, func() bool {
		_, err := session.Renew(t.Context(), store.Doing{})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	_, err := c.Load(t.Context(), []store.Want{{Job: id}}, true)
	if err != nil { // the connection that it had
		require.ErrorIs(t, err, store.ErrUnavailable)
	}
	require.NoError(t, c.Rollback(t.Context()))
	st := load(t, c, store.Want{Job: id})
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 0))}))
	s.again()
	require.Eventually(t, func() bool {
		_, err := s.driven().Start(t.Context(), []store.Start{{Flow: testFlow, Trigger: "start", Key: "l", Input: []byte(`{}`)}},
			collation.Mode{})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	devtest.Await(t, "the listener, or what it hears", told)
	require.NoError(t, session.End(t.Context()))
	require.Positive(t, two.Trips())
}

// trust lets everybody in without a password, so that two servers take one DSN.
const trust = "host all all 127.0.0.1/32 trust"

// letting starts a server with the rules of pg_hba.conf and the settings.
func letting(t *testing.T, rules string, settings map[string]string) *dev.Postgres {
	t.Helper()
	pg := devtest.Cluster(t, dev.PostgresOptions{Databases: []string{"quipu"}})
	admin := must(pgx.Connect(t.Context(), pg.DSN("postgres")))(t)
	defer func() { require.NoError(t, admin.Close(t.Context())) }()
	var hba string
	require.NoError(t, admin.QueryRow(t.Context(), "SHOW hba_file").Scan(&hba))
	require.NoError(t, os.WriteFile(hba, []byte(rules+"\n"), 0o600))
	for name, value := range settings {
		must(admin.Exec(t.Context(), "ALTER SYSTEM SET "+name+" = '"+value+"'"))(t)
	}
	must(admin.Exec(t.Context(), "SELECT pg_reload_conf()"))(t)
	for name, value := range settings {
		require.Eventually(t, func() bool {
			var is string
			return admin.QueryRow(t.Context(), "SHOW "+name).Scan(&is) == nil && is == value
		}, time.Minute, time.Millisecond, name)
	}
	return pg
}

// S6: of several hosts the one that takes writes is used, unless the connection string says
// otherwise. When it takes none any more, its connections are given up.
func TestS6TakesTheHostThatWrites(t *testing.T) {
	t.Parallel()
	const only = "default_transaction_read_only"
	a, b := letting(t, trust, map[string]string{only: "on"}), letting(t, trust, nil)
	dsn := at(t, b.DSN("quipu"), hostOf(t, a.DSN("quipu")), hostOf(t, b.DSN("quipu")))
	s := openIn(t, dsn, func(c *Config) { c.MaxConns = 2 })
	id := startJobs(t, s, "k")[0]
	port := func() (port string) {
		require.NoError(t, s.with(t.Context(), func(c *conn) error {
			port = c.pg.Conn().RemoteAddr().String()
			return nil
		}))
		return port
	}
	require.Equal(t, hostOf(t, b.DSN("quipu")), port())

	_, err := Open(t.Context(), Config{DSN: dsn + "&target_session_attrs=any", Space: "test-1"})
	require.Error(t, err, "the first host does not have the space")
	require.NotErrorIs(t, err, store.ErrUnavailable)

	// No server takes writes for a while, and nothing is disconnected.
	c := openCommitter(t, s)
	session := must(s.OpenSession(t.Context(), store.Process{Name: "p", Lease: time.Hour}))(t)
	reads := func(pg *dev.Postgres, value string) {
		admin := must(pgx.Connect(t.Context(), pg.DSN("postgres")))(t)
		must(admin.Exec(t.Context(), "SET "+only+" = off"))(t)
		must(admin.Exec(t.Context(), "ALTER SYSTEM SET "+only+" = "+value))(t)
		must(admin.Exec(t.Context(), "SELECT pg_reload_conf()"))(t)
		require.NoError(t, admin.Close(t.Context()))
	}
	reads(b, "on")
	require.Eventually(t, func() bool {
		_, err := session.Renew(t.Context(), store.Doing{})
		return err != nil
	}, time.Minute, 10*time.Millisecond)
	_, err = s.driven().Start(t.Context(), []store.Start{{Flow: testFlow, Trigger: "start", Key: "m", Input: []byte(`{}`)}},
		collation.Mode{})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "takes writes")
	reads(b, "off")
	require.Eventually(t, func() bool {
		_, err := session.Renew(t.Context(), store.Doing{})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	st := load(t, c, store.Want{Job: id})
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, grow(st, 0))}))
	require.Equal(t, hostOf(t, b.DSN("quipu")), port())
	require.NoError(t, session.End(t.Context()))
}

// S6: a connection that listens and hears nothing is tried. It stays while its server takes writes,
// and is given up when the server takes none, because nobody announces there any more.
func TestS6ListenerIsTried(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := must(s.dial(t.Context()))(t)
	defer c.leave()
	raw := c.raw
	must(raw.Exec(t.Context(), "LISTEN "+pgx.Identifier{s.schema}.Sanitize()))(t)
	const soon = 10 * time.Millisecond
	require.ErrorIs(t, s.hear(t.Context(), raw, soon), errQuiet)
	s.again()
	startJobs(t, s, "k")
	require.NoError(t, s.hear(t.Context(), raw, time.Minute), "after it was tried")
	must(raw.Exec(t.Context(), "SET default_transaction_read_only = on"))(t)
	require.ErrorIs(t, s.hear(t.Context(), raw, soon), pgconn.ErrReadOnlyConnection)
}
