package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal/store"
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
	NATS string // URL of the server, for workers that are processes of their own

	t   testing.TB
	log bytes.Buffer // what the runtime said; read when it has stopped
}

// open deploys the flow files of an example. It works with the built-in handlers and those that
// register adds, on real servers as `worker dev` has them.
func open(t testing.TB, example string, register ...func(*workers.Registry)) *Space {
	t.Helper()
	return openWith(t, example, func(*quipu.Config) {}, register...)
}

// openWith is open with a configuration that change may alter last.
func openWith(t testing.TB, example string, change func(*quipu.Config), register ...func(*workers.Registry)) *Space {
	t.Helper()
	reg := workers.New()
	workers.RegisterBuiltins(reg)
	for _, add := range register {
		add(reg)
	}
	s := &Space{t: t}
	cfg := quipu.Config{
		Postgres: devtest.Postgres(t), Workers: reg, Drain: drain,
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	}
	change(&cfg)
	if cfg.NATS == "" {
		cfg.NATS = devtest.NATS(t).URL()
	}
	s.NATS = cfg.NATS
	var err error
	s.Runtime, err = quipu.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.deploy(example)
	s.work()
	return s
}

func (s *Space) deploy(example string) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(example, "*.yaml"))
	if err != nil || len(files) == 0 {
		s.t.Fatalf("no flow files: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			s.t.Fatal(err)
		}
		f, err := flow.Parse(name, text)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.Deploy(s.t.Context(), f); err != nil {
			s.t.Fatal(err)
		}
	}
}

// work runs the runtime until the test ends, and then verifies what it did.
func (s *Space) work() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.t.Cleanup(func() {
		s.settle()
		stop()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		s.verify()
		if s.t.Failed() {
			s.t.Logf("the runtime said:\n%s", &s.log)
		}
	})
}

// Begin starts a job with an input in JSON, as `quipu start` does.
func (s *Space) Begin(flowName, key, input string) {
	s.t.Helper()
	_, err := s.Start(s.t.Context(), flowName, key, json.RawMessage(input))
	if err != nil {
		s.t.Fatal(err)
	}
}

// Output waits until the job has completed, and returns its output.
func (s *Space) Output(key string) string {
	s.t.Helper()
	out, err := s.end(key)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(out)
}

// Failure waits until the job has ended without completing, and returns how.
func (s *Space) Failure(key string) *quipu.JobError {
	s.t.Helper()
	out, err := s.end(key)
	ended, ok := errors.AsType[*quipu.JobError](err)
	if !ok {
		s.t.Fatalf("job %s: output %s, error %v", key, out, err)
	}
	return ended
}

func (s *Space) end(key string) (json.RawMessage, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	job, err := s.Find(ctx, key)
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := s.Wait(ctx, job)
	if ctx.Err() != nil {
		s.t.Fatalf("stranded: %s", s.text(key))
	}
	return out, err
}

// View reads the job that has the key, with its ledgers and what it waits for.
func (s *Space) View(key string) *store.JobView {
	s.t.Helper()
	job, err := s.Find(s.t.Context(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := below.Of(s.Runtime).Job(s.t.Context(), job.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// Until waits until a condition on the job holds.
func (s *Space) Until(key, what string, ok func(*store.JobView) bool) {
	s.t.Helper()
	for began := time.Now(); !ok(s.View(key)); time.Sleep(glance) {
		if time.Since(began) > patience {
			s.t.Fatalf("%s did not come: %s", what, s.text(key))
		}
	}
}

// Addresses returns the sorted addresses of the activity's instances in the job: where it was
// entered, skipped or is waited for.
func (s *Space) Addresses(key, activity string) []string {
	s.t.Helper()
	var out []string
	for _, i := range s.View(key).Instances {
		if i.Key.Activity == activity && i.Ledger != 0 {
			out = append(out, string(i.Key.DAD))
		}
	}
	slices.Sort(out)
	return out
}

// Keys returns the keys that begin with prefix, of the oldest job first.
func (s *Space) Keys(prefix string) []string {
	s.t.Helper()
	jobs, err := s.Jobs(s.t.Context(), quipu.JobFilter{Prefix: prefix})
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, j := range slices.Backward(jobs) {
		out = append(out, j.Job.Key)
	}
	return out
}

// text describes a job for a failure's message.
func (s *Space) text(key string) string {
	v := s.View(key)
	var b strings.Builder
	fmt.Fprintf(&b, "job %s is %s, %d open\n", key, v.State, v.Semaphore)
	for _, i := range v.Instances {
		fmt.Fprintf(&b, "  %s %s %s code %d\n", i.Key.Activity, i.Key.DAD, i.Ledger, i.Code)
	}
	for i := range v.Rows {
		r := &v.Rows[i]
		fmt.Fprintf(&b, "  row %s %s %s, published %d times %s\n", r.Kind, r.Activity, r.DAD, r.Publication, r.Held)
	}
	for _, w := range v.Waits {
		fmt.Fprintf(&b, "  wait of %s %s for %s %s\n", w.Activity, w.DAD, w.Topic, w.Key)
	}
	for i := range v.Dead {
		fmt.Fprintf(&b, "  dead letter: %s\n", v.Dead[i].Letter.Message)
	}
	return b.String()
}
