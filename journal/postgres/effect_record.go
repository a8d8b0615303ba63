package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// StartEffect records effect.started, alone, on the request's chain (E4). A
// run that has no lease yet gets one that lasts until its row is due.
func (s *Store) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	var out store.EffectRow
	taken := false
	err := s.call(ctx, "start effect", func(c *conn) error {
		h, err := s.openChain(ctx, c, l, e.Key)
		if err != nil {
			return err
		}
		x := h.row
		switch {
		case !h.current():
			abandon(ctx, c)
			return s.refuse("start effect", store.ErrStale, l.Request)
		case h.stood != nil && (h.stood.State != store.EffectStarted || h.stood.Fence >= l.Fence):
			out = *h.stood
			abandon(ctx, c)
			return nil
		}
		if x.Holder == "" {
			x.Holder, x.LeaseUntil = l.Holder, max(x.LeaseUntil, x.NextAt)
		}
		live := x.LeaseUntil > h.now
		if h.stood != nil {
			out, taken = *h.stood, true
			out.Fence, out.Holder, out.Live = l.Fence, l.Holder, live
			return h.takeOver(ctx, &out)
		}
		e.Turn, e.Fence, e.Late = l.Turn, l.Fence, false
		out = store.EffectRow{
			Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, State: store.EffectStarted,
			Fence: l.Fence, Holder: l.Holder, Live: live,
		}
		return h.append(ctx, journal.KindEffectStarted, &e, &out, false)
	})
	if err != nil {
		return store.EffectRow{}, false, err
	}
	return out, taken, nil
}

// takeOver makes an unfinished start the run's own: the chain has its start
// already, only who finishes it changes.
func (h *chain) takeOver(ctx context.Context, after *store.EffectRow) error {
	w := &writes{rows: []*rowWrite{{key: rowKey{h.lease.Job, h.lease.Request}, stood: true, after: h.row}}}
	return h.s.conclude(ctx, h.c, func(b *batch) {
		w.queue(b)
		queueEffect(b, h.lease, 0, after, h.until(after))
	})
}

// FinishEffect records effect.completed or effect.failed (NotDone). Results
// are write-once: the row that stands is returned.
func (s *Store) FinishEffect(ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error) {
	if err := fits(&e); err != nil {
		return store.EffectRow{}, err
	}
	if e.Class == classTx {
		return store.EffectRow{}, fmt.Errorf("postgres: finish effect: %w: %q is of class tx", store.ErrRejected, e.Name)
	}
	var out store.EffectRow
	err := s.call(ctx, "finish effect", func(c *conn) error {
		h, err := s.openChain(ctx, c, l, e.Key)
		if err != nil {
			return err
		}
		if h.stood != nil && h.stood.State != store.EffectStarted {
			out = *h.stood
			abandon(ctx, c)
			return nil
		}
		started := h.stood != nil
		if !started && !(e.Class == classPure && h.current()) {
			abandon(ctx, c)
			return s.refuse("finish effect", store.ErrStale, l.Request)
		}
		out, err = h.finish(ctx, e, notDone)
		return err
	})
	if err != nil {
		return store.EffectRow{}, err
	}
	return out, nil
}

// fits checks the size of a result (E6).
func fits(e *journal.Effect) error {
	if len(e.Result) > wire.MaxResult {
		return fmt.Errorf("postgres: finish effect: %w: the result of %q has %d bytes, the limit is %d",
			store.ErrRejected, e.Name, len(e.Result), wire.MaxResult)
	}
	return nil
}

// finish commits the outcome of the effect.
func (h *chain) finish(ctx context.Context, e journal.Effect, notDone bool) (store.EffectRow, error) {
	l := h.lease
	out := store.EffectRow{
		Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, State: store.EffectCompleted,
		Result: e.Result, Error: e.Error, Fence: l.Fence, Holder: l.Holder,
	}
	kind := journal.KindEffectCompleted
	if notDone {
		kind, out.State = journal.KindEffectFailed, store.EffectNotDone
	}
	e.Turn, e.Fence, e.Late = l.Turn, l.Fence, !h.current()
	unparked := h.finished()
	return out, h.append(ctx, kind, &e, &out, unparked)
}

// finished notes on the row that an effect has its outcome: its runs count
// anew (E9), and what was parked for it goes on (E4).
func (h *chain) finished() (unparked bool) {
	x := h.row
	if x == nil {
		return false
	}
	x.Runs = 0
	if x.Held != collation.HeldParked {
		return false
	}
	x.Held, x.Dead, x.NextAt, x.TurnSent = "", false, h.now, 0
	return true
}
