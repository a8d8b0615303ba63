package attacks

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/workers"
)

// TestForgedDeadLetter_E10: a dead letter about a request that runs decides nothing, whatever it says.
func TestForgedDeadLetter_E10(t *testing.T) {
	t.Parallel()
	g := newCrowd(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var id int64
	require.NoError(t, g.admin.QueryRow(ctx, `INSERT INTO dead_letters (job, guid, kind, activity, dad, reason, message, ledger, at)
		SELECT job, guid, kind, activity, dad, 'parked', 'it will never work', 0, 1 FROM dispatches WHERE guid = `+g.theirs+` RETURNING id`).Scan(&id))
	for _, verdict := range []quipu.Verdict{quipu.Fail, quipu.Resolve, quipu.Done, quipu.Retry} {
		d := quipu.Decision{DeadLetter: id, Verdict: verdict, Reason: "so it says"}
		switch verdict {
		case quipu.Fail:
			d.Code, d.Message = 500, "no"
		case quipu.Resolve, quipu.Done:
			d.Result = []byte("1")
		}
		err := g.engine.Operator().Decide(ctx, d)
		require.ErrorIs(t, err, quipu.ErrStale, verdict)
		require.ErrorContains(t, err, "is not held", verdict)
	}
	g.goOn()
	_, err := g.engine.Wait(ctx, g.job)
	require.NoError(t, err)
}

// TestForgedRecordOfASignal_S8: nobody but an engine says what became of a signal. What a client's login
// writes under the id of another sender's signal, without sending that, is no record of it.
func TestForgedRecordOfASignal_S8(t *testing.T) {
	t.Parallel()
	g := newCrowd(t)
	defer g.goOn()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	id := collation.SignalGUID("shop", "gate.open", "g1", "mail-7")
	thief := g.by["client"]
	_, err := thief.Exec(ctx, "BEGIN")
	require.NoError(t, err)
	// The row stands in a mailbox of its own choice, and the record of that row may be written.
	_, err = thief.Exec(ctx, `INSERT INTO dispatches (guid, job, kind, activity, dad, topic, element, body, next_at, dead, publication, turn, turn_sent, attempt, runs, fence, effects_seq, origin, undo)
		SELECT $1, $2, 'signal', '', ',0', 'gate.open', 0, '{}', micros(), false, 0, 0, 0, 0, 0, 0, 0, 0, false`, id.String(), collation.Mailbox("shop", "other", "x").String())
	require.NoError(t, err)
	_, err = thief.Exec(ctx, "INSERT INTO signals (guid, job, state) VALUES ($1, $2, 'kept')", id.String(), collation.Mailbox("shop", "other", "x").String())
	require.NoError(t, err)
	_, err = thief.Exec(ctx, "COMMIT")
	require.NoError(t, err)
	for _, sender := range []*quipu.Runtime{g.engine, g.open(nil, as(g.clientDSN))} {
		done, err := sender.Signal(ctx, "gate.open", "g1", "go", quipu.IdempotencyKey("mail-7"))
		require.NoError(t, err)
		require.Equal(t, sender != g.engine, done.Duplicate, "the first one is sent")
		require.Equal(t, quipu.SignalKept, done.State)
	}
}

// TestInterruptOfAnEarlierJob: an interrupt and a resume mean the job that their caller saw, and no other that
// has its key by now.
func TestInterruptOfAnEarlierJob(t *testing.T) {
	t.Parallel()
	g := newCrowd(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := g.open(nil, as(g.clientDSN))
	stopped, err := client.Interrupt(ctx, g.job)
	require.NoError(t, err)
	require.Equal(t, quipu.Job{ID: g.job.ID, Key: "one"}, stopped.Job)
	_, err = g.engine.Wait(ctx, g.job)
	require.Error(t, err)
	next, err := g.engine.Resume(ctx, g.job)
	require.NoError(t, err)
	for _, who := range []*quipu.Runtime{g.engine, client} {
		for _, again := range []bool{false, true} {
			late, err := who.Interrupt(ctx, quipu.Job{ID: g.job.ID}, quipu.IdempotencyKey("old page"))
			require.NoError(t, err)
			require.True(t, late.Closed)
			require.Equal(t, again || who == client, late.Duplicate)
		}
	}
	_, err = g.engine.Resume(ctx, g.job)
	require.ErrorIs(t, err, quipu.ErrStale)
	g.goOn()
	_, err = g.engine.Wait(ctx, next)
	require.NoError(t, err, "the job that goes on is left alone")
}

// TestWorkerServesItsTopics_S8: a worker whose login is not bound to its topics refuses to start, and one
// that loses a topic serves it no more, and says so.
func TestWorkerServesItsTopics_S8(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	admin := g.admin()
	owner := g.roles()
	g.Deploy(owner, twoTopics)
	reg := workers.New()
	for _, topic := range []string{"pay.charge", "ship.label"} {
		workers.Handle(reg, topic, func(context.Context, map[string]any) (string, error) { return topic, nil })
	}
	login := g.login(admin, "worker", "pay.charge")
	_, err := quipu.Open(t.Context(), quipu.Config{
		Postgres: login, NATS: g.NATS.URL(), Space: "shop", Workers: reg, NoMigrate: true,
		Roles: []quipu.Role{quipu.RoleWorkers},
	})
	require.ErrorIs(t, err, quipu.ErrLogin)
	require.ErrorContains(t, err, "may not serve ship.label")
	require.ErrorContains(t, err, "ship.label`")
	var name string
	require.NoError(t, g.connect(login).QueryRow(t.Context(), "SELECT session_user").Scan(&name))
	require.ErrorContains(t, err, "grant worker "+name)

	require.NoError(t, below.Of(owner).GrantWorker(t.Context(), name, []string{"ship.label"}))
	rt := g.open(reg, as(login, quipu.RoleWorkers))
	g.Run(rt)
	served := func() []string {
		all, err := owner.Processes(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0].Topics
	}
	require.Equal(t, []string{"pay.charge", "ship.label"}, served())
	require.NoError(t, below.Of(owner).RevokeWorker(t.Context(), name, []string{"ship.label"}))
	require.Eventually(t, func() bool { return len(served()) == 1 }, patience, 20*time.Millisecond)
	require.Equal(t, []string{"pay.charge"}, served())

	other := workers.New()
	workers.Handle(other, "ship.label", func(context.Context, map[string]any) (string, error) { return "by the other", nil })
	g.Run(g.open(other, as(g.login(admin, "worker", "ship.label"), quipu.RoleWorkers)))
	engine := g.open(nil, as(g.login(admin, "engine"), quipu.RoleEngine))
	g.Run(engine)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	job, err := engine.Start(ctx, "order", "one", nil)
	require.NoError(t, err)
	_, err = engine.Wait(ctx, job)
	require.False(t, errors.Is(err, context.DeadlineExceeded), "requests go to the worker that may see them")
	require.NoError(t, err)
}
