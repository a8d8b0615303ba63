package work

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// refusing is a bus whose engine records no response together with an outcome, and says so at once.
type refusing struct {
	*membus.Bus
	asked *atomic.Int64
}

func (r refusing) Answer(_ *transport.Message, x *store.Completion) bool {
	r.asked.Add(1)
	go x.Told(store.EffectRow{}, store.ErrUnavailable)
	return true
}

// J8: where an outcome and the response are not recorded together, they are recorded one after the other,
// though the run that has ended is being cleaned up.
func TestJ8WhatIsNotRecordedTogetherIsRecordedApart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t)
		var asked atomic.Int64
		h.cfg.Bus = refusing{h.bus, &asked}
		workers.Handle(h.reg, "pay", func(ctx context.Context, _ int) (string, error) {
			return effects.Do(ctx, "call", func(context.Context) (string, error) { return "paid", nil }, effects.Idempotent)
		})
		h.open()
		require.JSONEq(t, `"paid"`, string(h.one(ask("pay", 1, `1`)).Output))
		require.EqualValues(t, 1, asked.Load())
		require.Contains(t, h.store.Calls(), "FinishEffect")
	})
}
