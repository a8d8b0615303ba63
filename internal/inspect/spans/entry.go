package spans

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// entry adds what an entry of the main chain tells.
func (b *Builder) entry(e *journal.Entry) {
	own := place{e.Activity, e.DAD}
	b.entered(e, own)
	switch e.Kind {
	case journal.KindCreated, journal.KindLeg1, journal.KindLeg2, journal.KindStale:
		b.message(e, own)
	default:
		b.aside(e, own)
	}
	if e.Response != nil {
		b.answered(e, own)
	}
	b.updated(e)
	b.dispatched(e, own)
	b.ended(e, own)
	b.closed(e)
}

// entered notes the Leg1 messages that the entry sends, with the folded ones, which it handles.
func (b *Builder) entered(e *journal.Entry, own place) {
	if b.cycles[e.GUID] && b.messages[e.GUID] == 0 {
		a := b.places[own]
		b.end(b.span(a), e.Time)
		b.pass(own, e.Time, e.GUID, collation.GUIDLedger(e.Receipt).Ordinal())
	}
	if e.Activity != "" && (e.Kind == journal.KindLeg1 || e.Kind == journal.KindLeg2) {
		b.activity(own, e.Time, e.GUID) // a journal with a gap: its beginning is not known
	}
}

func (b *Builder) span(a *activity) int {
	if a == nil {
		return -1
	}
	return a.span
}

// partOf names what a message was.
func partOf(e *journal.Entry, cycle bool) string {
	r := e.Response
	switch {
	case e.Kind == journal.KindStale:
		return PartLate
	case e.Kind == journal.KindCreated, e.GUID == e.Job.Start():
		return PartStart
	case e.Kind == journal.KindLeg1:
		return PartDispatch
	case cycle:
		return PartCycle
	case r != nil && r.By != "":
		return PartWakeUp
	case r != nil && !r.Child.IsZero():
		return PartOutcome
	}
	return PartResponse
}

// message adds the span of the entry's message, once, and that of its steps. A Leg1 has waited
// since it was sent.
func (b *Builder) message(e *journal.Entry, own place) {
	i, known := b.messages[e.GUID]
	if !known {
		s := view.Span{
			ID: OfMessage(e.GUID), Parent: b.parent(own), Part: partOf(e, b.cycles[e.GUID]), About: own.activity,
			Kind:  view.Consumer,
			Start: e.Time, End: e.Time,
			Attributes: texts("messaging.system", "quipu", "messaging.operation.type", "process", "messaging.message.id", e.GUID.String(),
				"quipu.writer", e.Writer),
		}
		if sent := b.sent[e.GUID]; sent != 0 && e.Kind == journal.KindLeg1 {
			s.Start = min(sent, e.Time)
		}
		if e.Ledger != 0 {
			s.Attributes = append(s.Attributes, texts("quipu.ledger.after", e.Ledger.String())...)
		}
		if r := e.Response; r != nil {
			s.Attributes = append(s.Attributes, responded(r)...)
			s.Failure, s.Code = view.FailureOf(r.Error), r.Code
		}
		i = b.begin(s)
		b.messages[e.GUID] = i
	}
	b.steps(e, i)
}

// responded are the attributes of a response.
func responded(r *journal.Response) []view.Attribute {
	out := texts("quipu.by", string(r.By))
	out = append(out, numbers("quipu.code", int64(r.Code))...)
	if !r.Signal.IsZero() {
		out = append(out, texts("quipu.signal", r.Signal.String(), "quipu.who", r.Who)...)
	}
	return append(out, numbers("quipu.turn", int64(r.Turn))...)
}

// steps adds the steps that the entry takes, each with the digits of the message before and
// after it. An entry tells the digits after all its steps.
func (b *Builder) steps(e *journal.Entry, message int) {
	if e.Receipt == 0 {
		return
	}
	digits := e.Receipt
	type step struct {
		about         string
		before, after journal.Ledger
	}
	var steps []step
	after := digits
	for _, m := range slices.Backward(e.Marks) {
		weight := digitOf[m]
		if weight == 0 || digits/weight%10 == 0 {
			continue
		}
		digits -= weight
		if m == journal.MarkClosed {
			continue // the digit belongs to step 2, which comes before it
		}
		steps = append(steps, step{stepNames[m], digits, after})
		after = digits
	}
	of := b.tree.Spans[message]
	for _, s := range slices.Backward(steps) {
		b.instant(view.Span{
			ID: span("step", of.ID[:], []byte(s.about)), Parent: of.ID, Part: PartStep, About: s.about,
			Attributes: texts("quipu.ledger.before", s.before.String(), "quipu.ledger.after", s.after.String()),
		}, e.Time)
	}
}

// digitOf are the digits of a message that the marks stand for (1.3).
var digitOf = map[journal.Mark]journal.Ledger{
	journal.MarkWork: 10_000_000_000, journal.MarkChildren: 1_000_000_000, journal.MarkClosed: 100_000_000_000,
	journal.MarkTasks: 100_000_000,
}

var stepNames = map[journal.Mark]string{journal.MarkWork: "1", journal.MarkChildren: "2", journal.MarkTasks: "3"}

// aside adds the span of an entry that is no step of the protocol.
func (b *Builder) aside(e *journal.Entry, own place) {
	if r := b.requests[e.GUID]; r != nil {
		own = r.place
	}
	s := view.Span{
		ID:     span("entry", e.Chain[:], []byte{byte(e.Seq >> 24), byte(e.Seq >> 16), byte(e.Seq >> 8), byte(e.Seq)}),
		Parent: b.parent(own),
		Part:   string(e.Kind), About: own.activity, Attributes: texts("quipu.writer", e.Writer),
	}
	if e.Operator != nil {
		s.Attributes = append(s.Attributes, texts("quipu.action", e.Operator.Action, "quipu.who", e.Operator.Who)...)
	}
	if e.Trouble != nil {
		s.Failure = &view.Failure{Class: e.Trouble.Reason, Message: e.Trouble.Message}
	}
	if !e.Next.IsZero() {
		s.Links = append(s.Links, link(e.Next, "resumed"))
	}
	if e.Kind == journal.KindInterrupt && b.messages[e.GUID] == 0 {
		s.ID, s.Kind = OfMessage(e.GUID), view.Consumer
		b.messages[e.GUID] = len(b.tree.Spans)
	}
	b.instant(s, e.Time)
}

// ended ends the activities that the entry finalizes, or whose Leg1 was all they had to do.
func (b *Builder) ended(e *journal.Entry, own place) {
	failure := func(s *view.Span) {
		switch {
		case e.Result != nil:
			s.Failure, s.Code = view.FailureOf(e.Result.Error), e.Result.Code
		case e.Response != nil:
			s.Failure, s.Code = view.FailureOf(e.Response.Error), e.Response.Code
		}
	}
	for _, m := range e.Moves() {
		at := place{m.Activity, m.DAD}
		a := b.places[at]
		if a == nil || b.tree.Spans[a.span].End != 0 {
			continue
		}
		ledger := collation.ActivityLedger(m.After)
		final := ledger.Finalized()
		alone := ledger.Leg1Complete() && !a.open
		trigger := e.Kind == journal.KindCreated && at == own
		if (final || alone) && !trigger {
			b.closeWaits(a, e.Time)
			b.end(a.span, e.Time, texts("quipu.ledger.after", m.After.String())...)
			if at == own {
				failure(&b.tree.Spans[a.span])
			}
		}
	}
	// the trigger's ledger does not tell its end
	if a := b.places[own]; a != nil && e.GUID == e.Job.Start() && e.Ended == e.GUID {
		b.closeWaits(a, e.Time)
		b.end(a.span, e.Time)
	}
}

func (b *Builder) closeWaits(a *activity, at int64) {
	b.end(a.wait, at)
	b.end(a.child, at)
}

// closed ends the job. What is open then is abandoned.
func (b *Builder) closed(e *journal.Entry) {
	c := e.Close
	if c == nil {
		return
	}
	b.tree.State = c.State
	if !slices.Contains(e.Marks, journal.MarkTasks) || b.tasks {
		return
	}
	b.tasks = true
	for _, guid := range b.order {
		b.turn(guid, b.requests[guid], e.Time)
	}
	job := &b.tree.Spans[b.job]
	job.Failure, job.Code = view.FailureOf(c.Error), c.Code
	job.Attributes = append(job.Attributes, texts("quipu.state", string(c.State))...)
	b.end(b.job, e.Time)
	for i := range b.tree.Spans {
		b.end(i, e.Time, view.Attribute{Key: "quipu.abandoned", Number: 1})
	}
}
