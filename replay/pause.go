package replay

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Pause is one thing that a durable function waits for, or waited for (E12).
type Pause struct {
	Request  journal.GUID
	Activity string
	DAD      collation.DAD
	journal.PauseRef
	// Named says that the request's last suspension names it, and that the request has not ended
	// since.
	Named bool
	Since int64 // seq of the entry that registered it
	Taken int64 // seq of the entry that accepted its wake-up; 0: none
	// Came says that step 2 of the wake-up is done and the pause was still named: the function's
	// next run finds it.
	Came bool
	// ByTimeout says that the bound of a signal's wait woke the function.
	ByTimeout bool
	// Due is when its timer, or the bound of its wait, is due, µs; 0: never.
	Due        int64
	Topic, Key string // of a signal
}

// wakers are the ids of the messages that may end a pause. A signal's pause has two: the
// wake-up of the delivery, and that of the bound.
func wakers(g journal.GUID, kind journal.PauseKind) []journal.GUID {
	switch kind {
	case journal.PauseChild:
		return []journal.GUID{journal.DeriveOutcome(g, 0), g} // g: an earlier generation has its outcome
	case journal.PauseSignal:
		return []journal.GUID{g, journal.DeriveTimeout(g)}
	}
	return []journal.GUID{g}
}

// namedPause is a pause that a suspension names, with its id.
type namedPause struct {
	*journal.Pause
	id journal.GUID
}

// bounded reports whether the pause is a signal's and has a bound.
func (n *namedPause) bounded() bool { return n.Kind == journal.PauseSignal && n.For > 0 }

// names gathers what the suspension names, in this entry or in the one that accepted it.
func (f *facts) names(e *journal.Entry) {
	list := []journal.Pause(nil)
	switch {
	case e.Response != nil:
		list = e.Response.Pauses
	case f.known != nil:
		list = f.known.pauses
	}
	f.named = make([]namedPause, len(list))
	f.arms = make(map[journal.GUID]*namedPause, len(list))
	for i := range list {
		n := &f.named[i]
		*n = namedPause{&list[i], journal.DerivePause(f.rowID, list[i].PauseRef)}
		f.arms[n.id] = n
		if n.bounded() {
			f.arms[journal.DeriveTimeout(n.id)] = n
		}
	}
}

// woken finds the pause that a message wakes, named or not; nil: none.
func (j *Job) resolvedWait(message journal.GUID) (journal.GUID, *Pause) {
	g := j.wakers[message]
	return g, j.Pauses[g]
}

// standsFor finds the pause to which a timer, a wait, a bound or the start of a child belongs;
// nil: none.
func (j *Job) standsFor(g journal.GUID) (journal.GUID, *Pause) {
	if p := j.Pauses[g]; p != nil {
		return g, p
	}
	return j.resolvedWait(g)
}

// functions counts the requests that suspended, and the pauses that have come.
func (j *Job) functions() (requests, wakes int) {
	seen := make(map[journal.GUID]bool)
	for _, p := range j.Pauses {
		seen[p.Request] = true
		if p.Taken > 0 {
			wakes++
		}
	}
	return len(seen), wakes
}

// suspends reports whether the entry is step 2 of a suspension: from here on the function waits
// for what the suspension names.
func (f *facts) suspends() bool { return f.stays && f.kind == journal.ResponseSuspended }

// wakes reports whether the entry accepts a wake-up.
func (f *facts) wakes(e *journal.Entry) bool {
	return e.Kind == journal.KindLeg2 && e.Response != nil && e.Response.Kind == journal.ResponseWake
}

// endsRequest reports whether the entry accepts the terminal response, or an answer, to a
// request.
func (f *facts) endsRequest(e *journal.Entry) bool {
	return e.Kind == journal.KindLeg2 && f.known == nil && e.Response != nil && f.kind == journal.ResponseTerminal &&
		f.row != nil &&
		(f.message == journal.MessageResponse || f.message == journal.MessageAnswer)
}

// foldPauses follows what a durable function waits for: suspensions name it, wake-ups end it,
// and the end of the request ends the rest.
func (j *Job) foldPauses(e *journal.Entry, f *facts) {
	switch {
	case f.suspends():
		j.foldSuspension(e, f)
	case f.wakes(e):
		j.foldWake(e, f)
	case f.endsRequest(e):
		j.dropAll(f.row)
	}
	if f.marks.has(closed) {
		for _, g := range e.CancelledByClose {
			j.dropAll(j.Rows[g])
		}
	}
	if f.kind != journal.ResponseWake || !f.marks.has(children) || f.marks.has(afterClose) {
		return
	}
	if r := j.Receipts[e.GUID]; r != nil {
		if p := j.Pauses[r.of]; p != nil && p.Named {
			p.Came = true
		}
	}
}

func (j *Job) foldSuspension(e *journal.Entry, f *facts) {
	row := j.Rows[f.rowID]
	if row == nil {
		return
	}
	old := row.Pauses
	row.Pauses = make([]journal.GUID, 0, len(f.named))
	for i := range f.named {
		n := &f.named[i]
		row.Pauses = append(row.Pauses, n.id)
		if p := j.Pauses[n.id]; p != nil && p.Named {
			continue
		}
		p := &Pause{
			Request: f.rowID, Activity: f.key.Activity, DAD: f.key.DAD, PauseRef: n.PauseRef, Named: true, Since: e.Seq,
		}
		switch {
		case n.Kind == journal.PauseSignal:
			p.Topic, p.Key = n.Topic, n.Key
			if n.bounded() {
				p.Due = e.Time + n.For
			}
		case n.Kind == journal.PauseSleep:
			p.Due = e.Time + n.For
		}
		j.Pauses[n.id] = p
		for _, w := range wakers(n.id, n.Kind) {
			j.wakers[w] = n.id
		}
	}
	for _, g := range old {
		if !slices.Contains(row.Pauses, g) {
			j.drop(g)
		}
	}
}

func (j *Job) dropAll(row *Row) {
	if row == nil {
		return
	}
	for _, g := range row.Pauses {
		j.drop(g)
	}
	row.Pauses = nil
}

// drop ends a pause that has not come. Its wait is gone even if no entry cancelled it: then its
// signal was delivered before.
func (j *Job) drop(g journal.GUID) {
	if p := j.Pauses[g]; p != nil {
		p.Named = false
		delete(j.Waits, g)
	}
}

func (j *Job) foldWake(e *journal.Entry, f *facts) {
	g, p := j.resolvedWait(e.GUID)
	if r := j.Receipts[e.GUID]; r != nil {
		r.of = g
	}
	if p == nil {
		return
	}
	p.Taken = e.Seq
	if p.Kind != journal.PauseSignal {
		return
	}
	delete(j.Waits, g)
	if p.ByTimeout = e.GUID != g; !p.ByTimeout {
		j.Signals[Consumed{g, e.Response.Signal}] = e.Seq
	}
}
