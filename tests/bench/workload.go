package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/postgres/floor"
	"github.com/quipu-journal/quipu/workers"
)

type bench struct {
	options
	pg   *dev.Postgres
	nats *dev.NATS
	dsn  string
	n    int
	// without takes something away from the runtimes of a part; nil: nothing.
	without func(*quipu.Config)
}

// measured is what one workload took.
type measured struct {
	name     string
	jobs     int
	steps    int // per job
	took     time.Duration
	gaps     []time.Duration // between two steps of a job, one job at a time
	warmed   int             // jobs before the clock started
	before   floor.Probe
	wrote    floor.Probe
	cpu      time.Duration
	peak     float64 // MiB
	memories []float64
}

func (m *measured) perSecond() float64 { return float64(m.jobs*m.steps) / m.took.Seconds() }

func (m *measured) quantile(q float64) time.Duration {
	if len(m.gaps) == 0 {
		return 0
	}
	slices.Sort(m.gaps)
	return m.gaps[min(int(q*float64(len(m.gaps))), len(m.gaps)-1)]
}

// linear is a flow of n workers one after another.
func linear(n int) (*flow.Flow, error) {
	b := flow.New("w").Version("1").Trigger("start")
	last := "start"
	for i := range n {
		name := fmt.Sprintf("step_%d", i)
		b = b.Worker(name, "noop", flow.Input(map[string]any{"n": i})).Transition(last, name)
		last = name
	}
	return b.Build()
}

// stopwatch notes when the handler is called, for one job at a time.
type stopwatch struct {
	mu   sync.Mutex
	last time.Time
	gaps []time.Duration
	on   bool
}

func (s *stopwatch) lap() {
	if !s.on {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() {
		s.gaps = append(s.gaps, now.Sub(s.last))
	}
	s.last = now
}

// pace is how the jobs of a workload meet the engine.
type pace int

const (
	together  pace = iota // started in bulk while the engine runs
	oneByOne              // each when the one before has ended
	preloaded             // all started before the engine is: a backlog
)

// workload runs jobs of n steps in a space of their own.
func (b *bench) workload(ctx context.Context, name string, jobs, steps int, p pace) (*measured, error) {
	b.n++
	space := fmt.Sprintf("bench%d", b.n)
	watch := &stopwatch{on: p == oneByOne}
	reg := workers.New()
	workers.HandleRaw(reg, "noop", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
		watch.lap()
		return in, nil
	})
	cfg := quipu.Config{Postgres: b.dsn, InProcess: b.nats, Space: space, Workers: reg, Concurrency: 1024}
	if b.without != nil {
		b.without(&cfg)
	}
	rt, err := quipu.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	closed := false
	closeOnce := func() {
		if !closed {
			closed = true
			rt.Close()
		}
	}
	defer closeOnce()
	f, err := linear(steps)
	if err != nil {
		return nil, err
	}
	if err := rt.Deploy(ctx, f); err != nil {
		return nil, err
	}
	if p == preloaded {
		if err := startAll(ctx, rt, jobs); err != nil {
			return nil, err
		}
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- rt.Run(work) }()
	m := &measured{name: name, jobs: jobs, steps: steps}
	if p != preloaded {
		if err := b.warm(ctx, rt); err != nil {
			return nil, err
		}
		m.warmed = 1
	}
	if err := b.timed(ctx, rt, m, space, p, watch); err != nil {
		return nil, err
	}
	m.gaps = watch.gaps
	stop()
	if err := <-done; err != nil {
		return nil, err
	}
	closeOnce() // sessions report their row counts at their end
	m.wrote, err = floor.Wrote(ctx, b.dsn, "quipu_"+space, m.before)
	return m, err
}

// warm runs one job, so that plans are prepared and consumers bound.
func (b *bench) warm(ctx context.Context, rt *quipu.Runtime) error {
	job, err := rt.Start(ctx, "w", "warm", nil)
	if err != nil {
		return err
	}
	_, err = rt.Wait(ctx, job)
	return err
}

func (b *bench) timed(ctx context.Context, rt *quipu.Runtime, m *measured, space string, p pace, watch *stopwatch) error {
	var err error
	if m.before, err = floor.Look(ctx, b.dsn, "quipu_"+space); err != nil {
		return err
	}
	resetPeak()
	cpu, began := b.cpu(), time.Now()
	watch.last, watch.gaps = time.Time{}, nil
	if p == oneByOne {
		err = b.oneByOne(ctx, rt, m.jobs, watch)
	} else {
		err = b.together(ctx, rt, m, p)
	}
	if err != nil {
		return err
	}
	m.took, m.cpu, m.peak = time.Since(began), b.cpu()-cpu, memory("VmHWM")
	return nil
}

func (b *bench) oneByOne(ctx context.Context, rt *quipu.Runtime, jobs int, watch *stopwatch) error {
	for i := range jobs {
		watch.mu.Lock()
		watch.last = time.Time{}
		watch.mu.Unlock()
		job, err := rt.Start(ctx, "w", fmt.Sprintf("job-%d", i), nil)
		if err != nil {
			return err
		}
		if _, err := rt.Wait(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// together starts all jobs and waits for the last; memory is sampled at every
// tenth of the way.
func (b *bench) together(ctx context.Context, rt *quipu.Runtime, m *measured, p pace) error {
	began := make(chan error, 1)
	go func() {
		if p == preloaded {
			began <- nil
			return
		}
		began <- startAll(ctx, rt, m.jobs)
	}()
	for {
		counts, err := rt.Store().Counts(ctx)
		if err != nil {
			return err
		}
		ended := int(counts[journal.JobCompleted]) - m.warmed
		for len(m.memories) < 10 && ended >= m.jobs*(len(m.memories)+1)/10 {
			m.memories = append(m.memories, memory("VmRSS"))
		}
		if ended >= m.jobs {
			return <-began
		}
		if failed := counts[journal.JobFailed]; failed > 0 {
			return fmt.Errorf("%d jobs failed", failed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func startAll(ctx context.Context, rt *quipu.Runtime, jobs int) error {
	for first := 0; first < jobs; first += quipu.MaxStarts {
		reqs := make([]quipu.StartRequest, min(quipu.MaxStarts, jobs-first))
		for i := range reqs {
			reqs[i] = quipu.StartRequest{Flow: "w", Key: fmt.Sprintf("job-%d", first+i)}
		}
		if _, err := rt.StartMany(ctx, reqs); err != nil {
			return err
		}
	}
	return nil
}
