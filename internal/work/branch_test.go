package work

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

func TestBranchesGoOnTogether(t *testing.T) {
	t.Parallel()
	meet := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ int) ([]int, error) {
		var o outside
		return workers.All(ctx,
			func(ctx context.Context) (int, error) {
				return effects.Do(ctx, "a", func(context.Context) (int, error) { meet <- struct{}{}; return 1, nil })
			},
			func(ctx context.Context) (int, error) {
				return effects.Do(ctx, "b", func(context.Context) (int, error) { <-meet; return 2, nil })
			},
			func(ctx context.Context) (int, error) { return 3, steps(rest("rest"), call("c"))(ctx, &o) },
		)
	}, `1`)
	require.Equal(t, []string{"sleep rest at 1.2.1"}, waits(w.next()), "it waits for what is outside, then suspends")
	w.wake(journal.PauseSleep, "rest", "")
	require.Equal(t, []int{1, 2, 3}, result[[]int](t, w.next()))
	require.ElementsMatch(t, []string{"1.0.1 a completed 1", "1.1.1 b completed 2", "1.2.2 c completed 1"}, w.recorded())
}

// A branch goes as far as it can before the next one begins.
func TestBranchesBeginInTheirOrder(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(name string) code {
		return func(context.Context, *outside) error { order = append(order, name); return nil }
	}
	w := play(t, both(
		steps(note("a1"), both(note("a2"), note("a3")), note("a4"), rest("x"), note("no")),
		both(steps(note("b1"), rest("y")), note("b2")),
	))
	w.next()
	require.Equal(t, []string{"a1", "a2", "a3", "a4", "b1", "b2"}, order)
}

func TestAllSuspendsUntilAllThatItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(ctx context.Context, _ int) ([]string, error) {
		return workers.All(ctx,
			func(ctx context.Context) (string, error) { return "a", workers.Sleep(ctx, "a", time.Second) },
			func(ctx context.Context) (string, error) {
				in, err := workers.All(ctx,
					func(ctx context.Context) (string, error) { return workers.Await[string](ctx, "b", 0) },
					func(ctx context.Context) (string, error) { return "c", errors.New("c failed") },
				)
				return fmt.Sprint(in), err
			},
			func(ctx context.Context) (string, error) { return "d", errors.New("d failed") },
		)
	}, `1`)
	require.Equal(t, []string{"sleep a at 1.0.1", "signal b at 1.1.1.0.1"}, waits(w.next()), "errors wait for the others")
	w.wake(journal.PauseSignal, "b", `"B"`)
	require.Equal(t, []string{"sleep a at 1.0.1"}, waits(w.next()))
	w.wake(journal.PauseSleep, "a", "")
	r := w.next()
	failedWith(t, r, journal.ResponseFailedAttempt, 500, wire.ClassError)
	require.Equal(t, "c failed", r.Error.Message, "the first by index")
}

func TestFirstIsRecordedAndTheOthersHaveLost(t *testing.T) {
	t.Parallel()
	w := play(t, steps(race(
		steps(rest("long"), call("slept")),
		steps(func(ctx context.Context, _ *outside) error {
			_, err := workers.Await[string](ctx, "go", 0)
			return err
		}, call("inside")),
	), rest("after")))
	require.Equal(t, []string{"sleep long at 1.0.1", "signal go at 1.1.1"}, waits(w.next()))
	w.wake(journal.PauseSignal, "go", `"x"`)
	require.Equal(t, []string{"sleep after at 2"}, waits(w.next()), "nothing of the lost branch is waited for")
	require.False(t, w.store.Wake(w.id(), journal.PauseSleep, "long", &journal.Response{}))
	w.wake(journal.PauseSleep, "after", "")
	require.Equal(t, 0, result[int](t, w.next()))
	require.Equal(t, []string{"1.1.2 inside completed 1", "1 first completed 1"}, w.recorded())
}

func TestFirstOfThoseThatHaveEnded(t *testing.T) {
	t.Parallel()
	fn := func(ctx context.Context, _ int) (int, error) {
		i, _, err := workers.First(ctx,
			branchOf(rest("a"), nil),
			branchOf(steps(rest("b1"), rest("b2")), nil),
			branchOf(rest("c"), nil),
			branchOf(both(rest("d1"), rest("d2")), nil),
		)
		return i, err
	}
	for name, c := range map[string]struct {
		come []string
		want int
	}{
		"the last wait counts": {[]string{"b1", "a"}, 0},
		"by its entry":         {[]string{"c", "a"}, 2},
		"alone":                {[]string{"c"}, 2},
		"of All the last":      {[]string{"d1", "c", "d2"}, 2},
		"of All, and first":    {[]string{"d1", "d2", "c"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fn, `1`)
			w.next()
			for _, p := range c.come {
				w.wake(journal.PauseSleep, p, "")
			}
			require.Equal(t, c.want, result[int](t, w.next()))
		})
	}
}

// A call outside of a branch that loses is cut off. Its result is recorded, an unknown outcome is of no
// consequence, and its branch goes on no further.
func TestALostCallOutsideIsCut(t *testing.T) {
	t.Parallel()
	for _, has := range []bool{false, true} {
		var told error
		went, inside := false, make(chan struct{})
		w := play(t, race(
			func(ctx context.Context, o *outside) error {
				err := does("slow", func(ctx context.Context) (int, error) {
					close(inside)
					<-ctx.Done()
					if told = context.Cause(ctx); has {
						return 7, nil
					}
					return 0, told // an unknown outcome would park the request
				})(ctx, o)
				went = true
				return err
			},
			until(inside),
		))
		require.Equal(t, 0, result[int](t, w.next()))
		require.ErrorIs(t, told, durable.ErrLost)
		slow := "1.0.1 slow started "
		if has {
			slow = "1.0.1 slow completed 7"
			require.False(t, went)
		}
		require.ElementsMatch(t, []string{"1 first completed 1", slow, "1.1.1 until completed 1"}, w.recorded())
		require.Equal(t, ReplayReturned, w.replay().End)
	}
}

// A branch that has lost while its own branches ran goes on no further when they have ended.
func TestALostBranchStopsBehindItsBranches(t *testing.T) {
	t.Parallel()
	went, inside := false, make(chan struct{})
	slow := does("slow", func(ctx context.Context) (int, error) {
		close(inside)
		<-ctx.Done()
		return 1, nil
	}, effects.Idempotent)
	w := play(t, race(
		steps(both(slow, nothing), func(context.Context, *outside) error { went = true; return nil }),
		until(inside),
	))
	require.Equal(t, 0, result[int](t, w.next()))
	require.False(t, went)
}

// A branch loses inside a call, and a later call shares its unknown outcome.
func TestOnceOfALostBranch(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{})
	w := play(t, steps(
		race(does("rate", func(ctx context.Context) (int, error) {
			close(inside)
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, effects.Idempotent, effects.Once()), until(inside)),
		func(ctx context.Context, o *outside) error {
			_ = call("rate", effects.Once())(ctx, o) // with an unknown outcome
			return call("more")(ctx, o)
		},
	))
	r := w.next()
	require.Equal(t, journal.ResponseFailedAttempt, r.Kind, "its outcome is unknown, for whoever asks for it")
	require.Empty(t, w.outer.names)
	require.Equal(t, 0, result[int](t, w.next()))
	require.Equal(t, []string{"rate", "more"}, w.outer.names)
}

// A call of a branch that lost before the call began can be made by another branch.
func TestOnceOfABranchThatLostBeforeItBegan(t *testing.T) {
	t.Parallel()
	rate := call("rate", effects.Once())
	w := play(t, both(nothing, steps(call("a"), rest("z"))))
	w.next()
	w.change(both(steps(race(rate, nothing), rate), steps(call("a"), rest("z"))))
	require.Equal(t, []string{"sleep z at 1.1.2"}, waits(w.next()))
	require.Equal(t, []string{"a", "rate"}, w.outer.names)
	require.Equal(t, []string{"1.1.1 a completed 1", "1.0.1 first completed 1", "1.0.2 rate completed 1"}, w.recorded())
}

func TestAPanicEndsTheBranchesBesideIt(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{})
	w := play(t, race(
		func(ctx context.Context, o *outside) error {
			err := does("slow", func(ctx context.Context) (int, error) { close(inside); <-ctx.Done(); return 1, nil })(ctx, o)
			o.called(ctx, "went on")
			return errors.Join(err, call("more")(ctx, o))
		},
		steps(until(inside), func(context.Context, *outside) error { panic("boom") }),
	))
	failedWith(t, w.next(), journal.ResponseFailedAttempt, 500, wire.ClassPanic)
	require.Empty(t, w.outer.names)
	require.ElementsMatch(t, []string{"1.0.1 slow completed 1", "1.1.1 until completed 1"}, w.recorded())
}

// until is a call that lasts until c is closed.
func until(c <-chan struct{}) code {
	return does("until", func(context.Context) (int, error) { <-c; return 1, nil }, effects.Idempotent)
}

func TestPanicsOfBranchesAreTheFunctions(t *testing.T) {
	t.Parallel()
	for name, fn := range map[string]func(context.Context) (int, error){
		"main":   func(context.Context) (int, error) { panic("boom") },
		"goexit": func(context.Context) (int, error) { runtime.Goexit(); return 0, nil },
		"recover": func(ctx context.Context) (v int, err error) {
			defer func() { err = fmt.Errorf("again: %v", recover()) }()
			panic("boom")
		},
	} {
		for _, at := range []string{"alone", "All", "First"} {
			t.Run(name+" "+at, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
					rest := func(ctx context.Context) (int, error) { return 0, workers.Sleep(ctx, "rest", time.Hour) }
					switch at {
					case "All":
						v, err := workers.All(ctx, rest, fn)
						return len(v), err
					case "First":
						_, v, err := workers.First(ctx, rest, fn)
						return v, err
					}
					return fn(ctx)
				}, `1`)
				if name == "recover" && at == "All" {
					require.Equal(t, journal.ResponseSuspended, w.next().Kind, "it is an error, and that waits for the others")
					return
				}
				r := w.next()
				require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
				switch name {
				case "main":
					require.Equal(t, wire.ClassPanic, r.Error.Class)
					require.Contains(t, r.Error.Stack, "branch_test.go")
				case "goexit":
					require.Contains(t, r.Error.Message, "Goexit")
				}
			})
		}
	}
}

// Pauses of a lost branch are cancelled and do not count.
func TestE15LostWaitsDoNotCount(t *testing.T) {
	t.Parallel()
	w := play(t, func(ctx context.Context, o *outside) error {
		for i := range wire.MaxPauses + 1 {
			if err := race(rest(fmt.Sprint("patience", i)), call(fmt.Sprint("ask", i), effects.Pure))(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
	require.Equal(t, 0, result[int](t, w.next()))
}

// A name that a lost branch has used can be used again, in the run that decides and in
// its replays: a loop waits for the same signal each time.
func TestE15ANameOfALostBranchCanBeUsedAgain(t *testing.T) {
	t.Parallel()
	passes := func(ctx context.Context, _ int) (string, error) {
		for i := range 3 {
			who, text, err := workers.First(ctx,
				func(ctx context.Context) (string, error) { return workers.Await[string](ctx, "stop", 0) },
				func(ctx context.Context) (string, error) {
					return "", workers.Sleep(ctx, fmt.Sprint("tick", i), time.Second)
				},
			)
			if err != nil || who == 0 {
				return fmt.Sprint(i, text), err
			}
		}
		return "never", workers.Sleep(ctx, "end", time.Second)
	}
	for _, crashes := range []int{0, 1, 2} {
		w := newWorld(t, passes, `1`)
		require.Equal(t, []string{"signal stop at 1.0.1", "sleep tick0 at 1.1.1"}, waits(w.next()))
		w.wake(journal.PauseSleep, "tick0", "")
		if crashes > 0 {
			w.crash = &crash{left: 1, after: crashes > 1} // while the workers.First is recorded
		}
		require.Equal(t, []string{"signal stop at 2.0.1", "sleep tick1 at 2.1.1"}, waits(w.next()))
		w.wake(journal.PauseSignal, "stop", `"x"`)
		require.Equal(t, "1x", result[string](t, w.next()))
		require.Equal(t, ReplayReturned, w.replay(true).End)
	}
}
