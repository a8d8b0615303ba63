package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/tests/bench/floor"
)

// line is one line of the report.
type line struct {
	name   string
	figure float64
	unit   string
	beside string // what it is beside, and what it is to reach
}

func (b *bench) print(l line) {
	_, _ = fmt.Fprintf(b.out, "%-48s %8s %-8s %s\n", l.name, figure(l.figure), l.unit, l.beside)
}

// figure has three digits at least.
func figure(f float64) string {
	switch {
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	default:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
}

// report prints what a work took: the rate, or with one caller the time of a job; and
// what a step costs.
func (b *bench) report(name string, r *result, beside string) {
	l := line{name, r.perSecond(), "steps/s", beside}
	switch {
	case r.callers == 1 && r.jobs > 1:
		l.figure, l.unit = millis(r.laps.quantile(0.5)), "ms"
	case r.steps == 1:
		l.unit = "jobs/s"
	}
	b.print(l)
	steps, others := float64(r.jobs*r.steps), ""
	if b.pg != nil && r.others > 0.2 { // nobody counts the CPU of a Postgres elsewhere
		others = fmt.Sprintf("; OTHERS HAD %.1f CORES", r.others)
	}
	_, _ = fmt.Fprintf(b.out, "    a job: p50 %s ms, p99 %s ms; a step: WAL %.0f B, %.1f rows, CPU %s ms; peak %.0f MiB%s\n",
		figure(millis(r.laps.quantile(0.5))), figure(millis(r.laps.quantile(0.99))),
		float64(r.wrote.wal)/steps, float64(r.wrote.rows)/steps, figure(millis(r.cpu)/steps), r.peak, others)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// times says how many times one rate is another, if both were measured.
func times(rate, other float64, name string) string {
	if rate == 0 || other == 0 {
		return ""
	}
	return fmt.Sprintf("%s × %s; ", figure(rate/other), name)
}

// machine says on what a run is.
func machine(ctx context.Context, dsn string) (string, error) {
	var version, settings string
	err := sql(ctx, dsn, `SELECT split_part(current_setting('server_version'), ' ', 1),
		'fsync ' || current_setting('fsync') || ', shared_buffers ' || current_setting('shared_buffers')`, &version, &settings)
	if err != nil {
		return "", err
	}
	model := runtime.GOARCH
	info, _ := os.ReadFile("/proc/cpuinfo")
	for l := range strings.Lines(string(info)) {
		if name, of, _ := strings.Cut(l, ":"); strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(of)
			break
		}
	}
	return fmt.Sprintf("%d × %s, PostgreSQL %s (%s)", runtime.NumCPU(), model, version, settings), nil
}

// floors measures what the database alone costs.
func (b *bench) floors(ctx context.Context) error {
	space := "f" + b.space()
	defer func() { _ = b.drop(ctx, space) }()
	st, err := postgres.Open(ctx, postgres.Config{DSN: b.dsn, Space: space, Migrating: true})
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Migrate(ctx); err != nil {
		return err
	}
	for _, f := range []struct {
		name                string
		conns, batch, steps int
		into                *float64
	}{
		{"floor (a): a transaction a step, 32 connections", 32, 1, 40_000, &b.floor.perStep},
		{"floor (b): batches of 100, 2 connections", 2, 100, 100_000, &b.floor.batched},
		{"floor (c): a transaction a step, one connection", 1, 1, 2_000, &b.floor.single},
	} {
		r, err := floor.Write(ctx, floor.Run{
			DSN: b.dsn, Schema: schema(space), Conns: f.conns, Batch: f.batch, Steps: b.scaled(f.steps),
		})
		if err != nil {
			return err
		}
		*f.into = r.PerSecond()
		b.print(line{f.name, r.PerSecond(), "steps/s", ""})
	}
	return nil
}
