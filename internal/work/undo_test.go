package work

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

func fails(err error) code { return func(context.Context, *outside) error { return err } }

// trip books a flight and a hotel, and ends with something.
func trip(last code) code {
	return steps(undoable("flight"), call("flight"), undoable("hotel"), call("hotel"), last)
}

func TestCompensationsRunBeforeTheErrorIsAnswered(t *testing.T) {
	t.Parallel()
	plain := errors.New("no car")
	for name, c := range map[string]struct {
		last  code
		tries int
		code  int
		class string // "" if it succeeds
	}{
		"business":        {fails(workers.Fail(409, "no car")), 1, 409, wire.ClassBusiness},
		"fatal":           {fails(workers.Fatal(plain)), 1, 500, wire.ClassFatal},
		"child":           {fails(&workers.ChildError{Code: 404, Class: "unknown"}), 1, 404, "unknown"},
		"last attempt":    {fails(plain), 3, 500, wire.ClassError},
		"retryafter":      {fails(workers.RetryAfter(time.Second, plain)), 3, 500, wire.ClassError},
		"panic":           {func(context.Context, *outside) error { panic("boom") }, 3, 500, wire.ClassPanic},
		"unknown outcome": {does("b", cutOff, effects.Idempotent), 3, 500, wire.ClassError},
		"success":         {nothing, 1, 200, ""},
		"parked":          {does("b", cutOff), 1, 500, wire.ClassParked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, trip(c.last))
			for range c.tries - 1 {
				require.Equal(t, journal.ResponseFailedAttempt, w.next().Kind)
			}
			r := w.next()
			require.Equal(t, c.code, r.Code)
			require.Zero(t, r.RetryAfterMS)
			require.Equal(t, c.class == wire.ClassParked, r.Kind == journal.ResponseParked)
			if c.class == "" || c.class == wire.ClassParked {
				require.False(t, r.Undone)
				require.Equal(t, []string{"flight", "hotel"}, w.outer.names)
				return
			}
			failedWith(t, r, journal.ResponseTerminal, c.code, c.class)
			require.True(t, r.Undone)
			require.Equal(t, []string{"flight", "hotel", "undo hotel", "undo flight"}, w.outer.names, "the latest first")
			n, most := w.outer.keys()
			require.Equal(t, []int{4, 1}, []int{n, most})
			for _, row := range w.store.Rows(w.id()) {
				require.Equal(t, row.Name != "b", row.State == store.EffectCompleted, row.Name)
			}
		})
	}
}

// cutOff is a body that is cut off.
func cutOff(context.Context) (int, error) { return 0, errors.New("connection reset") }

func TestUndoIsARecordedMode(t *testing.T) {
	t.Parallel()
	var seen []error
	ok := true
	w := play(t, func(ctx context.Context, o *outside) error {
		if err := undoable("a")(ctx, o); err != nil {
			return err
		}
		if ok {
			return workers.Fail(409, "no car")
		}
		// A run that would go on now begins nothing.
		_, errAwait := workers.Await[int](ctx, "s", 0)
		_, _, _ = workers.First(ctx, branchOf(call("branch"), o))
		seen = append(seen, call("more")(ctx, o), workers.Sleep(ctx, "x", 1), errAwait, moment(ctx, o),
			workers.Compensate(ctx, "b", nil))
		return nil
	})
	w.crash = &crash{left: 2, after: true} // right after the cause is recorded
	require.Nil(t, w.run())
	ok = false
	failedWith(t, w.next(), journal.ResponseTerminal, 409, wire.ClassBusiness)
	require.Equal(t, []string{"undo a"}, w.outer.names)
	require.Len(t, seen, 5)
	for _, err := range seen {
		require.ErrorIs(t, err, durable.ErrUndoing)
	}
}

func TestACompensationThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	var keys []string
	failures := durable.MaxUndoAttempts
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		err := workers.Compensate(ctx, "a", func(ctx context.Context) error {
			keys = append(keys, effects.Key(ctx))
			if _, err := effects.Do(ctx, "no", func(context.Context) (int, error) {
				return 0, nil
			}); !errors.Is(err, effects.ErrUsage) {
				return fmt.Errorf("a call in a compensation: %w", err)
			}
			if err := workers.Sleep(ctx, "no", 1); !errors.Is(err, effects.ErrUsage) {
				return fmt.Errorf("a wait in a compensation: %w", err)
			}
			if len(keys) == 1 {
				return errors.New("the account is closed")
			}
			if len(keys) <= failures {
				panic("boom")
			}
			return nil
		})
		return 0, errors.Join(err, workers.Fatal(errors.New("no car")))
	}, `1`)
	var log bytes.Buffer // nothing else keeps the error of a compensation that runs again
	ctx := port.WithLog(context.Background(), slog.New(slog.NewTextHandler(&log, nil)))
	want := time.Second
	for k := 1; k < durable.MaxUndoAttempts; k++ {
		r := w.runIn(ctx)
		w.heard(r)
		require.Equal(t, []string{fmt.Sprintf("sleep undo:a:%d at undo", k)}, waits(r))
		require.Equal(t, want.Microseconds(), r.Pauses[0].For)
		want = min(2*want, time.Minute)
		w.wake(journal.PauseSleep, r.Pauses[0].Name, "")
	}
	require.Contains(t, log.String(), `compensation=a failures=1 at_most=10 in=1s error="the account is closed"`)
	r := w.next()
	failedWith(t, r, journal.ResponseParked, 500, wire.ClassUndo, `compensation "a" has failed 10 times`)
	require.True(t, w.next().Undone, "a person had it run again")
	require.Len(t, keys, failures+1)
	for _, k := range keys {
		require.Equal(t, keys[0], k)
	}
}

// A lost branch may have something to take back too, although a replay does not run it. The run for the
// compensations passes its calls: a name that was used again after them is no difference.
func TestCompensationsOfLostBranches(t *testing.T) {
	t.Parallel()
	stop := func(ctx context.Context, _ *outside) error {
		_, err := workers.Await[string](ctx, "stop", 0)
		return err
	}
	w := play(t, steps(
		race(steps(undoable("u0"), call("a"), stop), steps(undoable("b"), rest("tick0"))),
		race(steps(undoable("u1"), stop), rest("tick1")),
		fails(workers.Fail(409, "stopped")),
	))
	w.next()
	w.wake(journal.PauseSleep, "tick0", "")
	w.next()
	w.wake(journal.PauseSignal, "stop", `"x"`)
	r := w.next()
	require.True(t, r.Undone, "%+v", r.Error)
	require.Equal(t, []string{"a", "undo u1"}, w.outer.names[:2])
	require.ElementsMatch(t, []string{"undo b", "undo u0"}, w.outer.names[2:], "branches register theirs at the same time")
}

// undoJob is a request of the flow of compensations for a world's request.
func undoJob(w *world) *world {
	o := collation.UndoOrder{
		Job: w.q.Job, Key: w.q.Key, Generation: 1, Flow: w.q.Flow, Version: w.q.Version, Activity: w.q.Activity,
		DAD:     w.q.DAD,
		Request: w.q.Request, Code: 410, Message: "interrupted", Input: w.q.Input,
	}
	raw, _ := json.Marshal(o)
	w.undos++
	j := &world{t: w.t, store: w.store, reg: w.reg, q: ask("fn", byte(1+w.undos), string(raw))}
	j.q.Flow, j.q.Version = flow.UndoName, "fn"
	j.store.Put(jobOf(j.t, j.q), j.id(), nil)
	return j
}

func TestAJobRunsTheCompensationsOfAnother(t *testing.T) {
	t.Parallel()
	var o outside
	broken := true
	var infos []workers.Call
	travels := function0(steps(trip(nothing), func(ctx context.Context, o *outside) error {
		infos = append(infos, workers.Info(ctx))
		return workers.Compensate(ctx, "car", func(ctx context.Context) error {
			infos = append(infos, workers.Info(ctx))
			o.called(ctx, "undo car")
			if broken {
				return errors.New("no line")
			}
			return nil
		})
	}, rest("x"), call("more")), &o)
	w := newWorld(t, func(ctx context.Context, in map[string]int) (int, error) {
		if in["n"] != 1 {
			return 0, workers.Fail(400, "another input")
		}
		return travels(ctx, 0)
	}, `{"n":1}`)
	w.next()
	before := w.store.Rows(w.id())
	w.store.Answer(w.id()) // something else ends the request

	j := undoJob(w)
	require.Equal(t, []string{"sleep undo:car:1 at undo"}, waits(j.next()))
	broken = false
	j.crash = &crash{left: 4} // in the middle of the compensations
	j.wake(journal.PauseSleep, "undo:car:1", "")
	require.Nil(t, j.run())
	require.Nil(t, j.next().Error)
	require.Equal(t, []string{"flight", "hotel", "undo car", "undo car", "undo hotel", "undo hotel", "undo flight"}, o.names)
	require.Equal(t, before, w.store.Rows(w.id()), "nothing is recorded of the original")
	keys := map[string]string{}
	for _, row := range before {
		keys[row.Name] = row.Key.String()
	}
	for _, row := range j.store.Rows(j.id()) {
		require.Equal(t, []any{store.EffectCompleted, "idempotent"}, []any{row.State, row.Class})
		require.Equal(t, keys[row.Name], row.Key.String(), "the outside sees the key of the function's own")
	}
	for _, info := range infos {
		info.Turn, info.Attempt = 1, 1
		require.Equal(t, infos[0], info, "it and its compensations see the place of the original")
	}

	require.Nil(t, undoJob(w).next().Error, "again, from the record of that job's own: what is applied twice has one key")
	n, _ := o.keys()
	require.Equal(t, 5, n)
}

func TestAJobSkipsWhatTheFunctionTookBackItself(t *testing.T) {
	t.Parallel()
	w := play(t, steps(trip(nothing), fails(workers.Fail(409, "no"))))
	w.crash = &crash{left: 8, after: true} // two each for flight and hotel, the cause, the first undo
	require.Nil(t, w.run())
	require.Equal(t, []string{"flight", "hotel", "undo hotel"}, w.outer.names)
	w.store.Answer(w.id())
	require.Nil(t, undoJob(w).next().Error)
	require.Equal(t, []string{"flight", "hotel", "undo hotel", "undo flight"}, w.outer.names)
}

func TestAJobWithoutARecordIsParked(t *testing.T) {
	t.Parallel()
	w := play(t, trip(nothing))
	failedWith(t, undoJob(w).next(), journal.ResponseParked, 500, wire.ClassUndo)
	_, _, err := undoOrder(&wire.Request{Flow: flow.UndoName}, []byte(`{"job":"x"}`))
	require.ErrorIs(t, err, journal.ErrMalformedID)
}

// A registered compensation that the changed function no longer has is a difference.
func TestACompensationThatIsNoneAnyMoreIsADifference(t *testing.T) {
	t.Parallel()
	w := play(t, steps(undoable("a"), rest("x")))
	w.next()
	w.store.Answer(w.id())
	w.change(rest("x"))
	failedWith(t, undoJob(w).next(), journal.ResponseParked, 500, wire.ClassNondeterminism)
	require.Empty(t, w.outer.names)
}

// trouble lets what is around the function fail once, before the function is called.
func (w *world) trouble(err *error, panics bool) {
	w.reg.Use(func(next workers.Handler) workers.Handler {
		return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
			if failed := *err; failed != nil {
				*err = nil
				if panics {
					panic(failed)
				}
				return nil, failed
			}
			return next(ctx, in)
		}
	})
}

// E15: what fails around the function while it is undone is tried again, as in an attempt. Only
// another path than the recorded one is parked.
func TestTroubleWhileAFunctionIsUndoneIsTriedAgain(t *testing.T) {
	t.Parallel()
	away := errors.New("the service for credentials is away")
	for name, c := range map[string]struct {
		err    error
		panics bool
		other  bool // the request of a job of its own
	}{
		"an error":           {err: away},
		"with a delay":       {err: workers.RetryAfter(time.Hour, away)},
		"a code of a server": {err: workers.Fail(503, "away")},
		"a panic":            {err: away, panics: true},
		"a typed nil":        {err: (*typed)(nil)},
		"in another job":     {err: away, other: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, trip(fails(workers.Fail(409, "no car"))))
			outer := w.outer
			var err error
			w.trouble(&err, c.panics)
			if c.other {
				w.change(trip(rest("x")))
				w.trouble(&err, c.panics)
				w.next()
				w.store.Answer(w.id())
				w = undoJob(w)
				err = c.err
			} else {
				w.crash = &crash{left: 7, after: true} // three each for flight and hotel, and the cause
				require.Nil(t, w.run())
				err = c.err
			}
			r := w.next()
			require.Equal(t, journal.ResponseSuspended, r.Kind, "%+v", r.Error)
			require.Equal(t, []string{"sleep undo::1 at undo"}, waits(r))
			require.Equal(t, time.Second.Microseconds(), r.Pauses[0].For)
			require.Equal(t, []string{"flight", "hotel"}, outer.names)
			w.wake(journal.PauseSleep, "undo::1", "")
			require.NotEqual(t, journal.ResponseParked, w.next().Kind)
			require.Equal(t, []string{"flight", "hotel", "undo hotel", "undo flight"}, outer.names)
		})
	}
}

// After MaxUndoAttempts a person is asked. An error that the function means to end with is another
// path at once.
func TestTroubleThatStaysIsParked(t *testing.T) {
	t.Parallel()
	w := play(t, steps(undoable("a"), rest("x")))
	w.next()
	w.store.Answer(w.id())
	w.change(fails(errors.New("away")))
	other := undoJob(w)
	for n := 1; n < durable.MaxUndoAttempts; n++ {
		other.next()
		other.wake(journal.PauseSleep, fmt.Sprintf("undo::%d", n), "")
	}
	failedWith(t, other.next(), journal.ResponseParked, 500, wire.ClassNondeterminism,
		"the run for the compensations has failed 10 times: away", `it ends without effect "undo:a"`)

	w = play(t, steps(undoable("a"), rest("x")))
	w.next()
	w.store.Answer(w.id())
	w.change(fails(workers.Fail(409, "no")))
	failedWith(t, undoJob(w).next(), journal.ResponseParked, 500, wire.ClassNondeterminism)
}

// An attempt whose context ends while it fails, or in the pass for the compensations, runs none:
// a drained one is handed back, and after a timeout a job of their own runs them.
func TestAnUndoThatIsCutOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause error
		pass  int // in which the context ends
	}{{workers.ErrTimeout, 1}, {workers.ErrTimeout, 2}, {workers.ErrDraining, 2}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		passes := 0
		w := play(t, steps(undoable("a"), func(context.Context, *outside) error {
			if passes++; passes == c.pass {
				cancel(c.cause)
			}
			return workers.Fail(409, "no")
		}, undoable("b")))
		r := w.runIn(ctx)
		require.Empty(t, w.outer.names)
		if c.cause == workers.ErrDraining {
			require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
			w.store.Expire(w.id())
			require.True(t, w.next().Undone)
			continue
		}
		failedWith(t, r, journal.ResponseTerminal, 409, wire.ClassBusiness)
		require.False(t, r.Undone)
	}
}

// W8, T10: no compensation begins once the run has ended: its request is lost, its time is up, or its
// process drains. The next run goes on with it, or a job of its own does.
func TestNoCompensationBeginsInARunThatHasEnded(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{workers.ErrDraining, workers.ErrTimeout, store.ErrStale} {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := play(t, steps(undoable("a"), func(ctx context.Context, o *outside) error {
			return workers.Compensate(ctx, "b", func(ctx context.Context) error {
				o.called(ctx, "undo b")
				cancel(cause)
				return nil
			})
		}, fails(workers.Fail(409, "no"))))
		r := w.runIn(ctx)
		require.Equal(t, []string{"undo b"}, w.outer.names, cause)
		if cause != workers.ErrDraining {
			failedWith(t, r, journal.ResponseTerminal, 409, wire.ClassBusiness)
			require.False(t, r.Undone, "what is left is for a job of its own")
			continue
		}
		require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
		w.store.Expire(w.id())
		require.True(t, w.next().Undone)
		require.Equal(t, []string{"undo b", "undo a"}, w.outer.names)
	}
}
