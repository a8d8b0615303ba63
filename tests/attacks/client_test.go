package attacks

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/workers"
)

const parentAndGate = `
flow: order
version: "1"
activities:
  t: {type: trigger}
  w: {type: hook, signal: gate.open, key: "${ t.output.gate }"}
  a: {type: await, flow: part, input: {}}
transitions: {t: [w], w: [a]}
`

const part = `
flow: part
version: "1"
activities:
  t: {type: trigger}
  p: {type: worker, topic: part.make, input: {}}
transitions: {t: [p]}
`

// TestStolenClientLogin_S8: a client starts, signals, interrupts and waits under its own login.
// Whoever has that login begins no job himself, answers nothing, and sees no key.
func TestStolenClientLogin_S8(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	admin := g.admin()
	owner := g.roles()
	g.Deploy(owner, part)
	g.Deploy(owner, parentAndGate)
	made := workers.New()
	workers.Handle(made, "part.make", func(context.Context, map[string]any) (string, error) { return "made", nil })
	g.Run(g.open(made, as(g.login(admin, "worker", "part.make"), quipu.RoleWorkers)))
	engine := g.open(nil, as(g.login(admin, "engine"), quipu.RoleEngine))
	g.Run(engine)
	login := g.login(admin, "client")
	client := g.open(nil, as(login))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	stopped := g.asClient(ctx, client)
	g.inItsTransaction(ctx, client, login)
	g.refusedAsks(ctx, engine, client, login)
	require.Equal(t, []string{"start by ann", "signal by bob"}, g.acts(engine, "one"), "the names that the client gave (O11)")
	require.Equal(t, []string{"interrupt by eve"}, g.acts(engine, "two"))

	thief := g.connect(login)
	require.Zero(t, g.count(thief, "entries e JOIN jobs j USING (n) WHERE e.seq NOT IN (1, coalesce(j.closed_seq, 1), coalesce(j.tasks_seq, 1))"),
		"of the journal it sees how jobs began and ended")
	require.Less(t, g.count(thief, "entries"), g.count(admin, "entries"))
	require.Zero(t, g.count(thief, "sessions"))

	// A start whose body names a parent: the job begins without one, so its outcome answers nobody.
	forged := fmt.Sprintf(`{"flow":"part","key":"forged","input":{},"parent":{"space":"shop","job":"%s","activity":"a","dad":",0,0","leg1":"%[1]s","turn":1,"awaited":true}}`, stopped.ID)
	_, err := thief.Exec(ctx, row("start", "'ask'", forged, "gen_random_uuid()"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return g.count(admin, "jobs WHERE key = 'forged'") == 1 }, patience, 10*time.Millisecond)
	require.Zero(t, g.count(admin, "jobs WHERE key = 'forged' AND parent_job IS NOT NULL"))
	for _, forbidden := range []string{
		"SELECT FROM keys", "SELECT FROM topic_keys", "SELECT FROM instances", "SELECT FROM waits", "SELECT FROM effects", "SELECT FROM payloads",
		"UPDATE jobs SET trace = ''", "UPDATE jobs SET state = 'completed'", "INSERT INTO jobs SELECT * FROM jobs", "DELETE FROM jobs",
		"INSERT INTO entries (n, chain, seq, body, hash) SELECT n, chain, 99, body, hash FROM entries LIMIT 1", "UPDATE entries SET hash = hash",
		"INSERT INTO receipts SELECT * FROM receipts", "UPDATE signals SET state = 'missed'", "DELETE FROM dispatches", "UPDATE dispatches SET body = ''",
		"UPDATE flows SET active = false", "INSERT INTO flows SELECT * FROM flows", "UPDATE space SET epoch = 2",
		row("answer", "'part.make'", "{}", "id"), row("response", "''", "{}", "id"), row("wakeup", "''", "{}", "id"),
		row("request", "'part.make'", "{}", "id"), row("outcome", "''", "{}", "id"), row("signal", "''", "{}", "id"),
		row("start", "''", forged, "gen_random_uuid()"), // the order of a child
		row("start", "'ask'", "{}", "id"),
	} {
		g.refused(thief, forbidden)
	}
}

// asClient does what a client does: the jobs are begun, answered and ended as those of an engine's
// login. It returns a job that it interrupted.
func (g *target) asClient(ctx context.Context, client *quipu.Runtime) quipu.Job {
	t := g.t
	t.Helper()
	job, err := client.Start(ctx, "order", "one", map[string]any{"gate": "g1"}, quipu.Who("ann"))
	require.NoError(t, err)
	require.False(t, job.Existing)
	require.Equal(t, collation.NewJobID("shop", "one", 1), job.ID)
	again, err := client.Start(ctx, "order", "one", map[string]any{"gate": "g1"})
	require.NoError(t, err)
	require.Equal(t, quipu.Job{ID: job.ID, Key: "one", Existing: true}, again)
	_, err = client.Start(ctx, "order", "one", map[string]any{"gate": "g2"})
	conflict, is := errors.AsType[*quipu.ConflictError](err)
	require.True(t, is, "%v", err)
	require.True(t, conflict.SameFlow && !conflict.SameInput)
	_, err = client.Start(ctx, "nothing", "two", nil)
	require.ErrorIs(t, err, quipu.ErrNotFound)
	_, err = client.Start(ctx, "order", "two", map[string]any{"gate": "g2"})
	require.NoError(t, err)
	_, err = client.Signal(ctx, "gate.open", "g1", "go", quipu.Who("bob"))
	require.NoError(t, err)
	_, err = client.Wait(ctx, job)
	require.NoError(t, err, "nothing is quarantined: the engine made the inception, and gave it its MAC")
	stopped, err := client.Interrupt(ctx, quipu.Job{Key: "two"}, quipu.Who("eve"))
	require.NoError(t, err)
	require.False(t, stopped.Closed)
	_, err = client.Wait(ctx, stopped.Job)
	require.Error(t, err)
	stopped, err = client.Interrupt(ctx, quipu.Job{Key: "two"})
	require.NoError(t, err)
	require.True(t, stopped.Closed)
	return stopped.Job
}

// inItsTransaction starts and signals in transactions of the client's login (E17, W9): the job
// begins if and when that commits, and says to nobody whose it is before.
func (g *target) inItsTransaction(ctx context.Context, client *quipu.Runtime, login string) {
	t := g.t
	t.Helper()
	conn := g.connect(login)
	for _, commits := range []bool{false, true} {
		tx, err := conn.Begin(ctx)
		require.NoError(t, err)
		job, err := client.StartTx(ctx, tx, "order", "with-mine", map[string]any{"gate": "g3"}, quipu.Who("ann"))
		require.NoError(t, err)
		require.Equal(t, quipu.Job{Key: "with-mine", Asked: job.Asked}, job, "an engine will begin it")
		require.NotZero(t, job.Asked)
		_, err = client.SignalTx(ctx, tx, "gate.open", "g3", "go")
		require.NoError(t, err)
		old, err := client.StartTx(ctx, tx, "order", "one", map[string]any{"gate": "g1"})
		require.NoError(t, err)
		require.Equal(t, quipu.Job{ID: collation.NewJobID("shop", "one", 1), Key: "one", Existing: true}, old)
		_, err = client.StartTx(ctx, tx, "order", "one", map[string]any{"gate": "other"})
		require.ErrorAs(t, err, new(*quipu.ConflictError))
		if !commits {
			require.NoError(t, tx.Rollback(ctx))
			continue
		}
		_, err = client.Job(ctx, job)
		require.ErrorIs(t, err, quipu.ErrNotFound, "it may never commit")
		require.NoError(t, tx.Commit(ctx))
		_, err = client.Wait(ctx, job)
		require.NoError(t, err)
	}
}

// refusedAsks starts in the client's transaction what an engine does not begin: another job takes the
// key before it commits, or the caller asks for the same job twice. Whoever waits for the start, or
// looks, is told why (S8).
func (g *target) refusedAsks(ctx context.Context, engine, client *quipu.Runtime, login string) {
	t := g.t
	t.Helper()
	tx, err := g.connect(login).Begin(ctx)
	require.NoError(t, err)
	asked := func(input any) quipu.Job {
		job, err := client.StartTx(ctx, tx, "order", "contested", input)
		require.NoError(t, err)
		return job
	}
	mine, same := asked(map[string]any{"gate": "mine"}), asked(map[string]any{"gate": "theirs"})
	there, err := engine.Start(ctx, "order", "contested", map[string]any{"gate": "theirs"})
	require.NoError(t, err)
	require.NoError(t, tx.Commit(ctx))
	for range 2 {
		_, err = client.Wait(ctx, mine)
		require.ErrorIs(t, err, quipu.ErrRefused)
		require.ErrorContains(t, err, `job "contested" was already started (same flow: true, same input: false)`)
	}
	_, err = client.Job(ctx, mine)
	require.ErrorIs(t, err, quipu.ErrRefused)
	_, err = engine.Signal(ctx, "gate.open", "theirs", "go")
	require.NoError(t, err)
	_, err = client.Wait(ctx, same)
	require.NoError(t, err, "the key has the job that was asked for")
	found, err := client.Find(ctx, "contested")
	require.NoError(t, err)
	require.Equal(t, there.ID, found.ID)
}

// acts is what people did to a job, as its journal has it.
func (g *target) acts(rt *quipu.Runtime, key string) (acts []string) {
	g.t.Helper()
	job, err := rt.Find(g.t.Context(), key)
	require.NoError(g.t, err)
	for e, err := range rt.Journal(g.t.Context(), job) {
		require.NoError(g.t, err)
		if e.Operator != nil {
			acts = append(acts, e.Operator.Action+" by "+e.Operator.Who)
		}
		if e.Response != nil && e.Response.Who != "" {
			acts = append(acts, "signal by "+e.Response.Who)
		}
	}
	return acts
}

// row inserts a dispatch row under an id.
func row(kind, topic, body, id string) string {
	return `INSERT INTO dispatches (guid, job, kind, activity, dad, topic, element, body, next_at, dead, publication, turn, turn_sent, attempt, runs, fence, effects_seq, origin, undo)
		SELECT id, id, '` + kind + `', '', ',0', ` + topic + `, 0, '` + body + `', 0, false, 0, 0, 0, 0, 0, 0, 0, 0, false FROM (SELECT ` + id + ` AS id FROM jobs LIMIT 1) AS j`
}
