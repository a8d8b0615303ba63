package workers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/durable"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
)

// E12: a function that goes on where it stands has the outcome, records and turns of one
// that runs from its top each time, also if its process dies at any of its writes.
func TestE12StandingChangesNothing(t *testing.T) {
	t.Parallel()
	went := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := draw(rt, false)
		whole := newWorld(t, p.run, `1`).finish(rt)
		stands := func(c *crash) (got end, most int) {
			p := p.fresh()
			w := newWorld(t, p.run, `1`)
			w.stands, w.crash = true, c
			got = w.finish(rt)
			w.dropped()
			went += w.wentOn
			_, most = p.outer.keys()
			return got, most
		}
		got, most := stands(nil)
		require.Equal(rt, comparable(whole), comparable(got), "%s", p)
		require.LessOrEqual(rt, most, 1)
		for at := 1; at <= got.ops; at++ {
			got, most := stands(&crash{left: at, after: at%2 == 0})
			require.Equal(rt, comparable(whole), comparable(got), "crash at write %d of%s", at, p)
			require.LessOrEqual(rt, most, 2, "a call is made again only by a crash")
		}
	})
	require.Positive(t, went, "functions went on")
}

// standsAt is a function that has slept once, and stands at its second sleep.
func standsAt(t *testing.T, body func(ctx context.Context, n int) error) *world {
	w := newWorld(t, func(ctx context.Context, n int) (int, error) {
		for i := range 9 {
			if err := Sleep(ctx, fmt.Sprint(i), time.Hour); err != nil {
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

// Another process that had the request in between leaves a record with which the function
// does not go on: it runs from its top.
func TestE12WhatStoodBeforeAnotherRunIsDropped(t *testing.T) {
	t.Parallel()
	w := standsAt(t, sleepsOnly)
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

// A wake-up that is not there yet, or no longer: the function runs from its top.
func TestE12AFunctionThatIsNotWokenDoesNotGoOn(t *testing.T) {
	t.Parallel()
	w := standsAt(t, sleepsOnly)
	require.Equal(t, []string{"sleep 1 at 2"}, waits(w.next()))
	require.Equal(t, 1, w.wentOn)
	w.dropped()
}

// The contexts of a function that goes on are those of the run under way: they end with
// it, whatever became of the runs before, and have its values.
func TestE12AStandingFunctionHasTheContextOfItsRun(t *testing.T) {
	t.Parallel()
	var turn int
	var contexts []context.Context
	w := standsAt(t, func(ctx context.Context, n int) error {
		turn = Info(ctx).Turn
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
			_ = Sleep(ctx, "in a deferred call", time.Hour)
			ended <- errors.New("a call went on")
		}()
		return 0, Sleep(ctx, "first", time.Hour)
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
	var ws []*world
	s := standing{limit: 2}
	put := func(name string, turn, top int) *durable.Function {
		w := standsAt(t, sleepsOnly)
		ws = append(ws, w)
		s.put(journal.GUID{name[0]}, stood{Function: w.from, turn: turn, top: top})
		return w.from
	}
	a, b := put("a", 30, 26), put("b", 30, 30)
	c := put("c", 30, 29)
	require.False(t, a.Stands(), "the one that stood longest")
	_, ok := s.take(journal.GUID{'a'}, 31)
	require.False(t, ok)
	_, ok = s.take(journal.GUID{'b'}, 32)
	require.False(t, ok, "another turn")
	require.False(t, b.Stands())
	_, ok = s.take(journal.GUID{'c'}, 31)
	require.False(t, ok, "it is time for a run from the top")
	require.False(t, c.Stands())
	d := put("d", 30, 30)
	f, ok := s.take(journal.GUID{'d'}, 31)
	require.True(t, ok)
	require.Equal(t, d, f.Function)
	require.True(t, d.Stands())
	e := put("e", 30, 30)
	e2 := put("e", 30, 30)
	require.False(t, e.Stands())
	s.close()
	require.False(t, e2.Stands())
	late := put("f", 30, 30)
	require.False(t, late.Stands())
	d.Drop()
}
