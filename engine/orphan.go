package engine

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sync/errgroup"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
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

// maxBegins bounds the children of one batch that are begun at a time.
const maxBegins = 4

// discard ends the rows of messages of whose job only the tombstone is left:
// nothing can come of them any more (C5, P29).
func (c *committer) discard(ctx context.Context, items []*item) {
	if len(items) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, transactTime)
	defer cancel()
	if _, err := c.cfg.Store.Discard(bounded, keysOf(items)); err != nil {
		c.handBack(items, err)
		return
	}
	for _, it := range items {
		c.unlicensed(it)
	}
}

// unlicensed acks a message for which there is nothing to do (C5).
func (c *committer) unlicensed(it *item) {
	c.cfg.Observer.Count(observer.MetricUnlicensed, 1)
	c.ack(it.delivery)
}

// adopt deals with the messages whose job is not here, and returns those that
// have one now. A start may order a child that is still to be begun (1.11). An
// interrupt is of a child that was refused, which its parent had not heard yet
// when it ended: there is nothing to interrupt. The others are foreign.
func (c *committer) adopt(ctx context.Context, orphans []*item, now collation.Micros) (again []*item) {
	begun := make([]bool, len(orphans))
	var g errgroup.Group
	g.SetLimit(maxBegins)
	var refused []*item
	for i, it := range orphans {
		switch it.msg.Kind {
		case journal.MessageStart:
		case journal.MessageInterrupt:
			refused = append(refused, it)
			continue
		default:
			c.foreign(ctx, it)
			continue
		}
		g.Go(func() error {
			begun[i] = c.begin(ctx, it, now)
			return nil
		})
	}
	_ = g.Wait() // none returns an error
	c.discard(ctx, refused)
	for i, it := range orphans {
		if begun[i] {
			again = append(again, it)
		}
	}
	return again
}

func (c *committer) foreign(ctx context.Context, it *item) {
	c.bury(ctx, it, reasonForeign, fmt.Errorf("message %s names job %s, which was never in this space", it.msg.GUID, it.msg.Job))
}

// begin makes the job that a start message orders. It reports whether the message
// can go on; otherwise its delivery is finished.
func (c *committer) begin(ctx context.Context, it *item, now collation.Micros) (begun bool) {
	bounded, cancel := context.WithTimeout(ctx, transactTime)
	defer cancel()
	row, err := c.cfg.Store.Order(bounded, it.msg.Job)
	if errors.Is(err, store.ErrNotFound) {
		c.unordered(ctx, it)
		return false
	}
	if err == nil {
		begun, err = c.child(bounded, row, now)
	}
	switch {
	case begun:
		return true
	case err == nil: // refused, and the refusal is on its way
		c.ack(it.delivery)
	case errors.Is(err, errOrder):
		c.bury(ctx, it, reasonUndecodable, err)
	case errors.Is(err, errUnheard):
		c.unheard(ctx, it, row, err)
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrLost): // another engine was first: look again
		c.later(it)
	default:
		c.handBack([]*item{it}, err)
	}
	return false
}

// unheard deals with compensations that cannot begin: there is nobody to refuse
// them to, and what they take back stands outside. The row sends them again, ever
// more rarely (T2), until they can; dead letters tell of it at the publications 1,
// 2, 4, 8 ….
func (c *committer) unheard(ctx context.Context, it *item, row *collation.Row, cause error) {
	c.log.Error("compensations cannot begin; they are tried again", "job", row.Job.String(), "publication", row.Publication, "error", cause)
	if bits.OnesCount(uint(row.Publication)) == 1 && it.delivery.Count() == 1 {
		err := c.cfg.Store.DeadLetter(ctx, collation.DeadLetter{
			Kind: row.Kind, Reason: reasonUnheard,
			Message: wire.CutText(fmt.Sprintf("job %s is tried again, until it begins: %v", row.Job, cause)),
		}, row.Body)
		if err != nil {
			c.handBack([]*item{it}, err)
			return
		}
		c.cfg.Observer.Count(observer.MetricDead, 1, "reason", reasonUnheard)
	}
	c.ack(it.delivery)
}

// unordered ends a start without a job and without an order. A message that names
// no flow was sent for a child before it began: its order was taken back, or
// another engine has begun the child just now. Any other had a job.
func (c *committer) unordered(ctx context.Context, it *item) {
	if it.flow == (flowKey{}) {
		c.unlicensed(it)
		return
	}
	c.foreign(ctx, it)
}
