package spans

import (
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// dispatched adds what an entry sent.
func (b *Builder) dispatched(e *journal.Entry, own place) {
	leg1s := map[journal.GUID]place{e.GUID: own}
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		if d.Kind == journal.MessageLeg1 {
			at := place{d.Activity, d.DAD}
			b.sent[d.GUID] = e.Time
			b.activity(at, e.Time, d.GUID)
			if d.Folded != 0 {
				leg1s[d.GUID] = at
				b.folded(e, d)
			}
		}
	}
	for i := range e.Dispatched {
		b.row(e, &e.Dispatched[i], leg1s, own)
	}
	if e.Elements != nil {
		b.elements(e, leg1s)
	}
	for i := range e.Waits {
		w := &e.Waits[i]
		for leg1, at := range leg1s {
			if a := b.places[at]; a != nil && journal.DeriveWakeUp(leg1, journal.BySignal, "") == w.GUID {
				b.wait(a, e.Time, texts("messaging.destination.name", w.Topic)...)
			}
		}
	}
}

// folded adds the message of a Leg1 that its sender handled, too.
func (b *Builder) folded(e *journal.Entry, d *journal.Dispatched) {
	b.messages[d.GUID] = b.instant(view.Span{
		ID: OfMessage(d.GUID), Parent: b.parent(place{d.Activity, d.DAD}), Part: PartDispatch, About: d.Activity,
		Kind: view.Consumer,
		Attributes: texts("messaging.system", "quipu", "messaging.operation.type", "process", "messaging.message.id", d.GUID.String(),
			"quipu.writer", e.Writer, "quipu.ledger.after", d.Folded.String()),
	}, e.Time)
}

// row adds what a dispatched row is for.
func (b *Builder) row(e *journal.Entry, d *journal.Dispatched, leg1s map[journal.GUID]place, own place) {
	at := place{d.Activity, d.DAD}
	a := b.places[at]
	switch d.Kind {
	case journal.MessageRequest:
		b.request(d.GUID, &request{place: at, element: -1, topic: d.Topic}, max(d.At, e.Time))
	case journal.MessageAnswer:
		if a != nil {
			a.open = true
		}
	case journal.MessageCycle:
		b.cycles[d.GUID] = true
	case journal.MessageWakeUp:
		for leg1, at := range leg1s {
			if a := b.places[at]; a != nil && journal.DeriveWakeUp(leg1, journal.ByTimer, "") == d.GUID && a.child < 0 {
				b.wait(a, e.Time)
			}
		}
	case journal.MessageStart:
		if e.Kind != journal.KindCreated {
			b.child(e, d, leg1s, own)
		}
	case journal.MessageSignal, journal.MessageInterrupt:
		s := view.Span{
			ID: span("sent", d.GUID[:]), Parent: b.parent(own), Part: PartSend, About: d.Topic, Kind: view.Producer,
			Attributes: texts("messaging.system", "quipu", "messaging.operation.type", "send", "messaging.destination.name", d.Topic),
		}
		if d.Kind == journal.MessageInterrupt {
			s.About = "interrupt"
			s.Links = append(s.Links, link(d.Job, "interrupts"))
		} else {
			s.Attributes = append(s.Attributes, texts("quipu.signal", d.GUID.String())...)
		}
		for leg1, at := range leg1s {
			if journal.DeriveSent(leg1) == d.GUID || journal.DeriveInterrupt(leg1, d.Job) == d.GUID {
				s.Parent = b.parent(at)
			}
		}
		b.instant(s, e.Time)
	}
}

// child begins the time for which another job is awaited.
func (b *Builder) child(e *journal.Entry, d *journal.Dispatched, leg1s map[journal.GUID]place, own place) {
	at := own
	for leg1, p := range leg1s {
		if journal.DeriveChild(leg1, 1) == d.Job {
			at = p
		}
	}
	if _, pause := b.pauses[journal.GUID(d.Job)]; pause {
		return // of a function: the pause shows it
	}
	i := b.begin(view.Span{
		ID: span("child", d.Job[:]), Parent: b.parent(at), Part: PartChild, About: at.activity, Kind: view.Producer,
		Start:      e.Time,
		Attributes: texts("quipu.child", d.Job.String()), Links: []view.Link{link(d.Job, "child")},
	})
	b.children[d.Job] = i
	if a := b.places[at]; a != nil {
		a.child, a.open = i, true
	}
}

// elements begins the attempts of the elements that a list sends at once.
func (b *Builder) elements(e *journal.Entry, leg1s map[journal.GUID]place) {
	for leg1, at := range leg1s {
		a := b.places[at]
		if a == nil || len(leg1s) > 1 && !sendsElements(e, leg1, at) {
			continue
		}
		a.open = true
		sent := 0
		for i := range e.Elements.Inputs.Len() {
			r := &request{place: at, element: i}
			if e.Elements.Inputs.At(i) == (journal.Sum{}) {
				continue // its result is taken over
			}
			due := e.Time
			if sent >= e.Elements.Parallel {
				due = 0 // held: another element releases it
			}
			sent++
			b.request(journal.DeriveRequest(leg1, i), r, due)
		}
	}
}

// sendsElements guesses which of several folded Leg1s an entry's elements belong to: the one
// that sent nothing else.
func sendsElements(e *journal.Entry, leg1 journal.GUID, at place) bool {
	if leg1 == e.GUID && e.Kind != journal.KindLeg1 {
		return false
	}
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; d.Kind != journal.MessageLeg1 && d.Activity == at.activity && d.DAD == at.dad {
			return false
		}
	}
	return true
}

// request notes a request. due is since when it may run; 0: it is held.
func (b *Builder) request(guid journal.GUID, r *request, due int64) {
	r.turn, r.attempt, r.span, r.backoff, r.parked = 1, 1, -1, -1, -1
	b.requests[guid] = r
	b.order = append(b.order, guid)
	if a := b.places[r.place]; a != nil {
		a.open = true
	}
	if due != 0 {
		b.attempt(guid, r, due)
	}
}

// attempt begins the present turn of a request.
func (b *Builder) attempt(guid journal.GUID, r *request, due int64) {
	s := view.Span{
		ID: OfAttempt(guid, r.turn), Parent: b.parent(r.place), Part: PartAttempt, About: r.activity,
		Kind:  view.Consumer,
		Start: due,
		Attributes: texts("quipu.job", b.tree.Job.String(), "quipu.request", guid.String(), "messaging.system", "quipu",
			"messaging.operation.type", "process", "messaging.destination.name", r.topic),
	}
	s.Attributes = append(s.Attributes, numbers("quipu.turn", int64(r.turn))...)
	s.Attributes = append(s.Attributes, numbers("quipu.attempt", int64(r.attempt))...)
	if r.element >= 0 {
		s.Attributes = append(s.Attributes, view.Attribute{Key: "quipu.element", Number: int64(r.element)})
	}
	r.span, r.due = b.begin(s), 0
	b.attempts[s.ID] = due
}

// turn ends what a request waits for before its next attempt, if its time has passed, and begins
// the attempt.
func (b *Builder) turn(guid journal.GUID, r *request, now int64) {
	if r.due == 0 || now < r.due {
		return
	}
	b.end(r.backoff, r.due)
	b.attempt(guid, r, r.due)
}

// answered ends what the response is about.
func (b *Builder) answered(e *journal.Entry, own place) {
	x := e.Response
	a := b.places[own]
	if i, ok := b.children[x.Child]; ok && !x.Child.IsZero() {
		b.end(i, e.Time, numbers("quipu.code", int64(x.Code))...)
	}
	r := b.requests[x.Request]
	switch {
	case r == nil:
		if a != nil && x.By != "" {
			b.end(a.wait, e.Time, texts("quipu.by", string(x.By))...)
			if x.Kind == journal.ResponsePass {
				b.wait(a, e.Time)
			}
		}
		return
	case x.Kind == journal.ResponseWake:
		if x.Of != nil {
			if i, ok := b.pauses[journal.DerivePause(x.Request, *x.Of)]; ok {
				b.end(i, e.Time, texts("quipu.by", string(x.By))...)
			}
		}
		return
	}
	if x.Turn == r.turn { // its answer shows that it has begun, whatever the clock says
		r.due = min(r.due, e.Time)
	}
	b.turn(x.Request, r, e.Time)
	b.end(r.backoff, e.Time)
	b.end(r.parked, e.Time)
	b.ran(r, x, e)
	switch x.Kind {
	case journal.ResponseSuspended:
		for i := range x.Pauses {
			b.pause(r, x, &x.Pauses[i], e.Time)
		}
	case journal.ResponseParked:
		r.parked = b.begin(view.Span{
			ID: span("parked", e.GUID[:]), Parent: b.parent(r.place), Part: PartParked, About: r.activity, Start: e.Time,
		})
	}
}

// ran ends the attempt that a response ends, with the run that the worker tells of.
func (b *Builder) ran(r *request, x *journal.Response, e *journal.Entry) {
	if r.span < 0 || b.tree.Spans[r.span].End != 0 || x.Turn != r.turn {
		return
	}
	s := &b.tree.Spans[r.span]
	s.Failure, s.Code = view.FailureOf(x.Error), x.Code
	b.end(r.span, e.Time, numbers("quipu.code", int64(x.Code))...)
	if x.Began == 0 {
		return
	}
	of := b.tree.Spans[r.span]
	// The run has the times of the worker's clock. If they do not fit, the clocks differ: how long
	// it took is true all the same. A run that began before its cause had committed may lie before
	// its request.
	began := max(of.Start, min(x.Began, of.End-x.Ran))
	b.begin(view.Span{
		ID: span("queued", of.ID[:]), Parent: of.ID, Part: PartQueued, About: of.About, Start: of.Start, End: began,
	})
	run := view.Span{
		ID: span("run", of.ID[:]), Parent: of.ID, Part: PartRun, About: of.About, Start: began, End: began + x.Ran,
		Failure: view.FailureOf(x.Error), Code: x.Code,
	}
	if early(x, of.Start, e.Time) {
		run.Attributes = numbers("quipu.early", 1)
	}
	b.begin(run)
}

// early says that a run began before the entry that sent its request, at the time sent, was committed:
// the transaction of that entry has its answer, too, and so the same time (L2). Where a clock stands
// still, as in tests, a run that takes no time has that time itself.
func early(x *journal.Response, sent, answered int64) bool {
	return x.Turn == 1 && sent == answered && (x.Began != sent || x.Ran != 0)
}

// pause begins a pause of a function, unless it goes on since an earlier turn.
func (b *Builder) pause(r *request, x *journal.Response, p *journal.Pause, at int64) {
	id := journal.DerivePause(x.Request, p.PauseRef)
	if _, known := b.pauses[id]; known {
		return
	}
	s := view.Span{
		ID: span("pause", id[:]), Parent: b.parent(r.place), Part: PartWait, About: p.Name, Start: at,
		Attributes: texts("quipu.pause", string(p.Kind), "messaging.destination.name", p.Topic),
	}
	if p.Kind == journal.PauseChild {
		child := journal.JobID(id)
		s.Part, s.Links = PartChild, []view.Link{link(child, "child")}
		s.Attributes = append(s.Attributes, texts("quipu.child", child.String())...)
	}
	b.pauses[id] = b.begin(s)
}

// updated follows the requests that an entry updated to their next turn.
func (b *Builder) updated(e *journal.Entry) {
	for i := range e.Updated {
		u := &e.Updated[i]
		r := b.requests[u.GUID]
		if r == nil || u.Kind != journal.MessageRequest {
			continue
		}
		if u.Held == "" && u.NextAt != 0 {
			b.end(r.parked, e.Time)
		}
		running := r.span >= 0 && b.tree.Spans[r.span].End == 0
		if running && u.Turn == r.turn {
			continue
		}
		b.end(r.backoff, e.Time)
		b.end(r.span, e.Time)
		r.turn, r.attempt, r.due = u.Turn, u.Attempt, 0
		switch {
		case u.Held != "" || u.NextAt == 0:
			continue
		case e.Response != nil && e.Response.Kind == journal.ResponseFailedAttempt && u.NextAt > e.Time:
			of := OfAttempt(u.GUID, u.Turn)
			r.due = u.NextAt
			r.backoff = b.begin(view.Span{
				ID: span("backoff", of[:]), Parent: b.parent(r.place), Part: PartBackoff, About: r.activity, Start: e.Time,
			})
		default: // for others NextAt is only when the row is sent again
			b.attempt(u.GUID, r, e.Time)
		}
	}
}
