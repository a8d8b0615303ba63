package replay

import (
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// semaphoreLaw checks the semaphore (V6, C13). It starts from the value of the entries so far.
// A message that ends an obligation moves it by N − 1, any other by N; a close also subtracts
// what it abandons. It is never negative. After the entry, settled compares it with the
// recount.
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
		a.at(V6, e, "an entry with marks %v moves the semaphore %d → %d", e.Marks, a.job.Semaphore, *s)
	}
	want := int64(f.n)
	switch {
	case e.Kind == journal.KindCreated:
		want = 1
	case f.minus:
		want--
	}
	want -= int64(e.Abandoned)
	if got := *s - a.job.Semaphore; got != want {
		a.at(V6, e, "the semaphore goes %d → %d, %+d; %d children, %d abandoned, an obligation ended: %t ask for %+d",
			a.job.Semaphore, *s, got, f.n, e.Abandoned, f.minus, want)
	}
	if *s < 0 {
		a.at(V6, e, "the semaphore is negative: %d", *s)
	}
}

// openLaw checks the number of open elements of `each` (V6, 1.11): the Leg1 writes it, and step
// 2 of each element's last response lowers it by one.
func (a *auditor) openLaw(e *journal.Entry, f *facts) {
	o, x := e.Open, e.Elements
	if x != nil {
		switch {
		case e.Kind != journal.KindLeg1 || !f.marks.has(work):
			a.at(V6, e, "an entry of kind %s with marks %v writes %d elements", e.Kind, e.Marks, x.Count)
		case x.Count < 1 || x.Count > flow.MaxElements || x.Parallel < 1 || x.Parallel > x.Count:
			a.at(V6, e, "%d elements are written, %d of them sent", x.Count, x.Parallel)
		case x.Inputs.Len() != x.Count:
			a.at(V6, e, "%d elements are written, with the inputs of %d", x.Count, x.Inputs.Len())
		case o != nil:
			a.at(V6, e, "%d elements are written, and %d of them are left", x.Count, *o)
		}
		return
	}
	switch ends := f.elementEnds(e); {
	case !ends && o != nil:
		a.at(V6, e, "%d open elements of %s %s are left, but no element ends", *o, f.key.Activity, f.key.DAD)
	case ends && o == nil:
		a.at(V6, e, "an element of %s %s ends, the entry does not say how many are open", f.key.Activity, f.key.DAD)
	case ends && (*o != f.inst.Open-1 || *o < 0):
		a.at(V6, e, "an element of %s %s ends, the open ones go %d → %d", f.key.Activity, f.key.DAD, f.inst.Open, *o)
	case ends && !f.partial && e.Result == nil && !failedExpression(e):
		a.at(V6, e, "the last element of %s %s ends, but nothing is gathered", f.key.Activity, f.key.DAD)
	}
}
