package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/journal/postgres/floor"
)

// all runs every part and prints as it goes.
func (b *bench) all(ctx context.Context) error {
	var f floors
	if b.wants("floors") {
		var err error
		if f, err = b.floors(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\n%-22s %9s %9s %9s %8s %8s %9s %9s\n", "", "steps/s", "p50/step", "p99/step", "WAL/step", "rows", "CPU/1000", "peak MiB")
	parts := []struct {
		part, name  string
		jobs, steps int
		pace        pace
		without     func(*quipu.Config)
	}{
		{"w1", "W1 at saturation", 10_000, 1, together, nil},
		{"w10", "W10 at saturation", 4_000, 10, together, nil},
		{"w10", "W10 all by JetStream", 2_000, 10, together, func(c *quipu.Config) { c.NoLocal = true }},
		{"w10", "W10 no hot states", 2_000, 10, together, func(c *quipu.Config) { c.HotBytes = -1 }},
		{"w10", "W10 one at a time", 40, 10, oneByOne, nil},
		{"w100", "W100 one job", 5, 100, oneByOne, nil},
	}
	rates := map[string]*measured{}
	for _, p := range parts {
		if !b.wants(p.part) {
			continue
		}
		jobs := max(1, int(float64(p.jobs)*b.scale))
		b.without = p.without
		var m *measured
		run := func() (err error) { m, err = b.workload(ctx, p.name, jobs, p.steps, p.pace); return err }
		do := run
		if p.name == "W10 at saturation" || b.only == "w100" {
			do = func() error { return b.profiled(run) }
		}
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		rates[p.name] = m
		m.print()
	}
	b.without = nil
	if m := rates["W10 at saturation"]; m != nil && f.perStep > 0 {
		fmt.Printf("\nW10 at saturation: %.2f × floor (a), aim ≥ 0.60; %.2f × floor (b), aim ≥ 0.10\n",
			m.perSecond()/f.perStep, m.perSecond()/f.batched)
	}
	if m := rates["W10 one at a time"]; m != nil {
		fmt.Printf("W10 one at a time: p50 %s per step, aim ≤ 4 ms", round(m.quantile(0.5)))
		if f.single > 0 {
			fmt.Printf("; %.2f × floor (c)", m.quantile(0.5).Seconds()*f.single)
		}
		fmt.Println()
	}
	if err := b.txEffects(ctx); err != nil {
		return err
	}
	if err := b.functions(ctx); err != nil {
		return err
	}
	if err := b.protocols(ctx, rates, f.batched); err != nil {
		return err
	}
	if err := b.kills(ctx); err != nil {
		return err
	}
	return b.large(ctx, rates["W10 one at a time"])
}

func (b *bench) wants(part string) bool { return b.only == "" || b.only == part }

// large runs the long job and the backlog.
func (b *bench) large(ctx context.Context, w10 *measured) error {
	if b.long > 0 && b.wants("long") {
		m, err := b.workload(ctx, fmt.Sprintf("W%d one job", b.long), 1, b.long, oneByOne)
		if err != nil {
			return err
		}
		m.print()
		if w10 != nil {
			fmt.Printf("one job of %d steps: %.2f × the p50 per step of W10, aim ≤ 1.3\n",
				b.long, float64(m.quantile(0.5))/float64(w10.quantile(0.5)))
		}
	}
	if b.backlog > 0 && b.wants("backlog") {
		m, err := b.workload(ctx, fmt.Sprintf("backlog of %d jobs", b.backlog), b.backlog, 1, preloaded)
		if err != nil {
			return err
		}
		m.print()
		fmt.Printf("memory at each tenth of the backlog, MiB: %.0f\n", m.memories)
	}
	return nil
}

// floors are the rates of the floors, steps/s.
type floors struct{ perStep, batched, single float64 }

func (b *bench) floors(ctx context.Context) (out floors, err error) {
	st, err := postgres.Open(ctx, postgres.Config{DSN: b.dsn, Space: "floor", Migrating: true})
	if err != nil {
		return out, err
	}
	defer st.Close()
	if err := st.Migrate(ctx); err != nil {
		return out, err
	}
	for _, f := range []struct {
		name         string
		conns, batch int
		steps        int
		into         *float64
	}{
		{"floor (a): one transaction per step, 32 connections", 32, 1, 40_000, &out.perStep},
		{"floor (b): batches of 100, 2 connections", 2, 100, 100_000, &out.batched},
		{"floor (c): one transaction per step, one connection", 1, 1, 2_000, &out.single},
	} {
		r, err := floor.Write(ctx, floor.Run{
			DSN: b.dsn, Schema: "quipu_floor", Conns: f.conns, Batch: f.batch, Steps: int(float64(f.steps) * b.scale),
		})
		if err != nil {
			return out, err
		}
		*f.into = r.PerSecond()
		fmt.Printf("%-52s %8.0f steps/s\n", f.name, r.PerSecond())
	}
	return out, nil
}

func (m *measured) print() {
	steps := float64(m.jobs * m.steps)
	fmt.Printf("%-22s %9.0f %9s %9s %8.0f %8.1f %9s %9.0f\n", m.name, m.perSecond(), round(m.quantile(0.5)), round(m.quantile(0.99)),
		float64(m.wrote.WAL)/steps, float64(m.wrote.Rows)/steps, round(m.cpu*1000/time.Duration(m.jobs*m.steps)), m.peak)
}

func round(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(10 * time.Microsecond).String()
}
