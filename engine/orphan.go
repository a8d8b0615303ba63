package engine

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/observer"
	"github.com/quipu-journal/quipu/wire"
)

// Reasons of dead letters of messages that no job can hold.
const (
	reasonForeign     = "foreign"     // its job was never here
	reasonUndecodable = "undecodable" // it, or its row, cannot be read
	reasonRefused     = "refused"     // the store does not take what it brings
	reasonUnheard     = "undo"        // compensations that cannot begin; they are tried again
)

// discard ends the rows of messages of whose job only the tombstone is left:
// nothing can come of them any more (C5, P29).
func (l *loop) discard(ctx context.Context, items []*item) {
	if len(items) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, transactTime)
	defer cancel()
	if _, err := l.cfg.Store.Discard(bounded, keysOf(items)); err != nil {
		l.handBack(items, err)
		return
	}
	for _, it := range items {
		l.unlicensed(it)
	}
}

// unlicensed acks a message for which there is nothing to do (C5).
func (l *loop) unlicensed(it *item) {
	l.cfg.Observer.Count(observer.MetricUnlicensed, 1)
	l.ack(it.delivery)
}

// orphans deals with the messages whose job is not here. A start without a job and
// without an order, that names no flow, was sent for a child before it began: its
// order was taken back, or another engine has begun the child just now. An interrupt
// is of a child that was refused, which its parent had not heard yet when it ended:
// there is nothing to interrupt. The others are foreign.
func (l *loop) orphans(ctx context.Context, orphans []*item) {
	var refused []*item
	for _, it := range orphans {
		switch {
		case it.msg.Kind == journal.MessageInterrupt:
			refused = append(refused, it)
		case it.msg.Kind == journal.MessageStart && it.flow == (flowKey{}):
			l.unlicensed(it)
		default:
			l.bury(ctx, it, reasonForeign, fmt.Errorf("message %s names job %s, which was never in this space", it.msg.GUID, it.msg.Job))
		}
	}
	l.discard(ctx, refused)
}

// unheard deals with compensations that cannot begin: there is nobody to refuse
// them to, and what they take back stands outside. The row sends them again, ever
// more rarely (T2), until they can; dead letters tell of it at the publications 1,
// 2, 4, 8 ….
func (l *loop) unheard(ctx context.Context, it *item, row *collation.Row, cause error) {
	l.log.Error("compensations cannot begin; they are tried again", "job", row.Job.String(), "publication", row.Publication, "error", cause)
	if bits.OnesCount(uint(row.Publication)) == 1 && it.delivery.Count() == 1 {
		err := l.cfg.Store.DeadLetter(ctx, collation.DeadLetter{
			Kind: row.Kind, Reason: reasonUnheard,
			Message: wire.CutText(fmt.Sprintf("job %s is tried again, until it begins: %v", row.Job, cause)),
		}, row.Body)
		if err != nil {
			l.handBack([]*item{it}, err)
			return
		}
		l.cfg.Observer.Count(observer.MetricDead, 1, "reason", reasonUnheard)
	}
	l.ack(it.delivery)
}
