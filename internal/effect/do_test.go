package effect

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

func TestE4StartIsAloneBeforeTheCall(t *testing.T) {
	b := newBench(t)
	ctx, s := b.run()
	_, err := effects.Do(ctx, "charge", func(ctx context.Context) (int, error) {
		rows := b.store.Rows(theRequest)
		require.Len(t, rows, 1)
		require.Equal(t, store.EffectStarted, rows[0].State)
		require.Equal(t, rows[0].Key.String(), effects.Key(ctx))
		return 1, nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"StartEffect", "FinishEffect"}, b.store.Calls(), "a first run looks for nothing recorded")
	spans := s.Spans()
	require.Len(t, spans, 1)
	require.Equal(t, "charge", spans[0].Subject.Topic)
	require.NoError(t, spans[0].Err)
}

func TestE1KeyIsTheSameOnEveryTurn(t *testing.T) {
	b := newBench(t)
	c := counting[int]{err: errors.New("connection reset")}
	ctx, _ := b.run()
	_, err := effects.Do(ctx, "charge", c.fn, effects.Idempotent)
	require.Error(t, err)
	ctx, _ = b.nextTurn()
	_, err = effects.Do(ctx, "charge", c.fn, effects.Idempotent)
	require.Error(t, err)
	require.Len(t, c.keys, 2)
	require.Equal(t, c.keys[0], c.keys[1])
	require.Len(t, c.keys[0], 64)
}

// The crash windows of 3.2 by class: the process dies, its lease ends, the request comes
// again.
func TestE3CrashWindows(t *testing.T) {
	t.Parallel()
	type outcome struct {
		calls  int
		parked bool
	}
	for name, w := range map[string]struct {
		dieAt string // the operation that the process dies in
		want  map[effects.Class]outcome
	}{
		"1 before started": {"StartEffect", map[effects.Class]outcome{effects.Idempotent: {1, false}, effects.Guarded: {1, false}}},
		"2 before completed": {"FinishEffect", map[effects.Class]outcome{
			effects.Pure: {2, false}, effects.Idempotent: {2, false}, effects.Guarded: {1, true},
		}},
		"3 after completed": {"", map[effects.Class]outcome{
			effects.Pure: {1, false}, effects.Idempotent: {1, false}, effects.Guarded: {1, false},
		}},
	} {
		for class, want := range w.want {
			t.Run(name+" "+string(class), func(t *testing.T) {
				b := newBench(t)
				dying := w.dieAt
				b.store.Fault = func(op string) error {
					if op == dying {
						dying = ""
						panic("the process dies")
					}
					return nil
				}
				c := counting[int]{value: 3}
				ctx, begun := b.run()
				if w.dieAt == "" {
					_, err := effects.Do(ctx, "charge", c.fn, class)
					require.NoError(t, err)
				} else {
					mustPanic(t, func() { _, _ = effects.Do(ctx, "charge", c.fn, class) })
				}
				ctx, s := b.again()
				got, err := effects.Do(ctx, "charge", c.fn, class)
				require.Equal(t, want.calls, c.calls)
				if want.parked {
					_, ok := errors.AsType[*effects.ParkedError](err)
					require.True(t, ok, "%v", err)
					require.ErrorAs(t, s.Verdict(), new(*effects.ParkedError))
					return
				}
				require.NoError(t, err)
				require.Equal(t, 3, got)
				require.NoError(t, s.Verdict())
				require.Len(t, s.Spans(), c.calls-len(begun.Spans()), "what did not run has no span")
				for _, k := range c.keys {
					require.Equal(t, c.keys[0], k, "the same key goes outside")
				}
			})
		}
	}
}

func TestE5UnknownOutcomes(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection reset")
	cut, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	fns := map[string]func(context.Context) (int, error){
		"error":        func(context.Context) (int, error) { return 0, cause },
		"cancellation": func(context.Context) (int, error) { return 0, context.Cause(cut) },
		"panic":        func(context.Context) (int, error) { panic(cause) },
	}
	for name, fn := range fns {
		t.Run("guarded "+name, func(t *testing.T) {
			b := newBench(t)
			ctx, s := b.run()
			calmly(func() { _, _ = effects.Do(ctx, "charge", fn) })
			require.ErrorAs(t, s.Verdict(), new(*effects.ParkedError))
			require.Equal(t, store.EffectStarted, b.store.Rows(theRequest)[0].State)
			_, err := effects.Do(ctx, "other", fn)
			require.ErrorAs(t, err, new(*effects.ParkedError), "a parked run has no further effects")
		})
		t.Run("idempotent "+name, func(t *testing.T) {
			b := newBench(t)
			ctx, s := b.run()
			calmly(func() { _, _ = effects.Do(ctx, "charge", fn, effects.Idempotent) })
			require.ErrorAs(t, s.Verdict(), new(*effects.UnknownError))
			require.ErrorContains(t, s.Verdict(), "the outcome is unknown; another attempt has the same key: ", "it promises no other attempt")
			ctx, s = b.nextTurn()
			got, err := effects.Do(ctx, "charge", func(context.Context) (int, error) { return 9, nil }, effects.Idempotent)
			require.NoError(t, err)
			require.Equal(t, 9, got)
			require.NoError(t, s.Verdict())
		})
	}
	t.Run("pure", func(t *testing.T) {
		b := newBench(t)
		ctx, s := b.run()
		_, err := effects.Do(ctx, "charge", fns["error"], effects.Pure)
		require.ErrorIs(t, err, cause)
		require.NoError(t, s.Verdict())
		require.Empty(t, b.store.Rows(theRequest))
	})
}

func calmly(f func()) {
	defer func() { _ = recover() }()
	f()
}

func TestE5NotDoneRunsUnderTheNextKey(t *testing.T) {
	b := newBench(t)
	refused := errors.New("connection refused")
	c := counting[int]{err: effects.NotDone(refused)}
	ctx, s := b.run()
	for range 2 { // in one run too
		_, err := effects.Do(ctx, "charge", c.fn)
		require.ErrorIs(t, err, refused)
		require.True(t, effects.IsNotDone(err))
	}
	require.NoError(t, s.Verdict())
	c.err, c.value = nil, 5
	ctx, _ = b.nextTurn()
	got, err := effects.Do(ctx, "charge", c.fn)
	require.NoError(t, err)
	require.Equal(t, 5, got)
	require.Len(t, c.keys, 3)
	require.NotEqual(t, c.keys[0], c.keys[1])
	require.NotEqual(t, c.keys[1], c.keys[2])
	rows := b.store.Rows(theRequest)
	require.Equal(t, []int{0, 1, 2}, []int{rows[0].N, rows[1].N, rows[2].N})
	require.Equal(t, store.EffectNotDone, rows[1].State)
	require.NoError(t, effects.NotDone(nil))
}

func TestE5ExhaustedTriesReplayAsThatError(t *testing.T) {
	b := newBench(t)
	c := counting[int]{err: effects.NotDone(errors.New("refused"))}
	ctx, _ := b.run()
	_, err := effects.Do(ctx, "charge", c.fn, effects.Attempts(2))
	require.True(t, effects.IsNotDone(err))
	_, err = effects.Do(ctx, "charge", c.fn, effects.Attempts(2))
	first, ok := errors.AsType[*effects.RecordedError](err)
	require.True(t, ok, "%v", err)
	ctx, s := b.again()
	_, err = effects.Do(ctx, "charge", c.fn, effects.Attempts(2))
	second, ok := errors.AsType[*effects.RecordedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, first, second)
	require.Equal(t, 2, c.calls)
	require.NoError(t, s.Verdict())
}

type declined struct{}

func (declined) Error() string { return "declined" }
func (declined) Refusal() (int, journal.Failure, bool) {
	return 402, journal.Failure{Class: "business", Message: "declined", Data: []byte(`{"b":1,"a":2}`)}, true
}

func TestE5ARefusalIsAResult(t *testing.T) {
	b := newBench(t)
	c := counting[int]{err: declined{}}
	ctx, _ := b.run()
	for range 2 {
		_, err := effects.Do(ctx, "charge", c.fn)
		got, ok := errors.AsType[*effects.RecordedError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 402, got.Code)
		require.JSONEq(t, `{"a":2,"b":1}`, string(got.Failure.Data))
		ctx, _ = b.again()
	}
	require.Equal(t, 1, c.calls)
}

func TestE6P18EmptyResultsAreResults(t *testing.T) {
	t.Parallel()
	t.Run("struct", func(t *testing.T) { emptyResult(t, struct{}{}) })
	t.Run("nil pointer", func(t *testing.T) { emptyResult[*int](t, nil) })
	t.Run("nil map", func(t *testing.T) { emptyResult[map[string]int](t, nil) })
	t.Run("raw", func(t *testing.T) { emptyResult[json.RawMessage](t, json.RawMessage("null")) })
	t.Run("string", func(t *testing.T) { emptyResult(t, "") })
}

func emptyResult[T any](t *testing.T, empty T) {
	b := newBench(t)
	c := counting[T]{value: empty}
	ctx, _ := b.run()
	for range 2 {
		got, err := effects.Do(ctx, "charge", c.fn)
		require.NoError(t, err)
		require.Equal(t, empty, got)
		ctx, _ = b.again()
	}
	require.Equal(t, 1, c.calls)
}

func TestE6ResultOverTheLimitIsAClearError(t *testing.T) {
	b := newBench(t)
	c := counting[string]{value: strings.Repeat("x", wire.MaxResult)}
	ctx, _ := b.run()
	for range 2 {
		_, err := effects.Do(ctx, "charge", c.fn)
		require.ErrorContains(t, err, "the limit is 1048576")
		ctx, _ = b.again()
	}
	require.Equal(t, 1, c.calls, "the outside was reached: it is not called again")
	c.value = c.value[2:] // the quotes
	_, err := effects.Do(ctx, "fits", c.fn)
	require.NoError(t, err)
}

func TestP17TwoRunsOfOneEffectOneStarts(t *testing.T) {
	b := newBench(t)
	c := counting[int]{}
	first, _ := b.run()
	second, s := newRunBeside(b)
	_, err := effects.Do(first, "charge", func(context.Context) (int, error) {
		_, err := effects.Do(second, "charge", c.fn)
		require.True(t, errors.Is(err, ErrBusy) || errors.Is(err, store.ErrStale), "%v", err)
		return 1, nil
	})
	require.NoError(t, err)
	require.Zero(t, c.calls)
	require.Error(t, s.Verdict())
}

// newRunBeside makes a second first delivery of the same message.
func newRunBeside(b *bench) (context.Context, *Session) {
	b.runs = 0
	ctx, s := b.run()
	s.lease.Holder = "beside"
	return ctx, s
}

func TestE4LiveLeaseOfAnotherIsBusy(t *testing.T) {
	b := newBench(t)
	b.store.Fault = func(op string) error {
		if op == "StartEffect" {
			return store.ErrLeased
		}
		return nil
	}
	ctx, s := b.run()
	c := counting[int]{}
	_, err := effects.Do(ctx, "charge", c.fn)
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorIs(t, s.Verdict(), ErrBusy)
	require.Zero(t, c.calls)
}

func TestP22LateCompletionDoesNotOverwrite(t *testing.T) {
	t.Parallel()
	for _, class := range []effects.Class{effects.Idempotent, effects.Pure} {
		t.Run(string(class), func(t *testing.T) {
			b := newBench(t)
			old, late := b.run()
			v, err := effects.Do(old, "charge", func(context.Context) (int, error) {
				ctx, _ := b.again() // the lease runs out; another run finishes first
				v, err := effects.Do(ctx, "charge", func(context.Context) (int, error) { return 2, nil }, class)
				require.NoError(t, err)
				require.Equal(t, 2, v)
				return 1, nil
			}, class)
			require.NoError(t, err)
			if class == effects.Pure { // it waits for the store, as it has no lease
				require.Equal(t, 2, v)
				require.NoError(t, late.Flush())
			} else {
				require.ErrorIs(t, late.Flush(), errOverruled, "the late run saw another result: it is to run again")
			}
			require.Equal(t, `2`, string(b.store.Rows(theRequest)[0].Result), "the first recorded result stands")
		})
	}
}

func TestE4LateCompletionIsRecorded(t *testing.T) {
	b := newBench(t)
	old, _ := b.run()
	got, err := effects.Do(old, "charge", func(context.Context) (int, error) {
		ctx, s := b.again()
		_, err := effects.Do(ctx, "charge", func(context.Context) (int, error) { return 2, nil })
		require.ErrorAs(t, err, new(*effects.ParkedError))
		require.ErrorAs(t, s.Verdict(), new(*effects.ParkedError))
		return 1, nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, got)
	require.Equal(t, store.EffectCompleted, b.store.Rows(theRequest)[0].State)
}

func TestCancelledBeforeTheCallIsNotDone(t *testing.T) {
	b := newBench(t)
	ctx, s := b.run()
	ctx, cancel := context.WithCancelCause(ctx)
	cause := errors.New("timeout")
	b.store.Fault = func(op string) error {
		if op == "StartEffect" {
			cancel(cause)
		}
		return nil
	}
	c := counting[int]{}
	_, err := effects.Do(ctx, "charge", c.fn, effects.Attempts(1))
	require.ErrorIs(t, err, cause)
	require.NoError(t, s.Verdict(), "it did not run: nothing to park")
	require.Zero(t, c.calls)
	require.Equal(t, store.EffectNotDone, b.store.Rows(theRequest)[0].State)
}

func TestC10StoreTroubleIsNeverAnOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, store: newStore(), turn: 1}
		var failures atomic.Int32
		b.store.Fault = func(op string) error {
			if op == "FinishEffect" && failures.Add(-1) >= 0 {
				return store.ErrUnknown
			}
			return nil
		}
		c := counting[int]{value: 1}
		ctx, s := b.run()
		failures.Store(2)
		_, err := effects.Do(ctx, "charge", c.fn)
		require.NoError(t, err)
		require.NoError(t, s.Flush(), "a write of unknown outcome is repeated")
		failures.Store(1000)
		_, err = effects.Do(ctx, "other", c.fn)
		require.NoError(t, err)
		_, err = effects.Do(ctx, "after it", c.fn)
		require.ErrorAs(t, err, new(*StoreError))
		require.ErrorIs(t, s.Verdict(), store.ErrUnknown)
		require.Equal(t, 2, c.calls, "nothing is done on an outcome that is not recorded")
	})
}

func TestConcurrentEffects(t *testing.T) {
	b := newBench(t)
	ctx, s := b.run()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			got, err := effects.Do(ctx, "reserve", func(context.Context) (int, error) { return i, nil }, effects.Args(i))
			if err != nil || got != i {
				t.Errorf("effect %d: %d, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, s.Verdict())
	require.Len(t, b.store.Rows(theRequest), 50)
	require.Len(t, s.Spans(), 50)
}

func TestHandBackEndsTheLease(t *testing.T) {
	b := newBench(t)
	_, s := b.run()
	require.NoError(t, s.HandBack(t.Context()))
	require.Empty(t, b.store.Calls(), "a run without a lease has none to end")
	require.ErrorIs(t, s.Keep(t.Context()), store.ErrStale, "a run that was handed back takes no lease any more")
	_, s = b.run()
	require.NoError(t, s.Keep(t.Context()))
	require.NoError(t, s.HandBack(t.Context()))
	require.ErrorIs(t, s.Keep(t.Context()), store.ErrStale)
	_, live := b.store.Leased(theRequest)
	require.False(t, live)
}

// A handler may go on after its run was given up, in spite of the end of its context. It then begins
// no effect: its request is another run's, or nobody's (E9).
func TestE9NothingBeginsAfterTheHandBack(t *testing.T) {
	for _, class := range []effects.Class{effects.Guarded, effects.Idempotent} {
		t.Run(string(class), func(t *testing.T) {
			b := newBench(t)
			ctx, s := b.run()
			c := counting[int]{value: 1}
			_, err := effects.Do(ctx, "a", c.fn)
			require.NoError(t, err)
			require.NoError(t, s.Flush())
			require.NoError(t, s.HandBack(t.Context()))
			_, err = effects.Do(context.WithoutCancel(ctx), "b", c.fn, class)
			require.ErrorIs(t, err, store.ErrStale)
			require.Equal(t, 1, c.calls)
			_, live := b.store.Leased(theRequest)
			require.False(t, live)
		})
	}
}
