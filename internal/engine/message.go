package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// message is a delivery, as an item of a batch.
type message struct {
	delivery transport.Delivery
	msg      collation.Message
	epoch    int64           // of the space when it was sent (T4)
	flow     flowKey         // a hint; the job's header is what counts
	plan     *collation.Plan // of the last decision; nil: it wrote none of its own
	end      messageEnd      // of the last decision
	stops    int             // how often its decision was stopped
	moved    bool            // a response whose run has written the request's row
	again    bool            // it was delivered or published before
	holder   string          // of an early run, whose answer it is (L5)
	topic    string          // for which its sender may speak; "" for a message of the engine (S2)
	refused  bool            // its response cannot be read, and a failed attempt stands for it
	outcome  *effect         // that its response brings; nil: none (J8)
	// reject is set when the store has refused the message's plan for good, or when it cannot be
	// decided.
	reject error
	stop   <-chan struct{} // closed when the engine that fetched it shall stop (T10)
	child  begun           // for the start of a child
	signal signalled       // for a signal
}

// messageEnd is how a message ends whose decision has committed.
type messageEnd uint8

const (
	endAck        messageEnd = iota // there is nothing left to do
	endWithoutRow                   // so it is, and there was nothing to do (C5)
	endRepelled                     // its sender may not send it (S2)
	endElsewhere                    // a call ends it
	endApart                        // it goes back to its run, with the outcome that it brings
)

func (m *message) about() Busy {
	return Busy{Job: m.msg.Job, Message: m.msg.GUID, Name: string(m.msg.Kind), Activity: m.msg.Activity}
}

func (m *message) job() journal.JobID { return m.msg.Job }

func (m *message) unit() (name string, together bool) {
	switch {
	case m.msg.Kind == journal.MessageSignal:
		return ofBox(m.msg.Job), true
	case m.stops > 0: // they leave the other loops to others
		return "slow decisions", false
	case m.child.asks != "":
		return ofKey(m.child.asks), false
	}
	return "job " + m.msg.Job.String(), false
}

func (m *message) rank() int { return rankMessage }

// key names the message's dispatch row.
func (m *message) key() collation.RowKey { return collation.RowKey{Job: m.msg.Job, GUID: m.msg.Row} }

// want is a hint: Step asks for what is missing.
func (m *message) want(b *batch) []store.Want {
	if m.epoch != b.epoch() {
		return nil
	}
	w := m.wanted(b.flows, b.mode)
	w.Whole = b.cache.on() && m.guessable()
	return []store.Want{w}
}

// wanted is want with what flow and mode say.
func (m *message) wanted(flows *Flows, mode collation.Mode) store.Want {
	x := &m.msg
	if x.Kind == journal.MessageSignal {
		return store.Want{Box: x.Job, Signal: x.Row}
	}
	w := store.Want{Job: x.Job, Row: x.Row}
	if x.Activity != "" {
		w.Instances = []collation.InstanceKey{{Activity: x.Activity, DAD: x.DAD}}
	}
	if x.Kind == journal.MessageStart && m.flow == (flowKey{}) { // sent for a child that had not begun
		w.Order, w.Key = x.Job, m.child.key
	}
	if m.reject != nil {
		// Its row will be held. The store may be refusing the entries that a decision reads, so
		// they are not asked for again.
		return w
	}
	w.Receipt = x.GUID
	if f := flows.Named(m.flow.name, m.flow.version); f != nil {
		w.Instances, w.Results = collation.Wants(f, x, mode)
	}
	return w
}

// decide steps the message. What of another epoch is open is sent again by its row (T4), in the
// database that was accepted: what it does not know is no stranger's.
func (m *message) decide(ctx context.Context, b *batch) (*collation.Plan, error) {
	m.plan, m.end = nil, endAck
	job := m.msg.Job
	state := b.loaded.States[job]
	switch {
	case m.epoch != b.epoch():
		m.end = endWithoutRow
		return nil, nil
	case m.msg.Kind == journal.MessageSignal:
		return nil, m.deliver(b)
	case b.unfinished(m.msg.GUID): // its next step reads what this transaction commits
		return nil, errLater
	case state == nil && b.loaded.Busy[job]:
		return nil, store.ErrBusy
	case state == nil && b.loaded.Orders[job] != nil:
		return m.order(ctx, b, b.loaded.Orders[job])
	case state == nil:
		m.orphan(b)
		return nil, nil
	case m.stolen(state.Rows[m.msg.Row]):
		m.end = endRepelled
		return nil, nil
	}
	if err := m.compile(ctx, b, state); err != nil {
		return nil, err
	}
	plan, need := m.step(b, state)
	if need != nil {
		return nil, needs{job: need}
	}
	m.plan = plan
	switch {
	case plan.Entry != nil:
		b.apply(state, plan)
	case len(plan.Delete) > 0: // an interrupt of a closed job: its key is kept, without an entry (W12)
		state.Apply(plan)
		b.write(plan)
	}
	return plan, nil
}

// decided notes the plan of a decision on a cached state.
func (m *message) decided(p *collation.Plan) { m.plan, m.end = p, endAck }

// compile gives the state its flow. If this build cannot run the job, the message waits for a
// person, and the others of the batch go on.
func (m *message) compile(ctx context.Context, b *batch, state *collation.State) error {
	if state.Flow != nil {
		return nil
	}
	back := b.progress.wait()
	f, err := b.flows.Get(ctx, state.Job.Flow)
	back()
	switch {
	case err == nil:
		state.Flow = f
	case unanswered(err):
		return &failedError{err}
	default:
		m.reject = err
	}
	return nil
}

// step calls collation.Step. A panic in it is a broken invariant: the job is quarantined, and
// the process goes on (J1).
func (m *message) step(b *batch, s *collation.State) (plan *collation.Plan, need *collation.Need) {
	defer func() {
		if r := recover(); r != nil {
			b.log.Error("a broken invariant: the job is quarantined",
				"job", s.Job.Key, "message", m.msg.GUID.String(), "panic", r, "stack", string(debug.Stack()))
			plan, need = collation.Quarantine(s, &m.msg, b.mode, fmt.Errorf("panic: %v", r)), nil
		}
	}()
	if _, changed := errors.AsType[*store.ChangedError](m.reject); changed {
		return collation.Changed(s, &m.msg, b.mode, m.reject), nil
	}
	if m.reject != nil {
		return collation.Hold(s, &m.msg, b.mode, heldFor(m.reject), m.reject), nil
	}
	if s.Receipts[m.msg.GUID] == nil {
		if err := m.read(s.Rows[m.msg.Row]); err != nil {
			return collation.Hold(s, &m.msg, b.mode, collation.HeldStuck, err), nil
		}
	}
	mode := b.mode
	mode.Fold = mode.Fold && m.stops == 0 // then only what is slow by itself is held
	return collation.Step(s, &m.msg, mode)
}

// read takes the message's response from its row (T1), as the row is now. Once the response is
// accepted, its entry has it (1.7).
func (m *message) read(row *collation.Row) error {
	x := &m.msg
	if row == nil || row.Kind != x.Kind {
		return nil
	}
	switch x.Kind {
	case journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle:
		var err error
		x.Response, err = journal.DecodeResponse(row.Body)
		return err
	}
	return nil
}

// stolen says that the sender of a message speaks for another topic than its own (S2). A worker
// makes no message of the engine, and no response to a request of another topic.
func (m *message) stolen(row *collation.Row) bool {
	return m.topic != "" && (m.msg.Kind != journal.MessageResponse || row != nil && row.Topic != m.topic)
}

// lose learns what the inception of a child was lost to.
func (m *message) lose(e *store.LostError) { m.child.lose(e) }

// refuse has the message held by its next decision, with the reason.
func (m *message) refuse(err error) (again bool) {
	again = m.reject == nil && m.outcome == nil
	m.reject = err
	return again
}

// giveUp lets the message wait for the database as long as a batch may (C10). One that brings an outcome
// does not: its run waits.
func (m *message) giveUp(_ error, since time.Time, _ bool) bool {
	return time.Since(since) >= holdOn || m.stopping() || m.outcome != nil
}

func (m *message) stopping() bool {
	select {
	case <-m.stop:
		return true
	default:
		return false
	}
}

// settle acks the message, or hands it back.
func (m *message) settle(l *loop, b *batch, became fate, err error) {
	switch {
	case err != nil:
		_ = m.delivery.Nak(maxNak/2 + l.cfg.Jitter(maxNak/2))
	case became == fateRepeat:
		m.msg.Entered = true
	case m.end == endWithoutRow:
		l.ackWithoutRow(m.delivery)
	case m.end == endRepelled:
		l.repel(m)
	case m.end == endElsewhere:
	case m.end == endApart:
		_ = m.delivery.Nak(0)
	case m.msg.Kind == journal.MessageSignal:
		m.signal.tell(l, b)
		l.ack(m.delivery)
	case m.plan != nil && m.plan.Outcome == collation.Later:
		l.later(m.delivery)
	default:
		acking(m)
		m.told()
		l.ack(m.delivery)
	}
}
