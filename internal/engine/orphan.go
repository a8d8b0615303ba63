package engine

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
	"github.com/quipu-journal/quipu/transport"
)

// Reasons of dead letters of messages without a row in a job.
const (
	reasonForeign     = "foreign"     // its job was never here
	reasonUndecodable = "undecodable" // the message, or its row, cannot be read
	reasonRefused     = "refused"     // the store does not take its content
	reasonUnbegun     = "unbegun"     // compensations that cannot begin; they are tried again
)

// otherEpoch ends a message of another epoch: what of it is still open is sent again by its row (T4).
// One of a later epoch waits, because this process is about to follow (S13): a response has no row
// that sends it again soon.
func (l *loop) otherEpoch(d fetched) {
	if d.Message().Header.Epoch > l.pub.Epoch.Load() && d.Count() < laterTimes {
		_ = d.Nak(followNak)
		return
	}
	l.ackWithoutRow(d)
}

// repel ends a message whose sender may not send it (S2): it is terminated, and nothing is
// written.
func (l *loop) repel(m *message) {
	l.cfg.Observer.Count(observer.MetricRefused, 1, "reason", "topic")
	l.log.Warn("a message is refused: who sent it has the key of another topic", "job", m.msg.Job.String(),
		"kind", string(m.msg.Kind), "topic", m.topic)
	_ = m.delivery.Term("it is not of this topic")
}

// orphan handles a message whose job is not here. If only the tombstone of the job is left, the
// message can do nothing any more, and its row ends (C5, P29). A start that names no flow was
// sent for a child that had not begun. If its order is gone too, the order was cancelled, or
// another engine has just begun the child. An interrupt without a job was meant for a child
// that was refused: there is nothing to interrupt. All others are foreign. Before a row without
// a job ends, the job's start row is looked up, too.
func (m *message) orphan(b *batch) {
	row := m.key()
	switch {
	case b.loaded.Tombstones[row.Job]:
		b.write(collation.Discard(row, true, nil, nil))
		m.end = endWithoutRow
	case m.msg.Kind == journal.MessageInterrupt:
		m.end = endElsewhere
		b.next(b.endMessage(&orphan{row: &row}, m.delivery, "discard", func() { b.ackWithoutRow(m.delivery) }))
	case m.msg.Kind == journal.MessageStart && m.flow == (flowKey{}):
		m.end = endWithoutRow
	default:
		b.deadLetter(m, reasonForeign,
			fmt.Errorf("message %s names job %s, which was never in this space", m.msg.GUID, m.msg.Job))
	}
}

// ackWithoutRow acks a message with nothing left to do (C5).
func (l *loop) ackWithoutRow(d transport.Delivery) {
	l.cfg.Observer.Count(observer.MetricWithoutRow, 1)
	l.ack(d)
}

// orphan ends a message that no job can take. It reads the job of its row, and that job's start
// row. It decides by collation.WriteDeadLetter and Discard. It writes a dead letter, and the
// end of the row (T3, C10).
type orphan struct {
	letter *collation.DeadLetter // nil: nobody has to know
	row    *collation.RowKey     // nil: there is no row
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
		b.write(collation.WriteDeadLetter(*x.letter))
	}
	if k := x.row; k != nil {
		if p := collation.Discard(*k, b.loaded.Tombstones[k.Job], b.loaded.States[k.Job],
			b.loaded.Orders[k.Job]); p != nil {
			b.write(p)
		}
	}
	return nil
}

// endMessage makes the call that ends a message. If the call fails, the message is handed back.
func (l *loop) endMessage(x *orphan, d transport.Delivery, name string, then func()) *call {
	c := &call{name: name, wants: x.want, decides: x.decide, done: make(chan struct{})}
	if x.letter != nil {
		c.size = len(x.letter.Raw)
	}
	c.answered = func(err error) {
		if err != nil {
			l.log.Error("a message without a job is handed back", "error", err)
			_ = d.Nak(maxNak)
			return
		}
		then()
	}
	return c
}

// poison records a message that can never be handled, and terminates it (T3). Its row, if it
// has one, ends as well, so that it is not sent for ever (C10).
func (l *loop) poison(d transport.Delivery, letter collation.DeadLetter, row *collation.RowKey) *call {
	letter.Raw, letter.Message = d.Message().Body, wire.CutText(letter.Message)
	return l.endMessage(&orphan{&letter, row}, d, callDeadLetter, func() {
		_ = d.Term(letter.Reason)
	})
}

// callDeadLetter names the calls that record dead letters.
const callDeadLetter = "dead letter"

// deadLetter has a message that could be decoded end as poison, by a call of the next batch.
func (b *batch) deadLetter(m *message, reason string, cause error) {
	row := m.key()
	letter := collation.DeadLetter{
		Job: m.msg.Job, Reason: reason, Message: cause.Error(), Unclaimed: reason == reasonForeign,
	}
	m.end = endElsewhere
	b.next(b.poison(m.delivery, letter, &row))
}

// holdCompensations handles compensations that cannot begin. Nobody is there to get a refusal, and what
// they should undo remains. So the row sends them again, ever more rarely (T2), until they can
// begin. Dead letters report it at publications 1, 2, 4, 8 …. They name no row, since nobody
// decides on it, but they are not unclaimed: the row was read (S15).
func (m *message) holdCompensations(b *batch, row *collation.Row, cause error) {
	b.log.Error("compensations cannot begin; they are tried again",
		"job", row.Job.String(), "publication", row.Publication, "error", cause)
	if bits.OnesCount(uint(row.Publication)) != 1 || m.delivery.Count() != 1 {
		return
	}
	letter := &collation.DeadLetter{
		Kind: row.Kind, Reason: reasonUnbegun, Raw: row.Body,
		Message: wire.CutText(fmt.Sprintf("job %s is tried again, until it begins: %v", row.Job, cause)),
	}
	m.end = endElsewhere
	b.next(b.endMessage(&orphan{letter: letter}, m.delivery, callDeadLetter, func() { b.ack(m.delivery) }))
}

// DeadLetter records a message for which no row was read, undecodable or foreign, with its bytes
// (T3, S15).
// Errors: store.ErrUnavailable: nothing was recorded. store.ErrUnknown: it may have been.
func (c *Committer) DeadLetter(ctx context.Context, d collation.DeadLetter, raw []byte) error {
	d.Raw, d.Unclaimed = raw, true
	one := &call{name: callDeadLetter, decides: (&orphan{letter: &d}).decide, size: len(raw)}
	c.do(ctx, one)
	return one.err
}
