package collation

import (
	"bytes"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// Classes of the errors of effects that an operator declared not done.
const (
	FailureOperator = "operator" // the effect was unfinished
	FailureVoided   = "voided"   // the effect was completed
)

// Actions of an operator, as entries name them (E10).
const (
	ActionRetry  = "retry"
	ActionDone   = "done"
	ActionAnswer = "answer"
	ActionResume = "resume" // of a job that has closed
	ActionFork   = "fork"   // of a job, from an entry of its journal
	ActionRepair = "repair" // of a job's tables, from its journal (S11)

	ActionStart     = "start"     // of a job, on somebody's behalf (O11)
	ActionInterrupt = "interrupt" // from outside, on somebody's behalf (O11)
)

// Action is an operator's decision on a dead letter, one of three (E10, 3.3). Retry releases
// the row. A parked effect is then recorded as not done and runs again, whether it is
// unfinished, or completed and in doubt. Done says that the parked effect was done: an
// unfinished one is completed with that result, a completed one is vouched for; the row is
// released and the handler goes on. An answer ends the request with Response. Judge says which
// effect is meant.
type Action struct {
	ID       int64
	Retry    bool
	Done     []byte         // canonical payload
	Effect   journal.Digest // that Retry or Done means; zero: the only one in doubt
	Response *journal.Response
	Who      string
	Reason   string
}

// The states of a dead letter (E10).
const (
	LetterOpen     = "open"
	LetterRetried  = "retried"  // by an operator, as the next two
	LetterResolved = "resolved" // by a result, or by what was said of an effect
	LetterFailed   = "failed"   // by an error
	LetterAnswered = "answered" // the answer of its message came after all
)

// Letter is a dead letter as an operator's action finds it.
type Letter struct {
	ID     int64
	Job    journal.JobID // zero: it has no job
	Row    journal.GUID
	Reason string
	State  string
	Acted  int // how many dead letters of its row an operator has ended
}

// LetterEnd is the end of an open dead letter by an operator.
type LetterEnd struct {
	ID    int64
	State string
}

// Act decides on an operator's action (E10, 3.3). It reads the dead letter, its job (nil: not
// here), and the row of its message; if the action may be about an effect, also all effects of
// the request. It writes the end of the dead letter. If there is a row, it also writes the row,
// an entry that says who decided what, and the effect's outcome on the request's chain. It
// updates l, so that the next action of the same transaction sees the change. ErrStale: the
// dead letter or its message has ended, or the message is not held, so that nothing stands still for a
// decision: a dead letter alone, which others than engines write, ends no work. ErrAction: the
// action does not fit. An error changes nothing.
func Act(s *State, l *Letter, a *Action, mode Mode) (*Plan, *Need, error) {
	switch {
	case l.State != LetterOpen:
		return nil, nil, l.ended()
	case s == nil:
		return l.alone(a)
	}
	x := s.Rows[l.Row]
	// In a closed job the closer may still have its row, for step 3: it can only be retried.
	if x == nil || s.Job.State != journal.JobOpen && !(a.Retry && s.Job.State.Closed()) {
		return nil, nil, staleFor("its message has ended")
	}
	if x.Held != HeldStuck && x.Held != HeldParked {
		return nil, nil, staleFor("its message is not held: it is on its way, or runs, and nobody has to decide about it")
	}
	row := *x
	w := newWriter(s, &Message{
		Kind: row.Kind, Job: s.Job.ID, GUID: OperatorGUID(l.Row, a.Name(), l.Acted), Row: row.GUID,
	}, mode)
	w.key, w.p.Done = InstanceKey{row.Activity, row.DAD}, true
	w.entry(journal.KindOperator).Operator = &journal.Operator{
		Action: a.Name(), Who: a.Who, Reason: a.Reason, Login: mode.Login,
	}
	switch {
	case a.Response == nil:
		if need, err := w.release(&row, l, a); need != nil || err != nil {
			return nil, need, err
		}
	case row.Kind != journal.MessageRequest && row.Kind != journal.MessageAnswer:
		return nil, nil, misfit("a message of kind %s cannot be answered: retry it", row.Kind)
	default:
		if need, err := w.open(&row); need != nil || err != nil {
			return nil, need, err
		}
		row.answer(s.Now, a.Response)
	}
	row.Dead = false
	w.change(row, true)
	p := w.seal()
	p.Letters = []LetterEnd{l.end(a)}
	return p, nil, nil
}

// open refuses an answer to a request that has accepted one, and has steps of it left. The row keeps
// the input then, which another attempt may need (T1).
func (w *writer) open(row *Row) (*Need, error) {
	if row.Kind != journal.MessageAnswer {
		return nil, nil
	}
	receipt, asked := w.s.Receipts[row.Answers()]
	switch {
	case !asked:
		return &Need{Receipts: []journal.GUID{row.Answers()}}, nil
	case receipt != nil:
		return nil, staleFor("its request has been answered: retry it")
	}
	return nil, nil
}

// alone ends a dead letter without a row: there is nothing to send again, and no job whose
// journal could record it.
func (l *Letter) alone(a *Action) (*Plan, *Need, error) {
	if a.Response == nil {
		return nil, nil, misfit("its message has no row that could be sent again: end it with an answer")
	}
	return &Plan{Outcome: Handled, Done: true, LetterWrites: LetterWrites{Letters: []LetterEnd{l.end(a)}}}, nil, nil
}

// end updates the dead letter by the action.
func (l *Letter) end(a *Action) LetterEnd {
	switch {
	case a.Retry:
		l.State = LetterRetried
	case a.Done != nil || a.Response.Code == CodeOK:
		l.State = LetterResolved
	default:
		l.State = LetterFailed
	}
	return LetterEnd{l.ID, l.State}
}

// release lets the row be sent at once, with what is said of an effect. The runs of a request
// count from 0 again (E9). For a Leg1 and an interrupt Runs counts the operator's retries: each
// allows a Leg1 one more entry (C4), and tells that the journal mentions the interrupt (W12).
func (w *writer) release(row *Row, l *Letter, a *Action) (*Need, error) {
	if a.Done != nil || a.Effect != (journal.Digest{}) || row.Held == HeldParked {
		if row.Kind == journal.MessageAnswer { // its chain is bound, or is about to be (J8)
			return nil, staleFor("its request has been answered: nothing is said of its effects any more; retry it without an effect")
		}
		record, asked := w.s.Record[row.GUID]
		if !asked {
			return &Need{Record: []journal.GUID{row.GUID}}, nil
		}
		if err := w.judge(row, l.Reason, a, record); err != nil {
			return nil, err
		}
	}
	if row.Kind == journal.MessageLeg1 || row.Kind == journal.MessageInterrupt {
		row.Runs++
	} else {
		row.Runs = 0
	}
	row.Held, row.NextAt, row.TurnSent = "", w.s.Now, 0
	if row.Kind != journal.MessageAnswer || !row.Undo { // compensations wait for its run (3.5)
		row.letGo()
	}
	return nil, nil
}

// answer turns the row of a request (T1): it holds an answer that did not come from its worker,
// goes to the engine, and gives no lease any more. Registered compensations need the input, and
// wait for the run that may still be busy outside, so the row keeps both (3.5).
func (r *Row) answer(now Micros, with *journal.Response) {
	if r.Undo && r.Kind == journal.MessageRequest {
		r.Input = r.Body
	}
	if !r.Undo {
		r.letGo()
	}
	r.Kind, r.Body, r.WithinAt = journal.MessageAnswer, journal.EncodeResponse(with), Never
	r.Held, r.NextAt, r.TurnSent = "", now, 0
}

// Overdue decides on a request that nobody answered within its time (E9). It reads the job and
// the request's row. nil: its time has not come, or it is answered. It turns the row into an
// answer 408, with an entry that says so (S12).
func Overdue(s *State, request journal.GUID, mode Mode) *Plan {
	x := s.Rows[request]
	if s.Job.State != journal.JobOpen || x == nil || x.Kind != journal.MessageRequest || x.WithinAt == Never ||
		x.WithinAt > s.Now {
		return nil
	}
	w := newWriter(s, &Message{Kind: x.Kind, Job: s.Job.ID, GUID: request, Row: request}, mode)
	w.key, w.p.Done = InstanceKey{x.Activity, x.DAD}, true
	w.entry(journal.KindOverdue)
	row := *x
	row.answer(s.Now, &journal.Response{
		Kind: journal.ResponseTerminal, Code: CodeTimeout,
		Error: &journal.Failure{Class: classWithin, Message: "no answer within the activity's `within`: look for workers of its topic"},
	})
	w.change(row, true)
	return w.seal()
}

// classWithin is the error class of what did not end within its time.
const classWithin = "within"

// Name is the action as its entry names it.
func (a *Action) Name() string {
	switch {
	case a.Retry:
		return ActionRetry
	case a.Done != nil:
		return ActionDone
	}
	return ActionAnswer
}

// Check refuses an action that is not one of the three: ErrAction.
func (a *Action) Check() error {
	n := 0
	for _, is := range []bool{a.Retry, a.Done != nil, a.Response != nil} {
		if is {
			n++
		}
	}
	switch {
	case n != 1:
		return misfit("an action is one of retry, done and answer")
	case a.Response != nil && a.Effect != (journal.Digest{}):
		return misfit("an answer ends the request: it means no effect")
	case a.Done == nil:
		return nil
	case len(a.Done) > MaxResult:
		return misfit("the result of what was done has %d bytes, the limit is %d", len(a.Done), MaxResult)
	}
	if same, err := canonical.Payload(a.Done); err != nil || !bytes.Equal(same, a.Done) {
		return misfit("the result of what was done is no canonical payload: %.80q", a.Done)
	}
	return nil
}
