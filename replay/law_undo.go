package replay

import (
	"github.com/quipu-journal/quipu/journal"
)

// requestEnd is how a request ended if its own function did not end it.
type requestEnd struct {
	seq  int64
	undo bool // a job was ordered that runs its compensations
	free bool // either is lawful
}

// reasonUndo marks an entry whose compensations could not be ordered.
const reasonUndo = "undo"

// undoLaw checks that what ends a function orders its compensations, unless the function ended
// by itself (V8, 3.5). Which functions have compensations is known later, from the effect
// chains.
func (a *auditor) undoLaw(e *journal.Entry, f *facts) {
	ordered := make(map[journal.GUID]bool)
	for i := range e.Dispatched {
		if request, ok := f.undoes[e.Dispatched[i].Job]; ok {
			ordered[request] = true
		}
	}
	for _, request := range a.job.ending(e, f) {
		_, before := a.bounds[request]
		end := requestEnd{seq: e.Seq, undo: ordered[request], free: e.Trouble != nil && e.Trouble.Reason == reasonUndo}
		own := before
		if f.endsRequest(e) && request == f.rowID {
			success := e.Response.Code == codeOK
			own = e.Response.Undone || success && f.message == journal.MessageResponse
			// After an operator's answer a success may be the operator's, or the function's own
			// that came after all.
			end.free = end.free || success
		}
		switch {
		case own && end.undo:
			a.at(V8, e, "the compensations of request %s are ordered, its function has ended by itself", request)
		case !own:
			a.foreign[request] = end
		}
	}
	if r := e.Response; r != nil && r.Undone && !r.Request.IsZero() {
		a.undone[r.Request] = e.Seq
	}
	if r := e.Response; r != nil && r.Undone && (r.Kind != journal.ResponseTerminal || r.Code == codeOK) {
		a.at(V8, e, "a response of kind %s with code %d says that its compensations have run", r.Kind, r.Code)
	}
}

// undosLaw compares what was said of compensations with the effect chains (V8): which functions
// registered any, and what became of them.
func (a *auditor) undosLaw() {
	registered := a.job.compensates()
	for _, request := range sortedGUIDs(a.foreign) {
		end := a.foreign[request]
		switch {
		case end.undo && !registered[request]:
			a.report(V8, journal.MainChain, end.seq, "the compensations of request %s are ordered, it registered none", request)
		case !end.undo && !end.free && registered[request]:
			a.report(V8, journal.MainChain, end.seq, "request %s is ended, its function registered compensations, and no job is ordered that runs them", request)
		}
	}
	if len(a.undone) == 0 {
		return
	}
	for _, key := range sortedDigests(a.job.Effects) {
		f := a.job.Effects[key]
		switch seq := a.undone[f.Request]; {
		case seq == 0 || f.Class != ClassUndo || f.State == EffectCompleted:
		case f.State == EffectStarted:
			a.report(V8, journal.MainChain, seq, "the response says that the compensations of request %s have run, %q has not", f.Request, f.Name)
		case !a.job.registeredAgain(f):
			a.report(V8, journal.MainChain, seq, "the response says that the compensations of request %s have run, %q was not registered for what is done anew",
				f.Request, f.Name)
		}
	}
}

// registeredAgain says that a compensation which is not done has a successor: what the function does
// anew is undone under the next key (3.5).
func (j *Job) registeredAgain(f *Effect) bool {
	for _, other := range j.Effects {
		if other.Class == ClassUndo && other.Request == f.Request && other.Position == f.Position && other.N == f.N+1 {
			return true
		}
	}
	return false
}

// Compensates reports whether the function of a request has registered compensations, and has
// not ended (3.5).
func (j *Job) Compensates(request journal.GUID) bool {
	for _, r := range j.Receipts {
		if r.Row == request && r.Kind == journal.ResponseTerminal {
			return false
		}
	}
	return j.compensates()[request]
}

// compensates lists the requests whose functions registered compensations.
func (j *Job) compensates() map[journal.GUID]bool {
	out := make(map[journal.GUID]bool)
	for _, f := range j.Effects {
		if f.Class == ClassUndo && f.State != EffectNotDone { // not done: it has run in an earlier generation
			out[f.Request] = true
		}
	}
	return out
}
