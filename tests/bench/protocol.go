package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal/postgres/floor"
	"github.com/quipu-journal/quipu/workers"
)

// protocol is a workload of the other activities: its flows, and how its jobs
// are driven. A step is an activity, or an element, that has ended.
type protocol struct {
	name  string
	flows []string
	steps int
	// single workloads are one message after another: they compare with W10 one
	// at a time, the others with W10 at saturation.
	single bool
	// register adds handlers besides noop.
	register func(reg *workers.Registry)
	// prepare brings the jobs to where the clock starts.
	prepare func(ctx context.Context, rt *quipu.Runtime) error
	drive   func(ctx context.Context, rt *quipu.Runtime) error
}

// startAndWait drives jobs of one flow from start to end.
func startAndWait(name string, jobs int, input any) func(context.Context, *quipu.Runtime) error {
	return func(ctx context.Context, rt *quipu.Runtime) error {
		started := make([]quipu.Job, jobs)
		for i := range started {
			job, err := rt.Start(ctx, name, fmt.Sprintf("%s-%d", name, i), input)
			if err != nil {
				return err
			}
			started[i] = job
		}
		for _, job := range started {
			if _, err := rt.Wait(ctx, job); err != nil {
				return err
			}
		}
		return nil
	}
}

// eachOf is one job that fans out to n elements.
func eachOf(n int) protocol {
	lines := make([]int, n)
	for i := range lines {
		lines[i] = i
	}
	return protocol{
		name: fmt.Sprintf("each of %d, one job", n), steps: n,
		flows: []string{`{flow: fan, version: "1", activities: {start: {type: trigger},
  items: {type: worker, topic: noop, each: start.output.lines, parallel: 1000, input: {n: "${ item }"}}}, transitions: {start: [items]}}`},
		drive: startAndWait("fan", 1, map[string]any{"lines": lines}),
	}
}

// waiting is n jobs that wait, and one signal to each of them.
func waiting(n int) protocol {
	p := protocol{
		name: fmt.Sprintf("%d jobs, a signal each", n), steps: n,
		flows: []string{`{flow: wait, version: "1", activities: {start: {type: trigger},
  hook: {type: hook, signal: go.on, key: "${ job.id }"}}, transitions: {start: [hook]}}`},
	}
	jobs := make([]quipu.Job, n)
	p.prepare = func(ctx context.Context, rt *quipu.Runtime) error {
		for i := range jobs {
			job, err := rt.Start(ctx, "wait", fmt.Sprintf("wait-%d", i), nil)
			if err != nil {
				return err
			}
			jobs[i] = job
		}
		return p.registered(ctx, rt, jobs)
	}
	p.drive = func(ctx context.Context, rt *quipu.Runtime) error {
		g, sending := errgroup.WithContext(ctx)
		g.SetLimit(200)
		for _, job := range jobs {
			g.Go(func() error {
				_, err := rt.Signal(sending, "go.on", job.Key, map[string]any{"ok": true})
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, job := range jobs {
			if _, err := rt.Wait(ctx, job); err != nil {
				return err
			}
		}
		return nil
	}
	return p
}

// registered waits until every job waits for its signal.
func (p *protocol) registered(ctx context.Context, rt *quipu.Runtime, jobs []quipu.Job) error {
	for _, job := range jobs {
		for {
			view, err := rt.Job(ctx, job)
			if err != nil {
				return err
			}
			if len(view.Waits) > 0 {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// cycles is one job that goes n times round: a pivot, a worker and a cycle in
// every pass.
func cycles(n int) protocol {
	return protocol{
		name: fmt.Sprintf("%d cycles, one job", n), steps: 3 * n, single: true,
		flows: []string{fmt.Sprintf(`{flow: loop%[1]d, version: "1", activities: {start: {type: trigger}, pivot: {type: hook, input: {n: 0}},
  step: {type: worker, topic: noop, input: {n: "${ pivot.output.n + 1 }"}},
  again: {type: cycle, to: pivot, max: 20000, input: {n: "${ step.output.n }"}}},
  transitions: {start: [pivot], pivot: [step], step: [{to: again, when: "step.output.n < %[1]d"}]}}`, n)},
		drive: startAndWait(fmt.Sprintf("loop%d", n), 1, nil),
	}
}

// trees is jobs that await ten jobs, each of which awaits ten.
func trees(n int) protocol {
	return protocol{
		name: fmt.Sprintf("%d trees of 1+10+100", n), steps: n * (10 + 100 + 100),
		flows: []string{
			awaiting("root", "branch"), awaiting("branch", "leaf"),
			`{flow: leaf, version: "1", activities: {start: {type: trigger}, step: {type: worker, topic: noop}}, transitions: {start: [step]}}`,
		},
		drive: startAndWait("root", n, nil),
	}
}

// awaiting is a flow that awaits ten jobs of another at once.
func awaiting(name, child string) string {
	var activities, to strings.Builder
	for i := range 10 {
		fmt.Fprintf(&activities, ", c%d: {type: await, flow: %s}", i, child)
		fmt.Fprintf(&to, ", c%d", i)
	}
	return fmt.Sprintf(`{flow: %s, version: "1", activities: {start: {type: trigger}%s}, transitions: {start: [%s]}}`,
		name, activities.String(), to.String()[2:])
}

// protocols runs the other activities and compares their cost with W10's.
func (b *bench) protocols(ctx context.Context, rates map[string]*measured, batched float64) error {
	if !b.wants("protocol") {
		return nil
	}
	scaled := func(n int) int { return max(1, int(float64(n)*b.scale)) }
	parts := []protocol{
		eachOf(min(10_000, scaled(10_000))), waiting(scaled(1000)), cycles(scaled(250)), cycles(scaled(10_000)), trees(scaled(20)),
	}
	fmt.Println()
	for _, p := range parts {
		m, err := b.drive(ctx, &p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		m.print()
		compare(m, &p, rates, batched)
	}
	return nil
}

func compare(m *measured, p *protocol, rates map[string]*measured, batched float64) {
	if batched > 0 {
		fmt.Printf("    %.3f × floor (b)", m.perSecond()/batched)
	}
	other := "W10 at saturation"
	if p.single {
		other = "W10 one at a time"
	}
	if w := rates[other]; w != nil {
		fmt.Printf("    %.2f × the time per step of %s, aim ≤ 1.5", w.perSecond()/m.perSecond(), other)
	}
	fmt.Println()
}

// drive runs one protocol workload in a space of its own.
func (b *bench) drive(ctx context.Context, p *protocol) (*measured, error) {
	b.n++
	space := fmt.Sprintf("bench%d", b.n)
	reg := workers.New()
	workers.HandleRaw(reg, "noop", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil })
	if p.register != nil {
		p.register(reg)
	}
	rt, err := quipu.Open(ctx, quipu.Config{
		Postgres: b.dsn, InProcess: b.nats, Space: space, Workers: reg, Concurrency: 1024,
	})
	if err != nil {
		return nil, err
	}
	closeOnce := sync.OnceFunc(rt.Close)
	defer closeOnce()
	warm, err := linear(10)
	if err != nil {
		return nil, err
	}
	flows := []*flow.Flow{warm}
	for _, text := range p.flows {
		f, err := flow.Parse("bench.yaml", []byte(strings.TrimPrefix(text, " ")))
		if err != nil {
			return nil, err
		}
		flows = append(flows, f)
	}
	if err := rt.Deploy(ctx, flows...); err != nil {
		return nil, err
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- rt.Run(work) }()
	m := &measured{name: p.name, jobs: 1, steps: p.steps}
	if err := b.clock(ctx, rt, p, m, space); err != nil {
		return nil, err
	}
	stop()
	if err := <-done; err != nil {
		return nil, err
	}
	closeOnce() // sessions report their row counts at their end
	m.wrote, err = floor.Wrote(ctx, b.dsn, "quipu_"+space, m.before)
	return m, err
}

// clock times the drive of a workload that is prepared and warm.
func (b *bench) clock(ctx context.Context, rt *quipu.Runtime, p *protocol, m *measured, space string) error {
	if err := b.warm(ctx, rt); err != nil {
		return err
	}
	if p.prepare != nil {
		if err := p.prepare(ctx, rt); err != nil {
			return err
		}
	}
	var err error
	if m.before, err = floor.Look(ctx, b.dsn, "quipu_"+space); err != nil {
		return err
	}
	resetPeak()
	cpu, began := b.cpu(), time.Now()
	if err := p.drive(ctx, rt); err != nil {
		return err
	}
	m.took, m.cpu, m.peak = time.Since(began), b.cpu()-cpu, memory("VmHWM")
	return nil
}
