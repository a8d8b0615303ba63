package engine

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// settle publishes, answers and acks after the commit (T2, T3). It returns the items that have
// further commits to make, or were left for the next batch.
func (l *loop) settle(ctx context.Context, b *batch) (next []item) {
	committed(b)
	l.tellEnded(b)
	l.tellDead(b)
	l.timers(b)
	b.runs.begin(ctx)
	b.send(ctx)
	published(b)
	sent := time.Now()
	var waiting, slow []item
	for _, d := range b.decisions {
		switch d.fate {
		case fateLater:
			next = append(next, d.item)
		case fateBusy:
			waiting = append(waiting, d.item)
		case fateSlow:
			slow = append(slow, d.item)
		case fateRepeat:
			d.item.settle(l, b, fateRepeat, nil)
			next = append(next, d.item)
		case fateEnded:
			l.giveUp([]item{d.item}, d.err)
		default:
			d.item.settle(l, b, d.fate, nil)
		}
	}
	if len(waiting) > 0 {
		l.aside.take(ctx, waiting)
	}
	l.tell(b, sent)
	for _, it := range slow { // it may pause
		next = append(next, l.retrySlow(ctx, it.(*message))...)
	}
	return next
}

// deadLines bounds the log lines about the dead letters of one batch.
const deadLines = 10

// tellDead logs which messages wait for a person from now on (E10).
func (l *loop) tellDead(b *batch) {
	lines := 0
	for i := range b.plans {
		for _, d := range b.plans[i].Plan.Dead {
			if lines++; lines > deadLines {
				continue
			}
			key := ""
			if st := b.loaded.States[d.Job]; st != nil {
				key = st.Job.Key
			}
			l.log.Warn("dead letter: it waits for a person (quipu dead ls)", "job", key, "id", d.Job.String(), "activity", d.Activity,
				"address", string(d.DAD), "reason", d.Reason, "cause", d.Message)
		}
	}
	if lines > deadLines {
		l.log.Warn("and further dead letters", "count", lines-deadLines)
	}
}

// timers sets the alarm of this process's sweeper if rows of the batch are due before its next
// look.
func (l *loop) timers(b *batch) {
	now := l.clock.lastEstimate()
	first := now + collation.Micros((2 * l.cfg.Sweep).Microseconds())
	last := first
	for i := range b.plans {
		p := b.plans[i].Plan
		if len(p.Waits) > 0 && p.Sending.Resend == 0 { // kept signals may be due that nobody publishes (J3)
			first = min(first, now+collation.Micros(brisk.Microseconds()))
		}
		for _, rows := range [][]collation.Row{p.Insert, p.Update} {
			for n := range rows {
				if r := &rows[n]; r.Held == "" && r.NextAt != collation.Never {
					first = min(first, r.NextAt)
				}
			}
		}
	}
	if first < last {
		l.alarm.set(time.Now().Add(time.Duration(first-now) * time.Microsecond))
	}
}

func (l *loop) ack(d transport.Delivery) {
	losing(d)
	if err := d.Ack(); err != nil {
		l.log.Debug("ack not sent; the message comes again and meets its digits", "error", err)
	}
}

// later hands back a message that has to wait for another one. After a few times it leaves the
// message to its row. In a lane it would look like a backlog to the sweeper, which would then
// not resend the other message, should that be lost (T2).
func (l *loop) later(d transport.Delivery) {
	if d.Count() >= laterTimes {
		l.ack(d)
		return
	}
	_ = d.Nak(laterNak + l.cfg.Jitter(2*laterNak))
}

// publish sends the rows of a commit (T2).
func (c *Committer) publish(ctx context.Context, out []store.Outgoing, from Origin) {
	if len(out) == 0 || c.pub == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, transactTime)
	defer cancel()
	if err := c.pub.Publish(bounded, out, from); err != nil {
		c.log.Warn("messages were not published; their rows send them again", "messages", len(out), "error", err)
	}
}

// origin is the last commit of the loop's session (L1).
func (l *loop) origin() Origin {
	var from Origin
	if l.tx != nil {
		from.Session, from.Seq = l.tx.Session()
	}
	return from
}
