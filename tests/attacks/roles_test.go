package attacks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/workers"
)

const twoTopics = `
flow: order
version: "1"
activities:
  t: {type: trigger}
  a: {type: worker, topic: pay.charge, input: "${ t.output }"}
  b: {type: worker, topic: ship.label, input: "${ t.output }"}
transitions:
  t: [{to: a}]
  a: [{to: b}]
`

// roles migrates the space and makes its roles.
func (g *target) roles() *quipu.Runtime {
	g.t.Helper()
	owner := g.open(nil)
	require.NoError(g.t, owner.CreateRoles(g.t.Context()))
	return owner
}

// refused says that the login has no right to a statement.
func (g *target) refused(c *pgx.Conn, statement string) {
	g.t.Helper()
	_, err := c.Exec(g.t.Context(), statement)
	pg, ok := errors.AsType[*pgconn.PgError](err)
	require.True(g.t, ok, "%s: %v", statement, err)
	require.Equal(g.t, "42501", pg.Code, "%s: %v", statement, err)
}

// login makes a login of the cluster, in roles of the space, and returns its connection string.
func (g *target) login(admin *pgx.Conn, role string, topics ...string) string {
	g.t.Helper()
	u, err := url.Parse(g.Postgres)
	require.NoError(g.t, err)
	name := fmt.Sprintf("%s_%d_%s", role, time.Now().UnixNano(), u.Path[1:])
	_, err = admin.Exec(g.t.Context(), fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'secret'", name))
	require.NoError(g.t, err)
	g.t.Cleanup(func() {
		_, err := admin.Exec(context.Background(), fmt.Sprintf("DROP ROLE %s", name))
		require.NoError(g.t, err)
	})
	if len(topics) > 0 {
		rt := g.open(nil)
		require.NoError(g.t, below.Of(rt).GrantWorker(g.t.Context(), name, topics))
	} else {
		_, err = admin.Exec(g.t.Context(), fmt.Sprintf("GRANT quipu_shop_%s TO %s", role, name))
		require.NoError(g.t, err)
	}
	u.User = url.UserPassword(name, "secret")
	return u.String()
}

// admin connects as the superuser, until the test ends.
func (g *target) admin() *pgx.Conn {
	g.t.Helper()
	return g.connect(g.Postgres)
}

func (g *target) connect(dsn string) *pgx.Conn {
	g.t.Helper()
	c, err := pgx.Connect(g.t.Context(), dsn+"&search_path=quipu_shop")
	require.NoError(g.t, err)
	g.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// as runs a process under the login.
func as(dsn string, roles ...quipu.Role) func(*quipu.Config) {
	return func(c *quipu.Config) { c.Postgres, c.NoMigrate, c.Roles = dsn, true, roles }
}

// TestStolenWorkerLogin_S8: engines and workers do their work under least roles, each worker that
// of its topics. Whoever has the login of a worker sees and changes nothing else.
func TestStolenWorkerLogin_S8(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	admin := g.admin()
	g.Deploy(g.roles(), twoTopics)
	engine := g.login(admin, "engine")
	charge, label := g.login(admin, "worker", "pay.charge"), g.login(admin, "worker", "ship.label")

	handler := func(name string) func(ctx context.Context, in map[string]any) (string, error) {
		return func(ctx context.Context, in map[string]any) (string, error) {
			return effects.Do(ctx, name, func(context.Context) (string, error) {
				return name + " done", nil
			}, effects.Idempotent)
		}
	}
	pays, ships := workers.New(), workers.New()
	workers.Handle(pays, "pay.charge", handler("charge"))
	held := make(chan struct{})
	workers.Handle(ships, "ship.label", func(ctx context.Context, in map[string]any) (string, error) {
		if in["wait"] == true {
			<-held
		}
		return handler("label")(ctx, in)
	})
	e := g.open(nil, as(engine, quipu.RoleEngine))
	g.Run(e)
	g.Run(g.open(pays, as(charge, quipu.RoleWorkers)))
	g.Run(g.open(ships, as(label, quipu.RoleWorkers)))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := e.Start(ctx, "order", "free", map[string]any{"wait": false})
	require.NoError(t, err)
	_, err = e.Wait(ctx, quipu.Job{Key: "free"})
	require.NoError(t, err)
	_, err = e.Start(ctx, "order", "held", map[string]any{"wait": true, "card": "4111"})
	require.NoError(t, err)
	defer close(held)
	require.Eventually(t, func() bool { // its second request is with the other worker
		return g.count(admin, "dispatches WHERE kind = 'request' AND topic = 'ship.label'") == 1
	}, patience, 10*time.Millisecond)

	thief := g.connect(charge)
	require.Zero(t, g.count(thief, "dispatches"), "requests of another topic are not seen")
	require.Equal(t, 2, g.count(thief, "effects"), "those of its own topic are")
	require.Equal(t, 3, g.count(admin, "effects"))
	require.Zero(t, g.count(thief, "entries WHERE chain = '00000000-0000-0000-0000-000000000000'"), "no main chain is read")
	require.Less(t, g.count(thief, "entries"), g.count(admin, "entries WHERE chain <> '00000000-0000-0000-0000-000000000000'"))
	require.Zero(t, g.count(thief, "topic_keys WHERE topic = 'ship.label'"), "it cannot speak for another topic")
	require.Positive(t, g.count(thief, "topic_keys"))
	require.Zero(t, g.changed(thief, "UPDATE dispatches SET holder = 'me', fence = 99"))
	require.Zero(t, g.changed(thief, "UPDATE effects SET result = '1' WHERE name = 'label'"))
	require.Zero(t, g.changed(thief, "UPDATE sessions SET dead = true WHERE login <> session_user"))
	for _, forbidden := range []string{
		"UPDATE jobs SET trace = ''",
		"UPDATE jobs SET head_seq = 99", "UPDATE jobs SET state = 'completed'", "UPDATE dispatches SET body = '1'", "UPDATE dispatches SET topic = 'pay.charge'",
		"INSERT INTO entries (n, chain, seq, body, hash) SELECT n, '00000000-0000-0000-0000-000000000000', 99, '{}', hash FROM entries LIMIT 1",
		"INSERT INTO entries (n, chain, seq, body, hash) SELECT j.n, gen_random_uuid(), 1, '{}', j.head_hash FROM jobs j LIMIT 1",
		"INSERT INTO payloads (n, digest, body) SELECT j.n, j.head_hash, '1' FROM jobs j",
		"INSERT INTO space_entries (seq, body, hash) SELECT 1, '{}', head_hash FROM jobs", "UPDATE space SET epoch = 2", "UPDATE space SET chain_seq = 9",
		"INSERT INTO worker_topics VALUES (session_user, 'ship.label')", "SELECT FROM worker_topics",
		"DELETE FROM jobs", "DELETE FROM entries", "DELETE FROM effects", "DELETE FROM dispatches", "UPDATE entries SET hash = hash",
		"SELECT FROM instances", "SELECT FROM receipts", "SELECT FROM waits", "SELECT FROM signals", "SELECT FROM flows", "SELECT FROM payloads", "SELECT FROM keys",
		"SELECT FROM " + g.partition(admin, "entries"),
	} {
		g.refused(thief, forbidden)
	}
}

// TestNobodyElseDeletes_S8: no login but the owner's changes or removes what was journaled, and none but
// retention's removes a job. None but the owner's makes a key or a token.
func TestNobodyElseDeletes_S8(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	admin := g.admin()
	g.roles()
	of := func(statement string, tables ...string) (all []string) {
		for _, table := range tables {
			all = append(all, fmt.Sprintf(statement, table))
		}
		return all
	}
	kept := slices.Concat(
		of("UPDATE %s SET hash = hash", "entries", "space_entries"), of("DELETE FROM %s", "entries", "space_entries", "payloads", "effects", "flows", "keys"),
		of("INSERT INTO %[1]s SELECT * FROM %[1]s", "keys", "tokens", "partitions"), []string{
			"UPDATE keys SET ends = NULL", "UPDATE resolved_waits SET seq = 1", "DELETE FROM resolved_waits", "UPDATE tokens SET role = 'operator'",
			"DELETE FROM tokens", "TRUNCATE entries", "DROP TABLE entries", "CREATE TABLE mine ()",
		}, of("UPDATE space SET %s", "signed = false", "system = 2", "doubt = 0", "expire = 1"),
	)
	jobs := of("DELETE FROM %s", "jobs", "dead_letters")
	reads, epoch := []string{"UPDATE space SET epoch = 2", "INSERT INTO batches VALUES (gen_random_uuid(), 1, 1)"}, []string{"UPDATE space SET epoch = 2"}
	for role, forbidden := range map[string][]string{
		"engine":    jobs,
		"operator":  slices.Concat(jobs, epoch, []string{"INSERT INTO sessions DEFAULT VALUES", "DELETE FROM sessions"}),
		"worker":    slices.Concat(jobs, epoch, []string{"UPDATE jobs SET semaphore = 0", "UPDATE receipts SET ledger = 0", "SELECT FROM tokens"}),
		"client":    slices.Concat(jobs, epoch, []string{"SELECT FROM tokens"}),
		"retention": slices.Concat(reads, of("SELECT FROM %s", "entries", "payloads", "effects", "instances", "keys", "topic_keys", "tokens")),
		"verifier": slices.Concat(
			jobs, reads, of("SELECT FROM %s", "keys", "topic_keys", "tokens"), of("DELETE FROM %s", "waits", "signals"),
			[]string{"UPDATE jobs SET trace = ''", "INSERT INTO dispatches SELECT * FROM dispatches"},
		),
	} {
		thief := g.connect(g.login(admin, role))
		for _, statement := range slices.Concat(kept, forbidden) {
			g.refused(thief, statement)
		}
	}
}

func (g *target) count(c *pgx.Conn, from string) (n int) {
	g.t.Helper()
	require.NoError(g.t, c.QueryRow(g.t.Context(), "SELECT count(*) FROM "+from).Scan(&n), from)
	return n
}

func (g *target) changed(c *pgx.Conn, statement string) int64 {
	g.t.Helper()
	tag, err := c.Exec(g.t.Context(), statement)
	require.NoError(g.t, err, statement)
	return tag.RowsAffected()
}

// partition names a partition of a table, by which nobody may go round the policies of the table.
func (g *target) partition(c *pgx.Conn, table string) (name string) {
	g.t.Helper()
	require.NoError(g.t, c.QueryRow(g.t.Context(), "SELECT min(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = $1::regclass", table).Scan(&name))
	return name
}
