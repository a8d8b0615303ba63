package quiputest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/soak"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// patrol is a long durable function: it looks every hour, reports every seventh time, and
// asks for orders every ninth. In the end it fails, and is undone.
func patrol(bank *Receiver, tops *atomic.Int64) func(*workers.Registry) {
	apply := func(ctx context.Context) error { bank.Apply(ctx, effects.Key(ctx)); return nil }
	note := func(ctx context.Context, name string, n int) (int, error) {
		return effects.Do(ctx, name, func(ctx context.Context) (int, error) { return n * n, apply(ctx) },
			effects.Idempotent, effects.WithKey(fmt.Sprint(name, n)))
	}
	return func(reg *workers.Registry) {
		workers.HandleDurable(reg, "patrol", func(ctx context.Context, rounds int) (sum int, err error) {
			tops.Add(1)
			for n := range rounds {
				err = errors.Join(err, workers.Sleep(ctx, fmt.Sprint("round ", n), time.Hour))
				if n%7 == 0 {
					v, failed := note(ctx, "report", n)
					sum, err = sum+v, errors.Join(err, failed)
				}
				if n%9 == 0 {
					_, _, failed := workers.First(ctx,
						func(ctx context.Context) (string, error) {
							return workers.Await[string](ctx, "orders", 0, workers.As(fmt.Sprint("orders ", n)))
						},
						func(ctx context.Context) (string, error) {
							return "", workers.Sleep(ctx, fmt.Sprint("no orders ", n), time.Minute)
						})
					err = errors.Join(err, failed)
				}
			}
			err = errors.Join(err, workers.Compensate(ctx, "retreat", apply))
			_, failed := note(ctx, "advance", rounds)
			if err = errors.Join(err, failed, workers.Sleep(ctx, "last", time.Hour)); err != nil {
				return 0, err
			}
			return 0, workers.Fail(402, fmt.Sprint("it comes to ", sum))
		})
	}
}

// times are those in entries, in microseconds since 1970, and hashes over them.
var times = regexp.MustCompile(`"?94[67][0-9]{12}"?|"h":"[^"]{43}"`)

// E12: the journal has the same entries, in the same bytes but for their times, whether
// functions go on where they stand or run from their tops.
func TestE12StandingHasTheSameJournal(t *testing.T) {
	t.Parallel()
	play := func(standing int) (entries []string, runs int64) {
		var tops atomic.Int64
		Run(t, func(t testing.TB, w *World) {
			w.Serve(patrol(w.Receiver("bank"), &tops))
			job := w.Call("patrol", "p-1", 100)
			w.Advance(50*time.Hour + time.Second)
			w.Signal("orders", "p-1", "go on")
			job.Fails(402)
			w.Settle()
			require.NoError(t, w.audit(func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
				for r, err := range records {
					if err != nil {
						return err
					}
					entries = append(entries, fmt.Sprint(r.Seq, " ", times.ReplaceAllString(string(r.Body), "T")))
				}
				return nil
			}))
		}, func(c *config) { c.standing = standing })
		return entries, tops.Load()
	}
	want, all := play(0)
	got, tops := play(maxStanding)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
	require.Greater(t, all, int64(100))
	require.Less(t, tops, int64(80))
}

// A process may die at any boundary of a function that stands, and another goes on from
// the record.
func TestE12CrashOfAStandingFunction(t *testing.T) {
	t.Parallel()
	CrashEverywhere(t, func(t testing.TB, w *World) {
		var tops atomic.Int64
		w.Serve(patrol(w.Receiver("bank"), &tops))
		w.Call("patrol", "p-1", 50).Fails(402)
		w.Settle()
	}, Boundaries(soak.Times(8, 60)), Seed(7))
}

// Lost, doubled and reordered messages change nothing for it either: what it does outside is
// applied once (T1, C9).
func TestE12StandingOnALossyBus(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		Run(t, func(t testing.TB, w *World) {
			var tops atomic.Int64
			w.Serve(patrol(w.Receiver("bank"), &tops))
			w.Call("patrol", "p-1", 90).Fails(402)
			w.Settle()
			_, applied := w.Receiver("bank").Total()
			require.Equal(t, 13+1+1, applied, "the reports, the advance and the retreat")
		}, Lossy(seed))
	}
}

// A job that is interrupted while its function stands leaves nothing behind when its
// process ends, and a new process runs what stood in the old one from the top.
func TestE12StandingEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	Run(t, func(t testing.TB, w *World) {
		var tops, left atomic.Int64
		serve := func(reg *workers.Registry) {
			workers.HandleDurable(reg, "wait", func(ctx context.Context, _ int) (int, error) {
				tops.Add(1)
				defer func() { left.Add(1) }()
				return hourly(ctx, 60)
			})
		}
		w.Serve(serve)
		gone, job := w.Call("wait", "w-1", 0), w.Call("wait", "w-2", 0)
		w.Advance(50*time.Hour + 30*time.Minute)
		synctest.Wait()
		require.Equal(t, left.Load()+2, tops.Load(), "two stand")
		before := tops.Load()
		gone.Interrupt(Interrupt{})
		gone.Fails(410)
		w.Settle()
		require.Equal(t, left.Load()+2, tops.Load())
		w.Stop()
		synctest.Wait()
		require.Equal(t, before, tops.Load())
		require.Equal(t, left.Load(), tops.Load())
		w.Serve(serve)
		w.Advance(time.Hour)
		require.Equal(t, before+1, tops.Load())
		job.Output(nil)
	})
}

// E15: a function that takes another path than before is found, also in its long run.
func TestE15ALongFunctionThatDiffersIsFound(t *testing.T) {
	t.Parallel()
	Run(t, func(t testing.TB, w *World) {
		var now int // what a function must not use: a variable of the process
		w.Serve(func(reg *workers.Registry) {
			workers.HandleDurable(reg, "drift", func(ctx context.Context, _ int) (int, error) {
				for n := range 100 {
					now++
					name := fmt.Sprint("sleep ", n)
					if n == 30 {
						name = fmt.Sprint("sleep at ", now)
					}
					if err := workers.Sleep(ctx, name, time.Hour); err != nil {
						return 0, err
					}
				}
				return 0, nil
			})
		})
		letter := w.Call("drift", "d-1", 0).DeadLetter()
		require.Equal(t, wire.ClassNondeterminism, letter.Class())
	})
}
