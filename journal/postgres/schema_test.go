package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// A schema of another version is refused, with advice. Migrate makes a missing one, may be
// repeated, and never goes back.
func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	_, err := Open(t.Context(), Config{DSN: dsn, Space: "a"})
	require.ErrorIs(t, err, store.ErrSchema)
	require.ErrorContains(t, err, "quipu migrate")
	s := must(Open(t.Context(), Config{DSN: dsn, Space: "a", Migrating: true}))(t)
	defer s.Close()
	require.ErrorIs(t, failed(s.FindJob(t.Context(), "k")), store.ErrSchema, "nothing works before")
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, s.Migrate(t.Context()))
	again := must(Open(t.Context(), Config{DSN: dsn, Space: "a"}))(t)
	again.Close()
	require.NoError(t, s.run(t, "UPDATE space SET version = version + 1"))
	_, err = Open(t.Context(), Config{DSN: dsn, Space: "a", Migrating: true})
	require.ErrorIs(t, err, store.ErrSchema)
	require.ErrorContains(t, err, "newer build")
	require.ErrorIs(t, s.Migrate(t.Context()), store.ErrSchema)
}

// A space that is not there is named with those that are, for a typo.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	open := func(dsn, space string) error {
		s, err := Open(t.Context(), Config{DSN: dsn, Space: space})
		if err == nil {
			s.Close()
		}
		return err
	}
	require.EqualError(t, open(dsn, "shop"), "the database has no space shop: it has none; `quipu migrate --space shop` makes it")
	for _, space := range []string{"shop", "night-jobs"} {
		s := must(Open(t.Context(), Config{DSN: dsn, Space: space, Migrating: true}))(t)
		require.NoError(t, s.Migrate(t.Context()))
		s.Close()
	}
	err := open(dsn, "shpo")
	require.EqualError(t, err, "the database has no space shpo: it has night-jobs, shop; `quipu migrate --space shpo` makes it")
	require.ErrorIs(t, err, store.ErrSchema)

	login := strings.ToLower("quipu_nobody_" + rand.Text()[:10])
	s := must(Open(t.Context(), Config{DSN: dsn, Space: "shop"}))(t)
	defer s.Close()
	u := must(url.Parse(dsn))(t)
	password, _ := u.User.Password()
	require.NoError(t, s.run(t, "CREATE ROLE "+login+" LOGIN PASSWORD '"+password+"'"))
	defer func() { require.NoError(t, s.run(t, "DROP ROLE "+login)) }()
	u.User = url.UserPassword(login, password)
	require.ErrorContains(t, open(u.String(), "shop"), "this login may not use schema quipu_shop: grant it one of the roles")
}

// What another program has in the schema keeps a migration from running if it has a name of ours, and
// nothing is half made. It is no trouble with the database, and is not tried again.
func TestSchemaOfAnotherProgram(t *testing.T) {
	t.Parallel()
	dsn := devtest.Postgres(t)
	for i, c := range []struct{ made, gone, says string }{
		{"TABLE jobs (id int)", "TABLE jobs", `relation "jobs" already exists`},
		{"VIEW entries AS SELECT 1", "VIEW entries", `relation "entries" already exists`},
		{"TYPE digest AS ENUM ('a')", "TYPE digest", `type "digest" already exists`},
		{"FUNCTION micros() RETURNS int LANGUAGE sql RETURN 1", "FUNCTION micros()", `function "micros" already exists`},
		{"TABLE entries_0 (id int)", "TABLE entries_0", `relation "entries_0" already exists`},
		{"TABLE space (name text)", "TABLE space", "its table space is not that of this build"},
	} {
		s := must(Open(t.Context(), Config{DSN: dsn, Space: fmt.Sprintf("a%d", i), Migrating: true}))(t)
		defer s.Close()
		require.NoError(t, s.run(t, "CREATE SCHEMA "+s.schema))
		require.NoError(t, s.run(t, "CREATE TABLE "+s.schema+".customers (id int)"), "this one is in nobody's way")
		kind, name, _ := strings.Cut(c.made, " ")
		require.NoError(t, s.run(t, "CREATE "+kind+" "+s.schema+"."+name))
		err := s.Migrate(t.Context())
		require.ErrorIs(t, err, store.ErrSchema)
		require.NotErrorIs(t, err, store.ErrUnavailable)
		require.ErrorAs(t, err, new(*TakenError))
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, "another program")
		kind, name, _ = strings.Cut(c.gone, " ")
		require.NoError(t, s.run(t, "DROP "+kind+" "+s.schema+"."+name))
		require.NoError(t, s.Migrate(t.Context()))
	}
}

// Spaces whose names differ only in - and _ would share a schema, so the second is refused.
func TestSpacesThatCollide(t *testing.T) {
	t.Parallel()
	for _, space := range []string{"", "A", "1a", "a b", `a"b`, strings.Repeat("a", 33), "ä"} {
		require.ErrorContains(t, failed(Open(t.Context(), Config{DSN: "postgres://127.0.0.1:1/none", Space: space})), "space", "%q", space)
	}
	s := fresh(t)
	require.NoError(t, s.run(t, "UPDATE space SET name = 'test_1'"))
	require.ErrorIs(t, s.Migrate(t.Context()), store.ErrSchema)
}

// Preflight says what it checked, and refuses what breaks the promise (4.4).
func TestPreflight(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := must(s.Preflight(t.Context(), nil))(t)
	require.Contains(t, p.Facts, "fsync = on")
	u := must(url.Parse(s.cfg.DSN))(t)
	q := u.Query()
	q.Set("synchronous_commit", "off")
	u.RawQuery = q.Encode()
	weak := must(Open(t.Context(), Config{DSN: u.String(), Space: "test-1"}))(t)
	defer weak.Close()
	_, err := weak.Preflight(t.Context(), nil)
	require.ErrorIs(t, err, store.ErrPreflight)
	require.ErrorContains(t, err, "synchronous-commit-off: synchronous_commit is off")
	p = must(weak.Preflight(t.Context(), []string{"synchronous-commit-off"}))(t)
	require.Len(t, p.Accepted, 1)
}

// Each setting that breaks the promise is refused by its name, and no other.
func TestPreflightRefusesEachWeakness(t *testing.T) {
	t.Parallel()
	sound := server{serverSettings{fsync: "on", fullPages: "on", commit: "on"}, 150004, "15.4", "on", false}
	for want, weaken := range map[string]func(*server){
		"":                            func(x *server) { x.commit = "remote_apply" },
		"server version is 14.9":      func(x *server) { x.version, x.server = 140009, "14.9" },
		"fsync is off":                func(x *server) { x.fsync = "off" },
		"full_page_writes is off":     func(x *server) { x.fullPages = "off" },
		"synchronous_commit is local": func(x *server) { x.commit = "local" },
		"role is standby":             func(x *server) { x.standby = true },
	} {
		x, p := sound, Preflight{}
		weaken(&x)
		faults := p.judge(&x)
		require.Empty(t, p.Warnings)
		if want == "" {
			require.Empty(t, faults)
			continue
		}
		require.Len(t, faults, 1)
		require.Contains(t, faults[0].What, want)
	}
	x, p := sound, Preflight{}
	x.checksums = "off"
	require.Empty(t, p.judge(&x))
	require.Len(t, p.Warnings, 1)
}

// playing opens the space under one of its roles.
func playing(t testing.TB, s *Store, name string) *Store {
	t.Helper()
	u := must(url.Parse(s.cfg.DSN))(t)
	q := u.Query()
	q.Set("role", RoleName(s.cfg.Space, name))
	u.RawQuery = q.Encode()
	return must(Open(context.WithoutCancel(t.Context()), Config{DSN: u.String(), Space: s.cfg.Space}))(t)
}

// as is playing, until the test ends.
func as(t *testing.T, s *Store, name string) *Store {
	t.Helper()
	r := playing(t, s, name)
	t.Cleanup(r.Close)
	return r
}

// 4.5, W8: what a worker writes itself, with the rights to its topics alone, and what a verifier reads.
// (TestConformance has the roles otherwise; tests/attacks has what each of them may not.)
func TestRoles(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "roles5" })
	require.NoError(t, s.Roles(t.Context()))
	require.NoError(t, s.Roles(t.Context()), "it may be repeated")
	row := request(t, s, startJobs(t, s, "k")[0])
	require.NoError(t, s.GrantWorker(t.Context(), "quipu", []string{row.Topic})) // it plays all roles here
	worker := as(t, s, "worker")
	x := must(worker.OpenSession(t.Context(), store.Process{Name: "w", Lease: time.Hour}))(t)
	l := must(worker.Lease(t.Context(), row.Job, row.GUID, 1, "w", x.ID()))(t)
	_, _, err := worker.driven().StartEffect(t.Context(), l, journal.Effect{Key: journal.Digest{1}, Name: "charge", Class: "guarded"})
	require.NoError(t, err)
	c := openCommitter(t, s)
	st := load(t, c, store.Want{Job: row.Job})
	p := plan(st)
	p.ResolvedWait = &collation.ResolvedWait{
		Request: row.GUID, PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap"}, Seq: p.Entry.Seq,
	}
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
	require.Len(t, must(worker.Pauses(t.Context(), row.Job, row.GUID))(t), 1)
	must(x.Renew(t.Context(), store.Doing{}))(t)
	require.NoError(t, x.End(t.Context()))
	require.Zero(t, s.rows(t, "sessions WHERE NOT dead"))
	require.Equal(t, 1, s.rows(t, "sessions"), "it does not see all that a session may hold: an engine forgets it")
	must(as(t, s, "verifier").Job(t.Context(), row.Job))(t)

	hash, _ := access.Hash(access.NewToken())
	require.NoError(t, s.AddToken(t.Context(), hash, "shop", access.Client, 0))
	for _, serves := range []string{"engine", "operator"} { // O11
		must(as(t, s, serves).FindToken(t.Context(), hash))(t)
	}
}

func requireForbidden(t *testing.T, err error, role, what string) {
	t.Helper()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg, "%s: %s", role, what)
	require.Equal(t, "42501", pg.Code, "%s: %s", role, what)
}
