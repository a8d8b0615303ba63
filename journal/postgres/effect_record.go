package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// effectCall is one write of a run on the effect chain of its request.
type effectCall struct {
	op     string
	lease  store.Lease
	effect journal.Effect
	// decide changes the chain and gives the effect as it is then, or refuses and
	// changes nothing. It may be asked again, in another transaction (J4).
	decide func(*chain) (store.EffectRow, error)

	out store.EffectRow
	err error

	lead chan []*effectCall // of a group: the writes to commit, this one first
	done chan struct{}      // of a group: out and err are there
}

func (w *effectCall) row() rowKey { return rowKey{w.lease.Job, w.lease.Request} }

// settle decides the write on its chain.
func (w *effectCall) settle(s *Store, h *chain) {
	w.out, w.err = store.EffectRow{}, nil
	if h.state == "" || h.state == journal.JobExpired {
		// The chain goes with the job: nothing can be recorded in it any more.
		w.err = store.ErrStale
	} else {
		w.out, w.err = w.decide(h)
	}
	if errors.Is(w.err, store.ErrStale) {
		w.err = s.refuse(w.op, w.err, w.lease.Request)
	}
}

// write brings the write about: in a group with others or, where that cannot be,
// alone.
func (s *Store) write(ctx context.Context, w *effectCall) (store.EffectRow, error) {
	err := retry(ctx, func() error {
		err := s.group.join(ctx, w)
		if errors.Is(err, errAlone) {
			err = s.with(ctx, func(c *conn) error { return s.alone(ctx, c, w) })
		}
		return settle(w.op, err)
	})
	if err != nil {
		return store.EffectRow{}, err
	}
	return w.out, nil
}

// alone commits the write in a transaction of its own, which waits for its row.
func (s *Store) alone(ctx context.Context, c *conn, w *effectCall) error {
	x, err := s.openChains(ctx, c, "chains_lock", []*effectCall{w})
	if err != nil {
		return err
	}
	if x.of[w.row()] == nil {
		if err := x.openGone(ctx, w); err != nil {
			abandon(ctx, c)
			return classify(w.op, err) // nothing is committed here
		}
	}
	w.settle(s, x.of[w.row()])
	if err := x.commit(ctx); err != nil {
		return err
	}
	return w.err
}

// together commits the writes, each with its own outcome, in one transaction that
// waits for nobody. What it leaves out gets errAlone.
func (s *Store) together(ctx context.Context, c *conn, writes []*effectCall) error {
	x, err := s.openChains(ctx, c, "chains_lock_skip", writes)
	if err != nil {
		return err
	}
	for _, w := range writes {
		if h := x.of[w.row()]; h != nil {
			w.settle(s, h)
		} else {
			w.err = errAlone
		}
	}
	return x.commit(ctx)
}

// StartEffect records effect.started, alone, on the request's chain (E4). A
// run that has no lease yet gets one, without Lease.TTL until its row is due.
func (s *Store) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	taken := false
	out, err := s.write(ctx, &effectCall{op: "start effect", lease: l, effect: e, decide: func(h *chain) (out store.EffectRow, err error) {
		out, taken, err = h.start(l, e)
		return out, err
	}})
	return out, taken && err == nil, err
}

// start records the start of an effect, or takes over an unfinished one.
func (h *chain) start(l store.Lease, e journal.Effect) (out store.EffectRow, taken bool, err error) {
	fence, ok := h.fence(&l)
	f := h.effects[e.Key]
	switch {
	case !ok:
		return out, false, store.ErrStale
	case f != nil && (f.State != store.EffectStarted || f.Class == store.ClassUndo || f.Fence >= fence):
		return f.EffectRow, false, nil
	}
	h.hold(&l)
	if f == nil {
		f = &effectWrite{EffectRow: store.EffectRow{
			Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, State: store.EffectStarted, Position: e.Position,
		}, seq: h.head.Seq + 1}
		h.effects[e.Key] = f
		h.row.Undo = h.row.Undo || e.Class == store.ClassUndo
		e.Turn, e.Fence, e.Late = l.Turn, l.Fence, false
		h.record(journal.KindEffectStarted, l.Holder, &e)
	} else {
		taken = true // the chain has its start already, only who finishes it changes
	}
	f.changed, f.turn, f.Fence, f.Holder = true, l.Turn, l.Fence, l.Holder
	f.Live = !f.foreign && h.row.LeaseUntil > h.x.now
	if f.until = collation.Never; l.Timeout > 0 && f.Class != store.ClassUndo {
		f.until = h.x.now + collation.Micros(l.Timeout.Microseconds())
	}
	return f.EffectRow, taken, nil
}

// fence is that of the lease when its run writes, and whether the lease is the
// row's: a write of this run may begin something (E9).
func (h *chain) fence(l *store.Lease) (int64, bool) {
	x := h.row
	switch {
	case x == nil || h.state != journal.JobOpen || x.Kind != journal.MessageRequest || x.Held != "" || x.Turn != l.Turn:
	case x.Fence == l.Fence && x.Holder == "" && l.TTL > 0:
		return l.Fence + 1, true // by hold
	case x.Fence == l.Fence && (x.Holder == "" || x.Holder == l.Holder):
		return l.Fence, true
	case x.Fence == l.Fence+1 && x.Holder == l.Holder && l.TTL > 0:
		return x.Fence, true // taken by a call whose answer is not known yet
	}
	return l.Fence, false
}

// hold gives the run the lease on its row, if it has none.
func (h *chain) hold(l *store.Lease) {
	x := h.row
	switch {
	case x.Holder != "":
	case l.TTL > 0:
		x.Holder, x.Fence, x.Runs = l.Holder, x.Fence+1, x.Runs+1
		x.LeaseUntil = h.x.now + collation.Micros(l.TTL.Microseconds())
		x.NextAt = max(x.NextAt, x.LeaseUntil)
	default:
		x.Holder, x.LeaseUntil = l.Holder, max(x.LeaseUntil, x.NextAt)
	}
	l.Fence = x.Fence
}

// FinishEffect records effect.completed or effect.failed (NotDone). Results
// are write-once: the row that stands is returned.
func (s *Store) FinishEffect(ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error) {
	if err := fits(&e); err != nil {
		return store.EffectRow{}, err
	}
	if e.Class == store.ClassTx {
		return store.EffectRow{}, fmt.Errorf("postgres: finish effect: %w: %q is of class tx", store.ErrRejected, e.Name)
	}
	return s.write(ctx, &effectCall{op: "finish effect", lease: l, effect: e, decide: func(h *chain) (store.EffectRow, error) {
		_, current := h.fence(&l)
		f := h.effects[e.Key]
		if f == nil && !(e.Class == store.ClassPure && current) || f != nil && notDone && !current && f.Again(l.Fence) {
			return store.EffectRow{}, store.ErrStale
		}
		return h.finish(l, e, notDone), nil
	}})
}

// fits checks the size of a result (E6).
func fits(e *journal.Effect) error {
	if len(e.Result) > wire.MaxResult {
		return fmt.Errorf("postgres: finish effect: %w: the result of %q has %d bytes, the limit is %d",
			store.ErrRejected, e.Name, len(e.Result), wire.MaxResult)
	}
	return nil
}

// finish records the outcome of an effect, unless it has one. What its start said
// of it stays.
func (h *chain) finish(l store.Lease, e journal.Effect, notDone bool) store.EffectRow {
	f := h.effects[e.Key]
	switch {
	case f == nil:
		f = &effectWrite{EffectRow: store.EffectRow{
			Key: e.Key, Name: e.Name, Class: e.Class, N: e.N, Position: e.Position,
		}, seq: h.head.Seq + 1}
		h.effects[e.Key] = f
	case f.State != store.EffectStarted:
		return f.EffectRow
	}
	_, current := h.fence(&l)
	if current && l.TTL > 0 {
		h.hold(&l)
	}
	kind, state := journal.KindEffectCompleted, store.EffectCompleted
	if notDone {
		kind, state = journal.KindEffectFailed, store.EffectNotDone
	}
	e.Name, e.Class, e.N, e.Position = f.Name, f.Class, f.N, f.Position
	e.Turn, e.Fence, e.Late = l.Turn, l.Fence, !current
	f.changed, f.turn, f.until = true, l.Turn, collation.Never
	f.State, f.Result, f.Error = state, e.Result, e.Error
	f.Fence, f.Holder, f.Live = l.Fence, l.Holder, false
	h.finished()
	h.record(kind, l.Holder, &e)
	return f.EffectRow
}

// record appends an entry about an effect to the chain (J9). The first one after
// the row was released says so.
func (h *chain) record(kind journal.Kind, writer string, e *journal.Effect) {
	x := &journal.Entry{
		Space: h.x.s.cfg.Space, Job: h.key.job, Generation: h.generation, Chain: h.key.guid, Seq: h.head.Seq + 1, Kind: kind,
		GUID: h.key.guid, Effect: e, Writer: writer, Build: h.x.s.cfg.Build, Time: int64(h.x.now), Trace: h.trace,
	}
	if h.row != nil {
		x.Activity, x.DAD = h.row.Activity, string(h.row.DAD)
	}
	if h.released {
		x.Updated, h.released, h.undead = []journal.Updated{updated(h.row)}, false, true
	}
	previous := h.head.Hash
	if h.head.Seq == 0 {
		previous = journal.Genesis(x.Space, x.Job, x.Generation, x.Chain)
	}
	body := journal.Encode(x)
	h.head = journal.Head{Seq: x.Seq, Hash: journal.Next(previous, body)}
	h.entries = append(h.entries, entryWrite{job: x.Job, chain: x.Chain, seq: x.Seq, body: body, hash: h.head.Hash})
}

// finished notes on the row that an effect has its outcome: its runs count
// anew (E9), and what was parked for it goes on (E4).
func (h *chain) finished() {
	x := h.row
	if x == nil {
		return
	}
	x.Runs = 0
	if x.Held == collation.HeldParked {
		x.Held, x.Dead, x.NextAt, x.TurnSent = "", false, h.x.now, 0
		h.released = true
	}
}
