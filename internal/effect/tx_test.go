package effect

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/effectstest"
	"github.com/quipu-journal/quipu/journal"
)

// tx is the counting body for DoTx.
func (c *counting[T]) tx(ctx context.Context, _ any) (T, error) { return c.fn(ctx) }

// E5: an error leaves no trace and no verdict; the outcome is never unknown.
func TestE5TxErrorsAreOrdinary(t *testing.T) {
	b := newBench(t)
	broken := errors.New("no such account")
	ctx, s := b.run()
	c := counting[int]{err: broken}
	_, err := effects.DoTx(ctx, "move", c.tx)
	require.Equal(t, broken, err)
	require.Empty(t, b.store.Rows(theRequest))
	mustPanic(t, func() { _, _ = effects.DoTx(ctx, "other", func(context.Context, any) (int, error) { panic("broken") }) })
	require.NoError(t, s.Verdict())
	require.Equal(t, []string{"TxEffect", "TxEffect"}, b.store.Calls())
}

// E5: NotDone is recorded and tried under the next key. After the last attempt it is the
// result, as a refusal is.
func TestE5TxNotDone(t *testing.T) {
	b := newBench(t)
	ctx, _ := b.run()
	c := counting[int]{err: effects.NotDone(errors.New("locked"))}
	for range 2 {
		_, err := effects.DoTx(ctx, "move", c.tx, effects.Attempts(3))
		require.True(t, effects.IsNotDone(err), "%v", err)
	}
	ctx, _ = b.again()
	for range 2 {
		_, err := effects.DoTx(ctx, "move", c.tx, effects.Attempts(3), effects.Once())
		require.ErrorAs(t, err, new(*effects.RecordedError))
	}
	require.Equal(t, 3, c.calls)
	require.NotEqual(t, c.keys[0], c.keys[1])
	rows := b.store.Rows(theRequest)
	require.Equal(t, []store.EffectState{store.EffectNotDone, store.EffectNotDone, store.EffectCompleted},
		[]store.EffectState{rows[0].State, rows[1].State, rows[2].State})
}

// J8: a run whose request is no longer its own makes no call outside. The handler's context ends.
func TestJ8StaleCancelsTheHandler(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(context.Context, *counting[int]) error{
		"tx": func(ctx context.Context, c *counting[int]) error {
			_, err := effects.DoTx(ctx, "move", c.tx)
			return err
		},
		"guarded": func(ctx context.Context, c *counting[int]) error { _, err := effects.Do(ctx, "move", c.fn); return err },
	} {
		for runs := range 2 { // the first one has no lease
			t.Run(fmt.Sprint(name, " run ", runs+1), func(t *testing.T) {
				b := newBench(t)
				b.runs = runs
				ctx, s := b.run()
				var lost error
				s.cfg.Lost = func(err error) { lost = err }
				b.store.Answer(theRequest)
				c := counting[int]{}
				require.ErrorIs(t, do(ctx, &c), store.ErrStale)
				require.ErrorIs(t, lost, store.ErrStale)
				require.ErrorIs(t, s.Verdict(), store.ErrStale)
				require.True(t, c.calls == 0 || name == "tx", "it is rolled back")
			})
		}
	}
}

func TestTxIsNotCalledLikeThis(t *testing.T) {
	b := newBench(t)
	ctx, _ := b.run()
	one := func(context.Context, any) (int, error) { return 1, nil }
	for name, option := range map[string]effects.Option{
		"move": effects.Guarded, "": effects.Once(), "charge": effects.Verify(&oracle{}, effects.Strict),
	} {
		_, err := effects.DoTx(ctx, name, one, option)
		require.ErrorIs(t, err, effects.ErrUsage)
	}
	_, err := effects.Do(ctx, "move", func(context.Context) (int, error) { return 1, nil }, effects.Tx)
	require.ErrorIs(t, err, effects.ErrUsage)
	require.ErrorContains(t, err, "quipu.DoTx")
	for name, inner := range map[string]func(ctx context.Context) error{
		"Do": func(ctx context.Context) error {
			_, err := effects.Do(ctx, "a", func(context.Context) (int, error) { return 1, nil })
			return err
		},
		"DoTx": func(ctx context.Context) error { _, err := effects.DoTx(ctx, "a", one); return err },
	} {
		_, err = effects.DoTx(ctx, name, func(ctx context.Context, _ any) (int, error) { return 0, inner(ctx) })
		require.ErrorIs(t, err, effects.ErrUsage, "its transaction may be rolled back")
	}
	require.Empty(t, b.store.Rows(theRequest))
}

// E3: an unfinished Guarded start waits for a person, even if the handler now gives the
// effect another class.
func TestE3AGuardedStartIsParkedUnderAnyClass(t *testing.T) {
	t.Parallel()
	for class, do := range map[effects.Class]func(context.Context) error{
		effects.Tx: func(ctx context.Context) error {
			_, err := effects.DoTx(ctx, "move", func(context.Context, any) (int, error) { return 1, nil })
			return err
		},
		effects.Pure: func(ctx context.Context) error {
			_, err := effects.Do(ctx, "move", func(context.Context) (int, error) { return 1, nil }, effects.Pure)
			return err
		},
	} {
		t.Run(string(class), func(t *testing.T) {
			b := newBench(t)
			ctx, _ := b.run()
			mustPanic(t, func() { _, _ = effects.Do(ctx, "move", func(context.Context) (int, error) { panic("dies") }) })
			ctx, _ = b.again()
			require.ErrorAs(t, do(ctx), new(*effects.ParkedError))
		})
	}
}

// forgetful commits the first StartEffect and loses its answer.
type forgetful struct {
	*effectstest.Store
	lost atomic.Bool
}

func (f *forgetful) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	row, taken, err := f.Store.StartEffect(ctx, l, e)
	if err == nil && f.lost.CompareAndSwap(false, true) {
		return store.EffectRow{}, false, store.ErrUnknown
	}
	return row, taken, err
}

// E4, E5: a takeover whose commit has an unknown outcome is still a takeover when it is
// repeated: Guarded is parked, Idempotent keeps its key after a NotDone.
func TestE4ATakeoverWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	for class, wants := range map[effects.Class]error{
		effects.Guarded: new(effects.ParkedError), effects.Idempotent: new(effects.UnknownError),
	} {
		t.Run(string(class), func(t *testing.T) {
			b := newBench(t)
			ctx, _ := b.run()
			mustPanic(t, func() {
				_, _ = effects.Do(ctx, "charge", func(context.Context) (int, error) { panic("dies in the call") }, class)
			})
			b.store.Expire(theRequest)
			l, err := b.store.Lease(t.Context(), theJob, theRequest, 1, "second", 1)
			require.NoError(t, err)
			s := NewSession(Config{
				Store: &forgetful{Store: b.store}, Lease: l, Held: true, Replay: true,
				Identity: Identity{Space: "shop", Job: theJob, Generation: 1, Version: "1", Activity: "charge", DAD: ",0,0"},
			})
			calls := 0
			_, err = effects.Do(With(t.Context(), s), "charge", func(context.Context) (int, error) {
				calls++
				return 0, effects.NotDone(context.Canceled)
			}, class)
			require.IsType(t, wants, err)
			require.Equal(t, class == effects.Idempotent, calls == 1, "Guarded never runs again by itself")
			require.Equal(t, store.EffectStarted, b.store.Rows(theRequest)[0].State)
		})
	}
}
