package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

type code func(ctx context.Context, o *outside) error

// steps runs codes one after the other.
func steps(list ...code) code {
	return func(ctx context.Context, o *outside) error {
		for _, s := range list {
			if err := s(ctx, o); err != nil {
				return err
			}
		}
		return nil
	}
}

func call(name string, options ...effects.Option) code {
	return func(ctx context.Context, o *outside) error {
		_, err := do(ctx, o, name, 1, options...)
		return err
	}
}

func rest(name string) code {
	return func(ctx context.Context, _ *outside) error { return workers.Sleep(ctx, name, time.Second) }
}

func both(a, b code) code {
	return func(ctx context.Context, o *outside) error {
		_, err := workers.All(ctx, branchOf(a, o), branchOf(b, o))
		return err
	}
}

func race(a, b code) code {
	return func(ctx context.Context, o *outside) error {
		_, _, err := workers.First(ctx, branchOf(a, o), branchOf(b, o))
		return err
	}
}

func branchOf(c code, o *outside) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return 0, c(ctx, o) }
}

func undoable(name string) code {
	return func(ctx context.Context, o *outside) error {
		return workers.Compensate(ctx, name, func(ctx context.Context) error { o.called(ctx, "undo "+name); return nil })
	}
}

func moment(ctx context.Context, _ *outside) error { _, err := workers.Now(ctx); return err }

func changed(name string) code {
	return func(ctx context.Context, _ *outside) error { _, err := workers.Version(ctx, name, 1); return err }
}

// does is an effect with a body.
func does(name string, body func(context.Context) (int, error), options ...effects.Option) code {
	return func(ctx context.Context, _ *outside) error {
		_, err := effects.Do(ctx, name, body, options...)
		return err
	}
}

// play is a world whose function makes calls; they are counted in w.outer.
func play(t testing.TB, c code) *world {
	var o outside
	w := newWorld(t, function0(c, &o), `1`)
	w.outer = &o
	return w
}

// change replaces the function's calls.
func (w *world) change(c code) { deploy(w, function0(c, w.outer)) }

func function0(c code, o *outside) func(context.Context, int) (int, error) {
	return func(ctx context.Context, _ int) (int, error) { return 0, c(ctx, o) }
}

// E15: a function that was changed under a running job is parked with the first
// difference, and records nothing.
func TestE15ChangedFunctionsAreParked(t *testing.T) {
	t.Parallel()
	a, b, end := call("a"), call("b"), rest("end")
	text := func(ctx context.Context, o *outside) error {
		_, err := do(ctx, o, "a", "text")
		return workers.Fatal(err)
	}
	for name, c := range map[string]struct {
		before, after code
		says          string
	}{
		"another call":       {steps(a, b, end), steps(a, call("c"), end), `at position 2 it asks for effect "c", and effect "b" is recorded there`},
		"one less, last":     {steps(a, b, rest("x"), end), steps(a, b), `it ends without sleep "x", which is recorded at position 3`},
		"other arguments":    {steps(call("a", effects.Args(1)), end), steps(call("a", effects.Args(2)), end), `effect "a" with other arguments, and effect "a" is recorded there`},
		"another key":        {steps(call("a", effects.WithKey("1")), end), steps(call("a", effects.WithKey("2")), end), `it asks for effect "a[2]", and effect "a[1]" is recorded there`},
		"a call for a wait":  {steps(a, rest("x"), end), steps(a, call("x"), end), `at position 2 it asks for effect "x", and sleep "x" is recorded there`},
		"another wait":       {steps(a, rest("x"), end), steps(a, rest("y"), end), `at position 2 it asks for sleep "y", and sleep "x" is recorded there`},
		"the last wait":      {steps(a, end), steps(a, rest("y")), `at position 2 it asks for sleep "y", and sleep "end" is recorded there`},
		"no wait any more":   {steps(a, end), steps(a), `it ends without sleep "end", which is recorded at position 2`},
		"All for a call":     {steps(a, b, end), steps(both(a, b), end), `at position 1 it asks for All, and effect "a" is recorded there`},
		"a call for All":     {steps(both(a, b), end), steps(a, b, end), `at position 1 it asks for effect "a", and All or First is recorded there`},
		"more in All":        {steps(both(a, b), end), steps(both(steps(a, call("c")), b), end), `at position 1.0.2 it asks for effect "c", and the record goes on with`},
		"less in All":        {steps(both(a, steps(b, call("c"))), end), steps(both(a, b), end), `it ends without effect "c", which is recorded at position 1.1.2`},
		"moved between":      {steps(both(a, steps(b, call("c"))), end), steps(both(steps(a, call("c")), b), end), `at position 1.0.2 it asks for effect "c"`},
		"All for First":      {steps(race(a, rest("x")), end), steps(both(a, rest("x")), end), `at position 1 it asks for All, and effect "first" is recorded there`},
		"after an empty All": {steps(both(nothing, nothing), a, end), steps(b, a, end), `at position 1 it asks for effect "b", and the record goes on with effect "a" at position 2`},
		"in the fastest":     {steps(race(a, rest("x")), end), steps(race(steps(a, b), rest("x")), end), `at position 1.0.2 it asks for effect "b", and`},
		"a time":             {steps(moment, end), steps(a, end), `at position 1 it asks for effect "a", and effect "now" is recorded there`},
		"another type":       {steps(a, end), steps(text, end), `with a result of type string`},
		"a compensation":     {steps(undoable("a"), end), steps(a, end), `at position 1 it asks for effect "a", and effect "undo:a" is recorded there`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, c.before)
			for r := w.next(); waits(r)[0][:9] != "sleep end"; r = w.next() {
				w.wake(journal.PauseSleep, r.Pauses[0].Name, "")
			}
			before, calls := w.recorded(), len(w.outer.names)
			w.change(c.after)
			r := w.next()
			failedWith(t, r, journal.ResponseParked, 500, wire.ClassNondeterminism, c.says, "quipu dead retry")
			require.Equal(t, before, w.recorded(), "nothing is recorded")
			require.Len(t, w.outer.names, calls, "and nothing is done")
			replayed := w.replay()
			require.Equal(t, ReplayDiverged, replayed.End)
			require.ErrorContains(t, replayed.Err, c.says)

			w.change(c.before) // the old code resolves it
			w.wake(journal.PauseSleep, "end", "")
			require.Equal(t, 0, result[int](t, w.next()))
		})
	}
}

// A difference in one branch shows before another branch begins anything; with the old
// code the job goes on.
func TestADifferenceShowsBeforeAnythingIsBegun(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]code{
		"recorded otherwise": both(steps(call("a"), rest("x"), call("new")), steps(call("c"), rest("y"))),
		"not asked for":      both(steps(call("a"), rest("x"), call("new")), nothing),
		"nested":             both(both(steps(call("a"), rest("x"), call("new")), nothing), both(nothing, steps(call("c"), rest("y")))),
		"a version":          both(steps(call("a"), rest("x"), changed("v")), nothing),
		"a wait":             both(steps(call("a"), rest("x"), rest("new")), nothing),
		"a compensation":     both(steps(call("a"), rest("x"), undoable("new")), nothing),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := both(steps(call("a"), rest("x"), call("old")), steps(call("b"), rest("y")))
			if name == "nested" {
				old = both(both(steps(call("a"), rest("x"), call("old")), nothing), both(nothing, steps(call("b"), rest("y"))))
			}
			w := play(t, old)
			w.next()
			w.wake(journal.PauseSleep, "x", "")
			before := w.recorded()
			w.change(after)
			failedWith(t, w.next(), journal.ResponseParked, 500, wire.ClassNondeterminism)
			require.Equal(t, before, w.recorded())
			w.change(old)
			w.next()
			w.wake(journal.PauseSleep, "y", "")
			require.Equal(t, 0, result[int](t, w.next()))
		})
	}
}

func nothing(context.Context, *outside) error { return nil }

// Calls that a failed attempt did not reach are made by the next one.
func TestAFailedTryIsNoDifference(t *testing.T) {
	t.Parallel()
	w := play(t, steps(call("a"), rest("x")))
	w.next()
	deploy(w, func(context.Context, int) (int, error) { return 0, errors.New("no connection") })
	for range w.q.Attempts { // also in the last: it is exhausted, and no other path
		failedWith(t, w.next(), journal.ResponseFailedAttempt, 500, wire.ClassError)
	}
	deploy(w, func(context.Context, int) (int, error) { return 0, workers.Fail(409, "no") })
	failedWith(t, w.next(), journal.ResponseParked, 500, wire.ClassNondeterminism)
}

func TestOnceIsBoundToNoPosition(t *testing.T) {
	t.Parallel()
	once := call("rate", effects.Once())
	w := play(t, steps(both(steps(rest("x"), once), once), call("b"), once, rest("end")))
	w.next()
	require.Equal(t, []string{"1.1.1 rate completed 1"}, w.recorded())
	w.wake(journal.PauseSleep, "x", "")
	w.next()
	w.wake(journal.PauseSleep, "end", "")
	require.Equal(t, 0, result[int](t, w.next()))
	require.Equal(t, []string{"rate", "b"}, w.outer.names)
}

// A call outside is made again once it is known to have failed for good.
func TestDifferencesOfClasses(t *testing.T) {
	t.Parallel()
	w := play(t, steps(call("a"), rest("end")))
	w.next()
	w.change(steps(call("a", effects.Guarded), rest("end")))
	require.Equal(t, journal.ResponseSuspended, w.next().Kind, "another class is the same call")
}

func TestE15VersionsUnderRunningJobs(t *testing.T) {
	t.Parallel()
	fresh := func(ctx context.Context, o *outside) error {
		v, err := workers.Version(ctx, "no mail", 1)
		if err == nil && v == 0 {
			err = call("mail")(ctx, o)
		}
		return err
	}
	changed := steps(call("a"), fresh, rest("x"), fresh, call("z"))
	finish := func(w *world) {
		w.wake(journal.PauseSleep, "x", "")
		require.Equal(t, 0, result[int](t, w.next()))
	}
	running := play(t, steps(call("a"), call("mail"), rest("x"), call("z")))
	running.next()
	running.change(steps(call("a"), fresh, rest("x"), call("z")))
	finish(running)
	require.Equal(t, []string{"1 a completed 1", "2 mail completed 1", "4 z completed 1"}, running.recorded(), "0 is not recorded")

	started := play(t, changed)
	started.next()
	require.Equal(t, []string{"1 a completed 1", " version:no mail completed 1"}, started.recorded())
	finish(started)
	require.Len(t, started.recorded(), 3, "one decision for both places")

	// The call can be removed when no job needs the old code any more.
	started = play(t, changed)
	started.next()
	started.change(steps(call("a"), rest("x"), call("z")))
	finish(started)

	// A process with the old code gets a job of the new code.
	started = play(t, changed)
	started.next()
	started.change(steps(call("a"), func(ctx context.Context, _ *outside) error {
		_, err := workers.Version(ctx, "no mail", 0)
		return err
	}))
	require.Contains(t, started.next().Error.Message, "1 and more are allowed")
}

func TestE15VersionsOfBranches(t *testing.T) {
	t.Parallel()
	gate := func(ctx context.Context, o *outside) error {
		v, err := workers.Version(ctx, "c", 2)
		if err != nil {
			return err
		}
		return call("v", effects.WithKey(fmt.Sprint(v, workers.Info(ctx).DAD, len(o.names))), effects.Pure)(ctx, o)
	}
	// The branch around it has the answer.
	w := play(t, steps(gate, both(gate, nothing)))
	w.next()
	require.Equal(t, " version:c completed 2", w.recorded()[0])
	require.Len(t, w.recorded(), 3)
	// This code does not know the recorded version.
	w = play(t, steps(gate, rest("x")))
	w.next()
	w.change(changed("c"))
	failedWith(t, w.next(), journal.ResponseParked, 500, wire.ClassNondeterminism)
	// One branch is past its place, another is not.
	w = play(t, both(call("a"), rest("x")))
	w.next()
	var told [2]int
	version := func(i int) code {
		return func(ctx context.Context, _ *outside) (err error) {
			told[i], err = workers.Version(ctx, "c", 1)
			return err
		}
	}
	w.change(both(steps(version(0), call("a")), steps(rest("x"), version(1))))
	w.wake(journal.PauseSleep, "x", "")
	require.Equal(t, 0, result[int](t, w.next()))
	require.Equal(t, [2]int{0, 1}, told)
}

func TestLimitsOfFunctions(t *testing.T) {
	t.Parallel()
	waiting := func(n int, input string) code {
		return func(ctx context.Context, _ *outside) error {
			var branches []func(context.Context) (int, error)
			for i := range n {
				branches = append(branches, func(ctx context.Context) (int, error) {
					return workers.Child[int](ctx, fmt.Sprint(i), "f", input)
				})
			}
			_, err := workers.All(ctx, branches...)
			return err
		}
	}
	var deep code
	deep = func(ctx context.Context, o *outside) error { _, err := workers.All(ctx, branchOf(deep, o)); return err }
	require.Len(t, play(t, waiting(wire.MaxPauses, "")).next().Pauses, wire.MaxPauses)
	for name, c := range map[string]struct {
		code code
		says string
	}{
		"calls": {func(ctx context.Context, o *outside) error { // it ignores the error, but still ends
			for i := 0; ; i++ {
				_ = call("x", effects.Pure, effects.Args(i))(ctx, o)
			}
		}, "more than 10000 calls in one run: split the work into several activities, that of a durable function with workers.Child"},
		"pauses": {waiting(wire.MaxPauses+1, ""), "more than 1000 things"},
		"bytes":  {waiting(10, strings.Repeat("x", 50_000)), "over 262144 bytes"},
		"branches": {func(ctx context.Context, _ *outside) error {
			_, err := workers.All(ctx, make([]func(context.Context) (int, error), effect.MaxCalls+1)...)
			return err
		}, "more than 10000 branches"},
		"depth":                {deep, "nested too deep"},
		"no name":              {rest(""), effects.ErrUsage.Error()},
		"a long name":          {rest(strings.Repeat("x", 201)), effects.ErrUsage.Error()},
		"no text":              {rest("\x00"), effects.ErrUsage.Error()},
		"a long compensation":  {undoable(strings.Repeat("x", 151)), effects.ErrUsage.Error()},
		"a version of no name": {changed(""), effects.ErrUsage.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := play(t, c.code).next()
			require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
			require.Contains(t, r.Error.Message, c.says)
		})
	}
}
