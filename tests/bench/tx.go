package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// txCalls are the Tx effects of one job.
const txCalls = 10

const insertRow = "INSERT INTO bench_rows VALUES ($1, $2)"

// txEffects runs jobs whose handler writes ten rows of its own: each in a Tx
// effect, and each in a commit by itself, which nobody repeats rightly. The same
// number of connections write them. A step is one such row.
func (b *bench) txEffects(ctx context.Context) error {
	if !b.wants("tx") {
		return nil
	}
	jobs := max(1, int(1000*b.scale))
	pool, err := b.rowsTable(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	fmt.Println()
	p, err := b.rows(ctx, "10 rows, no effects", jobs, func(ctx context.Context, n int) error {
		_, err := pool.Exec(ctx, insertRow, workers.Info(ctx).Key, n)
		return err
	}, pool.Close)
	if err != nil {
		return err
	}
	x, err := b.rows(ctx, "10 DoTx per job", jobs, func(ctx context.Context, n int) error {
		_, err := quipu.DoTx(ctx, "row", func(ctx context.Context, tx quipu.EffectTx) (any, error) {
			_, err := tx.Exec(ctx, insertRow, workers.Info(ctx).Key, n)
			return nil, err
		}, effects.WithKey(fmt.Sprint(n)))
		return err
	}, func() {})
	if err != nil {
		return err
	}
	calls := float64(x.steps)
	fmt.Printf("a Tx effect: %+.2f commits and %.1f of our rows beside a plain commit, %.2f × its time\n",
		float64(x.wrote.Commits-p.wrote.Commits)/calls, float64(x.wrote.Rows-p.wrote.Rows)/calls, x.took.Seconds()/p.took.Seconds())
	return nil
}

// rowsTable makes the user's table, and a pool as large as that of Tx effects.
func (b *bench) rowsTable(ctx context.Context) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(b.dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 8 // as quipu.Config.MaxConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS bench_rows (job text, n int)"); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// rows runs jobs that write ten rows each. closed ends the writer's sessions,
// which report what they did at their end.
func (b *bench) rows(ctx context.Context, name string, jobs int, write func(ctx context.Context, n int) error, closed func()) (*measured, error) {
	start := startAndWait("rows", jobs, nil)
	m, err := b.drive(ctx, &protocol{
		name: name, steps: jobs * txCalls,
		flows: []string{`{flow: rows, version: "1", activities: {start: {type: trigger},
  write: {type: worker, topic: write}}, transitions: {start: [write]}}`},
		register: func(reg *workers.Registry) {
			workers.Handle(reg, "write", func(ctx context.Context, _ any) (string, error) {
				for n := range txCalls {
					if err := write(ctx, n); err != nil {
						return "", err
					}
				}
				return "", nil
			})
		},
		drive: func(ctx context.Context, rt *quipu.Runtime) error {
			err := start(ctx, rt)
			closed()
			return err
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m.print()
	fmt.Printf("    %.2f commits per call\n", float64(m.wrote.Commits)/float64(m.steps))
	return m, nil
}
