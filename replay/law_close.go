package replay

import (
	"bytes"

	"github.com/quipu-journal/quipu/journal"
)

// closeLaw checks the close and the completion tasks (V7, C14): a job closes once, when its
// semaphore is 0, and its tasks run once, by the message that closed it.
func (a *auditor) closeLaw(e *journal.Entry, f *facts) {
	open := a.job.ClosedAt == 0
	if f.marks.has(closed) {
		if !open {
			a.at(V7, e, "position 4 (snapshot): message %s closes the job again, %s closed it at entry %d",
				e.GUID, a.job.Closer, a.job.ClosedAt)
		}
		if e.Close == nil {
			a.at(V7, e, "the closing entry does not say how the job ended")
		} else if !endsAs(e, f) {
			a.at(V7, e, "the job ends as %s with code %d, its closing message brought code %d", e.Close.State, e.Close.Code, f.code)
		}
		if s := e.Semaphore; s != nil && *s > 0 {
			a.at(V7, e, "the job is closed with %d obligations open", *s)
		}
		a.closeWaits(e, f)
	}
	if e.Kind == journal.KindInterrupt && f.marks.has(entered|work|children) && !f.marks.has(closed) {
		a.at(V7, e, "an interrupt is handled and closes nothing")
	}
	if s := e.Semaphore; open && s != nil && *s == 0 && !f.marks.has(closed) {
		a.at(V7, e, "the semaphore reaches 0, but position 4 (snapshot) is not set")
	}
	if f.marks.has(tasks) {
		a.tasksLaw(e, f)
	}
	if c := e.Close; c != nil && !f.marks.has(closed) &&
		!(f.marks.has(tasks) && c.State == a.job.Close.State && c.Code == 0 && c.Error == nil) {
		a.at(V7, e, "an entry that does not close the job says it is %s with code %d", c.State, c.Code)
	}
}

// endsAs reports whether the job ended as its closing message allows (E11, C15). A success
// completes it. An error that no transition took fails it, and so does a failed expression.
// Only an interrupt interrupts it, or completes it early.
func endsAs(e *journal.Entry, f *facts) bool {
	c := e.Close
	switch c.State {
	case journal.JobCompleted:
		success := f.start || f.halts || f.code == codeOK || f.late // late: its error may be taken (1.10)
		return success && c.Code == codeOK && c.Error == nil
	case journal.JobFailed:
		return failsAs(e, f)
	case journal.JobInterrupted:
		return f.halts && c.Error != nil && c.Error.Class == classInterrupted && c.Code >= 400
	}
	return false
}

// failsAs reports whether the job failed with the error that its closing message brought, or
// with that of its output's expression.
func failsAs(e *journal.Entry, f *facts) bool {
	c := e.Close
	if c.Error == nil || c.Code < 400 {
		return false
	}
	spoiled := c.Code == codeInternal && c.Error.Class == reasonExpression
	switch {
	case f.start && e.Trouble == nil, f.halts, f.code == codeOK:
		return spoiled
	case spoiled && f.late: // its error was taken, and nothing was dispatched
		return true
	}
	want := f.err
	if want == nil {
		want = &journal.Failure{}
	}
	return c.Code == f.code && c.Error.Class == want.Class && c.Error.Message == want.Message &&
		bytes.Equal(c.Error.Data, want.Data)
}

// classInterrupted is the class of the error with which an interrupt ends a job.
const classInterrupted = "interrupted"

func (a *auditor) tasksLaw(e *journal.Entry, f *facts) {
	switch {
	case f.marks.has(closed):
	case a.job.ClosedAt == 0:
		a.at(V7, e, "position 7 (step 3): completion tasks of a job that is open")
	case e.GUID != a.job.Closer:
		a.at(V7, e, "position 7 (step 3): completion tasks by %s, the job was closed by %s", e.GUID, a.job.Closer)
	case a.job.TasksAt > 0:
		a.at(V7, e, "position 7 (step 3): the completion tasks ran twice")
	}
	if e.Close == nil {
		a.at(V7, e, "position 7 (step 3): the completion tasks do not say how the job ended")
	}
	answers := 0
	for i := range e.Dispatched {
		if e.Dispatched[i].Kind == journal.MessageOutcome {
			answers++
		}
	}
	want := 0
	if p := a.job.Parent; p != nil && p.Awaited {
		want = 1
	}
	if answers != want {
		a.at(V7, e, "position 7 (step 3): the completion tasks send %d outcomes, the parent awaits %d", answers, want)
	}
}

// afterLaw checks that after the closing entry only what may follow does follow (V15, C15).
func (a *auditor) afterLaw(e *journal.Entry, f *facts) {
	if a.job.ClosedAt == 0 {
		if f.marks.has(afterClose) {
			a.at(V15, e, "marked after_close in a job that is open")
		}
		return
	}
	switch e.Kind {
	case journal.KindStale, journal.KindDeadLetter, journal.KindOperator, journal.KindQuarantine, journal.KindExpired,
		journal.KindResumed, journal.KindForked:
		return
	}
	if e.GUID == a.job.Closer && f.marks == tasks {
		return
	}
	if !f.marks.has(afterClose) {
		a.at(V15, e, "an entry of kind %s with marks %v after the job was closed at entry %d", e.Kind, e.Marks, a.job.ClosedAt)
		return
	}
	if n := len(e.Dispatched) + len(e.Waits); n > 0 || e.Elements != nil {
		a.at(V15, e, "%d messages are dispatched after the job was closed at entry %d", n, a.job.ClosedAt)
	}
}

// closeTookAll checks that a close leaves no row that is an obligation of the job (C15, V10).
// Exceptions are the closer's own row and, if the job completes, wake-ups for functions that
// ended before them.
func (a *auditor) closeTookAll(e *journal.Entry, f *facts) {
	for _, g := range sortedGUIDs(a.job.Rows) {
		row := a.job.Rows[g]
		if _, p := a.job.resolvedWait(g); p != nil && completes(e, f) {
			continue
		}
		switch row.Kind {
		case journal.MessageLeg1, journal.MessageRequest, journal.MessageAnswer, journal.MessageWakeUp,
			journal.MessageCycle:
			if g != f.rowID {
				a.at(V10, e, "the close leaves the %s row %s of %s %s", row.Kind, g, row.Activity, row.DAD)
				return
			}
		}
	}
}

// completes reports whether the entry closes the job because nothing is left to do; then
// nothing is cancelled.
func completes(e *journal.Entry, f *facts) bool {
	return !f.halts && e.Close != nil && e.Close.State == journal.JobCompleted
}

// closeWaits checks that a close ends every wait (V13, C15): it is cancelled, or the closing
// message consumed it, or the close cancels the delivery that has ended it.
func (a *auditor) closeWaits(e *journal.Entry, f *facts) {
	if len(a.job.Waits) == 0 {
		return
	}
	ended := set(e.CancelledByClose...)
	for _, g := range e.Cancelled {
		ended[g] = true
	}
	if f.consumes(e) {
		g, _ := a.job.waitOf(f.inst)
		ended[g] = true
	}
	for _, g := range a.dropped(e, f) {
		ended[g] = true
	}
	for _, g := range sortedGUIDs(a.job.Waits) {
		w := a.job.Waits[g]
		if ended[g] || f.delivered(w) {
			continue
		}
		a.at(V13, e, "the close leaves the wait %s of %s %s for signal %s", g, w.Activity, w.DAD, w.Topic)
		return
	}
}
