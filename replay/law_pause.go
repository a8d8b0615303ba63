package replay

import (
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// pauseLaw checks what durable functions wait for (V13, E12, E13). A suspension names each
// thing once, registers what is new, and cancels what it no longer names. A wake-up ends a
// thing that is named, once, and cancels its rival.
func (a *auditor) pauseLaw(e *journal.Entry, f *facts) {
	if r := e.Response; r != nil {
		a.pauseWords(e, f, r)
	}
	switch {
	case f.suspends():
		a.suspensionLaw(e, f)
	case f.wakes(e) && f.row != nil:
		a.wakeLaw(e, f)
	case e.Kind == journal.KindStale && a.job.ClosedAt == 0:
		a.refusedLaw(e)
	}
	a.droppedLaw(e, f)
}

// pauseWords checks that a response mentions pauses as its kind requires.
func (a *auditor) pauseWords(e *journal.Entry, f *facts, r *journal.Response) {
	if suspends := r.Kind == journal.ResponseSuspended; suspends != (len(r.Pauses) > 0) {
		a.at(V13, e, "a response of kind %s names %d things that it waits for", r.Kind, len(r.Pauses))
	} else if suspends && f.row != nil && f.message != journal.MessageResponse && f.message != journal.MessageAnswer {
		a.at(V13, e, "a %s suspends %s", f.message, f.key.Activity)
	}
	if wakes := r.Kind == journal.ResponseWake; wakes != (r.Of != nil) {
		a.at(V13, e, "a response of kind %s says what it ends: %t", r.Kind, r.Of != nil)
	}
	seen := make(map[journal.PauseRef]bool, len(r.Pauses))
	for i := range r.Pauses {
		p := r.Pauses[i].PauseRef
		if seen[p] {
			a.at(V13, e, "the suspension names %s %q at %s twice", p.Kind, p.Name, p.Position)
		}
		seen[p] = true
	}
}

// suspensionLaw checks step 2 of a suspension.
func (a *auditor) suspensionLaw(e *journal.Entry, f *facts) {
	row := a.job.Rows[f.rowID]
	if row == nil {
		return // V10 has reported it
	}
	came := false
	for i := range f.named {
		n := &f.named[i]
		if p := a.job.Pauses[n.id]; p == nil || !p.Named {
			a.registeredLaw(e, n)
		} else {
			came = came || p.Came
		}
	}
	for i := range e.Updated {
		if u := &e.Updated[i]; u.GUID == f.rowID &&
			((u.NextAt > 0) != came || u.Held != "" || u.Kind != journal.MessageRequest) {
			a.at(V10, e, "the suspension leaves the row %s as %s, held %q, sent out again: %t; something that it names has come: %t",
				u.GUID, u.Kind, u.Held, u.NextAt > 0, came)
		}
	}
}

// registeredLaw checks that a new pause is registered as it is named, with its time from this
// entry on.
func (a *auditor) registeredLaw(e *journal.Entry, n *namedPause) {
	missing := func(what string) {
		a.at(V13, e, "the function waits for %s %q, but no %s is registered", n.Kind, n.Name, what)
	}
	if a.registeredPast(e, n) {
		return
	}
	timer := func(g journal.GUID, what string) {
		i := slices.IndexFunc(e.Dispatched, func(d journal.Dispatched) bool { return d.GUID == g })
		if i < 0 {
			missing(what)
		} else if at := e.Dispatched[i].At; at != e.Time+n.For {
			a.at(V13, e, "the %s of %s %q is due %d µs after the entry, not %d", what, n.Kind, n.Name, at-e.Time, n.For)
		}
	}
	switch n.Kind {
	case journal.PauseSleep:
		timer(n.id, "timer")
	case journal.PauseSignal:
		i := slices.IndexFunc(e.Waits, func(w journal.Wait) bool { return w.GUID == n.id })
		if i < 0 {
			missing("wait")
		} else if w := &e.Waits[i]; w.Topic != n.Topic || !a.keeps(w, n.Key) || w.Repeat {
			a.at(V13, e, "the wait of %q is for signal %s with key %q, repeats: %t; the function waits for signal %s with key %q",
				n.Name, w.Topic, w.Key, w.Repeat, n.Topic, n.Key)
		}
		if n.bounded() {
			timer(journal.DeriveTimeout(n.id), "bound")
		}
	case journal.PauseChild:
		i := slices.IndexFunc(e.Dispatched, func(d journal.Dispatched) bool { return d.GUID == n.id })
		if i < 0 {
			missing("start")
		} else if e.Dispatched[i].At != 0 {
			a.at(V13, e, "child %q says when it is due", n.Name)
		}
	}
}

// registeredPast reports whether a resuming job lets the pause come at once, because it came in
// an earlier generation. Its wake-up then names the entry that it copies.
func (a *auditor) registeredPast(e *journal.Entry, n *namedPause) bool {
	i := slices.IndexFunc(e.Dispatched, func(d journal.Dispatched) bool {
		return d.GUID == n.id && d.Kind == journal.MessageWakeUp && d.At == e.Time
	})
	if a.job.From == nil || i < 0 {
		return false
	}
	a.early[n.id] = true
	return true
}

// wakeLaw checks the entry that accepts a wake-up: the function waits for the pause, the
// message may end it, and it does so once (P15).
func (a *auditor) wakeLaw(e *journal.Entry, f *facts) {
	r := e.Response
	g, p := a.job.resolvedWait(e.GUID)
	switch {
	case p == nil || p.Request != r.Request:
		a.at(V11, e, "the wake %s ends nothing that the function of request %s waited for", e.GUID, r.Request)
		return
	case p.Taken > 0:
		a.at(V13, e, "%s %q came before, at entry %d", p.Kind, p.Name, p.Taken)
		return
	case !p.Named:
		a.at(V13, e, "%s %q wakes request %s, which waits for it no more", p.Kind, p.Name, p.Request)
		return
	case r.Of != nil && *r.Of != p.PauseRef:
		a.at(V13, e, "the wake says that it ends %s %q at %s, it ends %s %q at %s",
			r.Of.Kind, r.Of.Name, r.Of.Position, p.Kind, p.Name, p.Position)
	}
	if (r.Taken != nil) != a.early[g] {
		a.at(V13, e, "%s %q is a copy: %t, and came at once: %t", p.Kind, p.Name, r.Taken != nil, a.early[g])
	}
	a.wakerLaw(e, f, g, p)
	if p.Kind == journal.PauseSignal {
		rival := journal.DeriveTimeout(g)
		if e.GUID == rival {
			rival = g
		}
		if (a.job.Rows[rival] != nil || a.job.Waits[rival] != nil && rival == g) &&
			!slices.Contains(e.Cancelled, rival) {
			a.at(V13, e, "%s %q has come, its rival %s stays", p.Kind, p.Name, rival)
		}
	}
}

// refusedLaw checks that no wake-up is lost (E13). One that the function waits for may be
// refused only if it is the bound of a wait whose signal was first.
func (a *auditor) refusedLaw(e *journal.Entry) {
	g, p := a.job.resolvedWait(e.GUID)
	if p != nil && p.Named && p.Taken == 0 && (p.Kind != journal.PauseSignal || e.GUID == g) {
		a.at(V13, e, "%s %q is refused, for which request %s waits", p.Kind, p.Name, p.Request)
	}
}

// wakerLaw checks what the entry says of the message that woke the function.
func (a *auditor) wakerLaw(e *journal.Entry, f *facts, g journal.GUID, p *Pause) {
	r := e.Response
	child, by, signal := journal.JobID{}, journal.By(""), false
	switch {
	case p.Kind == journal.PauseChild:
		child = journal.JobID(g)
	case p.Kind == journal.PauseSignal && e.GUID == g:
		by, signal = journal.BySignal, true
	default:
		by = journal.ByTimer
	}
	if r.Child != child {
		a.at(V11, e, "the outcome says child %s, it is that of %s", r.Child, child)
	}
	if r.By != by && knownWakers[r.By] || r.Signal.IsZero() == signal || r.Number != 0 ||
		f.row.Outside == (by == journal.ByTimer || r.Taken != nil) {
		a.at(V13, e, "%s %q is ended by %q (\"\": a child), the entry says %q, signal %s, number %d", p.Kind, p.Name, by, r.By, r.Signal, r.Number)
	}
}

// droppedLaw checks that the pauses that the entry ends before they came are cancelled: those
// that a suspension no longer names, or the rest when a request ends. A wait that is not
// cancelled was delivered: its signal is on its way, and is refused when it comes (cancelledWaits).
func (a *auditor) droppedLaw(e *journal.Entry, f *facts) {
	for _, g := range a.dropped(e, f) {
		p := a.job.Pauses[g]
		timer := g
		if p.Kind == journal.PauseSignal {
			timer = journal.DeriveTimeout(g)
		}
		if p.Kind != journal.PauseChild && a.job.Rows[timer] != nil && !slices.Contains(e.Cancelled, timer) {
			a.at(V13, e, "request %s waits for %s %q no more, its timer %s stays", p.Request, p.Kind, p.Name, timer)
		}
		if a.job.Waits[g] != nil && !slices.Contains(e.Cancelled, g) {
			a.gone[g] = goneRow{seq: e.Seq, wait: true}
			if a.job.Rows[g] == nil { // otherwise an entry mentioned it: it is held
				a.cancelledWaits[g] = e.Seq
			}
		}
	}
}

// dropped lists the pauses that the entry ends and that have not come.
func (a *auditor) dropped(e *journal.Entry, f *facts) []journal.GUID {
	row := f.row
	if f.suspends() {
		row = a.job.Rows[f.rowID]
	}
	if row == nil || !f.suspends() && !f.endsRequest(e) {
		return nil
	}
	var out []journal.GUID
	for _, g := range row.Pauses {
		if p := a.job.Pauses[g]; p != nil && p.Named && p.Taken == 0 && f.arms[g] == nil {
			out = append(out, g)
		}
	}
	return out
}

// takesBack reports whether the entry may cancel g, which is registered for the pause id: it
// ends the pause, or the pause's rival has come.
func (a *auditor) takesBack(e *journal.Entry, f *facts, g, id journal.GUID, p *Pause) bool {
	if f.wakes(e) {
		woken, _ := a.job.resolvedWait(e.GUID)
		return woken == id && g != e.GUID
	}
	return f.rowID == p.Request && slices.Contains(a.dropped(e, f), id)
}

// renews reports whether the entry registers again what belonged to a pause that was cancelled
// before it came.
func (a *auditor) renews(f *facts, g journal.GUID) bool {
	_, p := a.job.standsFor(g)
	return f.suspends() && f.arms[g] != nil && p != nil && !p.Named && p.Taken == 0
}

// sendsOut reports whether the update is that by which a wake-up sends a sleeping request
// again.
func (a *auditor) sendsOut(e *journal.Entry, f *facts, u *journal.Updated, row *Row) bool {
	if f.kind != journal.ResponseWake || !f.marks.has(children) || f.marks.has(afterClose) {
		return false
	}
	_, p := a.job.resolvedWait(e.GUID)
	return p != nil && p.Request == u.GUID && row.asleep() &&
		u.NextAt > 0 && u.Held == "" && u.Kind == journal.MessageRequest
}

// foundCancelled removes a signal from cancelledWaits once an entry mentions it.
func (a *auditor) foundCancelled(e *journal.Entry, f *facts) {
	if len(a.cancelledWaits) == 0 {
		return
	}
	delete(a.cancelledWaits, f.rowID)
	for _, g := range e.CancelledByClose {
		delete(a.cancelledWaits, g)
	}
	for i := range e.Waits {
		delete(a.cancelledWaits, e.Waits[i].GUID) // registered again
	}
	if !f.marks.has(closed) || completes(e, f) {
		return // a job that completes leaves them; they are refused when they come
	}
	for _, g := range sortedGUIDs(a.cancelledWaits) {
		a.at(V13, e, "the wait %s was left at entry %d, neither taken back nor is there a signal that the close cancels", g, a.cancelledWaits[g])
		return
	}
}
