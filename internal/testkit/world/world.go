package world

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/replay"
)

// World is a space on real servers.
type World struct {
	T testing.TB
	// Postgres is the DSN of the space's database, with the rights of its owner.
	Postgres string
	// NATS is its server; nil if the test brings its own.
	NATS *dev.NATS
	// Space is the space's name; "" is the default one.
	Space string
}

// New makes a migrated space in a database of its own, and a NATS server.
func New(t testing.TB, space string) *World {
	t.Helper()
	return &World{T: t, Postgres: Database(t, space), NATS: devtest.NATS(t), Space: space}
}

// Database returns the DSN of a database that has a migrated and empty space.
func Database(t testing.TB, space string) (dsn string) {
	t.Helper()
	name := cmp.Or(space, quipu.DefaultSpace)
	return devtest.Copy(t, "space "+name, func(ctx context.Context, dsn string) error {
		s, err := postgres.Open(ctx, postgres.Config{DSN: dsn, Space: name, MaxConns: 2, Migrating: true})
		if err != nil {
			return err
		}
		defer s.Close()
		return s.Migrate(ctx)
	})
}

// Spans short enough for a test to see a recovery. The lease is the product's: a busy machine may well
// stand still for a shorter one.
const (
	Resend = 400 * time.Millisecond
	Lease  = 3 * time.Second
)

// CommitStatement is in what a client sends to Postgres to commit: the name of the prepared statement, which it binds.
const CommitStatement = "\x00commit\x00"

// Config leads to the space, with the product's own spans. A runtime says what it does when the test
// fails.
func (w *World) Config() quipu.Config {
	w.T.Helper()
	cfg := quipu.Config{Postgres: w.Postgres, Space: w.Space, Logger: devtest.Logger(w.T)}
	if w.NATS != nil {
		cfg.NATS = w.NATS.URL()
	}
	return cfg
}

// Short is Config with spans in which a test sees a recovery.
func (w *World) Short() quipu.Config {
	w.T.Helper()
	cfg := w.Config()
	cfg.Resend, cfg.Lease, cfg.AckWait = Resend, Lease, Lease
	return cfg
}

// Open connects a runtime, which the test's end closes.
func (w *World) Open(cfg quipu.Config) *quipu.Runtime {
	w.T.Helper()
	rt, err := quipu.Open(w.T.Context(), cfg)
	require.NoError(w.T, err)
	w.T.Cleanup(rt.Close)
	return rt
}

// Serve opens a runtime, deploys flows, and works until the test's end.
func (w *World) Serve(cfg quipu.Config, flows ...string) *quipu.Runtime {
	w.T.Helper()
	rt := w.Open(cfg)
	for _, yaml := range flows {
		w.Deploy(rt, yaml)
	}
	w.Run(rt)
	return rt
}

// Run works with a runtime until stop, or the test's end. It is ready when Run returns.
func (w *World) Run(rt *quipu.Runtime) (stop func()) {
	w.T.Helper()
	stop = devtest.Work(w.T, rt.Run)
	devtest.Await(w.T, "a runtime that works", rt.Ready())
	return stop
}

// Deploy deploys a flow.
func (w *World) Deploy(rt *quipu.Runtime, yaml string) *flow.Flow {
	w.T.Helper()
	f, err := flow.Parse("test.yaml", []byte(yaml))
	require.NoError(w.T, err)
	require.NoError(w.T, rt.Deploy(w.T.Context(), f))
	return f
}

// Start starts a job.
func (w *World) Start(rt *quipu.Runtime, name, key string, input any) quipu.Job {
	w.T.Helper()
	job, err := rt.Start(w.T.Context(), name, key, input)
	require.NoError(w.T, err)
	return job
}

// Wait waits for the job's end. One that does not end is stranded (I11).
func (w *World) Wait(rt *quipu.Runtime, job quipu.Job) (json.RawMessage, error) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), devtest.Patience)
	defer cancel()
	out, err := rt.Wait(ctx, job)
	if ctx.Err() != nil {
		v, _ := below.Of(rt).Job(w.T.Context(), job.ID)
		require.FailNow(w.T, "stranded", "job %s: %+v", job.Key, v)
	}
	return out, err
}

// Verify proves every job of the space (I1 to I8, as far as a store can say). A closed job has no row
// left soon after: what came to it too late gets its verdict (C15). A test may call it at its end.
func (w *World) Verify() {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.T.Context()), devtest.Patience)
	defer cancel()
	name := cmp.Or(w.Space, quipu.DefaultSpace)
	s, err := postgres.Open(ctx, postgres.Config{DSN: w.Postgres, Space: name, MaxConns: 2, AnyDatabase: true})
	require.NoError(w.T, err)
	defer s.Close()
	jobs := 0
	for id, err := range s.AuditJobs(ctx, nil) {
		require.NoError(w.T, err)
		jobs++
		Eventually(w.T, "a closed job has no rows and no obligations", func() error {
			v, err := s.Job(ctx, id)
			if err == nil && v.State.Closed() && len(v.Rows) > 0 {
				err = fmt.Errorf("I6: job %s is closed and has %d rows", v.Key, len(v.Rows))
			}
			if err == nil && v.State.Closed() && v.Semaphore != 0 {
				err = fmt.Errorf("I4: job %s is closed and owes %d", v.Key, v.Semaphore)
			}
			return err
		})
		report, err := store.VerifyJob(ctx, s, id, nil, nil)
		require.NoError(w.T, err)
		for _, c := range report.Checks {
			require.Equal(w.T, replay.Proved, c.Status,
				"job %s: %s (%s): %v %s", report.Header.Key, c.Check, c.Check.Title(), c.Violation, c.Note)
		}
	}
	require.Positive(w.T, jobs)
}

// Eventually waits until there is no error.
func Eventually(t testing.TB, what string, is func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(devtest.Patience); time.Now().Before(end); time.Sleep(look) {
		if err = is(); err == nil {
			return
		}
	}
	require.FailNow(t, what, "%v", err)
}

// look is the pause between two looks.
const look = 20 * time.Millisecond
