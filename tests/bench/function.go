package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// functionCalls are the calls of one durable function.
const functionCalls = 10

// functions runs jobs of one durable function with ten calls each: Idempotent
// ones to a receiver that does nothing, and Tx ones that write a row; one job at a
// time, and as many as there is room for. What the calls cost is what remains
// beside the same function without calls.
func (b *bench) functions(ctx context.Context) error {
	if !b.wants("function") {
		return nil
	}
	pool, err := b.rowsTable(ctx)
	if err != nil {
		return err
	}
	pool.Close()
	fmt.Println()
	kinds := []struct {
		name string
		call func(ctx context.Context, n int) error
		aim  float64 // commits per call, one job at a time
	}{
		{"Idempotent", func(ctx context.Context, n int) error {
			_, err := effects.Do(ctx, "call", func(context.Context) (int, error) { return n, nil },
				effects.Idempotent, effects.WithKey(fmt.Sprint(n)))
			return err
		}, 2},
		{"Tx", func(ctx context.Context, n int) error {
			_, err := quipu.DoTx(ctx, "row", func(ctx context.Context, tx quipu.EffectTx) (any, error) {
				_, err := tx.Exec(ctx, insertRow, workers.Info(ctx).Key, n)
				return nil, err
			}, effects.WithKey(fmt.Sprint(n)))
			return err
		}, 1},
	}
	for _, single := range []bool{true, false} {
		jobs, when := max(1, int(1000*b.scale)), "at saturation"
		if single {
			jobs, when = max(1, int(200*b.scale)), "one job at a time"
		}
		none, _, err := b.function(ctx, "no calls, "+when, jobs, single, nil)
		if err != nil {
			return err
		}
		for _, k := range kinds {
			m, laps, err := b.function(ctx, "10 "+k.name+" calls, "+when, jobs, single, k.call)
			if err != nil {
				return err
			}
			calls := float64(jobs * functionCalls)
			slices.Sort(laps)
			aim := "< 0.5"
			if single || k.aim == 1 { // one commits with the row
				aim = fmt.Sprintf("≤ %.0f", k.aim)
			}
			fmt.Printf("    %.0f jobs/s, p50 per call %.2f ms, beside the function: %.2f commits (aim %s) and %.1f rows per call\n",
				float64(jobs)/m.took.Seconds(), float64(laps[len(laps)/2].Microseconds())/1000,
				float64(m.wrote.Commits-none.wrote.Commits)/calls, aim, float64(m.wrote.Rows-none.wrote.Rows)/calls)
		}
	}
	return nil
}

// function runs jobs of one durable function; laps are the times of its calls.
func (b *bench) function(ctx context.Context, name string, jobs int, single bool, call func(ctx context.Context, n int) error) (m *measured, laps []time.Duration, err error) {
	var mu sync.Mutex
	start := startAndWait("fn", jobs, nil)
	if single {
		start = oneAfterAnother("fn", jobs)
	}
	steps := jobs
	if call != nil {
		steps = jobs * functionCalls
	}
	m, err = b.drive(ctx, &protocol{
		name: name, steps: steps, single: single,
		flows: []string{`{flow: fn, version: "1", activities: {start: {type: trigger}, fn: {type: worker, topic: fn}}, transitions: {start: [fn]}}`},
		register: func(reg *workers.Registry) {
			workers.HandleDurable(reg, "fn", func(ctx context.Context, _ any) (int, error) {
				if call == nil {
					return 0, nil
				}
				for n := range functionCalls {
					began := time.Now()
					if err := call(ctx, n); err != nil {
						return 0, err
					}
					mu.Lock()
					laps = append(laps, time.Since(began))
					mu.Unlock()
				}
				return functionCalls, nil
			})
		},
		drive: start,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	m.print()
	return m, laps, nil
}

// oneAfterAnother drives jobs of one flow, the next when the last has ended.
func oneAfterAnother(name string, jobs int) func(context.Context, *quipu.Runtime) error {
	return func(ctx context.Context, rt *quipu.Runtime) error {
		for i := range jobs {
			job, err := rt.Start(ctx, name, fmt.Sprintf("%s-%d", name, i), nil)
			if err != nil {
				return err
			}
			if _, err := rt.Wait(ctx, job); err != nil {
				return err
			}
		}
		return nil
	}
}
