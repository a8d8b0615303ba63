package work

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// standsAt is a function that has slept once, and stands at its second sleep.
func standsAt(t *testing.T, body func(ctx context.Context, n int) error) *world {
	w := newWorld(t, func(ctx context.Context, n int) (int, error) {
		for i := range 9 {
			if err := workers.Sleep(ctx, fmt.Sprint(i), time.Hour); err != nil {
				return i, err
			}
			if err := body(ctx, i); err != nil {
				return i, err
			}
		}
		return n, nil
	}, `9`)
	w.stands = true
	w.next()
	w.wake(journal.PauseSleep, "0", "")
	require.Equal(t, []string{"sleep 1 at 2"}, waits(w.next()))
	require.Equal(t, 1, w.wentOn)
	return w
}

func sleepsOnly(context.Context, int) error { return nil }

// Another process that had the request in between leaves a record with which the function does not
// go on: it runs from its top. So it does if its wake-up is not there yet, or no longer.
func TestE12WhatStoodBeforeAnotherRunIsDropped(t *testing.T) {
	t.Parallel()
	w := standsAt(t, sleepsOnly)
	require.Equal(t, []string{"sleep 1 at 2"}, waits(w.next()))
	stood := w.from
	w.from = nil
	w.wake(journal.PauseSleep, "1", "")
	w.next() // elsewhere
	w.dropped()
	w.wake(journal.PauseSleep, "2", "")
	w.from = stood
	require.Equal(t, []string{"sleep 3 at 4"}, waits(w.next()))
	require.Equal(t, 1, w.wentOn)
	require.False(t, stood.Stands())
	w.dropped()
}

// The contexts of a function that goes on are those of the run under way: they end with
// it, whatever became of the runs before, and have its values.
func TestE12AStandingFunctionHasTheContextOfItsRun(t *testing.T) {
	t.Parallel()
	var turn int
	var contexts []context.Context
	w := standsAt(t, func(ctx context.Context, n int) error {
		turn = workers.Info(ctx).Turn
		contexts = append(contexts, ctx)
		return context.Cause(ctx)
	})
	require.Equal(t, 2, turn)
	run := func(cause error) (end func()) {
		ctx, cancel := context.WithCancelCause(context.Background())
		ctx, done := context.WithTimeout(ctx, time.Hour)
		w.wake(journal.PauseSleep, fmt.Sprint(len(contexts)), "")
		if cause != nil {
			cancel(cause)
		}
		r := w.runIn(ctx)
		w.heard(r)
		return func() { done(); cancel(nil) }
	}
	before := w.wentOn
	run(nil)() // that run is over, and its context has ended
	require.Equal(t, 3, turn)
	end := run(nil)
	require.Equal(t, 4, turn)
	require.Equal(t, before+2, w.wentOn)
	require.NoError(t, contexts[0].Err())
	_, timed := contexts[0].Deadline()
	require.True(t, timed)
	end()
	w.dropped()
	<-contexts[0].Done()
}

// A function whose attempt ended while it came to its wait does not stand there.
func TestE12AFunctionWhoseContextEndedDoesNotStand(t *testing.T) {
	t.Parallel()
	cause := errors.New("drained")
	ctx, cancel := context.WithCancelCause(context.Background())
	w := standsAt(t, func(ctx context.Context, n int) error {
		if n == 1 {
			cancel(cause)
			<-ctx.Done()
			require.Equal(t, cause, context.Cause(ctx))
		}
		return nil
	})
	w.wake(journal.PauseSleep, "1", "")
	require.Equal(t, []string{"sleep 2 at 3"}, waits(w.runIn(ctx)))
	require.Nil(t, w.from)
}

// A call with a key of an earlier run of the function is refused, as in a run from the top.
func TestE2StandingFunctionsKnowTheirKeys(t *testing.T) {
	t.Parallel()
	o := &outside{}
	w := standsAt(t, func(ctx context.Context, n int) error {
		if n == 0 {
			return nil
		}
		_, err := do(ctx, o, "charge", 1, effects.WithKey("the same"))
		return err
	})
	w.wake(journal.PauseSleep, "1", "")
	require.Equal(t, []string{"sleep 2 at 4"}, waits(w.next()))
	w.wake(journal.PauseSleep, "2", "")
	r := w.next()
	require.Equal(t, 3, w.wentOn)
	require.Equal(t, journal.ResponseFailedAttempt, r.Kind)
	require.Contains(t, r.Error.Message, "the same")
	n, most := o.keys()
	require.Equal(t, []int{1, 1}, []int{n, most})
	require.Nil(t, w.from)
}

// The deferred calls of a function that stands run when it is dropped; those that are
// calls of this package do nothing.
func TestE12ADroppedFunctionEnds(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 2)
	w := newWorld(t, func(ctx context.Context, _ int) (int, error) {
		defer func() {
			ended <- context.Cause(ctx)
			_ = workers.Sleep(ctx, "in a deferred call", time.Hour)
			ended <- errors.New("a call went on")
		}()
		return 0, workers.Sleep(ctx, "first", time.Hour)
	}, `1`)
	w.stands = true
	w.next()
	require.Empty(t, ended)
	w.dropped()
	require.Len(t, ended, 1)
	require.NoError(t, <-ended, "its context still stood")
}

// standing has a bounded number of functions, for their next turns.
func TestE12StandingIsBounded(t *testing.T) {
	t.Parallel()
	s := standing{limit: 2}
	put := func(name byte, top int) *durable.Function {
		f := standsAt(t, sleepsOnly).from
		s.put(journal.GUID{name}, stood{Function: f, turn: 30, top: top})
		return f
	}
	takes := func(name byte, turn int) *durable.Function {
		f, ok := s.take(journal.GUID{name}, turn)
		require.Equal(t, ok, f.Function != nil)
		return f.Function
	}
	a, b, c := put('a', 26), put('b', 30), put('c', 29)
	require.False(t, a.Stands(), "the one that stood longest")
	require.Nil(t, takes('a', 31))
	require.Nil(t, takes('b', 32), "another turn")
	require.False(t, b.Stands())
	require.Nil(t, takes('c', 31), "it is time for a run from the top")
	require.False(t, c.Stands())
	d := put('d', 30)
	require.Equal(t, d, takes('d', 31))
	require.True(t, d.Stands())
	d.Drop()
	e, again := put('e', 30), put('e', 30)
	require.False(t, e.Stands())
	s.close()
	require.False(t, again.Stands())
	require.False(t, put('f', 30).Stands(), "too late")
}

// What another process has recorded in the same turn is not passed over: if it was undoing the
// function when it gave the request back, that goes on, and the function does not (3.5).
func TestE12WhatStoodBeforeItsFunctionWasUndoneIsDropped(t *testing.T) {
	t.Parallel()
	o, gone := &outside{}, errors.New("the process drains")
	fn := func(elsewhere bool) func(context.Context, int) (int, error) {
		return func(ctx context.Context, _ int) (int, error) {
			for _, name := range []string{"flight", "hotel"} {
				err := workers.Compensate(ctx, name, func(ctx context.Context) error {
					if elsewhere && name == "flight" {
						return gone
					}
					o.called(ctx, "undo "+name)
					return nil
				})
				if err != nil {
					return 0, err
				}
			}
			if err := workers.Sleep(ctx, "first", time.Hour); err != nil {
				return 0, err
			}
			if elsewhere {
				return 0, workers.Fail(409, "no car")
			}
			return do(ctx, o, "car", 1)
		}
	}
	w := newWorld(t, fn(false), `9`)
	w.stands = true
	require.Equal(t, []string{"sleep first at 3"}, waits(w.next()))
	here, stood := w.reg, w.from
	require.NotNil(t, stood)
	w.from = nil
	w.wake(journal.PauseSleep, "first", "")
	deploy(w, fn(true))
	w.run() // elsewhere
	w.store.Expire(w.id())
	require.Equal(t, []string{"undo hotel"}, o.names)
	w.reg, w.from = here, stood
	r := w.next()
	failedWith(t, r, journal.ResponseTerminal, 409, wire.ClassBusiness)
	require.True(t, r.Undone)
	require.Equal(t, []string{"undo hotel", "undo flight"}, o.names)
	require.False(t, stood.Stands())
}
