package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/workers"
)

const (
	// patience bounds every wait (I11).
	patience = 2 * time.Minute
	// glance is the pause between two looks.
	glance = 10 * time.Millisecond
	// drain bounds the end of a test.
	drain = 5 * time.Second
)

// Space is a space with the deployed flows of an example. Its runtime works until the test ends;
// then the journal of every job is verified.
type Space struct {
	*quipu.Runtime
	// Postgres and NATS are the URLs of the servers, for what goes on beside the runtime.
	Postgres, NATS string

	t   testing.TB
	log bytes.Buffer // what the runtime said; read when it has stopped
}

// open deploys the flow files of an example. It works with the built-in handlers and those that
// register adds, on real servers as `worker dev` has them; change may alter the configuration.
func open(t testing.TB, example string, change func(*quipu.Config), register ...func(*workers.Registry)) *Space {
	t.Helper()
	reg := workers.New()
	workers.RegisterBuiltins(reg)
	for _, add := range register {
		add(reg)
	}
	s := &Space{t: t}
	cfg := quipu.Config{
		Postgres: world.Database(t, ""), Workers: reg, Drain: drain,
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	if cfg.NATS == "" {
		cfg.NATS = devtest.NATS(t).URL()
	}
	s.Postgres, s.NATS = cfg.Postgres, cfg.NATS
	var err error
	s.Runtime, err = quipu.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	s.deploy(example)
	s.work()
	return s
}

func (s *Space) deploy(example string) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(example, "*.yaml"))
	require.NoError(s.t, err)
	require.NotEmpty(s.t, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(s.t, err)
		f, err := flow.Parse(name, text)
		require.NoError(s.t, err)
		require.NoError(s.t, s.Deploy(s.t.Context(), f))
	}
}

// work runs the runtime until the test ends, and then verifies what it did.
func (s *Space) work() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.t.Cleanup(func() {
		s.verify()
		stop()
		assert.NoError(s.t, devtest.Await(s.t, "the end of the drain", done))
		if s.t.Failed() {
			s.t.Logf("the runtime said:\n%s", &s.log)
		}
	})
}

// verify verifies every job of the space (2.5). A closed job has no rows left soon after: messages
// that came too late, such as the outcome of a child that outlived it, get their verdict (C15).
func (s *Space) verify() {
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own has ended
	defer cancel()
	jobs, st := 0, below.Of(s.Runtime)
	for id, err := range st.AuditJobs(ctx, nil) {
		if !assert.NoError(s.t, err) {
			return
		}
		jobs++
		assert.Eventually(s.t, func() bool {
			v, err := st.Job(ctx, id)
			return err == nil && (!v.State.Closed() || len(v.Rows) == 0)
		}, patience, glance, id)
		report, err := store.VerifyJob(ctx, st, id, nil, nil)
		if !assert.NoError(s.t, err) {
			continue
		}
		for _, c := range report.Checks {
			assert.Equal(s.t, replay.Proved, c.Status, "job %s: %s (%s): %v %s", id, c.Check, c.Check.Title(), c.Violation, c.Note)
		}
	}
	assert.Positive(s.t, jobs)
}

// Begin starts a job with an input in JSON, as `quipu start` does.
func (s *Space) Begin(flowName, key, input string) {
	s.t.Helper()
	_, err := s.Start(s.t.Context(), flowName, key, json.RawMessage(input))
	require.NoError(s.t, err)
}

// Output waits until the job has completed, and returns its output.
func (s *Space) Output(key string) string {
	s.t.Helper()
	out, err := s.end(key)
	require.NoError(s.t, err)
	return string(out)
}

// Failure waits until the job has ended without completing, and returns how.
func (s *Space) Failure(key string) *quipu.JobError {
	s.t.Helper()
	out, err := s.end(key)
	ended, ok := errors.AsType[*quipu.JobError](err)
	require.True(s.t, ok, "job %s: output %s, error %v", key, out, err)
	return ended
}

func (s *Space) end(key string) (json.RawMessage, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	job, err := s.Find(ctx, key)
	require.NoError(s.t, err)
	out, err := s.Wait(ctx, job)
	if ctx.Err() != nil {
		v, _ := below.Of(s.Runtime).Job(s.t.Context(), job.ID)
		s.t.Fatalf("stranded: %+v", v)
	}
	return out, err
}

// Keys returns the keys that begin with prefix, of the oldest job first.
func (s *Space) Keys(prefix string) []string {
	s.t.Helper()
	page, err := s.Jobs(s.t.Context(), quipu.JobFilter{Prefix: prefix})
	require.NoError(s.t, err)
	var out []string
	for _, j := range slices.Backward(page.Jobs) {
		out = append(out, j.Job.Key)
	}
	return out
}
