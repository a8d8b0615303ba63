package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// semaphoreLaw checks the semaphore (V6, C13): before = the after that precedes,
// moved by N − 1 by a message that ends its activity, by N by any other, taken
// to 0 with what is abandoned by a close, never negative. After the entry,
// settled compares it with the obligations recounted.
func (a *auditor) semaphoreLaw(e *journal.Entry, f *facts) {
	s := e.Semaphore
	moves := f.marks.has(children) || e.Kind == journal.KindCreated
	switch {
	case s == nil && moves:
		a.at(V6, e, "the entry does not say how it moves the semaphore")
		return
	case s == nil:
		return
	case !moves:
		a.at(V6, e, "an entry with marks %v moves the semaphore %d → %d", e.Marks, s.Before, s.After)
	}
	if s.Before != a.job.Semaphore {
		a.at(V6, e, "the semaphore before is %d, the entries so far left %d", s.Before, a.job.Semaphore)
	}
	want := int64(f.n)
	switch {
	case e.Kind == journal.KindCreated:
		want = 1
	case f.ends:
		want--
	}
	if e.Abandoned != 0 && !f.marks.has(closed) {
		a.at(V6, e, "%d obligations are abandoned by an entry that closes nothing", e.Abandoned)
	}
	want -= int64(e.Abandoned)
	if got := s.After - s.Before; got != want {
		a.at(V6, e, "the semaphore goes %d → %d, %+d; %d children, %d abandoned, activity ended: %t ask for %+d",
			s.Before, s.After, got, f.n, e.Abandoned, f.ends, want)
	}
	if s.After < 0 {
		a.at(V6, e, "the semaphore is negative: %d", s.After)
	}
}

// closeLaw checks the snapshot and the completion tasks (V7, C14): a job closes
// once, when its semaphore is 0, and its tasks run once, by its closer.
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
		if s := e.Semaphore; s != nil && s.After > 0 {
			a.at(V7, e, "the job is closed with %d obligations open", s.After)
		}
	}
	if s := e.Semaphore; open && s != nil && s.After == 0 && !f.marks.has(closed) {
		a.at(V7, e, "the semaphore reaches 0, but position 4 (snapshot) is not set")
	}
	if f.marks.has(tasks) {
		a.tasksLaw(e, f)
	}
	if c := e.Close; c != nil && !f.marks.has(closed) && (!f.marks.has(tasks) || c.State != a.job.Close.State) {
		a.at(V7, e, "an entry that does not close the job says it is %s", c.State)
	}
}

// endsAs reports whether the job ended as its closing message lets it (E11): a
// success completes it; what fails it is an error response that no transition
// took, or an expression that failed.
func endsAs(e *journal.Entry, f *facts) bool {
	c := e.Close
	switch c.State {
	case journal.JobCompleted:
		return c.Code == collation.CodeOK && c.Error == nil && (f.start || f.code == collation.CodeOK)
	case journal.JobFailed:
		expression := e.Trouble != nil || c.Error != nil && c.Error.Class == collation.ReasonExpression
		response := !f.start && f.code != collation.CodeOK && f.code == c.Code
		return c.Error != nil && c.Code >= 400 && (expression || response)
	default:
		return c.State.Closed()
	}
}

func (a *auditor) tasksLaw(e *journal.Entry, f *facts) {
	switch {
	case f.marks.has(closed):
	case a.job.ClosedAt == 0:
		a.at(V7, e, "position 7 (step 3): completion tasks of a job that is open")
	case e.GUID != a.job.Closer:
		a.at(V7, e, "position 7 (step 3): completion tasks by %s, the job was closed by %s", e.GUID, a.job.Closer)
	case a.job.Tasks:
		a.at(V7, e, "position 7 (step 3): the completion tasks ran twice")
	}
}

// afterLaw checks that nothing goes on behind the closing entry but what may
// (V15, C15).
func (a *auditor) afterLaw(e *journal.Entry, f *facts) {
	if a.job.ClosedAt == 0 {
		if f.marks.has(afterClose) {
			a.at(V15, e, "marked after_close in a job that is open")
		}
		return
	}
	switch e.Kind {
	case journal.KindStale, journal.KindDeadLetter, journal.KindOperator, journal.KindQuarantine, journal.KindExpired:
		return
	}
	if e.GUID == a.job.Closer && f.marks == tasks {
		return
	}
	if !f.marks.has(afterClose) {
		a.at(V15, e, "an entry of kind %s with marks %v after the job was closed at entry %d", e.Kind, e.Marks, a.job.ClosedAt)
		return
	}
	if len(e.Dispatched) > 0 {
		a.at(V15, e, "%d messages are dispatched after the job was closed at entry %d", len(e.Dispatched), a.job.ClosedAt)
	}
}

// closeTookAll checks that a close leaves no row that was an obligation of the
// job, the closer's own excepted (C15, V10).
func (a *auditor) closeTookAll(e *journal.Entry, f *facts) {
	for _, g := range sortedGUIDs(a.job.Rows) {
		row := a.job.Rows[g]
		switch row.Kind {
		case journal.MessageLeg1, journal.MessageRequest, journal.MessageAnswer, journal.MessageWakeUp, journal.MessageCycle:
			if g != f.licence {
				a.at(V10, e, "the close leaves the %s row %s of %s %s", row.Kind, g, row.Activity, row.DAD)
				return
			}
		}
	}
}
