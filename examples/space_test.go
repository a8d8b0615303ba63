package examples_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
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

	t testing.TB
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
	w := &world.World{T: t, Postgres: world.Database(t, "")}
	cfg := w.Config()
	cfg.Workers, cfg.Drain = reg, drain
	if change != nil {
		change(&cfg)
	}
	if cfg.NATS == "" {
		cfg.NATS = devtest.NATS(t).URL()
	}
	s := &Space{w.Open(cfg), cfg.Postgres, cfg.NATS, t}
	s.deploy(example)
	w.Run(s.Runtime)
	t.Cleanup(w.Verify)
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
		out = append(out, j.Key)
	}
	return out
}
