package api_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// space is a runtime that works for its own space.
type space struct {
	*quipu.Runtime
	t     *testing.T
	world *world.World
}

func newSpace(t *testing.T, flows ...string) *space {
	t.Helper()
	return newSpaceOf(t, workers.New(), flows...)
}

// newSpaceOf is newSpace with more handlers than the built-in ones.
func newSpaceOf(t *testing.T, reg *workers.Registry, flows ...string) *space {
	t.Helper()
	return newSpaceWith(t, func(*quipu.Config) {}, reg, flows...)
}

// newSpaceWith is newSpaceOf with other settings.
func newSpaceWith(t *testing.T, change func(*quipu.Config), reg *workers.Registry, flows ...string) *space {
	t.Helper()
	w := world.New(t, "")
	workers.RegisterBuiltins(reg)
	cfg := w.Config()
	cfg.Workers, cfg.Roles = reg, []quipu.Role{quipu.RoleEngine, quipu.RoleWorkers}
	change(&cfg)
	return &space{w.Serve(cfg, flows...), t, w}
}

// Wait is the runtime's, within devtest.Patience.
func (s *space) Wait(ctx context.Context, job quipu.Job, options ...quipu.WaitOption) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, devtest.Patience)
	defer cancel()
	return s.Runtime.Wait(ctx, job, options...)
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

// db is a connection to the space's database, beside the runtime.
func (s *space) db() *pgx.Conn {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.world.Postgres)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// begin starts a job.
func (s *space) begin(name, key string, input any) quipu.Job {
	s.t.Helper()
	job, err := s.Start(s.t.Context(), name, key, input)
	require.NoError(s.t, err)
	return job
}

func (s *space) info(job quipu.Job) *view.Job {
	s.t.Helper()
	v, err := s.Job(s.t.Context(), job)
	require.NoError(s.t, err)
	return v
}

// told sends a signal.
func (s *space) told(topic, key string, payload any, opts ...quipu.SignalOption) {
	s.t.Helper()
	_, err := s.Signal(s.t.Context(), topic, key, payload, opts...)
	require.NoError(s.t, err)
}

// resumed and forked go on with a job.
func (s *space) resumed(key string, opts ...quipu.ResumeOption) quipu.Job {
	s.t.Helper()
	job, err := s.Resume(s.t.Context(), quipu.Job{Key: key}, opts...)
	require.NoError(s.t, err)
	return job
}

func (s *space) forked(key string, at int64, as string, opts ...quipu.ForkOption) quipu.Job {
	s.t.Helper()
	job, err := s.Fork(s.t.Context(), quipu.Job{Key: key}, at, as, opts...)
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
	require.Eventually(s.t, so, devtest.Patience, 20*time.Millisecond, what)
}

func (s *space) waits(job quipu.Job) {
	s.t.Helper()
	s.until("the job waits", func() bool {
		v, err := s.Job(s.t.Context(), job)
		return err == nil && len(v.Waits) > 0
	})
}
