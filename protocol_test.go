package quipu_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/workers"
)

// space is a runtime that works for its own space.
type space struct {
	*quipu.Runtime
	t   *testing.T
	dsn string
}

func newSpace(t *testing.T, flows ...string) *space {
	t.Helper()
	return newSpaceOf(t, workers.New(), flows...)
}

// newSpaceOf is newSpace with more handlers than the built-in ones.
func newSpaceOf(t *testing.T, reg *workers.Registry, flows ...string) *space {
	t.Helper()
	return newSpaceWith(t, quipu.Config{Postgres: devtest.Postgres(t), NATS: devtest.NATS(t).URL()}, reg, flows...)
}

// newSpaceWith is newSpaceOf with the test's own servers and settings.
func newSpaceWith(t *testing.T, cfg quipu.Config, reg *workers.Registry, flows ...string) *space {
	t.Helper()
	workers.RegisterBuiltins(reg)
	cfg.Workers, cfg.Roles = reg, []quipu.Role{quipu.RoleEngine, quipu.RoleWorkers}
	rt, err := quipu.Open(t.Context(), cfg)
	require.NoError(t, err)
	for _, source := range flows {
		f, err := flow.Parse("flow.yaml", []byte(source))
		require.NoError(t, err)
		require.NoError(t, rt.Deploy(t.Context(), f))
	}
	t.Cleanup(rt.Close)
	devtest.Work(t, rt.Run)
	return &space{rt, t, cfg.Postgres}
}

// runFor runs another process of the space for a while.
func (s *space) runFor(d time.Duration, cfg quipu.Config) {
	s.t.Helper()
	rt, err := quipu.Open(s.t.Context(), cfg)
	require.NoError(s.t, err)
	defer rt.Close()
	ctx, stop := context.WithTimeout(s.t.Context(), d)
	defer stop()
	require.NoError(s.t, rt.Run(ctx))
}

// begin starts a job.
func (s *space) begin(name, key string, input any) quipu.Job {
	s.t.Helper()
	job, err := s.Start(s.t.Context(), name, key, input)
	require.NoError(s.t, err)
	return job
}

// output waits for a job that completes.
func (s *space) output(job quipu.Job, output string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	out, err := s.Wait(ctx, job)
	require.NoError(s.t, err)
	require.JSONEq(s.t, output, string(out))
}

// until waits until a condition holds.
func (s *space) until(what string, so func() bool) {
	s.t.Helper()
	require.Eventually(s.t, so, time.Minute, 20*time.Millisecond, what)
}

func (s *space) waits(job quipu.Job) {
	s.t.Helper()
	s.until("the job waits", func() bool {
		v, err := s.Job(s.t.Context(), job)
		return err == nil && len(v.Waits) > 0
	})
}

const listen = `
flow: listen
version: "1"
output: {got: "${ wait.output }", code: "${ wait.code }"}
activities:
  start: {type: trigger}
  wait: {type: hook, signal: news.told, key: "${ job.id }"}
  failed: {type: hook}
transitions: {start: [wait], wait: [{to: failed, on: error}]}
`

func TestSignal(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newSpace(t, listen)

	early, err := s.Signal(ctx, "news.told", "early", map[string]int{"n": 1})
	require.NoError(t, err)
	require.Equal(t, quipu.SignalResult{State: quipu.SignalKept}, early)
	s.output(s.begin("listen", "early", nil), `{"got":{"n":1},"code":200}`)

	late := s.begin("listen", "late", nil)
	s.waits(late)
	missed, err := s.SignalAll(ctx, "news.told", "nobody", nil)
	require.NoError(t, err)
	require.Equal(t, quipu.SignalMissed, missed.State)
	done, err := s.SignalAll(ctx, "news.told", "late", 2, quipu.IdempotencyKey("x"))
	require.NoError(t, err)
	require.Equal(t, quipu.SignalResult{State: quipu.SignalConsumed, Reached: 1}, done)
	again, err := s.SignalAll(ctx, "news.told", "late", 3, quipu.IdempotencyKey("x"))
	require.NoError(t, err)
	require.Equal(t, quipu.SignalResult{State: quipu.SignalConsumed, Duplicate: true}, again)
	s.output(late, `{"got":2,"code":200}`)

	refused := s.begin("listen", "refused", nil)
	_, err = s.Signal(ctx, "news.told", "refused", "no", quipu.Code(409))
	require.NoError(t, err)
	s.output(refused, `{"got":null,"code":409}`)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newSpace(t, listen, `
flow: parent
version: "1"
output: well
activities:
  start: {type: trigger}
  ask: {type: await, flow: listen, id: "child-of-${ job.id }"}
transitions: {start: [ask]}
`)
	_, err := s.Interrupt(ctx, "nobody")
	require.ErrorIs(t, err, quipu.ErrNotFound)

	job := s.begin("parent", "p", nil)
	var children []quipu.Child
	s.until("the child waits", func() bool {
		children, err = s.Children(ctx, job)
		return err == nil && len(children) == 1 && children[0].Begun
	})
	require.Equal(t, "ask", children[0].Activity)
	require.False(t, children[0].Ended)
	child, err := s.Find(ctx, "child-of-p")
	require.NoError(t, err)
	require.Equal(t, child.ID, children[0].ID)
	s.waits(child)

	done, err := s.Interrupt(ctx, "p", quipu.Code(409), quipu.Reason("fraud"), quipu.Descend(true), quipu.IdempotencyKey("x"))
	require.NoError(t, err)
	require.Equal(t, quipu.InterruptResult{Job: job}, done)
	for _, j := range []quipu.Job{job, child} {
		_, err = s.Wait(ctx, j)
		ended, ok := errors.AsType[*quipu.JobError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 409, ended.Code)
		require.Equal(t, "fraud", ended.Cause.Message)
	}
	done, err = s.Interrupt(ctx, "p", quipu.IdempotencyKey("x"))
	require.NoError(t, err)
	require.Equal(t, quipu.InterruptResult{Job: job, Duplicate: true, Closed: true}, done)
	done, err = s.Interrupt(ctx, "p")
	require.NoError(t, err)
	require.Equal(t, quipu.InterruptResult{Job: job, Closed: true}, done, "it had ended")

	job = s.begin("parent", "q", nil)
	_, err = s.Interrupt(ctx, "q", quipu.Throw(false))
	require.NoError(t, err)
	s.output(job, `"well"`)
}

// E17: a start or a signal in a caller's transaction commits with it or not at all, and is picked
// up soon.
func TestE17StartAndSignalInATransaction(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newSpace(t, listen)
	conn, err := pgx.Connect(ctx, s.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })

	tx, err := conn.Begin(ctx)
	require.NoError(t, err)
	gone, err := s.StartTx(ctx, tx, "listen", "gone", nil)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(ctx))
	_, err = s.Wait(ctx, gone)
	require.ErrorIs(t, err, quipu.ErrNotFound)

	tx, err = conn.Begin(ctx)
	require.NoError(t, err)
	job, err := s.StartTx(ctx, tx, "listen", "k", nil)
	require.NoError(t, err)
	sent, err := s.SignalTx(ctx, tx, "news.told", "k", 7, quipu.IdempotencyKey("x"))
	require.NoError(t, err)
	require.Equal(t, quipu.SignalResult{State: quipu.SignalKept}, sent)
	_, err = s.SignalTx(ctx, tx, "news told", "k", 7)
	require.ErrorIs(t, err, quipu.ErrSignal)
	_, err = s.StartTx(ctx, tx, "nobody", "k", nil)
	require.ErrorIs(t, err, quipu.ErrNotFound)
	require.NoError(t, tx.Commit(ctx))
	s.output(job, `{"got":7,"code":200}`)

	tx, err = conn.Begin(ctx)
	require.NoError(t, err)
	again, err := s.StartTx(ctx, tx, "listen", "k", nil)
	require.NoError(t, err)
	require.True(t, again.Existing)
	require.Equal(t, job.ID, again.ID)
	twice, err := s.SignalTx(ctx, tx, "news.told", "k", 7, quipu.IdempotencyKey("x"))
	require.NoError(t, err)
	require.Equal(t, quipu.SignalResult{State: quipu.SignalConsumed, Duplicate: true}, twice)
	require.NoError(t, tx.Commit(ctx))
}

// A client without NATS can signal and interrupt, too: the engines find its rows (T2).
func TestClientWithoutNATS(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newSpace(t, listen)
	client, err := quipu.Open(ctx, quipu.Config{Postgres: s.dsn})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	require.ErrorIs(t, client.Run(ctx), quipu.ErrConfig)
	for n := range 3 {
		key := fmt.Sprint("k", n)
		job, err := client.Start(ctx, "listen", key, nil)
		require.NoError(t, err)
		s.waits(job)
		if n == 0 {
			_, err = client.Interrupt(ctx, key)
			require.NoError(t, err)
			_, err = client.Wait(ctx, job)
			_, ok := errors.AsType[*quipu.JobError](err)
			require.True(t, ok)
			continue
		}
		done, err := client.Signal(ctx, "news.told", key, n)
		require.NoError(t, err)
		require.Equal(t, quipu.SignalConsumed, done.State)
		s.output(job, fmt.Sprintf(`{"got":%d,"code":200}`, n))
	}
}

// The roles schedule and retention work without engines and NATS. A flow that has been active for
// three minutes has its three jobs, once each, and a closed job whose time has passed is gone.
func TestScheduleAndRetention(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newSpace(t, `
flow: brief
version: "1"
expire: 1s
activities: {start: {type: trigger}}
`, `
flow: tick
version: "1"
schedule: {cron: "* * * * *", catch_up: all}
activities: {start: {type: trigger}}
`)
	began := time.Now()
	clocks, err := below.Of(s.Runtime).Schedules(ctx)
	require.NoError(t, err)
	for _, c := range clocks {
		if c.Ref.Name == "tick" {
			require.NoError(t, below.Of(s.Runtime).MarkSchedule(ctx, "tick", c.Last, c.Last-180e6))
		}
	}
	s.output(s.begin("brief", "k", nil), `null`)

	var jobs []quipu.JobSummary
	s.until("the job is removed, and others are begun", func() bool {
		s.runFor(200*time.Millisecond, quipu.Config{Postgres: s.dsn, Roles: []quipu.Role{quipu.RoleSchedule, quipu.RoleRetention}})
		_, gone := s.Find(ctx, "k")
		var err error
		jobs, err = s.Jobs(ctx, quipu.JobFilter{Flow: "tick"})
		require.NoError(t, err)
		return errors.Is(gone, quipu.ErrNotFound) && len(jobs) >= 3
	})
	require.LessOrEqual(t, len(jobs), 4+int(time.Since(began)/time.Minute), "one more, when a minute begins just now")
	for _, j := range jobs {
		s.output(j.Job, `null`)
	}
}
