package replay

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// semaphoreLaw checks the semaphore (V6, C13): before = the after that precedes,
// moved by N − 1 by a message that ends its activity or makes a pass of a pivot,
// by N by any other, taken to 0 with what is abandoned by a close, never
// negative. After the entry, settled compares it with the obligations recounted.
func (a *auditor) semaphoreLaw(e *journal.Entry, f *facts) {
	s := e.Semaphore
	moves := f.marks.has(children) || e.Kind == journal.KindCreated
	if e.Abandoned != 0 && !f.marks.has(closed) {
		a.at(V6, e, "%d obligations are abandoned by an entry that closes nothing", e.Abandoned)
	}
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
	case f.minus:
		want--
	}
	want -= int64(e.Abandoned)
	if got := s.After - s.Before; got != want {
		a.at(V6, e, "the semaphore goes %d → %d, %+d; %d children, %d abandoned, an obligation ended: %t ask for %+d",
			s.Before, s.After, got, f.n, e.Abandoned, f.minus, want)
	}
	if s.After < 0 {
		a.at(V6, e, "the semaphore is negative: %d", s.After)
	}
}

// openLaw checks the open elements of `each` (V6, 1.11): written by the Leg1,
// one less with each element's ending response in its step 2.
func (a *auditor) openLaw(e *journal.Entry, f *facts) {
	o, x := e.Open, e.Elements
	if x != nil {
		switch {
		case e.Kind != journal.KindLeg1 || !f.marks.has(work):
			a.at(V6, e, "an entry of kind %s with marks %v writes %d elements", e.Kind, e.Marks, x.Count)
		case x.Count < 1 || x.Count > flow.MaxElements || x.Parallel < 1 || x.Parallel > x.Count:
			a.at(V6, e, "%d elements are written, %d of them sent", x.Count, x.Parallel)
		case o == nil || o.Before != 0 || o.After != x.Count:
			a.at(V6, e, "%d elements are written, the open ones go %s", x.Count, moveText(o))
		}
		return
	}
	switch ends := f.elementEnds(e); {
	case !ends && o != nil:
		a.at(V6, e, "the open elements of %s %s go %s, but no element ends", f.key.Activity, f.key.DAD, moveText(o))
	case ends && o == nil:
		a.at(V6, e, "an element of %s %s ends, the entry does not say how many are open", f.key.Activity, f.key.DAD)
	case ends && (o.Before != f.inst.Open || o.After != o.Before-1 || o.After < 0):
		a.at(V6, e, "the open elements of %s %s go %s with the end of one, the entries so far left %d",
			f.key.Activity, f.key.DAD, moveText(o), f.inst.Open)
	case ends && !f.partial && e.Result == nil && !failedExpression(e):
		a.at(V6, e, "the last element of %s %s ends, but nothing is gathered", f.key.Activity, f.key.DAD)
	}
}

func moveText(o *journal.OpenMove) string {
	if o == nil {
		return "nowhere"
	}
	return itoa(int64(o.Before)) + " → " + itoa(int64(o.After))
}
