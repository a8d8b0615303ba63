package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/workers"
)

// usual are the callers of a loop, as users are: one, many, more than one batch holds.
var usual = []int{1, 200, 1000}

// peer is the aim of lines that are set beside a peer on the same Postgres.
func peer(aim string) string { return "aim " + aim + " a peer's" }

// aimOf is the aim of W1 and W10.
func aimOf(callers int) string {
	switch callers {
	case 1:
		return peer("≤ 1.0 ×, p99 ≤ 1.5 ×,")
	case 200:
		return peer("≥ 5 ×")
	default:
		return ""
	}
}

func title(name string, callers int) string {
	if callers == 1 {
		return name + ", 1 caller"
	}
	return fmt.Sprintf("%s, %d callers", name, callers)
}

// enough jobs for the callers of a loop.
func (b *bench) enough(callers int) int { return max(2, b.scaled(min(max(400, 50*callers), 10_000))) }

// w1s are jobs of one step.
func (b *bench) w1s(ctx context.Context) error {
	for _, callers := range usual {
		r, err := b.drive(ctx, work{
			name: "W1", flows: []*flow.Flow{linear(1)}, flow: "w1", steps: 1, callers: callers, jobs: 2 * b.enough(callers),
		})
		if err != nil {
			return err
		}
		b.report(title("W1", callers), r, aimOf(callers))
	}
	return nil
}

// w10With measures jobs of ten steps, once for so many callers, and says so.
func (b *bench) w10With(ctx context.Context, callers int) (*result, error) {
	if r := b.w10[callers]; r != nil {
		return r, nil
	}
	r, err := b.drive(ctx, work{name: "W10", callers: callers, jobs: b.enough(callers)})
	if err != nil {
		return nil, err
	}
	b.w10[callers] = r
	beside := times(r.perSecond(), b.floor.batched, "floor (b)")
	if callers == 1 {
		beside = times(b.floor.single*r.perStep().Seconds(), 1, "the time of floor (c)")
	}
	b.report(title("W10", callers), r, beside+aimOf(callers))
	return r, nil
}

// w10s are jobs of ten steps, and the same without what makes them fast.
func (b *bench) w10s(ctx context.Context) error {
	for _, callers := range usual {
		if _, err := b.w10With(ctx, callers); err != nil {
			return err
		}
	}
	for _, w := range []struct {
		name   string
		config func(*quipu.Config)
		how    below.Mode
		beside string
	}{
		{"W10, 200 callers, all by JetStream", nil, below.Mode{NoLocal: true}, peer("≥ 3 ×")},
		{"W10, 200 callers, no hot states", func(c *quipu.Config) { c.HotBytes = -1 }, below.Mode{}, ""},
	} {
		r, err := b.drive(ctx, work{name: w.name, how: w.how, callers: 200, jobs: b.enough(200) / 2, config: w.config})
		if err != nil {
			return err
		}
		b.report(w.name, r, times(r.perSecond(), b.w10[200].perSecond(), "W10")+w.beside)
	}
	return nil
}

// early are jobs of steps of early handlers, and the same in a process in which nothing is early.
func (b *bench) early(ctx context.Context) error {
	flows := []*flow.Flow{inLine("e1", "early", 1), inLine("e10", "early", 10), fanOf("efan", "early", 100)}
	for _, w := range []work{
		{name: "ten early steps", flow: "e10", steps: 10, callers: 1, jobs: b.enough(1)},
		{name: "ten early steps", flow: "e10", steps: 10, callers: 20, jobs: b.enough(20)},
		{name: "ten early steps", flow: "e10", steps: 10, callers: 200, jobs: b.enough(200)},
		{name: "one early step", flow: "e1", steps: 1, callers: 1, jobs: b.enough(1)},
		{name: "fan of 100 early steps", flow: "efan", steps: 100, callers: 10, jobs: b.scaled(500)},
	} {
		w.flows = flows
		at := w
		at.how = below.Mode{NoEarly: true}
		without, err := b.drive(ctx, at)
		if err != nil {
			return err
		}
		r, err := b.drive(ctx, w)
		if err != nil {
			return err
		}
		b.report(title(w.name+", nothing early", w.callers), without, "")
		b.report(title(w.name, w.callers), r, times(r.perSecond(), without.perSecond(), "without"))
	}
	return nil
}

// fan is jobs of a hundred activities at once.
func (b *bench) fan(ctx context.Context) error {
	r, err := b.drive(ctx,
		work{name: "fan", flows: []*flow.Flow{fanOf("fan", "noop", 100)}, flow: "fan", steps: 100, callers: 10, jobs: b.scaled(500)})
	if err == nil {
		b.report("fan of 100 activities, 10 callers", r, peer("≥ 5 ×"))
	}
	return err
}

// calls are those of one durable function.
const calls = 10

// functions are jobs of one durable function: what its calls cost is what remains
// beside the same function without calls.
func (b *bench) functions(ctx context.Context) error {
	if err := sql(ctx, b.dsn, "CREATE TABLE IF NOT EXISTS bench_rows (job text, n int)"); err != nil {
		return err
	}
	answer := func(context.Context) (map[string]any, error) { return order, nil }
	do := func(class ...effects.Option) func(context.Context, string) error {
		return func(ctx context.Context, key string) error {
			_, err := effects.Do(ctx, "call", answer, append(class, effects.WithKey(key))...)
			return err
		}
	}
	for _, callers := range []int{1, 200} {
		jobs := max(2, b.enough(callers)/2)
		none, err := b.function(ctx, callers, jobs, nil)
		if err != nil {
			return err
		}
		b.report(title("function without calls", callers), none, "")
		for _, k := range []struct {
			name, beside string
			call         func(ctx context.Context, key string) error
		}{
			{"Guarded", peer("≥ 4 ×"), do()},
			{"Idempotent", peer("≥ 4 ×"), do(effects.Idempotent)},
			{"Tx", "", insertRow},
		} {
			r, err := b.function(ctx, callers, jobs, k.call)
			if err != nil {
				return err
			}
			beside := fmt.Sprintf("%.2f commits a call; ", float64(r.wrote.commits-none.wrote.commits)/float64(jobs*calls))
			if callers > 1 {
				beside += k.beside
			}
			b.report(title("function of 10 "+k.name+" calls", callers), r, beside)
		}
	}
	return nil
}

// insertRow is a Tx effect.
func insertRow(ctx context.Context, key string) error {
	_, err := quipu.DoTx(ctx, "row", func(ctx context.Context, tx quipu.EffectTx) (any, error) {
		_, err := tx.Exec(ctx, "INSERT INTO bench_rows VALUES ($1, $2::text::int)", workers.Info(ctx).Key, key)
		return nil, err
	}, effects.WithKey(key))
	return err
}

// function runs jobs of a durable function that makes a call ten times, or nothing.
func (b *bench) function(
	ctx context.Context, callers, jobs int, call func(ctx context.Context, key string) error,
) (*result, error) {
	w := work{
		name: "function", flows: []*flow.Flow{one("fn", "{type: worker, topic: fn}")}, flow: "fn",
		steps: calls, callers: callers, jobs: jobs,
		handlers: func(reg *workers.Registry) {
			workers.HandleDurable(reg, "fn", func(ctx context.Context, in any) (any, error) {
				for n := 0; call != nil && n < calls; n++ {
					if err := call(ctx, fmt.Sprint(n)); err != nil {
						return nil, err
					}
				}
				return in, nil
			})
		},
	}
	if call == nil {
		w.steps = 1
	}
	return b.drive(ctx, w)
}

// besideW10 drives a work and sets its rate beside that of W10.
func (b *bench) besideW10(ctx context.Context, w work) error {
	w10, err := b.w10With(ctx, 200)
	if err != nil {
		return err
	}
	r, err := b.drive(ctx, w)
	if err == nil {
		b.report(w.name, r, times(r.perSecond(), w10.perSecond(), "W10, 200 callers")+"aim ≥ 0.5 ×")
	}
	return err
}

// signals are signals to jobs that wait for them.
func (b *bench) signals(ctx context.Context) error {
	jobs := make([]quipu.Job, b.scaled(5000))
	return b.besideW10(ctx, work{
		name: "signals to waiting jobs, 200 callers", flow: "wait", steps: 1, callers: 200, jobs: len(jobs),
		flows: []*flow.Flow{one("wait", `{type: hook, signal: go.on, key: "${ job.id }"}`)},
		prepare: func(ctx context.Context, rt *quipu.Runtime) error {
			_, err := closed(ctx, 200, upTo(len(jobs)), func(ctx context.Context, n int) (err error) {
				jobs[n], err = rt.Start(ctx, "wait", fmt.Sprintf("wait-%d", n), nil)
				return err
			})
			if err != nil {
				return err
			}
			return waiting(ctx, rt, jobs)
		},
		one: func(ctx context.Context, rt *quipu.Runtime, n int) error {
			if _, err := rt.Signal(ctx, "go.on", jobs[n].Key, order); err != nil {
				return err
			}
			_, err := rt.Wait(ctx, jobs[n])
			return err
		},
	})
}

// waiting is back when every job waits for its signal.
func waiting(ctx context.Context, rt *quipu.Runtime, jobs []quipu.Job) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for _, job := range jobs {
		g.Go(func() error {
			for {
				view, err := below.Of(rt).Job(ctx, job.ID)
				if err != nil || len(view.Waits) > 0 {
					return err
				}
				if err := sleep(ctx, 10*time.Millisecond); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// trees are jobs that await ten jobs, each of which awaits ten.
func (b *bench) trees(ctx context.Context) error {
	return b.besideW10(ctx, work{
		name: "trees of 1 + 10 + 100 awaits, 20 callers", flow: "root", steps: 10 + 100 + 100, callers: 20, jobs: b.scaled(100),
		flows: []*flow.Flow{one("leaf", "{type: worker, topic: noop}"), awaiting("branch", "leaf"), awaiting("root", "branch")},
	})
}

// long is one job of many activities. Each step comes after another, so it stands beside
// W10 with one caller.
func (b *bench) long(ctx context.Context) error {
	w10, err := b.w10With(ctx, 1)
	if err != nil {
		return err
	}
	n := min(10_000, b.scaled(10_000))
	f := linear(n)
	r, err := b.drive(ctx, work{name: "long", flows: []*flow.Flow{f}, flow: f.Name(), steps: n, callers: 1, jobs: 1})
	if err == nil {
		b.report(fmt.Sprintf("one job of %d steps", n), r, fmt.Sprintf("%.2f × the time of a step of W10, 1 caller; aim ≤ 1.3 ×", float64(r.perStep())/float64(w10.perStep())))
	}
	return err
}
