package inspect

import (
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// endsRequest reports that the entry accepts the terminal response, or an answer, to a request.
func (x *step) endsRequest(s *state) bool {
	return x.e.Kind == journal.KindLeg2 && x.fresh && x.e.Response != nil && x.kind == journal.ResponseTerminal &&
		s.rows[x.row] != nil && (x.message == journal.MessageResponse || x.message == journal.MessageAnswer)
}

// pause follows what a durable function waits for: a suspension names it, a wake-up ends it, and the
// end of its request ends the rest (E12).
func (s *state) pause(x *step) {
	e := x.e
	switch {
	case x.stays && x.kind == journal.ResponseSuspended:
		s.suspend(x)
	case e.Kind == journal.KindLeg2 && e.Response != nil && e.Response.Kind == journal.ResponseWake:
		s.wake(x)
	case x.endsRequest(s):
		s.drop(s.rows[x.row])
	}
	if marked(e, journal.MarkClosed) {
		for _, guid := range e.CancelledByClose {
			s.drop(s.rows[guid])
		}
	}
	if x.kind != journal.ResponseWake || !marked(e, journal.MarkChildren) || marked(e, journal.MarkAfterClose) {
		return
	}
	if r := s.receipts[e.GUID]; r != nil {
		if p := s.pauses[r.of]; p != nil && p.named {
			p.came = true
		}
	}
}

// suspend notes what a function waits for from now on.
func (s *state) suspend(x *step) {
	r := s.rows[x.row]
	if r == nil {
		return
	}
	before := r.pauses
	r.pauses = make([]journal.GUID, 0, len(x.pauses))
	for i := range x.pauses {
		n := &x.pauses[i]
		guid := journal.DerivePause(x.row, n.PauseRef)
		r.pauses = append(r.pauses, guid)
		if p := s.pauses[guid]; p != nil && p.named {
			continue
		}
		p := &pause{PauseRef: n.PauseRef, request: x.row, key: x.key, named: true, since: x.e.Seq, at: x.e.Time}
		if before := s.pauses[guid]; before != nil {
			p.at = before.at
		}
		if n.Kind == journal.PauseSleep || n.Kind == journal.PauseSignal && n.For > 0 {
			p.due = x.e.Time + n.For
		}
		s.pauses[guid] = p
		s.wakers[guid] = guid
		switch n.Kind {
		case journal.PauseChild: // with the GUID of the pause comes the outcome of an earlier generation
			s.wakers[journal.DeriveOutcome(guid, 0)] = guid
		case journal.PauseSignal:
			s.wakers[journal.DeriveTimeout(guid)] = guid
		}
	}
	for _, guid := range before {
		if !slices.Contains(r.pauses, guid) {
			s.forget(guid)
		}
	}
}

// drop ends what a function waits for.
func (s *state) drop(r *row) {
	if r == nil {
		return
	}
	for _, guid := range r.pauses {
		s.forget(guid)
	}
	r.pauses = nil
}

// forget ends a pause that has not come. Its wait is gone even if no entry cancelled it: then its
// signal was delivered before.
func (s *state) forget(guid journal.GUID) {
	if p := s.pauses[guid]; p != nil {
		p.named = false
		delete(s.waits, guid)
	}
}

// wake ends the pause that a message wakes.
func (s *state) wake(x *step) {
	guid := s.wakers[x.e.GUID]
	if r := s.receipts[x.e.GUID]; r != nil {
		r.of = guid
	}
	p := s.pauses[guid]
	if p == nil {
		return
	}
	p.accepts = x.e.Seq
	if p.Kind == journal.PauseSignal {
		delete(s.waits, guid)
	}
}

// named is when a suspension of a request first named a pause; 0: none did.
func (s *state) named(request journal.GUID, ref journal.PauseRef) int64 {
	if p := s.pauses[journal.DerivePause(request, ref)]; p != nil {
		return p.at
	}
	return 0
}
