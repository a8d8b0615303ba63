package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/observer"
	"github.com/quipu-journal/quipu/transport"
)

// Bounds of a committer's patience.
const (
	// maxLost bounds how often a batch is decided again after a lost
	// test-and-set before it is handed back (C3).
	maxLost = 8
	// holdOn bounds how long a batch waits in memory for a database that is
	// away; then it is handed back (C10).
	holdOn = 20 * time.Second
	// transactTime bounds one transaction.
	transactTime = 30 * time.Second
	// maxNak bounds the delay with which a message is handed back.
	maxNak = 5 * time.Second
	// laterNak is the least delay of a message that another one of its instance
	// goes before; at most three times that.
	laterNak = 50 * time.Millisecond
	// laterTimes is the delivery from which such a message is left to its row.
	laterTimes = 5
)

// committer carries batches on one connection, one after another (L1).
type committer struct {
	cfg    *Config
	mode   collation.Mode
	flows  *Flows
	pub    *Publisher
	log    *slog.Logger
	lanes  chan transport.Delivery
	starts chan transport.Delivery
	tx     store.Committer      // nil until it is needed, and after a loss
	batch  []transport.Delivery // of gather, used again and again
	// draining is closed when the engine is to stop: what is not under way is
	// handed back (T10).
	draining <-chan struct{}
}

// run takes what the lanes hold until ctx ends; a batch under way is finished.
func (c *committer) run(ctx context.Context) error {
	defer func() {
		if c.tx != nil {
			c.tx.Close()
		}
	}()
	work := context.WithoutCancel(ctx)
	c.draining = ctx.Done()
	for {
		batch := c.gather(ctx)
		if batch == nil {
			return nil
		}
		c.handle(work, batch)
	}
}

// gather waits for one delivery and takes what else is there, up to a batch.
// Messages of running jobs go before new jobs (T5).
func (c *committer) gather(ctx context.Context) []transport.Delivery {
	clear(c.batch)
	batch := c.batch[:0]
	defer func() { c.batch = batch }()
	select {
	case <-ctx.Done():
		return nil
	case d := <-c.lanes:
		batch = append(batch, d)
	default:
		select {
		case <-ctx.Done():
			return nil
		case d := <-c.lanes:
			batch = append(batch, d)
		case d := <-c.starts:
			batch = append(batch, d)
		}
	}
	for _, from := range []chan transport.Delivery{c.lanes, c.starts} {
		for more := true; more && len(batch) < c.cfg.MaxBatch; {
			select {
			case d := <-from:
				batch = append(batch, d)
			default:
				more = false
			}
		}
	}
	return batch
}

// handle decodes a batch and carries it. What came too often is carried by
// itself, so that one that kills its process is alone (1.6).
func (c *committer) handle(ctx context.Context, batch []transport.Delivery) {
	var together, alone, signals []*item
	for _, d := range batch {
		if d.Count() > 1 {
			c.cfg.Observer.Count(observer.MetricRedelivered, 1)
		}
		if d.Err() == nil && d.Message().Header.Epoch != c.pub.Epoch {
			// Another epoch's message: what is open of it is sent again by its row (T4).
			c.cfg.Observer.Count(observer.MetricUnlicensed, 1)
			c.ack(d)
			continue
		}
		it, err := decode(d)
		switch {
		case err != nil:
			c.poison(ctx, d, collation.DeadLetter{Reason: reasonUndecodable, Message: err.Error()}, nil)
		case it.msg.Kind == journal.MessageSignal:
			signals = append(signals, it)
		case it.msg.Alone:
			alone = append(alone, it)
		default:
			together = append(together, it)
		}
	}
	c.carry(ctx, together, false)
	c.alone(ctx, alone)
	c.deliver(ctx, signals)
}

// alone carries items one after another, each in a transaction of its own.
func (c *committer) alone(ctx context.Context, items []*item) {
	c.singly(items, func(one []*item) bool { return c.carry(ctx, one, true) })
}

// singly brings items to their end one after another. Each can wait for the
// database; once the engine is to stop, the first that does not get through
// sends the others back (T10).
func (c *committer) singly(items []*item, end func([]*item) (through bool)) {
	for i, it := range items {
		if !end([]*item{it}) && c.stopping() {
			if rest := items[i+1:]; len(rest) > 0 {
				c.handBack(rest, errStopping)
			}
			return
		}
	}
}

// errStopping is why messages go back that were not tried.
var errStopping = errors.New("the engine stops and the database is away")

func (c *committer) stopping() bool {
	select {
	case <-c.draining:
		return true
	default:
		return false
	}
}

// carry brings the items to their end: committed, published and acked, or
// handed back; through says that none was.
func (c *committer) carry(ctx context.Context, items []*item, wait bool) (through bool) {
	p := patience{since: time.Now()}
	for len(items) > 0 {
		bounded, cancel := context.WithTimeout(ctx, transactTime)
		b, err := c.transact(bounded, items, wait)
		cancel()
		switch {
		case err == nil:
			items = c.settle(ctx, b)
		case c.again(&p, items, err):
		case refused(err) && len(items) > 1:
			c.alone(ctx, items)
			return true
		case refused(err) && items[0].reject == nil:
			c.log.Error("the store refuses a message: its row is held", "message", items[0].msg.GUID.String(), "error", err)
			items[0].reject = err
		default:
			c.handBack(items, err)
			return false
		}
	}
	return true
}

// patience is how long a batch has been tried.
type patience struct {
	lost  int
	since time.Time
}

// again waits and says that the batch is to be tried once more: a lost
// test-and-set is decided anew at once (C3), a database that is away is waited
// for (C10).
func (c *committer) again(p *patience, items []*item, err error) bool {
	switch {
	case errors.Is(err, store.ErrLost) && p.lost < maxLost:
		p.lost++
		c.cfg.Observer.Count(observer.MetricDecidedAgain, 1)
		c.pause(p.lost, time.Millisecond)
	case !refused(err) && time.Since(p.since) < holdOn && !c.stopping():
		c.log.Warn("a batch waits for the database", "messages", len(items), "error", err)
		p.lost++
		c.pause(p.lost, 50*time.Millisecond)
		for _, it := range items {
			_ = it.delivery.InProgress() // a hint; the message comes again otherwise
		}
	default:
		return false
	}
	return true
}

// refused reports that the store has answered and would answer so again: data
// that it does not take, or a test-and-set that is lost however often it is
// decided anew. One message by itself is then held (J4, C10).
func refused(err error) bool {
	return errors.Is(err, store.ErrRejected) || errors.Is(err, store.ErrLost)
}

// pause waits with exponential backoff and jitter, at most two seconds.
func (c *committer) pause(n int, unit time.Duration) {
	d := min(unit<<min(n, 10), 2*time.Second)
	time.Sleep(d/2 + c.cfg.Jitter(d/2+1))
}

func (c *committer) handBack(items []*item, err error) {
	c.log.Error("messages are handed back", "messages", len(items), "error", err)
	for _, it := range items {
		_ = it.delivery.Nak(maxNak/2 + c.cfg.Jitter(maxNak/2))
	}
}

// settle publishes and acks after the commit (T2, T3), and returns what has
// further commits to make.
func (c *committer) settle(ctx context.Context, b *batch) []*item {
	committed(b)
	c.ended(b)
	c.publish(ctx, b.outgoing(), c.origin())
	published(b)
	c.tell(b)
	var again []*item
	for _, it := range b.decided {
		switch {
		case it.plan.Outcome == collation.Later:
			c.later(it)
		case it.plan.Done:
			acking(it)
			c.ack(it.delivery)
		default:
			it.msg.Entered = true
			again = append(again, it)
		}
	}
	c.discard(ctx, b.tombs)
	again = append(again, c.adopt(ctx, b.orphans, b.loaded.Now)...)
	c.alone(ctx, b.busy)
	// Behind those they repeat, so that they find them done.
	return append(again, b.repeats...)
}

func (c *committer) ack(d transport.Delivery) {
	losing(d)
	if err := d.Ack(); err != nil {
		c.log.Debug("ack not sent; the message comes again and meets its digits", "error", err)
	}
}

// later hands a message back that another one goes before. After a few times it
// leaves it to its row: what stays in a lane looks like a backlog to the sweeper,
// and the message that this one waits for, if it was lost, would not be sent
// again for as long (T2).
func (c *committer) later(it *item) {
	if it.delivery.Count() >= laterTimes {
		c.ack(it.delivery)
		return
	}
	_ = it.delivery.Nak(laterNak + c.cfg.Jitter(2*laterNak))
}

// poison records what can never be handled, then ends it (T3): its row as well,
// where one may stand, so that it is not sent again for ever (C10).
func (c *committer) poison(ctx context.Context, d transport.Delivery, letter collation.DeadLetter, row *collation.RowKey) {
	ctx, cancel := context.WithTimeout(ctx, transactTime)
	defer cancel()
	err := c.cfg.Store.DeadLetter(ctx, letter, d.Message().Body)
	if err == nil && row != nil {
		_, err = c.cfg.Store.Discard(ctx, []collation.RowKey{*row})
	}
	if err != nil {
		c.log.Error("a dead letter could not be recorded", "reason", letter.Reason, "error", err)
		_ = d.Nak(maxNak)
		return
	}
	c.cfg.Observer.Count(observer.MetricDead, 1, "reason", letter.Reason)
	c.log.Warn("dead letter", "reason", letter.Reason, "cause", letter.Message)
	_ = d.Term(letter.Reason)
}

// bury is poison for a message that was read.
func (c *committer) bury(ctx context.Context, it *item, reason string, cause error) {
	row := it.key()
	c.poison(ctx, it.delivery, collation.DeadLetter{Job: it.msg.Job, Reason: reason, Message: cause.Error()}, &row)
}

// publish sends rows right after the commit from which they come (T2).
func (c *committer) publish(ctx context.Context, out []store.Outgoing, from Origin) {
	if len(out) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, transactTime)
	defer cancel()
	if err := c.pub.Publish(bounded, out, from); err != nil {
		c.log.Warn("messages were not published; their rows send them again", "messages", len(out), "error", err)
	}
}

// origin is the last commit of the committer's session (L1).
func (c *committer) origin() Origin {
	var from Origin
	if c.tx != nil {
		from.Session, from.Seq = c.tx.Session()
	}
	return from
}
