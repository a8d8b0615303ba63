package quiputest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// paying is a scenario of one job of one handler.
func paying(handler func(ctx context.Context, w *World) (any, error)) Scenario {
	return func(_ testing.TB, w *World) {
		w.Serve(func(reg *workers.Registry) {
			workers.Handle(reg, "pay", func(ctx context.Context, _ any) (any, error) { return handler(ctx, w) })
		})
		w.Call("pay", "p-1", nil).Output(nil)
	}
}

// charging is paying with one effect, whose body asks the bank.
func charging(ask func(ctx context.Context, bank *Receiver), options ...effects.Option) Scenario {
	return paying(func(ctx context.Context, w *World) (any, error) {
		return effects.Do(ctx, "charge", func(ctx context.Context) (any, error) {
			ask(ctx, w.Receiver("bank"))
			return "receipt", nil
		}, options...)
	})
}

func byKey(ctx context.Context, bank *Receiver) { bank.Apply(ctx, effects.Key(ctx)) }

func blindly(ctx context.Context, bank *Receiver) { bank.Do(ctx, "a charge") }

// The eight boundaries of a handler with one effect.
var all = []string{"001", "002", "003", "004", "005", "006", "007", "008"}

// C9, E3: a death shows what a next run does again: a call outside without an effect, an Idempotent effect
// at a receiver that does not remove duplicates, and what a handler remembered in memory. The scenario's
// own checks must hold in every run.
func TestC9CrashCatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scenario Scenario
		failures []string
		says     []string
	}{
		"work outside of effects": {
			paying(func(ctx context.Context, w *World) (any, error) {
				blindly(ctx, w.Receiver("bank"))
				return nil, nil
			}),
			[]string{"002", "003"}, // after it, and before the response is sent
			[]string{
				`003: the process dies for job "p-1", call at ,0,0: before its response (terminal) was sent`,
				"003: receiver bank did: \"a charge\" 2 times\n  undisturbed: \"a charge\" 1 times",
			},
		},
		"a receiver that removes duplicates":         {charging(byKey, effects.Idempotent), nil, nil},
		"a receiver that does not remove duplicates": {charging(blindly, effects.Idempotent), []string{"004", "005"}, nil},
		"memory": {func(_ testing.TB, w *World) {
			w.Serve(func(reg *workers.Registry) {
				charged := false
				workers.Handle(reg, "pay", func(ctx context.Context, _ any) (any, error) {
					if !charged {
						blindly(ctx, w.Receiver("bank"))
					}
					charged = true
					return nil, nil
				})
			})
			w.Call("pay", "p-1", nil).Output(nil)
		}, []string{"002", "003"}, nil},
		"a check": {func(t testing.TB, w *World) {
			charging(byKey, effects.Idempotent)(t, w)
			require.Equal(t, 1, w.Bodies("charge"))
		}, []string{"004", "005"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := recordCrashes(t, c.scenario)
			require.Equal(t, c.failures, r.failures(), r.text())
			require.Equal(t, c.failures != nil, r.failed)
			for _, said := range c.says {
				require.Contains(t, r.text(), said)
			}
		})
	}
}

// E3: a cut-off Guarded effect needs a person, unless the test answers. For that it has to look
// at the receiver.
func TestE3CrashOfGuardedNeedsAPerson(t *testing.T) {
	t.Parallel()
	guarded := charging(blindly, effects.Guarded)
	doubt := []string{"003", "004", "005"}

	r := recordCrashes(t, guarded)
	require.Equal(t, doubt, r.failures(), r.text())
	require.Contains(t, r.text(), `a person is needed: effect "charge"`)
	require.Contains(t, r.text(), "died at 8 of 8 boundaries: 3 failed, at 3 a person is needed")

	r = recordCrashes(t, guarded, AllowParked())
	require.Empty(t, r.failures(), r.text())
	for _, p := range r.parts {
		require.Equal(t, p.name >= doubt[0] && p.name <= doubt[2], p.skipped, p.name)
	}

	answered := 0
	right := func(w *World, d *DeadLetter) {
		answered++
		if w.Receiver("bank").Applied("a charge") > 0 {
			d.Done("receipt")
		} else {
			d.Retry()
		}
	}
	r = recordCrashes(t, guarded, OnParked(right))
	require.Empty(t, r.failures(), r.text())
	require.Equal(t, len(doubt), answered)

	r = recordCrashes(t, guarded, OnParked(func(_ *World, d *DeadLetter) { d.Retry() }))
	require.Equal(t, []string{"004", "005"}, r.failures(), "it was done, and is done again\n%s", r.text())

	r = recordCrashes(t, guarded, OnParked(func(*World, *DeadLetter) {}))
	require.Equal(t, doubt, r.failures(), r.text())
}

// E15: a function that decides by something unrecorded takes another path in the next process,
// and no option allows that.
func TestE15CrashCatchesOtherPaths(t *testing.T) {
	t.Parallel()
	r := recordCrashes(t, func(_ testing.TB, w *World) {
		calls := 0
		w.Serve(func(reg *workers.Registry) {
			workers.HandleDurable(reg, "counts", func(ctx context.Context, _ any) (string, error) {
				calls++
				call := func(name string) error {
					_, err := effects.Do(ctx, name, func(context.Context) (int, error) { return 1, nil })
					return err
				}
				if calls > 1 {
					return "again", call("once more")
				}
				if err := call("first of all"); err != nil {
					return "", err
				}
				return "", workers.Sleep(ctx, "a while", time.Hour)
			})
		})
		w.Call("counts", "r-1", nil)
		w.Settle()
	}, AllowParked())
	require.Equal(t, []string{"002", "003", "004", "005", "006"}, r.failures(), r.text())
	require.Contains(t, r.text(), "003: its request cannot go on: the function takes another path than the recorded one")
}

// 3.3: a verifier answers in place of a person.
func TestCrashOfAVerifiedEffect(t *testing.T) {
	t.Parallel()
	r := recordCrashes(t, func(t testing.TB, w *World) {
		looks := w.Receiver("bank").Verifier(func(string) any { return "receipt" })
		charging(byKey, effects.Verify(looks, effects.Strict))(t, w)
	})
	require.False(t, r.failed, r.text())
	require.Contains(t, r.text(), "died at 8 of 8 boundaries: 0 failed, at 0 a person is needed")
}

// A result that depends on the time changes after a death.
func TestCrashComparesOutputs(t *testing.T) {
	t.Parallel()
	stamped := paying(func(context.Context, *World) (any, error) {
		return map[string]any{"receipt": 7, "lines": []any{map[string]any{"at": time.Now()}}}, nil
	})
	r := recordCrashes(t, stamped)
	require.NotEmpty(t, r.failures())
	require.Contains(t, r.text(), `job "p-1": its output: {"lines":[{"at":"2000-01-01T00:00:`)
	require.Empty(t, recordCrashes(t, stamped, Ignore("at")).failures())
	require.NotEmpty(t, recordCrashes(t, stamped, Ignore("receipt")).failures())
}

// A scenario that takes another way each time proves nothing.
func TestCrashWantsTheSameWay(t *testing.T) {
	t.Parallel()
	plays := 0
	r := recordCrashes(t, func(t testing.TB, w *World) {
		if plays++; plays == 1 {
			charging(byKey, effects.Idempotent)(t, w)
		}
	})
	require.Equal(t, all[:maxFailed], r.failures())
	require.Contains(t, r.text(), "no other run came by there: the scenario does not take the same way")
	require.Contains(t, r.text(), "5 boundaries failed, the 3 after them were not tried")

	r = recordCrashes(t, func(testing.TB, *World) {})
	require.True(t, r.failed)
	require.Contains(t, r.text(), "no handler ran")

	r = recordCrashes(t, func(t testing.TB, _ *World) { t.Skip("not today") })
	require.True(t, r.skipped)
	require.False(t, r.failed)

	r = recordCrashes(t, func(t testing.TB, _ *World) { t.Fatal("broken") })
	require.True(t, r.failed)
	require.Empty(t, r.parts)
}

// Of more boundaries than the limit some are drawn, by a seed that is logged.
func TestCrashDrawsBoundaries(t *testing.T) {
	t.Parallel()
	drawn := func(options ...Option) []string {
		r := recordCrashes(t, charging(byKey, effects.Idempotent), options...)
		require.False(t, r.failed, r.text())
		var names []string
		for _, p := range r.parts {
			names = append(names, p.name)
		}
		require.Subset(t, all, names)
		return names
	}
	require.Equal(t, all, drawn())
	three := drawn(Boundaries(3), Seed(7))
	require.Len(t, three, 3)
	require.IsIncreasing(t, three)
	require.Equal(t, three, drawn(Boundaries(3), Seed(7)))
	others := map[string]bool{}
	for seed := range uint64(8) {
		others[drawn(Boundaries(1), Seed(seed))[0]] = true
	}
	require.Greater(t, len(others), 1)
	require.Contains(t, recordCrashes(t, charging(byKey, effects.Idempotent), Boundaries(2)).text(), "2 of 8 boundaries, drawn by quiputest.Seed(")
}

// failing are scenarios that fail, with the texts of their failures.
var failing = map[string]struct {
	scenario Scenario
	says     []string
}{
	"nobody serves": {
		func(_ testing.TB, w *World) { w.Call("pay", "p-1", nil).Output(nil) },
		[]string{"the job does not end", "p-1 (open)", "nobody serves topic pay in this world"},
	},
	"nobody signals": {
		func(_ testing.TB, w *World) {
			w.DeployYAML("flow: f\nversion: '1'\nactivities:\n  start: {type: trigger}\n  hook: {type: hook, signal: s, key: k}\ntransitions: {start: [hook]}\n")
			w.Start("f", "f-1", nil).End()
		},
		[]string{"the job does not end", `hook waits for signal s with key "k"`},
	},
	"another end": {
		called("fail", map[string]any{"code": 402, "message": "no"}, func(job *Job) { job.Output(nil) }),
		[]string{`the job did not complete: job "j-1" failed with code 402 (business): no`},
	},
	"another code": {
		called("echo", 1, func(job *Job) { job.Fails(402) }),
		[]string{`the job did not end with code 402: job "j-1" completed with code 200 and output 1`},
	},
	"another type":   {called("echo", 1, func(job *Job) { job.Output(new(string)) }), []string{`the output of job "j-1" does not fit into *string`}},
	"no dead letter": {called("echo", 1, func(job *Job) { job.DeadLetter() }), []string{"the job gets no dead letter", "j-1 (completed)"}},
	"no such job":    {func(_ testing.TB, w *World) { w.Job("x") }, []string{"not found"}},
	"no such effect": {func(_ testing.TB, w *World) { w.Call("pay", "p-1", 1).Effect("charge") }, []string{`has 0 effects "charge"`}},
	"no such flow":   {func(_ testing.TB, w *World) { w.Start("x", "x-1", nil) }, []string{`start job "x-1"`, "not found"}},
	"no such file":   {func(_ testing.TB, w *World) { w.DeployFiles("*.none") }, []string{"deploy *.none: no such file"}},
	"a broken flow":  {func(_ testing.TB, w *World) { w.DeployYAML("flow: f") }, []string{"deploy: ", "flow 1"}},
	"never true":     {func(_ testing.TB, w *World) { w.Until("the end of days", func() bool { return false }) }, []string{"the end of days: it does not come to that"}},
	"a bad topic": {func(_ testing.TB, w *World) {
		w.Serve(func(reg *workers.Registry) { workers.HandleRaw(reg, "*", nil) })
	}, []string{"serve: "}},
	"a dead letter twice":     {answeredTwice, []string{"retry dead letter", "decided already"}},
	"a bad code":              {func(_ testing.TB, w *World) { w.Call("pay", "p-1", 1).Interrupt(Interrupt{Code: 200}) }, []string{"interrupt job"}},
	"a bad topic of a signal": {func(_ testing.TB, w *World) { w.Signal("S", "k", 1) }, []string{`signal "S", key "k"`}},
	"a bad signal":            {func(_ testing.TB, w *World) { w.Send(Signal{Topic: "s", Key: "k", Code: 99}) }, []string{"signal s: code 99"}},
	"a bad payload":           {func(_ testing.TB, w *World) { w.Signal("s", "k", func() {}) }, []string{"signal s: payload"}},
	"a bad call":              {func(_ testing.TB, w *World) { w.Call("*", "k", nil) }, []string{"call *"}},
	"a job two times":         {func(_ testing.TB, w *World) { w.Call("pay", "p-1", 1); w.Call("pay", "p-1", 1) }, []string{"already started"}},
}

// called is a scenario of a job of a built-in handler.
func called(topic string, input any, then func(*Job)) Scenario {
	return func(_ testing.TB, w *World) {
		w.Serve(workers.RegisterBuiltins)
		then(w.Call(topic, "j-1", input))
	}
}

// A failure says why, and a failed wait says what the job waits for.
func TestFailuresSayWhy(t *testing.T) {
	t.Parallel()
	for name, c := range failing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := recordRun(t, c.scenario)
			require.True(t, r.failed)
			for _, text := range c.says {
				require.Contains(t, r.text(), text)
			}
		})
	}
}

func answeredTwice(_ testing.TB, w *World) {
	w.Serve(func(reg *workers.Registry) {
		workers.Handle(reg, "pay", func(ctx context.Context, _ any) (any, error) {
			return effects.Do(ctx, "charge", func(context.Context) (any, error) { return nil, context.Canceled })
		})
	})
	d := w.Call("pay", "p-1", nil).DeadLetter()
	d.Retry()
	d.Retry()
}

// 2.5: a journal that breaks a law fails the test at its end.
func TestVerifyCatchesWhatBreaksALaw(t *testing.T) {
	t.Parallel()
	lawless := func(t testing.TB, w *World) {
		job := w.Call("pay", "p-1", nil)
		order := collation.InterruptOrder{Code: collation.CodeOK, Throw: true} // no store takes that of a client
		row, err := order.Row(collation.AskedInterruptGUID("x", job.ID), job.ID, now())
		require.NoError(t, err)
		c, err := w.store.Committer(t.Context(), true)
		require.NoError(t, err)
		defer c.Close()
		w.Settle()
		l, err := c.Load(t.Context(), []store.Want{{Job: job.ID}}, true)
		require.NoError(t, err)
		st := l.States[job.ID]
		row.Origin = st.Job.Head.Seq + 1
		require.NoError(t, c.Commit(t.Context(), []store.Chained{store.Chain(&st.Job, &collation.Plan{
			Job:       job.ID,
			Message:   row.GUID,
			Outcome:   collation.Handled,
			Done:      true,
			RowWrites: collation.RowWrites{Insert: []collation.Row{row}},
			Semaphore: journal.SemaphoreMove{Before: st.Job.Semaphore, After: st.Job.Semaphore},
			Entry: &journal.Entry{
				Space: st.Job.Space, Job: job.ID, Generation: 1, Seq: row.Origin, Kind: journal.KindOperator,
				GUID:     row.GUID,
				Operator: &journal.Operator{Action: "test", Who: "test"}, Time: int64(st.Now),
			},
		})}))
		job.End()
	}
	r := recordRun(t, lawless)
	require.True(t, r.failed)
	require.Contains(t, r.text(), `the journal of job "p-1": V7`)
	require.False(t, recordRun(t, lawless, NoVerify()).failed)
}

// Everything in a branch that lost, or nested in one, is lost.
func TestLostPositions(t *testing.T) {
	t.Parallel()
	request := journal.GUID{1}
	won := winners{request: {"2": 1, "4.0.1": 0}}
	for position, lost := range map[string]bool{
		"": false, "1": false, "2": false, "2.1.1": false, "2.0.1": true, "2.2.7": true, "2.0.1.0.1": true, "2.1.1.0.1": false,
		"3.0.1": false, "4.0.1": false, "4.1.1": false, "4.0.1.0.3": false, "4.0.1.1.3": true, "22.0.1": false,
	} {
		require.Equal(t, lost, won.lost(request, position), position)
		require.False(t, won.lost(journal.GUID{2}, position))
	}
}

// How far losing branches come is not compared, and boundaries that they miss are not required.
// Here a death at the loser's call lets the other branch win first.
func TestCrashLeavesLosersAlone(t *testing.T) {
	t.Parallel()
	r := recordCrashes(t, func(_ testing.TB, w *World) {
		work := func(ctx context.Context) (string, error) {
			slept := workers.Sleep(ctx, "nearly an hour", time.Hour-time.Second)
			_, err := effects.Do(ctx, "work", func(ctx context.Context) (string, error) {
				w.Receiver("outside").Apply(ctx, effects.Key(ctx))
				return "", nil
			}, effects.Idempotent)
			return "worked", errors.Join(slept, err, workers.Sleep(ctx, "another hour", time.Hour))
		}
		bound := func(ctx context.Context) (string, error) { return "too late", workers.Sleep(ctx, "an hour", time.Hour) }
		w.Serve(func(reg *workers.Registry) {
			workers.HandleDurable(reg, "race", func(ctx context.Context, _ any) (string, error) {
				_, said, err := workers.First(ctx, work, bound)
				return said, err
			})
		})
		var out string
		w.Call("race", "r-1", nil).Output(&out)
		require.Equal(t, "too late", out)
	})
	require.False(t, r.failed, r.text())
	require.Contains(t, r.text(), `before the start of effect "work" (call 1.0.2) was recorded`)
}
