package replay

import (
	"strconv"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// turnLaw checks turns and tries (V12, E7, E8): a response is to the turn of its
// row, an outcome to that of its await. A pending one that is done raises the
// turn by one, and the try with it after a failed try; a failed child brings the
// start of the next. Nothing else moves them, and only what ends or passes an
// activity decides transitions (C12).
func (a *auditor) turnLaw(e *journal.Entry, f *facts) {
	a.inTurn(e, f)
	raised := false
	for i := range e.Updated {
		u := &e.Updated[i]
		row := a.job.Rows[u.GUID]
		if row == nil {
			continue
		}
		turn, try := row.Turn, row.Try
		if f.stays && u.GUID == f.licence {
			raised = true
			turn++
			if f.kind == journal.ResponseFailedTry {
				try++
			}
		}
		if u.Turn != turn || u.Try != try {
			a.at(V12, e, "row %s goes from turn %d, try %d to turn %d, try %d; the entry allows turn %d, try %d",
				u.GUID, row.Turn, row.Try, u.Turn, u.Try, turn, try)
		}
	}
	if f.stays && !raised {
		a.at(V12, e, "a pending response of kind %s is done, but the turn of row %s stays", f.kind, f.licence)
	}
	a.nextChild(e, f)
}

// inTurn checks the turn and try that a response says.
func (a *auditor) inTurn(e *journal.Entry, f *facts) {
	r := e.Response
	if r != nil && r.RetryAfter != 0 && r.Kind == journal.ResponseTerminal {
		a.at(V12, e, "a terminal response asks for a further try after %d µs", r.RetryAfter)
	}
	if r == nil || f.row == nil {
		return
	}
	overdue := r.Kind == journal.ResponseTerminal && r.Code == collation.CodeTimeout // without an entry (E9)
	if f.row.asleep() && f.message == journal.MessageResponse && !overdue {
		a.at(V12, e, "request %s is answered in turn %d by a response of kind %s while it sleeps", f.licence, f.row.Turn, r.Kind)
	}
	turn, try, of := f.row.Turn, f.row.Try, "the row "+f.licence.String()
	if f.row.Kind == journal.MessageOutcome && f.inst != nil {
		turn, try, of = f.inst.Turn, f.inst.Try, "the await"
	}
	if r.Turn != turn || r.Try != try {
		a.at(V12, e, "the response is to turn %d, try %d; %s is at turn %d, try %d", r.Turn, r.Try, of, turn, try)
	}
}

// nextChild checks that a failed child that is not the last brings one start,
// and that no other pending response brings any.
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
