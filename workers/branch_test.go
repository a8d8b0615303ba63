package workers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
)

func TestBranchesGoOnTogether(t *testing.T) {
	t.Parallel()
	var o outside
	meet := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ int) ([]int, error) {
		return All(ctx,
			func(ctx context.Context) (int, error) {
				return effects.Do(ctx, "a", func(context.Context) (int, error) { meet <- struct{}{}; return 1, nil })
			},
			func(ctx context.Context) (int, error) {
				return effects.Do(ctx, "b", func(context.Context) (int, error) { <-meet; return 2, nil })
			},
			func(ctx context.Context) (int, error) {
				if err := Sleep(ctx, "rest", time.Second); err != nil {
					return 0, err
				}
				return do(ctx, &o, "c", 3)
			},
		)
	}, `1`)
	require.Equal(t, []string{"sleep rest at 1.2.1"}, waits(w.next()), "it waits for what is outside, then suspends")
	w.wake(journal.PauseSleep, "rest", "")
	require.Equal(t, []int{1, 2, 3}, result[[]int](t, w.next()))
	require.ElementsMatch(t, []string{"1.0.1 a completed 1", "1.1.1 b completed 2", "1.2.2 c completed 3"}, w.recorded())
}

// A branch goes as far as it can before the next one begins.
func TestBranchesBeginInTheirOrder(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(name string) code {
		return func(context.Context, *outside) error { order = append(order, name); return nil }
	}
	w := newWorld(t, function0(both(
		steps(note("a1"), both(note("a2"), note("a3")), note("a4"), rest("x"), note("no")),
		both(steps(note("b1"), rest("y")), note("b2")),
	), &outside{}), `1`)
	w.next()
	require.Equal(t, []string{"a1", "a2", "a3", "a4", "b1", "b2"}, order)
}

func TestAllSuspendsUntilAllThatItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(ctx context.Context, _ int) ([]string, error) {
		return All(ctx,
			func(ctx context.Context) (string, error) { return "a", Sleep(ctx, "a", time.Second) },
			func(ctx context.Context) (string, error) {
				in, err := All(ctx,
					func(ctx context.Context) (string, error) { return Await[string](ctx, "b", 0) },
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
	failedWith(t, r, journal.ResponseFailedAttempt, 500, ClassError)
	require.Equal(t, "c failed", r.Error.Message, "the first by index")
}

func TestFirstIsRecordedAndTheOthersHaveLost(t *testing.T) {
	t.Parallel()
	var o outside
	w := newWorld(t, func(ctx context.Context, _ int) (string, error) {
		i, v, err := First(ctx,
			func(ctx context.Context) (string, error) {
				if err := Sleep(ctx, "long", time.Hour); err != nil {
					return "", err
				}
				return "slept", nil
			},
			func(ctx context.Context) (string, error) {
				v, err := Await[string](ctx, "go", 0)
				if err != nil {
					return "", err
				}
				return do(ctx, &o, "inside", v)
			},
		)
		if err != nil {
			return "", err
		}
		if err := Sleep(ctx, "after", time.Second); err != nil {
			return "", err
		}
		return fmt.Sprint(i, v), nil
	}, `1`)
	require.Equal(t, []string{"sleep long at 1.0.1", "signal go at 1.1.1"}, waits(w.next()))
	w.wake(journal.PauseSignal, "go", `"x"`)
	require.Equal(t, []string{"sleep after at 2"}, waits(w.next()), "nothing of the lost branch is waited for")
	require.False(t, w.store.Wake(w.id(), journal.PauseSleep, "long", &journal.Response{}))
	w.wake(journal.PauseSleep, "after", "")
	require.Equal(t, "1x", result[string](t, w.next()))
	require.Equal(t, []string{"1.1.2 inside completed \"x\"", "1 first completed 1"}, w.recorded())
}

func TestFirstOfThoseThatHaveEnded(t *testing.T) {
	t.Parallel()
	fn := func(ctx context.Context, _ int) (int, error) {
		i, _, err := First(ctx,
			func(ctx context.Context) (int, error) { return 0, Sleep(ctx, "a", time.Second) },
			func(ctx context.Context) (int, error) {
				return All0(ctx, Sleep(ctx, "b1", time.Second), func() error { return Sleep(ctx, "b2", time.Second) })
			},
			func(ctx context.Context) (int, error) { return 0, Sleep(ctx, "c", time.Second) },
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

// All0 calls then unless the step before it failed.
func All0(_ context.Context, err error, then func() error) (int, error) {
	if err != nil {
		return 0, err
	}
	return 0, then()
}

func TestALostCallOutsideIsCutAndOfNoConsequence(t *testing.T) {
	t.Parallel()
	told, inside := make(chan error, 1), make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		i, _, err := First(ctx,
			func(ctx context.Context) (int, error) {
				return effects.Do(ctx, "slow", func(ctx context.Context) (int, error) {
					close(inside)
					<-ctx.Done()
					told <- context.Cause(ctx)
					return 0, context.Cause(ctx) // an unknown outcome would park the request
				})
			},
			func(ctx context.Context) (int, error) {
				return effects.Do(ctx, "fast", func(context.Context) (int, error) { <-inside; return 1, nil })
			},
		)
		return i, err
	}, `1`)
	require.Equal(t, 1, result[int](t, w.next()))
	require.ErrorIs(t, <-told, ErrLost)
}

func TestAResultOfALostCallIsRecorded(t *testing.T) {
	t.Parallel()
	went, inside := false, make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		_, v, err := First(ctx,
			func(ctx context.Context) (int, error) {
				v, err := effects.Do(ctx, "slow", func(ctx context.Context) (int, error) { close(inside); <-ctx.Done(); return 7, nil })
				went = true
				return v, err
			},
			func(ctx context.Context) (int, error) {
				return effects.Do(ctx, "fast", func(context.Context) (int, error) { <-inside; return 1, nil })
			},
		)
		return v, err
	}, `1`)
	require.Equal(t, 1, result[int](t, w.next()))
	require.False(t, went, "a branch that has lost goes on no further")
	require.ElementsMatch(t, []string{"1 first completed 1", "1.0.1 slow completed 7", "1.1.1 fast completed 1"}, w.recorded())
	require.Equal(t, ReplayReturned, w.replay().End)
}

// A branch loses inside a call, and a later call shares its unknown outcome.
func TestOnceOfALostBranch(t *testing.T) {
	t.Parallel()
	var o outside
	inside := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		return 0, steps(
			race(func(ctx context.Context, o *outside) error {
				_, err := effects.Do(ctx, "rate", func(ctx context.Context) (int, error) {
					close(inside)
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}, effects.Idempotent, effects.Once())
				return err
			}, until(inside)),
			func(ctx context.Context, o *outside) error {
				_ = call("rate", effects.Once())(ctx, o) // with an unknown outcome
				return call("more")(ctx, o)
			},
		)(ctx, &o)
	}, `1`)
	r := w.next()
	require.Equal(t, journal.ResponseFailedAttempt, r.Kind, "its outcome is unknown, for whoever asks for it")
	require.Empty(t, o.names)
	require.Equal(t, 0, result[int](t, w.next()))
	require.Equal(t, []string{"rate", "more"}, o.names)
}

// A call of a branch that lost before the call began can be made by another branch.
func TestOnceOfABranchThatLostBeforeItBegan(t *testing.T) {
	t.Parallel()
	var o outside
	rate := call("rate", effects.Once())
	w := newWorld(t, function0(both(nothing, steps(call("a"), rest("z"))), &o), `1`)
	w.next()
	deploy(w, function0(both(steps(race(rate, nothing), rate), steps(call("a"), rest("z"))), &o))
	require.Equal(t, []string{"sleep z at 1.1.2"}, waits(w.next()))
	require.Equal(t, []string{"a", "rate"}, o.names)
	require.Equal(t, []string{"1.1.1 a completed 1", "1.0.1 first completed 1", "1.0.2 rate completed 1"}, w.recorded())
}

func TestAPanicEndsTheBranchesBesideIt(t *testing.T) {
	t.Parallel()
	var o outside
	inside := make(chan struct{})
	w := newWorld(t, function0(race(
		func(ctx context.Context, o *outside) error {
			_, err := effects.Do(ctx, "slow", func(ctx context.Context) (int, error) { close(inside); <-ctx.Done(); return 1, nil })
			o.called(ctx, "went on")
			return errors.Join(err, call("more")(ctx, o))
		},
		steps(until(inside), func(context.Context, *outside) error { panic("boom") }),
	), &o), `1`)
	failedWith(t, w.next(), journal.ResponseFailedAttempt, 500, ClassPanic)
	require.Empty(t, o.names)
	require.ElementsMatch(t, []string{"1.0.1 slow completed 1", "1.1.1 until completed 1"}, w.recorded())
}

// until is a call that lasts until c is closed.
func until(c <-chan struct{}) code {
	return func(ctx context.Context, _ *outside) error {
		_, err := effects.Do(ctx, "until", func(context.Context) (int, error) { <-c; return 1, nil }, effects.Idempotent)
		return err
	}
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
					rest := func(ctx context.Context) (int, error) { return 0, Sleep(ctx, "rest", time.Hour) }
					switch at {
					case "All":
						v, err := All(ctx, rest, fn)
						return len(v), err
					case "First":
						_, v, err := First(ctx, rest, fn)
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
					require.Equal(t, ClassPanic, r.Error.Class)
					require.Contains(t, r.Error.Stack, "branch_test.go")
				case "goexit":
					require.Contains(t, r.Error.Message, "Goexit")
				}
			})
		}
	}
}
