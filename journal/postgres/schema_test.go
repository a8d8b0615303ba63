package postgres

import (
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
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
	sound := serverSettings{version: 150004, server: "15.4", fsync: "on", fullPages: "on", commit: "on", checksums: "on"}
	for want, weaken := range map[string]func(*serverSettings){
		"":                            func(x *serverSettings) { x.commit = "remote_apply" },
		"server version is 14.9":      func(x *serverSettings) { x.version, x.server = 140009, "14.9" },
		"fsync is off":                func(x *serverSettings) { x.fsync = "off" },
		"full_page_writes is off":     func(x *serverSettings) { x.fullPages = "off" },
		"synchronous_commit is local": func(x *serverSettings) { x.commit = "local" },
		"role is standby":             func(x *serverSettings) { x.standby = true },
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

// as opens the space under one of its roles.
func as(t *testing.T, s *Store, name string) *Store {
	t.Helper()
	u := must(url.Parse(s.cfg.DSN))(t)
	q := u.Query()
	q.Set("role", RoleName(s.cfg.Space, name))
	u.RawQuery = q.Encode()
	r := must(Open(t.Context(), Config{DSN: u.String(), Space: s.cfg.Space}))(t)
	t.Cleanup(r.Close)
	return r
}

// 4.5, W8: the roles that may hold and end sessions.
func TestRolesOfSessions(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "roles4" })
	require.NoError(t, s.Roles(t.Context()))
	row := request(t, s, startJobs(t, s, "k")[0])
	require.NoError(t, s.GrantWorker(t.Context(), "quipu", []string{row.Topic})) // it plays all roles here
	for _, role := range []string{"worker", "engine"} {
		r := as(t, s, role)
		x := must(r.OpenSession(t.Context(), store.Process{Name: role, Lease: time.Hour}))(t)
		must(r.Lease(t.Context(), row.Job, row.GUID, 1, role, x.ID()))(t)
		must(x.Renew(t.Context(), nil))(t)
		require.NoError(t, x.End(t.Context()))
		require.Zero(t, s.rows(t, "sessions WHERE NOT dead"))
		if role == "worker" {
			require.Equal(t, 1, s.rows(t, "sessions"), "it does not see all that a session may hold: an engine forgets it")
		}
	}
}

// J7, 4.5: each role can do its work, only the owner can change what was journaled, and the
// verifier can only read.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "roles5" })
	require.NoError(t, s.Roles(t.Context()))
	require.NoError(t, s.Roles(t.Context()), "it may be repeated")

	engine := as(t, s, "engine")
	id := startJobs(t, engine, "k")[0]
	row := request(t, engine, id)
	_, _, err := engine.Due(t.Context(), 10)
	require.NoError(t, err)
	must(engine.Gauges(t.Context()))(t)
	must(engine.driven().TurnOverdue(t.Context(), 10))(t)

	worker := as(t, s, "worker")
	require.NoError(t, s.GrantWorker(t.Context(), "quipu", []string{row.Topic})) // it plays all roles here
	var l store.Lease
	own := must(worker.OpenSession(t.Context(), store.Process{Name: "w", Lease: time.Hour}))(t)
	for range store.MaxRuns {
		l = must(worker.Lease(t.Context(), id, row.GUID, 1, "w", own.ID()))(t)
	}
	effect := journal.Effect{Key: journal.Digest{1}, Name: "charge", Class: "guarded"}
	_, _, err = worker.driven().StartEffect(t.Context(), l, effect)
	require.NoError(t, err)
	require.ErrorIs(t, failed(worker.Lease(t.Context(), id, row.GUID, 1, "w", own.ID())), store.ErrExhausted)
	require.ErrorIs(t, failed(engine.driven().Lease(t.Context(), id, row.GUID, 1, "w", own.ID())), store.ErrExhausted, "it holds the request")

	c := openCommitter(t, engine)
	st := load(t, c, store.Want{Job: id})
	p := plan(st)
	p.ResolvedWait = &collation.ResolvedWait{Request: row.GUID, PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap"}, Seq: p.Entry.Seq}
	require.NoError(t, c.Commit(t.Context(), []store.Chained{chained(st, p)}))
	pauses := must(worker.Pauses(t.Context(), id, row.GUID))(t)
	require.Len(t, pauses, 1)
	requireForbidden(t, worker.run(t, "DELETE FROM resolved_waits"), "worker", "resolved_waits")
	requireForbidden(t, engine.run(t, "UPDATE resolved_waits SET seq = 1"), "engine", "resolved_waits")

	verifier := as(t, s, "verifier")
	must(verifier.Job(t.Context(), id))(t)
	for _, role := range []string{"engine", "operator", "worker", "client", "retention", "verifier"} {
		r := as(t, s, role)
		for _, forbidden := range []string{
			"UPDATE entries SET hash = hash", "TRUNCATE entries", "DROP TABLE entries", "CREATE TABLE mine ()",
			"UPDATE space SET system = 2", "UPDATE space SET doubt = 0", "UPDATE space SET expire = 1",
		} {
			requireForbidden(t, r.run(t, forbidden), role, forbidden)
		}
		requireForbidden(t, r.run(t, "DELETE FROM entries"), role, "DELETE FROM entries")
		if role == "retention" || role == "verifier" {
			requireForbidden(t, r.run(t, "INSERT INTO batches VALUES (gen_random_uuid(), 1, 1)"), role, "INSERT")
		}
		if role != "engine" {
			requireForbidden(t, r.run(t, "UPDATE space SET epoch = 2"), role, "epoch")
		}
	}
	requireForbidden(t, worker.run(t, "UPDATE jobs SET semaphore = 0"), "worker", "semaphore")
	requireForbidden(t, worker.run(t, "UPDATE receipts SET ledger = 0"), "worker", "receipts")
	for _, table := range []string{"waits", "signals", "tombstones"} {
		requireForbidden(t, worker.run(t, "SELECT FROM "+table), "worker", table)
		requireForbidden(t, verifier.run(t, "DELETE FROM "+table), "verifier", table)
	}
}

// J7, 4.5: the engine delivers signals, begins children and reuses keys. Only retention can
// remove expired jobs.
func TestRolesOfSignalsAndExpiry(t *testing.T) {
	t.Parallel()
	s := fresh(t, func(c *Config) { c.Space = "roles2" })
	require.NoError(t, s.Roles(t.Context()))
	engine, retention := as(t, s, "engine"), as(t, s, "retention")
	c := openCommitter(t, engine)
	id := startJobs(t, engine, "k")[0]
	require.NoError(t, register(t, c, id, waitOf(id, 1, "x"), waitOf(id, 2, "y")))
	got := must(engine.driven().Signal(t.Context(), signalOf(s, "x", ""), resend))(t)
	require.Equal(t, 1, got.Reached)
	out := must(engine.driven().Deliver(t.Context(), []collation.RowKey{putSignal(t, c, id, signalOf(s, "y", "sent"))}, resend))(t)
	require.Len(t, out, 1)
	child := orderChild(t, c, id)
	require.NoError(t, engine.driven().Spawn(t.Context(), &child, spawnOf(&child), collation.Mode{}))
	refused := orderChild(t, c, id)
	require.NoError(t, engine.driven().Refuse(t.Context(), &refused, nil))
	must(engine.driven().Interrupt(t.Context(), collation.Row{GUID: journal.GUID{1}, Job: id, Kind: journal.MessageInterrupt, DAD: ",0", Body: []byte(`{"code":410}`)}, resend))(t)

	old := startJobs(t, engine, "old")[0]
	ended(t, s, c, old)
	for _, role := range []string{"engine", "operator", "worker", "client", "verifier"} {
		_, err := as(t, s, role).Expire(t.Context(), 10)
		requireForbidden(t, err, role, "Expire")
	}
	more := true
	for first := true; more; first = false {
		more = must(retention.Expire(t.Context(), 3))(t)
		if first {
			startJobs(t, engine, "old")
		}
	}
	requireExpired(t, s, []journal.JobID{old})
	require.Equal(t, 1, s.rows(t, "tombstones"))
	require.NoError(t, engine.driven().Discard(t.Context(), []collation.RowKey{{Job: old, GUID: old.Start()}}))
	for _, sweep := range []func() error{
		func() error { _, err := engine.Late(t.Context(), journal.MessageSignal, 10); return err },
		func() error { _, err := engine.Prune(t.Context(), 10); return err },
		func() error { _, err := engine.Schedules(t.Context()); return err },
	} {
		require.NoError(t, sweep())
	}
}

func requireForbidden(t *testing.T, err error, role, what string) {
	t.Helper()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg, "%s: %s", role, what)
	require.Equal(t, "42501", pg.Code, "%s: %s", role, what)
}
