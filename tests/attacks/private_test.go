package attacks

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// visitFlow names jobs and signals by keys that begin alike: its own, that of a child, those of
// two hooks and that of a job to interrupt. Its expressions make them of parts, so that no payload
// has them whole.
const visitFlow = `{flow: visit, version: "1", output: "${ work.output }", activities: {start: {type: trigger},
  own: {type: hook, signal: own, key: "${ job.id }"},
  hers: {type: hook, signal: hers, key: "${ start.output.name + '@example.org' }"},
  tell: {type: signal, topic: hers, key: "${ start.output.name + '@example.org' }"},
  child: {type: await, flow: call, id: "${ start.output.name + '@example.org/child' }"},
  stop: {type: interrupt, target: "${ start.output.name + '@example.org/other' }"},
  ask: {type: worker, topic: ask, input: 7}, work: {type: worker, topic: pay.charge, input: 7}},
  transitions: {start: [own], own: [hers, tell], hers: [child], child: [stop], stop: [ask], ask: [work]}}`

// Somebody reads the database, the bus and the traces to learn whose jobs these are. In a space
// with private keys no key of a job or a signal is there (S15). All methods take the keys.
func TestPrivateKeys(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	owner := g.open(nil)
	for range 2 {
		require.NoError(t, owner.KeepPrivateKeys(ctx))
	}
	seen, reg := newTrail(), workers.New()
	seen.listen(t, g.NATS.URL())
	workers.Handle(reg, "pay.charge", func(ctx context.Context, _ int) (string, error) { return workers.Info(ctx).Key, nil })
	workers.HandleDurable(reg, "ask", func(ctx context.Context, _ int) (any, error) { // its answer has these keys
		if _, err := workers.Child[any](ctx, "aid", "call", nil, workers.ChildKey("bob@example.org")); err != nil {
			return nil, err
		}
		return workers.Await[any](ctx, "ask", 0, workers.SignalKey("bob@example.org"))
	})
	as := func(roles ...quipu.Role) func(*quipu.Config) {
		return func(c *quipu.Config) {
			c.Roles, c.Observer, c.Logger = roles, seen,
				slog.New(slog.NewTextHandler(seen, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
	}
	rt := g.open(nil, as(quipu.RoleEngine))
	g.Deploy(rt, visitFlow)
	g.Deploy(rt, `{flow: call, version: "1", activities: {start: {type: trigger}, on: {type: hook}}, transitions: {start: [on]}}`)
	g.Deploy(rt, `{flow: other, version: "1", activities: {start: {type: trigger}, on: {type: hook, signal: never, key: x}}, transitions: {start: [on]}}`)
	g.Run(rt)
	g.Run(g.open(reg, as(quipu.RoleWorkers)))
	const key = "ann@example.org"
	_, err := owner.Start(ctx, "visit", key, map[string]string{"name": "ann"})
	require.ErrorIs(t, err, quipu.ErrRejected, "a process that was open before cannot begin a job under its key")
	other, err := rt.Start(ctx, "other", key+"/other", nil)
	require.NoError(t, err)
	job, err := rt.Start(ctx, "visit", key, map[string]string{"name": "ann"})
	require.NoError(t, err)
	require.Equal(t, journal.PrivateKey("shop", key), job.Key)
	again, err := rt.Start(ctx, "visit", key, map[string]string{"name": "ann"})
	require.NoError(t, err)
	require.True(t, again.Existing)
	_, err = rt.Signal(ctx, "own", key, nil)
	require.NoError(t, err)
	_, err = rt.Signal(ctx, "ask", "bob@example.org", nil)
	require.NoError(t, err)
	out, err := quipu.WaitAs[string](ctx, rt, quipu.Job{Key: key})
	require.NoError(t, err)
	require.Equal(t, job.Key, out)
	_, err = rt.Wait(ctx, other)
	require.ErrorAs(t, err, new(*quipu.JobError), "it was interrupted by its key")
	_, err = rt.Find(ctx, "bob@example.org")
	require.NoError(t, err)
	child, err := rt.Find(ctx, key+"/child")
	require.NoError(t, err)
	finds(t, rt, key+"/child", child)
	_, err = rt.Jobs(ctx, quipu.JobFilter{Prefix: "ann"})
	require.ErrorIs(t, err, quipu.ErrKey)

	absent(t, key, seen.String(), g.tables())
	g.whole(ctx, rt, job, other, child)
	g.expires(ctx, owner, job)
	next, err := rt.Start(ctx, "visit", key, map[string]string{"name": "eve"})
	require.NoError(t, err)
	require.False(t, next.Existing)
	require.NotEqual(t, job.ID, next.ID)
	absent(t, key, seen.String(), g.tables())
}

// finds wants a job by its key, by the digest and, of the reader of jobs, by its ID.
func finds(t *testing.T, rt *quipu.Runtime, key string, job quipu.Job) {
	t.Helper()
	for _, name := range []string{key, job.Key} {
		found, err := rt.Find(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, job, found)
	}
	for _, name := range []string{key, job.Key, job.ID.String()} {
		id, err := below.Reader(rt).Find(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, job.ID, id)
	}
	_, err := below.Reader(rt).Find(t.Context(), key+"/none")
	require.ErrorIs(t, err, quipu.ErrNotFound)
	require.NotContains(t, err.Error(), key)
}

// whole says that the tables of the jobs are as their journals give them.
func (g *target) whole(ctx context.Context, rt *quipu.Runtime, jobs ...quipu.Job) {
	g.t.Helper()
	for _, j := range jobs {
		proof, err := rt.Operator().Fsck(ctx, j.ID)
		require.NoError(g.t, err)
		require.Empty(g.t, proof.Broken)
		require.Empty(g.t, proof.Differences)
	}
}

// expires leaves of a job its tombstone, which knows its key by the digest, too.
func (g *target) expires(ctx context.Context, owner *quipu.Runtime, job quipu.Job) {
	g.t.Helper()
	require.EqualValues(g.t, 1, g.sql("UPDATE jobs SET expires_at = 1 WHERE id = $1", job.ID.String()))
	_, err := below.Of(owner).Expire(ctx, 100)
	require.NoError(g.t, err)
	require.Equal(g.t, 1, g.count(g.admin(), "jobs WHERE state = 'expired' AND key = '"+job.Key+"'"))
}
