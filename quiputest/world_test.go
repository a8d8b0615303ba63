package quiputest_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/view"
	"github.com/quipu-journal/quipu/workers"
)

// reminder waits for a signal or a month, and then calls a handler.
const reminder = `
flow: reminder
version: "1"
input: {type: object, required: [who], properties: {who: {type: string}}}
output: {mail: "${ remind.output }", by: "${ paid.by }"}
activities:
  start: {type: trigger}
  paid: {type: hook, signal: invoice.paid, key: "${ job.id }", sleep: 720h}
  remind: {type: worker, topic: mail.send, input: {to: "${ start.output.who }"}}
transitions:
  start: [paid]
  paid: [{to: remind, when: "paid.by == 'timer'"}]
`

type mail struct {
	To string `json:"to"`
}

// mailer is a handler with one effect.
func mailer(w outside) func(*workers.Registry) {
	return func(reg *workers.Registry) {
		workers.Handle(reg, "mail.send", func(ctx context.Context, in mail) (string, error) {
			return effects.Do(ctx, "send", func(ctx context.Context) (string, error) {
				w.Receiver("smtp").Apply(ctx, effects.Key(ctx))
				return "sent to " + in.To, nil
			}, effects.Idempotent)
		})
	}
}

var ada = map[string]string{"who": "Ada"}

type reminded struct {
	Mail *string
	By   string
}

// Hours of timers pass in no time, by the bubble's clock. A signal ends the wait, in whatever order the
// two come (E13). A request that nobody serves waits until a process does.
func TestE13Signals(t *testing.T) {
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployYAML(reminder)
		require.Equal(t, quipu.SignalKept, w.Signal("invoice.paid", "r-1", nil).State)
		early := w.Start("reminder", "r-1", ada)
		late := w.Start("reminder", "r-2", ada)
		var out reminded
		early.Output(&out)
		require.Equal(t, reminded{By: "signal"}, out)

		w.Advance(500 * time.Hour)
		require.Equal(t, journal.JobOpen, late.State())
		require.Contains(t, late.Why(), `waits for signal invoice.paid with key "r-2" or for its timer`)
		require.Equal(t, quipu.SignalConsumed, w.Send(quiputest.Signal{Topic: "invoice.paid", Key: "r-2", ID: "x"}).State)
		require.True(t, w.Send(quiputest.Signal{Topic: "invoice.paid", Key: "r-2", ID: "x"}).Duplicate)
		late.Output(&out)
		require.Equal(t, reminded{By: "signal"}, out)

		unserved := w.Start("reminder", "r-3", ada)
		w.Advance(721 * time.Hour)
		require.Contains(t, unserved.Why(), "nobody serves topic mail.send in this world")
		w.Serve(mailer(w))
		unserved.Output(nil)
		w.Settle()
		runs, from := w.Runs("mail.send"), time.Now()
		job := w.Start("reminder", "r-4", ada)
		job.Output(&out)
		require.Equal(t, []string{"timer", "sent to Ada"}, []string{out.By, *out.Mail})
		require.WithinDuration(t, from.Add(720*time.Hour), time.Now(), time.Second)
		requested, applied := w.Receiver("smtp").Total()
		require.Equal(t, []int{2, 2, 2, runs + 1}, []int{w.Bodies("send"), requested, applied, w.Runs("mail.send")})
		f := job.Effect("send")
		require.Equal(t, view.EffectCompleted, f.State)
		require.JSONEq(t, `"sent to Ada"`, string(f.Result.JSON))
		require.Contains(t, job.Why(), "completed")
	})
}

// P11: a version that is activated under running jobs leaves them on theirs.
func TestP11RunningJobsKeepTheirVersion(t *testing.T) {
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployYAML(reminder)
		old := w.Start("reminder", "old", ada)
		w.Settle()
		w.DeployYAML(strings.NewReplacer(`version: "1"`, `version: "2"`, `"${ paid.by }"`, "version 2").Replace(reminder))
		w.Activate("reminder", "2")
		fresh := w.Start("reminder", "fresh", ada)
		for job, by := range map[*quiputest.Job]string{old: "signal", fresh: "version 2"} {
			w.Signal("invoice.paid", job.Key, nil)
			var out reminded
			job.Output(&out)
			require.Equal(t, by, out.By)
		}
	})
}

// Starts are refused as by a real engine. A job is interrupted, or ended as completed.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployYAML(reminder)
		_, err := w.TryStart("reminder", "r-1", map[string]int{"who": 1})
		require.ErrorIs(t, err, engine.ErrInput)
		_, err = w.TryStart("reminder", "", ada)
		require.ErrorIs(t, err, engine.ErrKey)
		_, err = w.TryStart("nobody", "r-1", ada)
		require.ErrorIs(t, err, store.ErrNotFound)
		first := w.Start("reminder", "r-1", ada)
		again, err := w.TryStart("reminder", "r-1", ada)
		var taken *store.AlreadyStartedError
		require.ErrorAs(t, err, &taken)
		require.True(t, taken.SameInput)
		require.Equal(t, first.ID, again.ID)

		other := w.Start("reminder", "r-2", ada)
		first.Interrupt(quiputest.Interrupt{})
		require.Equal(t, journal.JobInterrupted, first.End().State)
		other.Interrupt(quiputest.Interrupt{Complete: true})
		require.Equal(t, journal.JobCompleted, other.End().State)
	})
}

// A test answers a Guarded effect of unknown outcome as an operator does (E5, E10).
func TestE10DeadLetters(t *testing.T) {
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		fails := true
		w.Serve(func(reg *workers.Registry) {
			workers.Handle(reg, "pay", func(ctx context.Context, _ any) (string, error) {
				return effects.Do(ctx, "charge", func(context.Context) (string, error) {
					if fails {
						return "", context.DeadlineExceeded
					}
					return "receipt", nil
				})
			})
		})
		retried, resolved, failed := w.Call("pay", "p-1", nil), w.Call("pay", "p-2", nil), w.Call("pay", "p-3", nil)
		d := retried.DeadLetter()
		require.Equal(t, "charge", d.Effect().Name)
		require.Equal(t, wire.ClassParked, d.Class())
		require.Contains(t, d.Message, "may have been applied")
		resolved.DeadLetter().Resolve("by hand")
		failed.DeadLetter().Fail(402, "declined")
		fails = false
		d.Retry()
		var out string
		retried.Output(&out)
		require.Equal(t, "receipt", out)
		resolved.Output(&out)
		require.Equal(t, "by hand", out)
		require.Equal(t, "declined", failed.Fails(402).Message)
		require.Empty(t, w.DeadLetters())
		require.Equal(t, 4, w.Bodies("charge"))
	})
}

// 3.3, E10: a person decides on a completed effect that the outside denies: confirms it, has it
// done again under the next key, has the outside asked again, or gives it up.
func TestDeadLettersOfDoubtedEffects(t *testing.T) {
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		var asked atomic.Int32
		var confirms atomic.Bool
		w.Serve(func(reg *workers.Registry) {
			denies := effects.VerifierFunc(func(context.Context, effects.Question) (effects.Answer, error) {
				asked.Add(1)
				if confirms.Load() {
					return effects.Answer{State: effects.StateDone}, nil
				}
				return effects.Answer{State: effects.StateNotDone}, nil
			})
			workers.HandleDurable(reg, "pay", func(ctx context.Context, _ any) (string, error) {
				receipt, err := effects.Do(ctx, "charge", func(context.Context) (string, error) { return "receipt", nil },
					effects.Verify(denies, effects.Human))
				if err != nil {
					return "", err
				}
				return receipt, workers.Sleep(ctx, "a while", time.Hour)
			})
		})
		confirmed, voided, again, failed := w.Call("pay", "p-1", nil), w.Call("pay", "p-2", nil), w.Call("pay", "p-3", nil), w.Call("pay", "p-4", nil)
		d := confirmed.DeadLetter()
		require.Equal(t, view.EffectCompleted, d.Effect().State)
		require.Equal(t, wire.ClassConfirm, d.Class())
		d.Done(nil)
		confirmed.Output(nil)
		require.True(t, confirmed.Effect("charge").Vouched)
		failed.DeadLetter().Fail(502, "it is lost")
		require.Equal(t, "it is lost", failed.Fails(502).Message)
		d = again.DeadLetter()
		before := asked.Load()
		confirms.Store(true)
		d.Retry()
		again.Output(nil)
		require.Equal(t, before+1, asked.Load())
		d = voided.DeadLetter()
		d.About(voided.Effect("charge")).Retry()
		voided.Output(nil)
		require.Equal(t, 5, w.Bodies("charge"), "one of them is made again")
	})
}

// A handler that sleeps at the end of the test holds up nothing, and is no leaked goroutine.
func TestStragglers(t *testing.T) {
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.Serve(func(reg *workers.Registry) {
			workers.Handle(reg, "slow", func(context.Context, any) (any, error) {
				time.Sleep(time.Hour)
				return nil, nil
			})
		})
		job := w.Call("slow", "s-1", nil)
		time.Sleep(time.Second)
		w.Stop()
		require.Equal(t, journal.JobOpen, job.State())
	})
}
