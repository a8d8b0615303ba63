package effects

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects/effectstest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

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
	for class, wants := range map[Class]error{Guarded: new(ParkedError), Idempotent: new(UnknownError)} {
		t.Run(string(class), func(t *testing.T) {
			b := newBench(t)
			ctx, _ := b.run()
			mustPanic(t, func() {
				_, _ = Do(ctx, "charge", func(context.Context) (int, error) { panic("dies in the call") }, class)
			})
			b.store.Expire(theRequest)
			l, err := b.store.Lease(t.Context(), theJob, theRequest, 1, "second", 1)
			require.NoError(t, err)
			s := NewSession(Config{
				Store: &forgetful{Store: b.store}, Lease: l, Held: true, Replay: true,
				Identity: Identity{Space: "shop", Job: theJob, Generation: 1, Version: "1", Activity: "charge", DAD: ",0,0"},
			})
			calls := 0
			_, err = Do(With(t.Context(), s), "charge", func(context.Context) (int, error) {
				calls++
				return 0, NotDone(context.Canceled)
			}, class)
			require.IsType(t, wants, err)
			require.Equal(t, class == Idempotent, calls == 1, "Guarded never runs again by itself")
			require.Equal(t, store.EffectStarted, b.store.Rows(theRequest)[0].State)
		})
	}
}
