package work

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/effectstest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

func TestE3ABodyOfAnotherClassIsOneEffect(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	workers.Handle(h.reg, "pay", func(ctx context.Context, in int) (string, error) {
		if in < 0 {
			return "", workers.Fail(402, "declined")
		}
		return effects.Key(ctx), nil
	}, workers.Class(effects.Idempotent))
	h.open()
	q := ask("pay", 1, `1`)
	r := h.one(q)
	rows := h.store.Rows(guid(t, q))
	require.Len(t, rows, 1)
	require.Equal(t, "pay", rows[0].Name)
	require.Equal(t, "idempotent", rows[0].Class)
	require.JSONEq(t, `"`+rows[0].Key.String()+`"`, string(r.Output))

	q = ask("pay", 2, `-1`)
	r = h.one(q)
	failedWith(t, r, journal.ResponseTerminal, 402, wire.ClassBusiness)
	require.Equal(t, store.EffectCompleted, h.store.Rows(guid(t, q))[0].State, "a refusal is a result")
	h.store.Expire(guid(t, q)) // its process died before the response arrived
	h.send(q, 2)
	_, hint := h.answer()
	require.Equal(t, r, hint.Response, "and replays as the same response")
}

// An attempt whose call has no known outcome has failed, also when the handler hides it.
func TestE5WhatUnknownOutcomesComeTo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	workers.Handle(h.reg, "hides", func(ctx context.Context, class effects.Class) (int, error) {
		_, _ = effects.Do(ctx, "call", cutOff, class)
		return 1, nil
	})
	h.open()
	for class, kind := range map[effects.Class]journal.ResponseKind{
		effects.Guarded: journal.ResponseParked, effects.Idempotent: journal.ResponseFailedAttempt,
		effects.Pure: journal.ResponseTerminal,
	} {
		require.Equal(t, kind, h.one(ask("hides", class[0], `"`+string(class)+`"`)).Kind, class)
	}
}

// E4: a further attempt reads what those before have left, though its message is the first of it. Else
// a takeover whose answer was lost would look like a start of its own.
func TestE4AFurtherAttemptReadsTheEffectsBefore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	workers.Handle(h.reg, "pay", func(ctx context.Context, _ int) (int, error) {
		return effects.Do(ctx, "call", cutOff, effects.Idempotent)
	})
	h.open()
	q := ask("pay", 1, `1`)
	h.one(q)
	require.NotContains(t, h.store.Calls(), "Effects", "a first run looks for nothing recorded")
	q = ask("pay", 2, `1`)
	q.Attempt = 2
	h.one(q)
	require.Contains(t, h.store.Calls(), "Effects")
}

func TestP31ALiveGuardedCallIsNeitherRepeatedNorParked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		var calls atomic.Int32
		inside, release := make(chan struct{}), make(chan struct{})
		workers.Handle(h.reg, "pay", func(context.Context, int) (int, error) {
			calls.Add(1)
			close(inside)
			<-release
			return 7, nil
		}, workers.Class(effects.Guarded))
		h.open()
		q := ask("pay", 1, `1`)
		h.ask(q, 1)
		<-inside
		h.send(q, 2) // after a lost ack wait: the same request again, in the same process
		require.Eventually(t, func() bool {
			return strings.Count(strings.Join(h.store.Calls(), " "), "Lease") >= 2
		}, patience, time.Millisecond)
		h.silent()
		close(release)
		_, hint := h.answer()
		require.Equal(t, "7", string(hint.Response.Output))
		require.EqualValues(t, 1, calls.Load())
		h.store.Answer(guid(t, q)) // the engine accepted it, so the second run finds no row
		h.gone("pay")
		h.silent()
		require.Equal(t, store.EffectCompleted, h.store.Rows(guid(t, q))[0].State)
	})
}

// P21, W8: a long run takes its request's lease once, and its delivery does not come
// again.
func TestP21ALongHandlerKeepsDeliveryAndLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		workers.Handle(h.reg, "long", func(ctx context.Context, _ int) (int, error) {
			select {
			case <-time.After(5 * calm):
				return 1, nil
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		})
		h.open()
		q := ask("long", 1, `1`)
		h.ask(q, 1)
		time.Sleep(calm / 4) // the bubble's clock
		require.Empty(t, h.store.Calls())
		time.Sleep(4 * calm)
		require.Equal(t, []string{"Keep"}, h.store.Calls())
		runs, live := h.store.Leased(guid(t, q))
		require.Equal(t, []any{1, true}, []any{runs, live})
		time.Sleep(calm)
		_, hint := h.answer()
		require.Equal(t, 200, hint.Response.Code)
		h.gone("long")
	})
}

// P21: a database that is slow to give a lease holds up nothing that keeps the delivery.
func TestP21ASlowLeaseDoesNotHoldUpTheDelivery(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		var runs atomic.Int32
		workers.Handle(h.reg, "long", func(context.Context, int) (int, error) {
			runs.Add(1)
			time.Sleep(4 * calm)
			return 1, nil
		})
		h.store.Fault = func(op string) error {
			if op == "Keep" {
				time.Sleep(2 * calm)
			}
			return nil
		}
		h.open()
		h.ask(ask("long", 1, `1`), 1)
		time.Sleep(5 * calm)
		_, hint := h.answer()
		require.Equal(t, 200, hint.Response.Code)
		h.gone("long")
		require.EqualValues(t, 1, runs.Load())
		require.Equal(t, 1, len(slices.DeleteFunc(h.store.Calls(), func(op string) bool { return op != "Keep" })))
	})
}

// E9: a run learns that it lost its request when it takes the lease, and later from the
// session of its process. If the job is closed the message is acked; otherwise it comes
// again (I8), and the lease is handed back.
func TestE9ARunLearnsThatItIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose  func(h *house, id journal.GUID)
		again bool
		want  error
	}{
		"job closed":          {func(h *house, id journal.GUID) { h.store.CloseJob(id) }, false, store.ErrJobClosed},
		"answered":            {func(h *house, id journal.GUID) { h.store.Answer(id) }, false, store.ErrStale},
		"told that it closed": {func(h *house, _ journal.GUID) { h.session.Tell(store.ErrJobClosed) }, false, store.ErrJobClosed},
		"a function": {func(h *house, id journal.GUID) {
			h.store.CloseJob(id)
			h.session.Tell(store.ErrJobClosed)
		}, false, store.ErrJobClosed},
		"told that it is lost": {func(h *house, _ journal.GUID) { time.Sleep(calm); h.session.Tell(store.ErrStale) }, true, store.ErrStale},
		"taken over": {func(h *house, id journal.GUID) {
			h.store.Expire(id)
			_, err := h.store.Lease(h.t.Context(), jobOf(h.t, ask("long", 1, `1`)), id, 1, "another", 2)
			require.NoError(h.t, err)
		}, true, store.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHouse(t)
				inside, causes, runs := make(chan struct{}), make(chan error, 1), 0
				long := func(ctx context.Context, _ int) (int, error) {
					if runs++; runs > 1 {
						return 1, nil
					}
					close(inside)
					<-ctx.Done()
					causes <- context.Cause(ctx)
					return 1, nil
				}
				if name == "a function" {
					workers.HandleDurable(h.reg, "long", func(ctx context.Context, in int) (int, error) {
						_, err := effects.Do(ctx, "long", func(ctx context.Context) (int, error) { return long(ctx, in) })
						return 0, cmp.Or(err, workers.Sleep(ctx, "x", time.Hour))
					})
				} else {
					workers.Handle(h.reg, "long", long)
				}
				h.open()
				q := ask("long", 1, `1`)
				h.ask(q, 1)
				<-inside
				c.lose(h, guid(t, q))
				require.ErrorIs(t, <-causes, c.want)
				if c.again {
					if name == "taken over" {
						h.silent()
						h.store.Expire(guid(t, q)) // the other run dies
					}
					_, hint := h.answer()
					require.Equal(t, journal.ResponseTerminal, hint.Response.Kind)
					require.Contains(t, h.store.Calls(), "HandBack")
				}
				h.gone("long")
				h.silent()
			})
		})
	}
}

// W8: a process whose session is not certainly alive begins no run, and hands back
// requests that were taken for it.
func TestW8WithoutASessionNoRunBegins(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		h.session.End()
		workers.HandleRaw(h.reg, "echo", echo)
		h.open()
		q := ask("echo", 1, `1`)
		h.ask(q, 2)
		synctest.Wait() // it was looked at
		h.silent()
		require.Equal(t, 1, h.bus.Len(transport.ToWork("echo")), "it waits for another process")
		require.Empty(t, h.store.Calls())
	})
}

// W8: the response of a run without a lease goes by the bus, because it must be out
// before the request is acked. The response of a run whose row names its holder may go by
// memory.
func TestW8WhoseResponseGoesByTheBus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		workers.HandleRaw(h.reg, "echo", echo)
		h.open()
		for publication, byBus := range map[int]bool{1: true, 2: false} {
			q := ask("echo", byte(publication), `1`)
			h.ask(q, publication)
			m, _ := h.answer()
			require.Equal(t, byBus, m.ByBus, "publication %d", publication)
		}
	})
}

// E9: an attempt ends at its timeout, whether its handler heeds its context or not. A result that is
// there by then counts; a wait of a function can begin.
func TestE9TimeoutOfAnAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		release := make(chan struct{})
		heeds := func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, errors.New("gave up") }
		ignores := func(context.Context, int) (int, error) { <-release; return 0, nil }
		workers.Handle(h.reg, "pure", heeds)
		workers.Handle(h.reg, "guarded", heeds, workers.Class(effects.Guarded))
		workers.Handle(h.reg, "stuck", ignores)
		workers.Handle(h.reg, "stuck.guarded", ignores, workers.Class(effects.Guarded))
		workers.Handle(h.reg, "done", func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 5, nil })
		workers.HandleDurable(h.reg, "fn", func(ctx context.Context, _ int) (int, error) {
			_, err := workers.All(ctx,
				func(ctx context.Context) (int, error) { return 0, workers.Sleep(ctx, "x", time.Hour) },
				func(ctx context.Context) (int, error) {
					return effects.Do(ctx, "slow", func(ctx context.Context) (int, error) {
						<-ctx.Done()
						return 0, context.Cause(ctx)
					}, effects.Idempotent)
				},
			)
			return 0, err
		})
		workers.HandleDurable(h.reg, "fn.waits", func(ctx context.Context, _ int) (int, error) {
			<-ctx.Done()
			return 0, workers.Sleep(ctx, "x", time.Hour)
		})
		h.open()
		t.Cleanup(func() { close(release) })
		for i, topic := range []string{"pure", "stuck", "fn"} {
			failedWith(t, h.late(ask(topic, byte(i), `1`)), journal.ResponseFailedAttempt, 408, wire.ClassTimeout)
		}
		for i, topic := range []string{"guarded", "stuck.guarded"} {
			require.Equal(t, journal.ResponseParked, h.late(ask(topic, byte(10+i), `1`)).Kind, "its call may have been applied")
		}
		require.Equal(t, "5", string(h.late(ask("done", 20, `1`)).Output))
		require.Equal(t, journal.ResponseSuspended, h.late(ask("fn.waits", 21, `1`)).Kind)
	})
}

// W8: a run that was given up does not hold its request any more, whatever its handler does. If its
// answer is lost, the session finds a request without a run.
func TestW8AGivenUpRunHoldsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		began, release := make(chan int, 1), make(chan struct{})
		workers.Handle(h.reg, "stuck", func(context.Context, int) (int, error) {
			began <- len(h.session.Held())
			<-release
			return 0, nil
		})
		h.open()
		t.Cleanup(func() { close(release) })
		q := ask("stuck", 1, `1`)
		q.TimeoutMS = 20
		h.ask(q, 2) // it has the lease from its beginning
		require.Equal(t, 1, <-began)
		_, hint := h.answer()
		require.Equal(t, journal.ResponseFailedAttempt, hint.Response.Kind)
		h.gone("stuck")
		require.Empty(t, h.session.Held())
	})
}

// leaseSpy records the leases of started effects.
type leaseSpy struct {
	*effectstest.Store
	seen chan store.Lease
}

func (s leaseSpy) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	s.seen <- l
	return s.Store.StartEffect(ctx, l, e)
}

// E4: the start of an effect names the timeout of its attempt, with and without an
// earlier lease.
func TestE4StartsNameTheTimeout(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	spy := leaseSpy{h.store, make(chan store.Lease, 2)}
	h.cfg.Store = spy
	workers.Handle(h.reg, "pay", func(context.Context, int) (int, error) {
		return 1, nil
	}, workers.Class(effects.Idempotent))
	h.open()
	for i, publication := range []int{1, 2} {
		q := ask("pay", byte(i), `1`)
		q.TimeoutMS = 7000
		h.ask(q, publication)
		h.answer()
		require.Equal(t, 7*time.Second, (<-spy.seen).Timeout)
	}
}
