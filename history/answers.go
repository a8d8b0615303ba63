package history

import (
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// answered tells what a response brought.
func (t *Teller) answered(e *journal.Entry, own place) {
	x := e.Response
	r := t.requests[x.Request]
	if r != nil && r.element != none {
		own.element = x.Element
	}
	ev := t.event(e, KindDone, own)
	ev.Error, ev.Job = x.Error, x.Child
	if r != nil {
		ev.Attempt, ev.Input = x.Try, r.input
		if x.Began != 0 {
			ev.Waited, ev.Ran = span(r.due, x.Began), micros(x.Ran)
		}
	}
	switch x.Kind {
	case journal.ResponseTerminal:
		ev.Code = x.Code
		t.terminal(&ev, x)
	case journal.ResponseFailedTry:
		ev.Kind, ev.Code = KindAttempt, x.Code
		ev.Text = fmt.Sprintf("attempt %d failed with code %d", x.Try, x.Code)
	case journal.ResponseParked:
		ev.Kind, ev.Text = KindParked, "waits for a person"
	case journal.ResponseSuspended:
		ev.Kind, ev.Text = KindWaits, "waits for "+pauses(x.Pauses)
	case journal.ResponsePass:
		ev.Kind, ev.Text = KindWoke, fmt.Sprintf("signal %d came", x.Number)
	case journal.ResponseWake:
		ev.Kind, ev.Text = KindWoke, "came"
		if x.Of != nil {
			ev.Text = pause(*x.Of) + " came"
		}
	}
	if x.By != "" {
		ev.Waited = span(t.since[own.key], e.Time)
	}
	if x.By == journal.ByTimer && x.Kind == journal.ResponseWake {
		ev.Text = strings.TrimSuffix(ev.Text, " came") + ": its time has passed"
	}
	ev.Output = t.output(x)
	t.again(&ev, e, r)
	t.tell(ev)
}

// terminal says how a response ends what it answers.
func (t *Teller) terminal(ev *Event, x *journal.Response) {
	switch {
	case x.By == journal.BySignal:
		ev.Kind, ev.Text = KindWoke, "the signal came"
	case x.By == journal.ByTimer:
		ev.Kind, ev.Text = KindWoke, "the time has passed"
	case !x.Child.IsZero() && x.Error == nil:
		ev.Text = "the child completed"
	case !x.Child.IsZero():
		ev.Kind, ev.Text = KindFailed, fmt.Sprintf("the child failed with code %d", x.Code)
	case x.Error != nil:
		ev.Kind, ev.Text = KindFailed, fmt.Sprintf("failed with code %d", x.Code)
	default:
		ev.Text = "done"
	}
	if ev.Kind == KindFailed && x.Try > 1 {
		ev.Text += fmt.Sprintf(", in attempt %d, the last", x.Try)
	}
}

// again keeps when the next attempt of a request is due.
func (t *Teller) again(ev *Event, e *journal.Entry, r *request) {
	if r == nil {
		return
	}
	for i := range e.Updated {
		if u := &e.Updated[i]; u.GUID == e.Response.Request {
			if r.due = u.NextAt; u.NextAt == 0 {
				r.due = e.Time
			}
			if u.NextAt > e.Time {
				ev.Due = collation.Micros(u.NextAt)
			}
		}
	}
}

// output is what a response brought, also where that is stored beside.
func (t *Teller) output(x *journal.Response) *Value {
	switch {
	case x.Output != nil:
		return &Value{JSON: x.Output}
	case x.Ref.IsZero():
		return nil
	case t.payload == nil:
		return &Value{Missing: "stored beside its entry, SHA-256 " + x.Ref.String()}
	}
	b, err := t.payload(x.Ref)
	if err != nil {
		return &Value{Missing: err.Error()}
	}
	return &Value{JSON: b}
}

// ended keeps the result of an activity that ended, for the inputs of those that
// follow, and tells it where the engine made it.
func (t *Teller) ended(e *journal.Entry, own place) {
	if e.Result != nil && (e.Result.Error != nil || !t.quiet(own.key)) {
		ev := t.event(e, KindDone, own)
		ev.Code, ev.Error, ev.Text = e.Result.Code, e.Result.Error, "done"
		if a := t.activity(own.key); a != nil && a.HasEach {
			ev.Text = "all its elements have ended"
		}
		if e.Result.Error != nil {
			ev.Kind, ev.Text = KindFailed, fmt.Sprintf("failed with code %d", e.Result.Code)
		}
		if e.Result.Output != nil {
			ev.Output = &Value{JSON: e.Result.Output}
		}
		t.tell(ev)
	}
	for _, m := range e.Moves() {
		key := instance(m.Activity, m.DAD)
		switch ended := collation.ActivityLedger(m.After).Finalized() || e.Kind == journal.KindCreated; {
		case ended && key == own.key:
			t.results[key] = t.result(e)
		case ended: // a Leg1 that is folded into the entry, of an activity that nobody answers
			t.results[key] = &flow.Result{Ran: true, Code: collation.CodeOK}
		}
	}
}

// quiet reports an activity whose end is what it did: the signal that it sent, the job
// that it interrupted, the pass that it began.
func (t *Teller) quiet(key collation.InstanceKey) bool {
	a := t.activity(key)
	return a != nil && (a.Type == flow.TypeSignal || a.Type == flow.TypeInterrupt || a.Type == flow.TypeCycle || a.PassThrough())
}

// result is what expressions see of the entry's own activity; nil: an output that is
// stored beside, and cannot be read.
func (t *Teller) result(e *journal.Entry) *flow.Result {
	r := collation.ResultOf(e)
	if x := e.Response; x != nil && !x.Ref.IsZero() && e.Result == nil && r.Output == nil && r.Error == nil {
		v := t.output(x)
		if v.Missing != "" {
			return nil
		}
		r.Output = v.JSON
	}
	return r
}

// pauses are what a function waits for, the first few of them.
func pauses(all []journal.Pause) string {
	const most = 5
	texts := make([]string, 0, most)
	for i := range all {
		if i == most {
			texts = append(texts, fmt.Sprintf("%d more", len(all)-most))
			break
		}
		text := pause(all[i].PauseRef)
		if p := &all[i]; p.Kind == journal.PauseSignal {
			text += fmt.Sprintf(" (topic %s, key %s)", p.Topic, p.Key)
		} else if p.Kind == journal.PauseSleep {
			text += fmt.Sprintf(" (%v)", micros(p.For))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func pause(p journal.PauseRef) string { return fmt.Sprintf("%s %q", p.Kind, p.Name) }

// effect tells an entry of an effect's chain.
func effect(ev *Event, e *journal.Entry) {
	f := e.Effect
	ev.Text = "effect " + f.Name
	switch e.Kind {
	case journal.KindEffectStarted:
		ev.Text += " begins, " + f.Class
	case journal.KindEffectCompleted:
		ev.Text += " is done"
	case journal.KindEffectFailed:
		ev.Text += " was not done"
	}
	if f.Late {
		ev.Text += ", recorded late"
	}
	if f.Result != nil {
		ev.Output = &Value{JSON: f.Result}
	}
	ev.Error = f.Error
}
