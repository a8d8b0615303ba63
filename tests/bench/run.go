package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/internal/testkit"
	"github.com/quipu-journal/quipu/workers"
)

// bench is one run: its servers, and what later lines are set beside.
type bench struct {
	options
	out     io.Writer
	machine string
	id      string        // of the run, in the names of its spaces
	pg      *dev.Postgres // nil with -postgres, and so
	log     string        // the path of its log
	nats    *dev.NATS
	dsn     string
	n       int // spaces and loops so far
	floor   struct{ perStep, batched, single float64 }
	w10     map[int]*result // by callers
}

// scaled is a number of jobs or rounds under -scale, at least one.
func (b *bench) scaled(n int) int { return max(1, int(float64(n)*b.scale)) }

// during is a time under -scale: a second at least, and never longer than it is.
func (b *bench) during(d time.Duration) time.Duration {
	return max(time.Second, min(d, time.Duration(float64(d)*b.scale)))
}

// work is what callers do in a closed loop: each takes the next job when its last has
// ended.
type work struct {
	name    string
	flows   []*flow.Flow // beside that of ten steps
	flow    string       // the one that is started; that of ten steps
	steps   int          // of one job: activities, or elements, that end; 10
	callers int
	jobs    int
	space   string // one that stays; its own, which is removed afterwards
	// uncounted works write more than the server keeps of its WAL.
	uncounted bool
	// config changes the runtime, handlers adds to noop.
	config   func(*quipu.Config)
	how      below.Mode
	handlers func(*workers.Registry)
	// prepare brings jobs to where the clock starts.
	prepare func(ctx context.Context, rt *quipu.Runtime) error
	// one is what a caller does; Start and Wait.
	one func(ctx context.Context, rt *quipu.Runtime, n int) error
}

// result is what a work took.
type result struct {
	callers, jobs, steps int // steps per job
	took                 time.Duration
	laps                 laps
	wrote                written
	cpu                  time.Duration
	others               float64 // cores that others had meanwhile
	peak                 float64 // MiB
}

func (r *result) perSecond() float64 { return float64(r.jobs*r.steps) / r.took.Seconds() }

// perStep is the time of a step where jobs run one after another.
func (r *result) perStep() time.Duration { return r.took / time.Duration(r.jobs*r.steps) }

func (r *result) walPerJob() float64 { return float64(r.wrote.wal) / float64(r.jobs) }

// laps are the times of what callers did, sorted.
type laps []time.Duration

func (l laps) quantile(q float64) time.Duration { return l[min(int(q*float64(len(l))), len(l)-1)] }

// space names a new space.
func (b *bench) space() string {
	b.n++
	return fmt.Sprintf("b%sx%d", b.id, b.n)
}

func schema(space string) string { return "quipu_" + space }

// drop removes a space, so that nothing looks after its tables while others are
// measured, and its streams, which reserve room on the disk.
func (b *bench) drop(ctx context.Context, space string) error {
	ctx = context.WithoutCancel(ctx)
	err := sql(ctx, b.dsn, fmt.Sprintf("DROP SCHEMA IF EXISTS %q CASCADE", schema(space)))
	conn, failed := nats.Connect("", nats.InProcessServer(b.nats))
	if failed != nil {
		return errors.Join(err, failed)
	}
	defer conn.Close()
	js, failed := jetstream.New(conn)
	if failed != nil {
		return errors.Join(err, failed)
	}
	for _, kind := range []string{"LANES", "START", "WORK"} {
		failed := js.DeleteStream(ctx, "QUIPU_"+space+"_"+kind)
		if !errors.Is(failed, jetstream.ErrStreamNotFound) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// drive measures a work, in a runtime that is opened for it.
func (b *bench) drive(ctx context.Context, w work) (r *result, err error) {
	if w.flow == "" {
		w.flow, w.steps = "w10", 10
	}
	space := w.space
	if space == "" {
		space = b.space()
		defer func() { err = errors.Join(err, b.drop(ctx, space)) }()
	}
	b.n++ // keys of a space that stays are new in each loop
	rt, stop, err := b.open(ctx, space, &w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	r, err = b.timed(ctx, rt, &w)
	if err := errors.Join(err, stop()); err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	return r, nil
}

// warnings say why a run does not go on.
var warnings = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))

// open opens a space and takes part in its work until stop.
func (b *bench) open(ctx context.Context, space string, w *work) (rt *quipu.Runtime, stop func() error, err error) {
	cfg := quipu.Config{
		Postgres: b.dsn, InProcess: b.nats, Space: space, Workers: handlers(0), Concurrency: 1024, Logger: warnings,
	}
	if w.handlers != nil {
		w.handlers(cfg.Workers)
	}
	if w.config != nil {
		w.config(&cfg)
	}
	if rt, err = testkit.Open(ctx, cfg, w.how); err != nil {
		return nil, nil, err
	}
	if err := rt.Deploy(ctx, append([]*flow.Flow{linear(10)}, w.flows...)...); err != nil {
		rt.Close()
		return nil, nil, err
	}
	stop = running(ctx, rt)
	return rt, stop, nil
}

// running runs a runtime until stop, which closes it.
func running(ctx context.Context, rt *quipu.Runtime) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	return func() error {
		cancel()
		defer rt.Close()
		return <-done
	}
}

// handlers has a handler that gives back what it got, after some time, and an early one that does so
// at once.
func handlers(work time.Duration) *workers.Registry {
	reg := workers.New()
	workers.HandleRaw(reg, "noop", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
		if work > 0 {
			time.Sleep(work)
		}
		return in, nil
	})
	workers.HandleRaw(reg, "early", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
		return in, nil
	}, workers.Early())
	return reg
}

// timed runs the loop of a runtime that is warm: consumers are bound, plans prepared.
func (b *bench) timed(ctx context.Context, rt *quipu.Runtime, w *work) (*result, error) {
	key := func(what string, n int) string { return fmt.Sprintf("%s-%d-%d", what, b.n, n) }
	one, warm := w.one, "w10" // a job that is alone, or prepared, is not run twice
	if one == nil {
		one = func(ctx context.Context, rt *quipu.Runtime, n int) error {
			return startAndWait(ctx, rt, w.flow, key("job", n))
		}
		if w.jobs > 1 {
			warm = w.flow
		}
	}
	_, err := closed(ctx, w.callers, upTo(min(w.callers, w.jobs)), func(ctx context.Context, n int) error {
		return startAndWait(ctx, rt, warm, key("warm", n))
	})
	if err != nil {
		return nil, err
	}
	if w.prepare != nil {
		if err := w.prepare(ctx, rt); err != nil {
			return nil, err
		}
	}
	r := &result{callers: w.callers, jobs: w.jobs, steps: w.steps}
	from, err := b.position(ctx)
	if err != nil {
		return nil, err
	}
	resetPeak()
	cpu, all, began := b.cpu(), machineTime(), time.Now()
	r.laps, err = closed(ctx, w.callers, upTo(w.jobs), func(ctx context.Context, n int) error {
		return one(ctx, rt, n)
	})
	r.took, r.cpu, r.peak = time.Since(began), b.cpu()-cpu, memory("self", "VmHWM")
	r.others = (machineTime() - all - r.cpu).Seconds() / r.took.Seconds()
	if err != nil || w.uncounted {
		return r, err
	}
	r.wrote, err = b.wrote(ctx, from)
	return r, err
}

// startAndWait is a job as a user calls it.
func startAndWait(ctx context.Context, rt *quipu.Runtime, flow, key string) error {
	job, err := rt.Start(ctx, flow, key, map[string]string{"id": key})
	if err != nil {
		return err
	}
	_, err = rt.Wait(ctx, job)
	return err
}

// upTo says of the first n that they are to be done.
func upTo(n int) func(int) bool { return func(i int) bool { return i < n } }

// closed is a closed loop: callers do one thing after another, with a number of its
// own, while there is more.
func closed(
	ctx context.Context, callers int, more func(n int) bool, one func(ctx context.Context, n int) error,
) (laps, error) {
	var next atomic.Int64
	each := make([]laps, callers)
	g, ctx := errgroup.WithContext(ctx)
	for i := range each {
		g.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if !more(n) {
					return nil
				}
				began := time.Now()
				if err := one(ctx, n); err != nil {
					return err
				}
				each[i] = append(each[i], time.Since(began))
			}
		})
	}
	err := g.Wait()
	all := slices.Concat(each...)
	slices.Sort(all)
	return all, err
}
