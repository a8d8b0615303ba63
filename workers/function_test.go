package workers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

func TestE12ASleepSuspendsAndIsOverLater(t *testing.T) {
	t.Parallel()
	var o outside
	unwound := 0
	w := newWorld(t, func(ctx context.Context, in int) (int, error) {
		a, err := do(ctx, &o, "a", in+1)
		if err != nil {
			return 0, err
		}
		defer func() {
			_ = recover() // it stops nothing
			unwound++
		}()
		if err := Sleep(ctx, "rest", time.Hour); err != nil {
			return 0, err
		}
		return do(ctx, &o, "b", a+1)
	}, `1`)
	r := w.next()
	require.Equal(t, []string{"sleep rest at 2"}, waits(r))
	require.Equal(t, time.Hour.Microseconds(), r.Pauses[0].For)
	require.Equal(t, 1, unwound, "deferred functions run")
	require.Equal(t, []string{"sleep rest at 2"}, waits(w.next()), "and again as long as it has not come")
	w.wake(journal.PauseSleep, "rest", "")
	require.Equal(t, 3, result[int](t, w.next()))
	require.Equal(t, []string{"1 a completed 2", "3 b completed 3"}, w.recorded())
	require.Equal(t, []string{"a", "b"}, o.names, "each once")
}

func TestAFirstRunWithoutEffectsCostsNoRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(ctx context.Context, in int) (int, error) {
		return in, Sleep(ctx, "rest", time.Hour)
	}, `1`)
	w.next()
	require.Empty(t, w.store.Calls())
	w.wake(journal.PauseSleep, "rest", "")
	w.next()
	require.ElementsMatch(t, []string{"Lease", "Effects", "Pauses"}, w.store.Calls())
}

func TestE12SignalsAndChildren(t *testing.T) {
	t.Parallel()
	fn := func(ctx context.Context, _ int) (string, error) {
		s, err := Await[string](ctx, "go", time.Minute)
		if errors.Is(err, ErrAwaitTimeout) {
			s = "nothing"
		} else if err != nil {
			return "", err
		}
		n, err := Child[int](ctx, "kid", "count", map[string]int{"b": 2, "a": 1}, ChildKey("k"), ChildVersion("7"))
		return fmt.Sprint(s, " ", n), err
	}
	t.Run("come", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fn, `1`)
		p := w.next().Pauses[0]
		require.Equal(t, []any{"go", "go", "key", time.Minute.Microseconds()}, []any{p.Name, p.Topic, p.Key, p.For}, "the job's key is the default")
		w.wake(journal.PauseSignal, "go", `"now"`)
		p = w.next().Pauses[0]
		require.Equal(t, []any{"kid", "count", "k", "7", `{"a":1,"b":2}`}, []any{p.Name, p.Flow, p.Key, p.Version, string(p.Input)})
		w.wake(journal.PauseChild, "kid", `5`)
		require.Equal(t, "now 5", result[string](t, w.next()))
	})
	t.Run("timeout and error", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fn, `1`)
		w.next()
		w.timeout("go")
		w.next()
		w.wakeWith(journal.PauseChild, "kid", &journal.Response{Code: 410, Error: &journal.Failure{Class: "interrupted", Message: "stop"}})
		r := w.next()
		failedWith(t, r, journal.ResponseTerminal, 410, "interrupted")
		require.Contains(t, r.Error.Message, `child "kid"`)
	})
	t.Run("facts end the activity", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, func(ctx context.Context, _ int) (int, error) { return Await[int](ctx, "go", time.Minute) }, `1`)
		w.next()
		w.timeout("go")
		failedWith(t, w.next(), journal.ResponseTerminal, 408, ClassTimeout)
		w = newWorld(t, func(ctx context.Context, _ int) (int, error) {
			return Await[int](ctx, "go", 0, SignalKey("x"), As("n"))
		}, `1`)
		r := w.next()
		require.Equal(t, []any{"x", "n", int64(0)}, []any{r.Pauses[0].Key, r.Pauses[0].Name, r.Pauses[0].For})
		w.wakeWith(journal.PauseSignal, "n", &journal.Response{Code: 409, By: journal.BySignal, Error: &journal.Failure{Class: "signal", Data: []byte(`{"why":1}`)}})
		r = w.next()
		failedWith(t, r, journal.ResponseTerminal, 409, ClassSignal)
		require.JSONEq(t, `{"why":1}`, string(r.Error.Data))
		w = newWorld(t, func(ctx context.Context, _ int) (int, error) { return Await[int](ctx, "go", 0) }, `1`)
		w.next()
		w.wake(journal.PauseSignal, "go", `"no number"`)
		failedWith(t, w.next(), journal.ResponseTerminal, 400, ClassInput)
	})
}

func TestE15RecordedValues(t *testing.T) {
	t.Parallel()
	type values struct {
		Now  time.Time
		Rand uint64
		ID   string
	}
	var seen []values
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		var v values
		var errs [3]error
		v.Now, errs[0] = Now(ctx)
		v.Rand, errs[1] = Rand(ctx)
		v.ID, errs[2] = UUID(ctx)
		seen = append(seen, v)
		return 0, errors.Join(append(errs[:], Sleep(ctx, "rest", 0))...)
	}, `1`)
	w.next()
	w.next()
	require.Len(t, seen, 2)
	require.Equal(t, seen[0], seen[1])
	require.Len(t, seen[0].ID, 36)
	require.NotZero(t, seen[0].Rand)
}

func TestDeferredCallsWaitForTheEnd(t *testing.T) {
	t.Parallel()
	var o outside
	after := 0
	w := newWorld(t, func(ctx context.Context, _ int) (out int, err error) {
		defer func() {
			_, err = do(ctx, &o, "unlock", 1)
			after++
		}()
		if err := Sleep(ctx, "rest", time.Second); err != nil {
			return 0, err
		}
		return 5, nil
	}, `1`)
	w.next()
	require.Zero(t, after, "a suspended function makes no calls, and nothing after them runs")
	require.Empty(t, w.recorded())
	w.wake(journal.PauseSleep, "rest", "")
	require.Equal(t, 5, result[int](t, w.next()))
	require.Equal(t, []string{"2 unlock completed 1"}, w.recorded())
}

func TestE2DuplicatesOfWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		_, err := All(
			ctx,
			func(ctx context.Context) (int, error) { return 0, Sleep(ctx, "x", time.Second) },
			func(ctx context.Context) (int, error) { return Await[int](ctx, "x", 0) }, // another kind
			func(ctx context.Context) (int, error) { return 0, Sleep(ctx, "x", time.Second) },
		)
		return 0, err
	}, `1`)
	r := w.next()
	failedWith(t, r, journal.ResponseFailedAttempt, 500, ClassError)
	require.Contains(t, r.Error.Message, `sleep "x" was asked for twice`)
}

func TestNothingElseIsBegunAfterAFailure(t *testing.T) {
	t.Parallel()
	var o outside
	broken := true
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		_, err := effects.Do(ctx, "a", func(context.Context) (int, error) {
			if broken {
				return 0, errors.New("connection reset")
			}
			return 1, nil
		}, effects.Idempotent)
		if err != nil { // a path that no later run would take
			v, err := do(ctx, &o, "fallback", 2)
			_ = Sleep(ctx, "rest", time.Second)
			if err == nil {
				return v, nil
			}
		}
		return do(ctx, &o, "b", 3)
	}, `1`)
	r := w.next()
	require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
	require.Contains(t, r.Error.Message, "connection reset")
	broken = false
	require.Equal(t, 3, result[int](t, w.next()))
	require.Equal(t, []string{"b"}, o.names)
}

func TestE5NotDoneReplaysWhereTheFunctionWentOn(t *testing.T) {
	t.Parallel()
	var o outside
	calls := 0
	charge := func(ctx context.Context) (int, error) {
		return effects.Do(ctx, "charge", func(context.Context) (int, error) {
			if calls++; calls == 3 {
				return 7, nil
			}
			return 0, effects.NotDone(RetryAfter(time.Second, errors.New("refused")))
		})
	}
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		v, err := charge(ctx)
		if effects.IsNotDone(err) {
			if _, isRetry := errors.AsType[*retryError](err); isRetry {
				return 0, errors.New("a run sees more than a replay of it")
			}
			if err := Sleep(ctx, "wait", time.Second); err != nil {
				return 0, err
			}
			v, err = charge(ctx)
		}
		if err != nil {
			return 0, err
		}
		return do(ctx, &o, "after", v)
	}, `1`)
	require.Equal(t, []string{"sleep wait at 2"}, waits(w.next()))
	w.wake(journal.PauseSleep, "wait", "")
	r := w.next()
	require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
	require.EqualValues(t, 1000, r.RetryAfterMS)
	require.Equal(t, 7, result[int](t, w.next()), "the last outcome was the end of an attempt: it is called again")
	require.Equal(t, []string{"1 charge not_done ", "3 charge not_done ", "3 charge completed 7", "4 after completed 7"}, w.recorded())
	require.Equal(t, ReplayReturned, w.replay().End)
}

// A call that is made again is outside while another branch begins something new: the
// records after it are no difference yet.
func TestACallThatIsMadeAgainHoldsUpNobody(t *testing.T) {
	t.Parallel()
	meet := make(chan struct{})
	times := 0
	w := play(t, both(
		steps(func(ctx context.Context, _ *outside) error {
			_, err := effects.Do(ctx, "a", func(context.Context) (int, error) {
				if times++; times == 2 {
					<-meet
				}
				return 1, nil
			}, effects.Idempotent)
			return err
		}, rest("x")),
		steps(rest("y"), func(ctx context.Context, _ *outside) error {
			_, err := effects.Do(ctx, "b", func(context.Context) (int, error) { close(meet); return 1, nil }, effects.Idempotent)
			return err
		}),
	))
	w.next()
	w.store.Void(w.id(), w.store.Rows(w.id())[0].Key)
	w.wake(journal.PauseSleep, "y", "")
	require.Equal(t, []string{"sleep x at 1.0.2"}, waits(w.next()))
	require.Equal(t, 2, times)
}

func TestAnOperatorsNotDoneRunsAgain(t *testing.T) {
	t.Parallel()
	var o outside
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		a, err := do(ctx, &o, "a", 1)
		if err != nil {
			return 0, err
		}
		if err := Sleep(ctx, "rest", time.Second); err != nil {
			return 0, err
		}
		return a, nil
	}, `1`)
	w.next()
	w.store.Void(w.id(), w.store.Rows(w.id())[0].Key)
	w.wake(journal.PauseSleep, "rest", "")
	require.Equal(t, 1, result[int](t, w.next()))
	n, most := o.keys()
	require.Equal(t, []int{2, 1}, []int{n, most}, "under the next key")
	require.Equal(t, store.EffectNotDone, w.store.Rows(w.id())[0].State)
}
