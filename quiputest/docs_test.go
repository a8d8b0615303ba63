package quiputest_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// The Go of docs/testing.md is in this file, word for word.

type Invoice struct {
	Cents int `json:"cents"`
}

type Bank interface {
	Charge(ctx context.Context, key string, cents int) (receipt string, err error)
}

// register adds the handlers, in a worker process and in tests.
func register(bank Bank) func(*workers.Registry) {
	return func(reg *workers.Registry) {
		workers.Handle(reg, "invoice.charge", func(ctx context.Context, in Invoice) (string, error) {
			return effects.Do(ctx, "charge", func(ctx context.Context) (string, error) {
				return bank.Charge(ctx, effects.Key(ctx), in.Cents)
			}, effects.Idempotent)
		})
	}
}

// fakeBank applies a charge once under a key, as the real one does.
type fakeBank struct{ *quiputest.Receiver }

func (b fakeBank) Charge(ctx context.Context, key string, cents int) (string, error) {
	b.Apply(ctx, key)
	return fmt.Sprintf("receipt of %d cents", cents), nil
}

func TestAnInvoiceIsChargedAfter30Days(t *testing.T) {
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployFiles("testdata/invoice.yaml")
		w.Serve(register(fakeBank{w.Receiver("bank")}))

		job := w.Start("invoice", "inv-7", Invoice{Cents: 1250})
		w.Advance(29 * 24 * time.Hour)
		require.Equal(t, 0, w.Bodies("charge"))

		var out struct{ Receipt string }
		job.Output(&out) // waits until the job has completed
		require.Equal(t, "receipt of 1250 cents", out.Receipt)
		require.Equal(t, 1, w.Bodies("charge"))
	})
}

func TestAPaidInvoiceIsNotCharged(t *testing.T) {
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployFiles("testdata/invoice.yaml")
		w.Serve(register(fakeBank{w.Receiver("bank")}))

		job := w.Start("invoice", "inv-7", Invoice{Cents: 1250})
		w.Signal("invoice.paid", "inv-7", nil) // before or after the job waits for it: no order loses it
		job.Output(nil)

		w.Advance(365 * 24 * time.Hour)
		require.Equal(t, 0, w.Bodies("charge"))
	})
}

// flakyBank does not say what became of the first charge.
type flakyBank struct{ asked int }

func (b *flakyBank) Charge(context.Context, string, int) (string, error) {
	if b.asked++; b.asked == 1 {
		return "", context.DeadlineExceeded
	}
	return "receipt", nil
}

func TestAPersonDecides(t *testing.T) {
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		bank := &flakyBank{}
		w.Serve(func(reg *workers.Registry) {
			workers.Handle(reg, "invoice.charge", func(ctx context.Context, in Invoice) (string, error) {
				return effects.Do(ctx, "charge", func(ctx context.Context) (string, error) {
					return bank.Charge(ctx, "", in.Cents)
				}) // Guarded: never done twice by itself
			})
		})

		job := w.Call("invoice.charge", "c-1", Invoice{Cents: 1250}) // one handler, without a flow
		letter := job.DeadLetter()                                   // waits until there is one
		require.Equal(t, "charge", letter.Effect().Name)
		letter.Retry() // "I looked: it was not done"

		job.Output(nil)
		require.Equal(t, 2, bank.asked)
	})
}

func TestRunningJobsGoOnWithNewCode(t *testing.T) {
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployFiles("testdata/invoice.yaml")
		w.Serve(register(fakeBank{w.Receiver("old bank")}))
		job := w.Start("invoice", "inv-7", Invoice{Cents: 1250})
		w.Advance(24 * time.Hour)

		w.Serve(register(fakeBank{w.Receiver("new bank")})) // drains the old process first
		job.Output(nil)
		_, charged := w.Receiver("new bank").Total()
		require.Equal(t, 1, charged)
	})
}

func TestAnInvoiceIsChargedOnceWhereverAProcessDies(t *testing.T) {
	quiputest.CrashEverywhere(t, func(t testing.TB, w *quiputest.World) {
		w.DeployFiles("testdata/invoice.yaml")
		w.Serve(register(fakeBank{w.Receiver("bank")}))
		w.Start("invoice", "inv-7", Invoice{Cents: 1250}).Output(nil)
	})
}

func TestAPersonAnswersWhereAProcessDies(t *testing.T) {
	quiputest.CrashEverywhere(t, func(t testing.TB, w *quiputest.World) {
		w.Serve(func(reg *workers.Registry) {
			workers.Handle(reg, "post", func(ctx context.Context, letter string) (string, error) {
				return effects.Do(ctx, "post", func(ctx context.Context) (string, error) {
					w.Receiver("post office").Do(ctx, letter) // has no idea of keys
					return "posted", nil
				})
			})
		})
		w.Call("post", "p-1", "dear Ada").Output(nil)
	}, quiputest.OnParked(func(w *quiputest.World, d *quiputest.DeadLetter) {
		if w.Receiver("post office").Applied("dear Ada") > 0 {
			d.Done("posted")
		} else {
			d.Retry()
		}
	}))
}

func TestWhatAJobLeaves(t *testing.T) {
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployFiles("testdata/invoice.yaml")
		w.Serve(register(fakeBank{w.Receiver("bank")}))
		job := w.Start("invoice", "inv-7", Invoice{Cents: 1250})
		w.Settle()
		require.Contains(t, job.Why(), "waits for signal invoice.paid")

		job.Interrupt(quiputest.Interrupt{Code: 409, Reason: "written off"})
		require.Equal(t, "written off", job.Fails(409).Message)
		require.Empty(t, job.Effects())
		require.Equal(t, journal.KindCreated, job.Journal()[0].Kind)
	})
}

// remind reminds a customer every week, three times, until the invoice is paid.
func remind(ctx context.Context, in Invoice) (string, error) {
	for week := range 3 {
		by, err := workers.Await[string](ctx, "invoice.paid", 7*24*time.Hour, workers.As(fmt.Sprint("week ", week+1)))
		if !errors.Is(err, workers.ErrAwaitTimeout) {
			return by, err
		}
		_, err = effects.Do(ctx, "remind", func(context.Context) (string, error) {
			return fmt.Sprintf("please pay %d cents", in.Cents), nil
		}, effects.Idempotent, effects.WithKey(fmt.Sprint(week+1)))
		if err != nil {
			return "", err
		}
	}
	return "", workers.Fail(402, "never paid")
}

func reminders(reg *workers.Registry) { workers.HandleDurable(reg, "invoice.remind", remind) }

func TestReminders(t *testing.T) {
	quiputest.CrashEverywhere(t, func(t testing.TB, w *quiputest.World) {
		w.Serve(reminders)
		paid, unpaid := w.Call("invoice.remind", "inv-7", Invoice{Cents: 1250}), w.Call("invoice.remind", "inv-8", Invoice{Cents: 80})
		w.Advance(8 * 24 * time.Hour)
		w.Signal("invoice.paid", "inv-7", "Ada") // under the key of the job
		paid.Output(nil)
		require.Len(t, paid.Effects(), 1)
		require.Equal(t, "never paid", unpaid.Fails(402).Message)
		require.Len(t, unpaid.Effects(), 3)
	})
}

func TestNewCodeFitsOldJournals(t *testing.T) {
	journals := t.TempDir() // in a repository: testdata/journals, with what `quipu export` wrote
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.Serve(reminders)
		w.Call("invoice.remind", "inv-7", Invoice{Cents: 1250})
		w.Advance(8 * 24 * time.Hour)
		w.Export(filepath.Join(journals, "reminders.jsonl"))
	})

	quiputest.ReplayJournal(t, journals, reminders)
}
