package replay

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// waitLaw checks that timers, waits and signals are paired (V13, 1.11). A wait is registered
// once and ends once. A signal is consumed once, by an open wait. What ends an activity cancels
// what else could end it.
func (a *auditor) waitLaw(e *journal.Entry, f *facts) {
	for i := range e.Waits {
		w := &e.Waits[i]
		if known := a.job.Waits[w.GUID]; known != nil {
			a.at(V13, e, "wait %s is registered again, it stands since entry %d", w.GUID, known.Origin)
		} else if gone, ok := a.gone[w.GUID]; ok && !a.renews(f, w.GUID) {
			a.at(V13, e, "wait %s is registered again%s", w.GUID, gone.fate())
		} else if slices.ContainsFunc(e.Waits[:i], func(o journal.Wait) bool { return o.GUID == w.GUID }) {
			a.at(V13, e, "wait %s is registered twice", w.GUID)
		}
	}
	a.undeliveredLaw(e, f)
	if e.Kind == journal.KindLeg2 && f.known == nil && f.row != nil && !f.wakes(e) {
		a.wakeUpLaw(e, f)
	}
	for _, g := range e.Cancelled {
		a.cancelLaw(e, f, g)
	}
	for i := range e.Dispatched {
		a.dueLaw(e, f, &e.Dispatched[i])
	}
	if r := e.Result; r != nil && r.By != f.by && knownWakers[r.By] {
		a.at(V13, e, "the result of %s %s says that %q woke it, it was %q", f.key.Activity, f.key.DAD, r.By, f.by)
	}
}

// dueLaw checks that timers have a due time and other messages have none. An answer may be a
// bound, which has one. So have three starts: of a child after a failed one, of a job with
// compensations, which waits for a run (3.5), and of this job, if it is delayed.
func (a *auditor) dueLaw(e *journal.Entry, f *facts, d *journal.Dispatched) {
	switch d.Kind {
	case journal.MessageAnswer:
	case journal.MessageWakeUp:
		if d.At <= 0 {
			a.at(V13, e, "timer %s of %s %s is never due", d.GUID, d.Activity, d.DAD)
		}
	default:
		_, undoes := f.undoes[d.Job]
		delayed := e.Kind == journal.KindCreated && d.At > e.Time
		if d.At != 0 && !(d.Kind == journal.MessageStart && (f.pending || undoes || delayed)) {
			a.at(V13, e, "%s %s for %s %s says when it is due", d.Kind, d.GUID, d.Activity, d.DAD)
		}
	}
}

// wakeUpLaw checks what an accepted message says of a wake-up.
func (a *auditor) wakeUpLaw(e *journal.Entry, f *facts) {
	r := e.Response
	if r == nil || f.inst == nil || !knownWakers[r.By] {
		return // V11 or V16 has reported it
	}
	wakes := f.row.Kind == journal.MessageWakeUp
	switch {
	// a copy keeps what woke its hook (V11)
	case !wakes && (r.By != "" && r.Taken == nil || !r.Signal.IsZero() || r.Number != 0):
		a.at(V13, e, "a message of kind %s says that signal %s or a timer woke %s", f.row.Kind, r.Signal, f.key.Activity)
	case r.Kind == journal.ResponsePass && (!wakes || r.By != journal.BySignal || !f.inst.Repeat):
		a.at(V13, e, "a pass of %s %s, which is no signal of a repeating hook", f.key.Activity, f.key.DAD)
	case r.Who != "" && r.By != journal.BySignal:
		a.at(V13, e, "%s %s was woken by no signal, the entry says that %q sent it", f.key.Activity, f.key.DAD, r.Who)
	case !wakes:
	case r.By == journal.BySignal && f.row.Outside && !r.Signal.IsZero():
		a.signalLaw(e, f)
	case r.By != journal.ByTimer || !r.Signal.IsZero() || r.Number != 0 || f.row.Outside:
		a.at(V13, e, "the wake-up %s of %s %s is that of a timer, the entry says %q, signal %s, number %d",
			e.GUID, f.key.Activity, f.key.DAD, r.By, r.Signal, r.Number)
	}
}

// signalLaw checks the consumption of a signal: by the wait of its hook (V11), which is open,
// and each signal once.
func (a *auditor) signalLaw(e *journal.Entry, f *facts) {
	r := e.Response
	g, w := a.job.waitOf(f.inst)
	base := f.inst.waitID()
	switch seq, again := a.job.Signals[Consumed{base, r.Signal}]; {
	case again:
		a.at(V13, e, "signal %s woke %s %s before, at entry %d", r.Signal, f.key.Activity, f.key.DAD, seq)
		return
	case w == nil && a.gone[base].wait:
		a.at(V13, e, "signal %s wakes %s %s, whose wait does not stand%s", r.Signal, f.key.Activity, f.key.DAD, a.fate(base))
		return
	case w == nil:
		a.at(V11, e, "signal %s wakes %s %s, which registered no wait", r.Signal, f.key.Activity, f.key.DAD)
		return
	}
	want := g
	if w.Repeat {
		want = journal.DeriveSignalled(g, r.Signal)
	}
	if e.GUID != want {
		a.at(V11, e, "the wake-up by signal %s of wait %s has id %s, not %s", r.Signal, g, want, e.GUID)
	}
	a.numberLaw(e, f, g, w)
}

// numberLaw checks the number of a repeating hook's signal: numbers are distinct, and the
// signal that ends the hook has the last one (1.11).
func (a *auditor) numberLaw(e *journal.Entry, f *facts, g journal.GUID, w *Wait) {
	n := e.Response.Number
	if !w.Repeat {
		if n != 0 {
			a.at(V13, e, "signal %d of a wait that takes one", n)
		}
		return
	}
	key := signalNumber{g, n}
	ends := e.Response.Kind == journal.ResponseTerminal
	switch seq, again := a.numbers[key]; {
	case n < 1:
		a.at(V13, e, "a signal of the repeating hook %s %s without a number", f.key.Activity, f.key.DAD)
	case again:
		a.at(V13, e, "signal %d of %s %s again, it was consumed at entry %d", n, f.key.Activity, f.key.DAD, seq)
	case ends && (n != w.Passed+1 || w.Last >= n):
		a.at(V13, e, "signal %d ends %s %s, %d were consumed before, the last has number %d",
			n, f.key.Activity, f.key.DAD, w.Passed, w.Last)
	}
	a.numbers[key] = e.Seq
}

// signalNumber is one number that a wait gave to a signal.
type signalNumber struct {
	wait   journal.GUID
	number int
}

// cancelLaw checks one thing that an entry cancels: it belonged to the activity that ends, or
// to a pause that its function no longer waits for.
func (a *auditor) cancelLaw(e *journal.Entry, f *facts, g journal.GUID) {
	if id, p := a.job.standsFor(g); p != nil {
		if !a.takesBack(e, f, g, id, p) {
			a.at(V13, e, "%s stands for %s %q of request %s and is cancelled by an entry that does not end it", g, p.Kind, p.Name, p.Request)
		}
		return
	}
	if e.Kind != journal.KindLeg2 || !f.marks.has(entered) || f.kind != journal.ResponseTerminal {
		a.at(V13, e, "%s is cancelled by a message that ends no activity", g)
		return
	}
	var key collation.InstanceKey
	switch row, wait, child := a.job.Rows[g], a.job.Waits[g], a.job.Children[g]; {
	case row != nil:
		key = row.key()
	case wait != nil:
		key = wait.key()
	case child != nil:
		key = child.key()
	default:
		return // none of them exists: rowLaw reports it
	}
	if key != f.key {
		a.at(V13, e, "%s stands for %s %s and is cancelled by the end of %s %s", g, key.Activity, key.DAD, f.key.Activity, f.key.DAD)
	}
}

// armed checks that nothing that could end an activity is left once its end is accepted.
func (a *auditor) armed(e *journal.Entry, f *facts) {
	if e.Kind != journal.KindLeg2 || !f.marks.has(entered) || f.kind != journal.ResponseTerminal || f.inst == nil {
		return
	}
	for _, g := range f.inst.arms {
		row, wait := a.job.Rows[g], a.job.Waits[g]
		switch {
		case g == f.rowID:
		case row != nil:
			a.at(V13, e, "the end of %s %s is accepted, its %s row %s stays", f.key.Activity, f.key.DAD, row.Kind, g)
		case wait != nil:
			a.at(V13, e, "the end of %s %s is accepted, its wait %s for signal %s stays", f.key.Activity, f.key.DAD, g, wait.Topic)
		}
	}
}
