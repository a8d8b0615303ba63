package replay

import (
	"strconv"

	"github.com/quipu-journal/quipu/journal"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// turnLaw checks turns and attempts (V12, E7, E8). A response belongs to the turn of its row,
// an outcome to that of its await. A pending response raises the turn by one, and after a
// failed attempt the attempt, too. A failed child brings the start of the next one. Nothing
// else changes them, and only what ends or passes an activity decides transitions (C12).
func (a *auditor) turnLaw(e *journal.Entry, f *facts) {
	a.inTurn(e, f)
	raised := false
	for i := range e.Updated {
		u := &e.Updated[i]
		row := a.job.Rows[u.GUID]
		if row == nil {
			continue
		}
		turn, attempt := row.Turn, row.Attempt
		if f.stays && u.GUID == f.rowID {
			raised = true
			turn++
			if f.kind == journal.ResponseFailedAttempt {
				attempt++
			}
		}
		if u.Turn != turn || u.Attempt != attempt {
			a.at(V12, e, "row %s goes from turn %d, attempt %d to turn %d, attempt %d; the entry allows turn %d, attempt %d",
				u.GUID, row.Turn, row.Attempt, u.Turn, u.Attempt, turn, attempt)
		}
	}
	if f.stays && !raised {
		a.at(V12, e, "a pending response of kind %s is done, but the turn of row %s stays", f.kind, f.rowID)
	}
	a.nextChild(e, f)
}

// inTurn checks the turn and attempt that a response names.
func (a *auditor) inTurn(e *journal.Entry, f *facts) {
	r := e.Response
	if r != nil && r.RetryAfter != 0 && r.Kind == journal.ResponseTerminal {
		a.at(V12, e, "a terminal response asks for a further attempt after %d µs", r.RetryAfter)
	}
	if r == nil || f.row == nil {
		return
	}
	if f.row.asleep() && f.message == journal.MessageResponse {
		a.at(V12, e, "request %s is answered in turn %d by a response of kind %s while it sleeps", f.rowID, f.row.Turn, r.Kind)
	}
	turn, attempt, of := f.row.Turn, f.row.Attempt, "the row "+f.rowID.String()
	if f.row.Kind == journal.MessageOutcome && f.inst != nil {
		turn, attempt, of = f.inst.Turn, f.inst.Attempt, "the await"
	}
	if r.Turn != turn || r.Attempt != attempt {
		a.at(V12, e, "the response is to turn %d, attempt %d; %s is at turn %d, attempt %d", r.Turn, r.Attempt, of, turn, attempt)
	}
}

// nextChild checks that a failed child, if not the last, brings exactly one start, and any
// other pending response none.
func (a *auditor) nextChild(e *journal.Entry, f *facts) {
	if (f.pending || f.partial) && e.Result != nil {
		a.at(V12, e, "a response that leaves %s %s open gives it a result", f.key.Activity, f.key.DAD)
	}
	if !f.pending {
		return
	}
	starts := 0
	for i := range e.Dispatched {
		if e.Dispatched[i].Kind == journal.MessageStart {
			starts++
		}
	}
	want := 0
	if f.message == journal.MessageOutcome && f.kind != journal.ResponseWake {
		want = 1
	}
	if starts != want && !f.suspends() {
		a.at(V12, e, "a pending %s of kind %s starts %d children, it has to start %d", f.message, f.kind, starts, want)
	}
}
