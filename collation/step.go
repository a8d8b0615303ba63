package collation

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Step decides one message against the state it meets. It returns the plan, or what it needs to
// decide. It changes neither argument: State.Apply updates the state.
//
// The order is receipt, dispatch row, state (C5). Under mode.Stepwise the plan ends at the next
// mark and is not Done. The message is then stepped again, with that plan applied.
func Step(s *State, m *Message, mode Mode) (*Plan, *Need) {
	b := newBuilder(s, m, mode)
	err := b.decide()
	if b.stopped {
		return b.halted(), nil
	}
	if !b.need.Empty() {
		return nil, &b.need.Need // a need goes before an error: unread state looks like missing state
	}
	if err != nil {
		b.trouble(err)
	}
	return b.seal(), nil
}

// builder decides one message. It reads the state as the plan has changed it so far, and writes
// the plan.
type builder struct {
	writer
	need needError

	// at is the address of the message's pass. It equals key, except in later passes of a pivot
	// or a repeating hook (C6).
	at  InstanceKey
	act *flow.Activity
	// own is the result of this message's activity, while its plan is made.
	own    *flow.Result
	folded int

	budgets []*flow.Budget  // of this decision's evaluations
	few     [4]*flow.Budget // where budgets begins: most decisions have no more
	stop    func() bool     // halts as a value, made once; nil: nobody asks for the time
	stopped bool            // an evaluation was stopped, so nothing that follows is a verdict
}

func newBuilder(s *State, m *Message, mode Mode) *builder {
	b := &builder{writer: newWriter(s, m, mode)}
	b.budgets = b.few[:0]
	if mode.Stop != nil {
		b.stop = b.halts
	}
	return b
}

// halts asks Mode.Stop, and knows from then on that the decision was stopped.
func (b *builder) halts() bool {
	b.stopped = b.stopped || b.mode.Stop()
	return b.stopped
}

// spent is what all evaluations of the plan have cost so far.
func (b *builder) spent() (units int64) {
	for _, x := range b.budgets {
		units += x.Spent()
	}
	return units
}

// halted is the plan of a decision that was stopped: it writes nothing, and nothing is known of the
// message.
func (b *builder) halted() *Plan {
	return &Plan{Job: b.m.Job, Message: b.m.GUID, Outcome: Stopped}
}

// decide applies C5: receipt, then dispatch row, then the state of job and
// activity.
func (b *builder) decide() error {
	if ended := b.ended(); ended != "" {
		b.nothing(ended)
		return nil
	}
	if b.m.Kind == journal.MessageInterrupt {
		return b.interrupted()
	}
	name := b.m.Activity
	if b.m.Kind == journal.MessageStart {
		name = b.s.Flow.Trigger().Name // a child's start does not name its trigger
		b.key.Activity, b.at.Activity = name, name
	}
	act, ok := b.s.Flow.Activity(name)
	if !ok {
		return errBroken("the flow has no activity " + name)
	}
	b.act = act
	switch b.m.Kind {
	case journal.MessageStart:
		return b.start()
	case journal.MessageLeg1:
		return b.leg1()
	case journal.MessageResponse, journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome,
		journal.MessageCycle:
		return b.leg2()
	default:
		return errBroken("no rule for messages of kind " + string(b.m.Kind))
	}
}

// ended is the outcome of a message for which nothing is left to do, judged by receipt and
// dispatch row (C5); "" if it is still to be handled.
func (b *builder) ended() Outcome {
	if b.s.Job.State == journal.JobQuarantined {
		return Quarantined
	}
	b.key = InstanceKey{b.m.Activity, b.m.DAD}
	b.at = b.key
	b.row, b.receipt = b.s.Rows[b.m.Row], b.s.Receipts[b.m.GUID]
	switch r := b.receipt; {
	case r != nil && (r.Verdict == journal.VerdictStale || r.Ledger.Complete()):
		return Settled
	case r != nil:
		return ""
	case b.row == nil || !b.ownsRow():
		return NoRow
	case b.row.Held != "" && b.m.Kind != journal.MessageResponse:
		return HeldBack
	}
	return ""
}

// ownsRow reports whether the row belongs to this message (C5). A worker's response belongs to
// the row of its request, in the turn that it answers. If the row was turned meanwhile (T1),
// only a terminal response counts: the answer in the row ends the request anyway, so a failed
// attempt would have nothing to retry.
func (b *builder) ownsRow() bool {
	switch b.m.Kind {
	case journal.MessageResponse:
		turned := b.row.Kind == journal.MessageAnswer && b.m.Response.Kind == journal.ResponseTerminal
		return (b.row.Kind == journal.MessageRequest || turned) && b.row.Turn == b.m.Turn
	case journal.MessageAnswer:
		return b.row.Kind == journal.MessageAnswer && b.row.Turn == b.m.Turn
	default:
		return b.row.Kind == b.m.Kind
	}
}

// cut reports whether the plan ends at the mark just set (C11).
func (b *builder) cut() bool { return b.mode.Stepwise }

// cutAfterWork is cut after step 1. An output that is stored beside the entry (E6) is read back
// through the entry, so its step 2 is a transaction of its own.
func (b *builder) cutAfterWork() bool { return b.mode.Stepwise || !b.response.Ref.IsZero() }
