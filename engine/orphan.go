package engine

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/observer"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/wire"
)

// Reasons of dead letters of messages that no job can hold.
const (
	reasonForeign     = "foreign"     // its job was never here
	reasonUndecodable = "undecodable" // it, or its row, cannot be read
	reasonRefused     = "refused"     // the store does not take what it brings
	reasonUnheard     = "undo"        // compensations that cannot begin; they are tried again
)

// unlicensed acks a message for which there is nothing to do (C5).
func (l *loop) unlicensed(it *item) {
	l.cfg.Observer.Count(observer.MetricUnlicensed, 1)
	l.ack(it.delivery)
}

// orphan deals with a message whose job is not here. Of one of which only the
// tombstone is left nothing can come any more: its row ends (C5, P29). A start
// without a job and without an order, that names no flow, was sent for a child before
// it began: its order was taken back, or another engine has begun the child just now.
// An interrupt is of a child that was refused, which its parent had not heard yet
// when it ended: there is nothing to interrupt. The others are foreign. Whether a row
// without a job goes is decided on a look for the job's start, too.
func (l *loop) orphan(b *batch, it *item) {
	row := it.key()
	switch {
	case b.loaded.Tombstones[row.Job]:
		b.plans = append(b.plans, store.Chained{Plan: collation.Discard(row, true, nil, nil)})
		b.after = append(b.after, func(context.Context) { l.unlicensed(it) })
	case it.msg.Kind == journal.MessageInterrupt:
		b.later = append(b.later, l.end(&orphan{row: &row}, it.delivery, "discard", func() { l.unlicensed(it) }))
	case it.msg.Kind == journal.MessageStart && it.flow == (flowKey{}):
		b.after = append(b.after, func(context.Context) { l.unlicensed(it) })
	default:
		b.later = append(b.later, l.deadLetter(it, reasonForeign,
			fmt.Errorf("message %s names job %s, which was never in this space", it.msg.GUID, it.msg.Job)))
	}
}

// orphan is the end of a message that no job can take. It reads the job of its row,
// and the start of one that may begin yet; it decides by WriteDeadLetter and Discard; it writes a
// dead letter, and the end of the row (T3, C10).
type orphan struct {
	letter *collation.DeadLetter // nil: nobody has to look
	row    *collation.RowKey     // where one may stand
}

func (x *orphan) want() []store.Want {
	if x.row == nil {
		return nil
	}
	return []store.Want{{Job: x.row.Job, Order: x.row.Job}}
}

func (x *orphan) decide(b *batch) error {
	if x.row != nil && b.loaded.Busy[x.row.Job] {
		return store.ErrBusy
	}
	if x.letter != nil {
		b.plans = append(b.plans, store.Chained{Plan: collation.WriteDeadLetter(*x.letter)})
	}
	if k := x.row; k != nil {
		if p := collation.Discard(*k, b.loaded.Tombstones[k.Job], b.loaded.States[k.Job], b.loaded.Orders[k.Job]); p != nil {
			b.plans = append(b.plans, store.Chained{Plan: p})
		}
	}
	return nil
}

// end is a call that ends a message. Where it fails the message is handed back.
func (l *loop) end(x *orphan, d transport.Delivery, name string, ended func()) *call {
	c := &call{name: name, want: x.want, decide: x.decide, done: make(chan struct{})}
	if x.letter != nil {
		c.size = len(x.letter.Raw)
	}
	c.ended = func(err error) {
		if err != nil {
			l.log.Error("a message without a job is handed back", "error", err)
			_ = d.Nak(maxNak)
			return
		}
		ended()
	}
	return c
}

// poison records what can never be handled, then ends it (T3): its row as well,
// where one may stand, so that it is not sent again for ever (C10).
func (l *loop) poison(d transport.Delivery, letter collation.DeadLetter, row *collation.RowKey) *call {
	letter.Raw = d.Message().Body
	return l.end(&orphan{&letter, row}, d, callDeadLetter, func() {
		l.cfg.Observer.Count(observer.MetricDead, 1, "reason", letter.Reason)
		_ = d.Term(letter.Reason)
	})
}

// callDeadLetter names the calls that record dead letters.
const callDeadLetter = "dead letter"

// deadLetter is poison for a message that was read.
func (l *loop) deadLetter(it *item, reason string, cause error) *call {
	row := it.key()
	return l.poison(it.delivery, collation.DeadLetter{Job: it.msg.Job, Reason: reason, Message: cause.Error()}, &row)
}

// unheard deals with compensations that cannot begin: there is nobody to refuse
// them to, and what they take back stands outside. The row sends them again, ever
// more rarely (T2), until they can; dead letters tell of it at the publications 1,
// 2, 4, 8 ….
func (l *loop) unheard(b *batch, it *item, row *collation.Row, cause error) {
	l.log.Error("compensations cannot begin; they are tried again", "job", row.Job.String(), "publication", row.Publication, "error", cause)
	if bits.OnesCount(uint(row.Publication)) != 1 || it.delivery.Count() != 1 {
		b.ended = append(b.ended, it)
		return
	}
	letter := &collation.DeadLetter{
		Kind: row.Kind, Reason: reasonUnheard, Raw: row.Body,
		Message: wire.CutText(fmt.Sprintf("job %s is tried again, until it begins: %v", row.Job, cause)),
	}
	b.later = append(b.later, l.end(&orphan{letter: letter}, it.delivery, callDeadLetter, func() {
		l.cfg.Observer.Count(observer.MetricDead, 1, "reason", reasonUnheard)
		l.ack(it.delivery)
	}))
}

// DeadLetter records a message without a row, undecodable or foreign, with its bytes
// (T3). The error is that of the store: with store.ErrUnavailable nothing was
// recorded, with store.ErrUnknown it may have been.
func (c *Committer) DeadLetter(ctx context.Context, d collation.DeadLetter, raw []byte) error {
	d.Raw = raw
	one := &call{name: callDeadLetter, decide: (&orphan{letter: &d}).decide, size: len(raw)}
	c.do(ctx, one)
	return one.err
}
