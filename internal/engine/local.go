package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// If this process has a free slot for a request that it commits, the row names it as holder
// from the start, and the request is handed over without a server (W7).

// takeAll reserves what it can of a plan's requests for the workers of this process.
func (c *Committer) takeAll(b *batch, p *collation.Plan, now collation.Micros) {
	session := b.steps.Session
	if c.cfg.Local == nil || !b.sends || session == 0 {
		return
	}
	for _, rows := range [][]collation.Row{p.Insert, p.Update} {
		for i := range rows {
			row := &rows[i]
			if !released(row, now) || row.Holder != "" {
				continue
			}
			holder, ok := c.cfg.Local.Take(row.Topic)
			if !ok {
				continue
			}
			row.HandOver(holder, session)
			p.Session = session
			if b.taken == nil {
				b.taken = map[journal.GUID]*collation.Row{}
			}
			b.taken[row.GUID] = row
		}
	}
}

// unsure hands back what the batch took if it may be committed in spite of the error. The work
// is decided again and then found done, so nobody would run these requests.
func (l *loop) unsure(b *batch, err error) {
	if len(b.taken) == 0 || errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrBusy) || refused(err) {
		return
	}
	for _, row := range b.taken {
		l.cfg.Session.Return(store.Lease{Job: row.Job, Request: row.GUID, Turn: row.Turn, Holder: row.Holder})
	}
}

// freeSlots frees the slots of a batch that is not committed.
func (c *Committer) freeSlots(b *batch) {
	for guid := range b.taken {
		c.drop(b, guid)
	}
}

// freeSlotsOf frees the slots of plans that are dropped.
func (c *Committer) freeSlotsOf(b *batch, plans []*collation.Plan) {
	for _, p := range plans {
		for _, rows := range [][]collation.Row{p.Insert, p.Update} {
			for i := range rows {
				c.drop(b, rows[i].GUID)
			}
		}
	}
}

func (c *Committer) drop(b *batch, guid journal.GUID) {
	if row := b.taken[guid]; row != nil {
		c.cfg.Local.Drop(row.Topic)
		delete(b.taken, guid)
	}
}

// has reports whether the row is still as it was taken. It is not due then, but sent (P21).
func (b *batch) has(row *collation.Row) bool {
	taken := b.taken[row.GUID]
	return taken != nil && row.Holder == taken.Holder
}

// handOver gives the taken requests to the workers of this process. A request that does not
// arrive is handed back: its row is due at once. The same is done with those that are not sent;
// mostly the batch itself has cancelled their rows, and the hand-back finds nothing.
func (l *loop) handOver(ctx context.Context, b *batch, here []store.Outgoing) {
	for i := range here {
		row := &here[i].Row
		delete(b.taken, row.GUID)
		var known atomic.Bool
		failed := func(err error) { // it must not block
			if known.CompareAndSwap(false, true) {
				l.returns(ctx, row, err)
			}
		}
		err := l.pub.publish(ctx, here[i:i+1], l.origin(), func(_ int, err error) {
			if err != nil {
				failed(err)
			}
		})
		if err != nil {
			failed(err)
		}
	}
	for guid, row := range b.taken {
		delete(b.taken, guid)
		l.returns(ctx, row, nil)
	}
}

// returns frees the slot of a request and hands its row back. Run waits for it.
func (l *loop) returns(ctx context.Context, row *collation.Row, cause error) {
	l.cfg.Local.Drop(row.Topic)
	l.returning.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, transactTime)
		defer cancel()
		lease := store.Lease{Job: row.Job, Request: row.GUID, Turn: row.Turn, Holder: row.Holder}
		err := l.cfg.Store.HandBack(ctx, lease)
		if err != nil && !errors.Is(err, store.ErrStale) {
			l.cfg.Session.Return(lease)
		}
		l.hot.drop(row.Job)
		l.log.Debug("a request was not handed over: its row sends it", "request", row.GUID.String(), "cause", cause, "error", err)
	})
}
