package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/flow"
)

// filled is a space with jobs of one step in its tables, and how many.
type filled struct {
	*bench
	space string
	jobs  int
}

// fill brings a space to so many jobs, as they are when the vacuum has been by, and makes
// a checkpoint.
func (f *filled) fill(ctx context.Context, jobs int) error {
	if more := jobs - f.jobs; more > 0 {
		w := work{
			name: "fill", flows: []*flow.Flow{linear(1)}, flow: "w1", steps: 1, callers: 1000, jobs: more, space: f.space,
			uncounted: true,
		}
		if _, err := f.drive(ctx, w); err != nil {
			return err
		}
		f.jobs = jobs
		// The first visit of the vacuum writes each page to the WAL, for its hint bits
		// under checksums. It is not to fall into whichever round it likes.
		if err := sql(ctx, f.dsn, "VACUUM (ANALYZE)"); err != nil {
			return err
		}
	}
	return f.checkpoint(ctx)
}

func (b *bench) checkpoint(ctx context.Context) error { return sql(ctx, b.dsn, "CHECKPOINT") }

// w10In measures jobs of ten steps in the space.
func (f *filled) w10In(ctx context.Context, jobs int) (*result, error) {
	r, err := f.drive(ctx, work{name: "W10", callers: 200, jobs: jobs, space: f.space})
	f.jobs += jobs
	return r, err
}

// steady measures with jobs in the tables, a checkpoint before, and autovacuum on.
func (b *bench) steady(ctx context.Context) (err error) {
	f := &filled{bench: b, space: b.space()}
	defer func() { err = errors.Join(err, b.drop(ctx, f.space)) }()
	stored := b.scaled(200_000)
	if err := f.fill(ctx, stored); err != nil {
		return err
	}
	if err := b.besideNone(ctx, f, stored); err != nil {
		return err
	}
	return f.rounds(ctx)
}

// besideNone sets the full space beside empty ones, in turn.
func (b *bench) besideNone(ctx context.Context, f *filled, stored int) error {
	var none, full, wal []float64
	for range b.scaled(3) {
		r, err := b.drive(ctx, work{name: "W10", callers: 200, jobs: b.scaled(4000)})
		if err != nil {
			return err
		}
		none = append(none, r.perSecond())
		if err := b.checkpoint(ctx); err != nil {
			return err
		}
		if r, err = f.w10In(ctx, b.scaled(4000)); err != nil {
			return err
		}
		full, wal = append(full, r.perSecond()), append(wal, r.walPerJob()/1000)
	}
	name := fmt.Sprintf("%d jobs stored", stored)
	b.print(line{"W10, 200 callers, " + name, median(full), "steps/s", peer("≥ 5 ×")})
	b.print(line{"W10, WAL per job, " + name, median(wal), "kB", "aim ≤ 14 kB"})
	b.print(line{"W10, " + name + " ÷ none", median(full) / median(none), "×", figure(median(none)) + " steps/s with none; aim ≥ 0.9"})
	return nil
}

// rounds measures what checkpoints cost those who come after them.
func (f *filled) rounds(ctx context.Context) error {
	var rates, wal []float64
	for n := range max(2, min(10, f.scaled(10))) {
		if n%2 == 0 {
			if err := f.checkpoint(ctx); err != nil {
				return err
			}
		}
		r, err := f.w10In(ctx, f.scaled(5000))
		if err != nil {
			return err
		}
		rates, wal = append(rates, r.perSecond()), append(wal, r.walPerJob()/1000)
	}
	name := fmt.Sprintf("%d rounds, a checkpoint every two", len(rates))
	f.print(line{name + ": slowest ÷ median", slices.Min(rates) / median(rates), "×", "aim ≥ 0.8"})
	f.print(line{
		name + ": WAL, most ÷ least", slices.Max(wal) / slices.Min(wal), "×", fmt.Sprintf("%s to %s kB a job; aim ≤ 1.3", figure(slices.Min(wal)), figure(slices.Max(wal))),
	})
	return nil
}
