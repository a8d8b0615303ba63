package work

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// A function suspends where it waits, again as long as the wait is not over, and goes on from there
// later. Deferred functions run, stop nothing, and make no calls before the end.
func TestE12ASleepSuspendsAndIsOverLater(t *testing.T) {
	t.Parallel()
	unwound, after := 0, 0
	w := play(t, func(ctx context.Context, o *outside) (err error) {
		defer func() {
			_ = recover() // it stops nothing
			unwound++
			_, err = do(ctx, o, "unlock", 1)
			after++
		}()
		return steps(call("a"), rest("rest"), call("b"))(ctx, o)
	})
	r := w.next()
	require.Equal(t, []string{"sleep rest at 2"}, waits(r))
	require.Equal(t, time.Second.Microseconds(), r.Pauses[0].For)
	require.Equal(t, []int{1, 0}, []int{unwound, after}, "a suspended function makes no calls, and nothing after them runs")
	require.Equal(t, []string{"sleep rest at 2"}, waits(w.next()), "and again as long as it has not come")
	w.wake(journal.PauseSleep, "rest", "")
	require.Equal(t, 0, result[int](t, w.next()))
	require.Equal(t, []string{"1 a completed 1", "3 b completed 1", "4 unlock completed 1"}, w.recorded())
	require.Equal(t, []string{"a", "b", "unlock"}, w.outer.names, "each once")
}

func TestAFirstRunWithoutEffectsCostsNoRoundTrip(t *testing.T) {
	t.Parallel()
	w := play(t, rest("rest"))
	w.next()
	require.Empty(t, w.store.Calls())
	w.wake(journal.PauseSleep, "rest", "")
	w.next()
	require.ElementsMatch(t, []string{"Lease", "Effects", "Pauses"}, w.store.Calls())
}

func TestE12SignalsAndChildren(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(ctx context.Context, _ int) (string, error) {
		s, err := workers.Await[string](ctx, "go", time.Minute)
		n, failed := workers.Child[int](ctx, "kid", "count", map[string]int{"b": 2, "a": 1}, workers.ChildKey("k"), workers.ChildVersion("7"))
		return fmt.Sprint(s, " ", n), errors.Join(err, failed)
	}, `1`)
	p := w.next().Pauses[0]
	require.Equal(t, []any{"go", "go", "key", time.Minute.Microseconds()}, []any{p.Name, p.Topic, p.Key, p.For}, "the job's key is the default")
	w.wake(journal.PauseSignal, "go", `"now"`)
	p = w.next().Pauses[0]
	require.Equal(t, []any{"kid", "count", "k", "7", `{"a":1,"b":2}`}, []any{p.Name, p.Flow, p.Key, p.Version, string(p.Input)})
	w.wake(journal.PauseChild, "kid", `5`)
	require.Equal(t, "now 5", result[string](t, w.next()))
}

// What a wait ends with ends the activity, unless the function does something else with it.
func TestE12FactsEndTheActivity(t *testing.T) {
	t.Parallel()
	within := func(d time.Duration) code {
		return func(ctx context.Context, _ *outside) error {
			_, err := workers.Await[int](ctx, "go", d, workers.SignalKey("x"), workers.As("n"))
			return err
		}
	}
	signal := within(time.Minute)
	bounded := func(ctx context.Context, o *outside) error {
		if err := signal(ctx, o); !errors.Is(err, workers.ErrAwaitTimeout) {
			return err
		}
		return nil
	}
	child := func(ctx context.Context, _ *outside) error {
		_, err := workers.Child[int](ctx, "n", "count", 1)
		return err
	}
	for name, c := range map[string]struct {
		code  code
		kind  journal.PauseKind
		with  journal.Response
		ends  int
		class string
		says  string
	}{
		"timeout": {signal, journal.PauseSignal, journal.Response{Code: 200, By: journal.ByTimer}, 408, wire.ClassTimeout, ""},
		"bounded": {bounded, journal.PauseSignal, journal.Response{Code: 200, By: journal.ByTimer}, 200, "", ""},
		"error": {within(0), journal.PauseSignal, journal.Response{
			Code: 409, By: journal.BySignal, Error: &journal.Failure{Class: "signal", Data: []byte(`{"why":1}`)},
		}, 409, wire.ClassSignal, ""},
		"no number": {
			signal, journal.PauseSignal,
			journal.Response{Code: 200, By: journal.BySignal, Output: []byte(`"no number"`)},
			400,
			wire.ClassInput, "",
		},
		"child failed": {
			child, journal.PauseChild,
			journal.Response{Code: 410, Error: &journal.Failure{Class: "interrupted", Message: "stop"}},
			410, "interrupted",
			`child "n"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, c.code)
			p := w.next().Pauses[0]
			require.Equal(t, c.kind == journal.PauseSignal, p.Key == "x")
			require.Equal(t, c.kind == journal.PauseSignal && name != "error", p.For > 0)
			w.wakeWith(c.kind, "n", &c.with)
			r := w.next()
			if c.ends == 200 {
				require.Equal(t, 0, result[int](t, r))
				return
			}
			failedWith(t, r, journal.ResponseTerminal, c.ends, c.class, c.says)
			require.Equal(t, name == "error", string(r.Error.Data) == `{"why":1}`)
		})
	}
}

func TestE15RecordedValues(t *testing.T) {
	t.Parallel()
	var seen [][3]any
	w := play(t, func(ctx context.Context, _ *outside) error {
		now, errNow := workers.Now(ctx)
		n, errRand := workers.Rand(ctx)
		id, errID := workers.UUID(ctx)
		seen = append(seen, [3]any{now, n, id})
		return errors.Join(errNow, errRand, errID, workers.Sleep(ctx, "rest", 0))
	})
	w.next()
	w.next()
	require.Len(t, seen, 2)
	require.Equal(t, seen[0], seen[1])
	require.NotZero(t, seen[0][1])
	require.Len(t, seen[0][2], 36)
}

func TestE2DuplicatesOfWaits(t *testing.T) {
	t.Parallel()
	// another kind
	signal := func(ctx context.Context, _ *outside) error { _, err := workers.Await[int](ctx, "x", 0); return err }
	r := play(t, both(both(rest("x"), signal), rest("x"))).next()
	failedWith(t, r, journal.ResponseFailedAttempt, 500, wire.ClassError, `sleep "x" was asked for twice`)
}

func TestNothingElseIsBegunAfterAFailure(t *testing.T) {
	t.Parallel()
	failure := errors.New("connection reset")
	w := play(t, func(ctx context.Context, o *outside) error {
		err := does("a", func(context.Context) (int, error) { return 1, failure }, effects.Idempotent)(ctx, o)
		if err != nil { // a path that no later run would take
			err := call("fallback")(ctx, o)
			_ = workers.Sleep(ctx, "rest", time.Second)
			if err == nil {
				return nil
			}
		}
		return call("b")(ctx, o)
	})
	r := w.next()
	require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
	require.Contains(t, r.Error.Message, "connection reset")
	failure = nil
	require.Equal(t, 0, result[int](t, w.next()))
	require.Equal(t, []string{"b"}, w.outer.names)
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
			return 0, effects.NotDone(workers.RetryAfter(time.Second, errors.New("refused")))
		})
	}
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		v, err := charge(ctx)
		if effects.IsNotDone(err) {
			if _, isRetry := errors.AsType[*port.Retry](err); isRetry {
				return 0, errors.New("a run sees more than a replay of it")
			}
			if err := workers.Sleep(ctx, "wait", time.Second); err != nil {
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
		steps(does("a", func(context.Context) (int, error) {
			if times++; times == 2 {
				<-meet
			}
			return 1, nil
		}, effects.Idempotent), rest("x")),
		steps(rest("y"), does("b", func(context.Context) (int, error) { close(meet); return 1, nil }, effects.Idempotent)),
	))
	w.next()
	w.store.Decide(w.id(), w.store.Rows(w.id())[0].Key, func(e *store.EffectRow) {
		e.State, e.Result, e.Error = store.EffectNotDone, nil, &journal.Failure{Class: store.FailureVoided}
	})
	w.wake(journal.PauseSleep, "y", "")
	require.Equal(t, []string{"sleep x at 1.0.2"}, waits(w.next()))
	require.Equal(t, 2, times)
}
