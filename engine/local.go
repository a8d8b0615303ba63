package engine

import (
	"context"
	"sync/atomic"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// A request that this process commits and has a free slot for is held by it from its
// row's first moment, and handed over without a server (W7).

// takeAll takes what it can of the requests that a plan sends for the workers of this
// process.
func (c *Committer) takeAll(b *batch, p *collation.Plan) {
	if c.cfg.Local == nil || !b.sends {
		return
	}
	until := b.loaded.Now + collation.Micros(c.cfg.Lease.Microseconds())
	for _, rows := range [][]collation.Row{p.Insert, p.Update} {
		for i := range rows {
			row := &rows[i]
			if !released(row, b.loaded.Now) || row.Publication != 1 || row.Holder != "" {
				continue
			}
			holder, ok := c.cfg.Local.Take(row.Topic)
			if !ok {
				continue
			}
			row.HandOver(holder, until)
			if b.taken == nil {
				b.taken = map[journal.GUID]string{}
			}
			b.taken[row.GUID] = row.Topic
		}
	}
}

// untake gives the slots back of a batch that was not committed.
func (c *Committer) untake(b *batch) {
	for _, topic := range b.taken {
		c.cfg.Local.Drop(topic)
	}
	b.taken = nil
}

// split parts what was taken from what goes by the bus. What was taken and is not sent,
// since the batch took it back, gives its slot back.
func (b *batch) split(out []store.Outgoing) (here, others []store.Outgoing) {
	if len(b.taken) == 0 {
		return nil, out
	}
	for i := range out {
		if out[i].Taken {
			here = append(here, out[i])
		} else {
			others = append(others, out[i])
		}
	}
	return here, others
}

// handOver gives the requests that were taken to the workers of this process. One that
// does not arrive is handed back: its row is due at once.
func (l *loop) handOver(ctx context.Context, b *batch, here []store.Outgoing) {
	for i := range here {
		row := &here[i].Row
		topic := b.taken[row.GUID]
		delete(b.taken, row.GUID)
		var known atomic.Bool
		failed := func(err error) { // it must not block
			if known.CompareAndSwap(false, true) {
				l.cfg.Local.Drop(topic)
				go l.handBackRow(ctx, row, err)
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
	l.untake(b)
}

func (l *loop) handBackRow(ctx context.Context, r *collation.Row, cause error) {
	ctx, cancel := context.WithTimeout(ctx, transactTime)
	defer cancel()
	lease := store.Lease{Job: r.Job, Request: r.GUID, Turn: r.Turn, Fence: r.Fence, Holder: r.Holder}
	err := l.cfg.Store.HandBack(ctx, lease)
	l.hot.drop(r.Job)
	l.log.Debug("a request was not handed over: its row sends it", "request", r.GUID.String(), "cause", cause, "error", err)
}
