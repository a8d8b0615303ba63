package collation

import (
	"errors"

	"github.com/quipu-journal/quipu/journal"
)

// brokenError is a state that no lawful history leads to; the job is quarantined (J1).
type brokenError struct{ what string }

func (e brokenError) Error() string { return e.what }

func errBroken(what string) error { return brokenError{what} }

// trouble replaces the plan by one for the error: at a ceiling the row is held with a dead
// letter (C4), any other error quarantines the job (J1).
func (w *writer) trouble(err error) {
	if errors.Is(err, ErrCeiling) {
		w.stick(HeldStuck, err)
		return
	}
	w.again()
	w.p.Done = true
	w.quarantine("law", err)
}

// stick replaces the plan by one that holds the message's row for a person, with a dead letter.
// Without a row there is nothing to hold, and the job is quarantined (J1).
func (w *writer) stick(reason string, cause error) {
	w.again()
	w.p.Done = true
	w.row = w.s.Rows[w.m.Row]
	if w.row == nil {
		w.quarantine("law", cause)
		return
	}
	w.p.Outcome = Stuck
	w.entry(journal.KindDeadLetter)
	row := *w.row // the due time is kept (C16)
	w.hold(&row, HeldStuck, reason, short(cause))
	w.change(row, true)
}

func (w *writer) quarantine(reason string, err error) {
	w.p.Outcome, w.p.NewState = Quarantined, journal.JobQuarantined
	w.entry(journal.KindQuarantine).Trouble = &journal.Trouble{Reason: reason, Message: short(err)}
}

// Reasons of dead letters of messages that an engine cannot bring to an end. The reason of others
// is HeldStuck.
const (
	ReasonSlow  = "slow"  // the decision took too long on this machine, several times
	ReasonLoads = "loads" // the decision asked for state too often
)

// Hold makes the plan that holds a message's row for an operator, with a dead letter of that
// reason, when an engine cannot bring the message to an end (C10, E10). Without a row there is
// nothing to hold, and the job is quarantined (J1). A message that has ended or is held already
// (C5) changes nothing.
func Hold(s *State, m *Message, mode Mode, reason string, cause error) *Plan {
	b := &builder{writer: newWriter(s, m, mode)}
	ended := b.ended()
	if ended == "" && b.receipt == nil && b.row.Held != "" {
		ended = HeldBack // a response to a held request needs no second dead letter
	}
	if ended == "" && b.row == nil && s.Job.State.Closed() {
		ended = NoRow // a close cancelled its row after it was accepted: only markers are left (C15)
	}
	if ended != "" {
		b.nothing(ended)
		return b.p
	}
	w := troubling(s, m, mode)
	w.stick(reason, cause)
	return w.seal()
}

// Quarantine makes the plan that takes the job out of service (J1).
func Quarantine(s *State, m *Message, mode Mode, cause error) *Plan {
	w := troubling(s, m, mode)
	w.trouble(cause)
	return w.seal()
}

// ReasonChanged is the reason of a dead letter, and of a quarantine, about stored bytes that are
// not what was written (S9).
const ReasonChanged = "changed"

// Changed makes the plan that takes the job out of service because bytes that the message's
// decision reads are not what was written (S9), with a dead letter that says which. The row of
// the message stays as it is: it goes on once the job may. A message that has ended or is held
// (C5) changes nothing.
func Changed(s *State, m *Message, mode Mode, cause error) *Plan {
	b := &builder{writer: newWriter(s, m, mode)}
	if ended := b.ended(); ended != "" {
		b.nothing(ended)
		return b.p
	}
	w := troubling(s, m, mode)
	w.p.Done = true
	w.quarantine(ReasonChanged, cause)
	if row := s.Rows[m.Row]; row != nil {
		kept := *row
		w.letter(&kept, ReasonChanged, short(cause))
		w.change(kept, false)
	} else {
		w.letter(&Row{}, ReasonChanged, short(cause))
	}
	return w.seal()
}

func troubling(s *State, m *Message, mode Mode) *writer {
	w := newWriter(s, m, mode)
	w.key = InstanceKey{m.Activity, m.DAD}
	if row := s.Rows[m.Row]; row != nil && m.Kind == journal.MessageStart {
		w.key = InstanceKey{row.Activity, row.DAD} // a child's start does not name its trigger
	}
	return &w
}
