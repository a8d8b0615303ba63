package inspect

import (
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

func (t *teller) answered(e *journal.Entry, own place) {
	x := e.Response
	r := t.requests[x.Request]
	if r != nil && r.element != none {
		own.element = x.Element
	}
	ev := t.event(e, view.KindDone, own)
	ev.Error, ev.Job = view.FailureOf(x.Error), x.Child
	if r != nil {
		ev.Attempt, ev.Input = x.Attempt, r.input
		if x.Began != 0 {
			ev.Waited, ev.Ran = span(r.due, x.Began), view.Duration(micros(x.Ran))
		}
	}
	switch x.Kind {
	case journal.ResponseTerminal:
		ev.Code = x.Code
		t.terminal(&ev, x)
	case journal.ResponseFailedAttempt:
		ev.Kind, ev.Code = view.KindAttempt, x.Code
		ev.Text = fmt.Sprintf("attempt %d failed with code %d", x.Attempt, x.Code)
		for i := range e.Updated {
			if u := &e.Updated[i]; u.GUID == x.Request {
				ev.Due = moment(max(e.Time, u.NextAt))
			}
		}
	case journal.ResponseParked:
		ev.Kind, ev.Text = view.KindParked, "waits for a person"
	case journal.ResponseSuspended:
		ev.Kind, ev.Text = view.KindWaits, suspends(x.Pauses)
		for i := range x.Pauses {
			if p := &x.Pauses[i]; p.Kind == journal.PauseChild {
				t.children[journal.JobID(journal.DerivePause(x.Request, p.PauseRef))] = p.Input
			}
		}
	case journal.ResponsePass:
		ev.Kind, ev.Text = view.KindWoke, fmt.Sprintf("signal %d came", x.Number)+sentBy(x)
	case journal.ResponseWake:
		ev.Kind, ev.Text = view.KindWoke, woke(x)
	}
	switch {
	case x.Of != nil:
		ev.Waited = span(t.state.named(x.Request, *x.Of), e.Time)
	case x.By != "":
		ev.Waited = span(t.state.instance(own.key).since, e.Time)
	}
	if x.Taken != nil {
		if ev.Text += takenOver(x.Taken); x.Kind == journal.ResponseTerminal && ev.Input == nil {
			ev.Input = t.takenInput(own.key)
		}
		if !x.Taken.Chain.IsZero() { // a response has no chain: it is the outcome of a child
			ev.Text += " of its child"
			ev.Job = journal.JobID(x.Taken.Chain)
		}
	}
	ev.Output = t.output(x)
	if x.Error != nil || ev.Kind != view.KindDone || !t.quiet(own.key) {
		t.tell(e, &ev)
	}
}

func takenOver(x *journal.Taken) string {
	if x.Forked {
		return fmt.Sprintf(", taken over from entry %d of the job that it was forked from", x.Seq)
	}
	return fmt.Sprintf(", taken over from generation %d", x.Generation)
}

// woke says how a pause of a function ended.
func woke(x *journal.Response) string {
	switch {
	case x.Of == nil:
		return "it goes on"
	case x.By == journal.ByTimer:
		if compensation, _, is := x.Of.Undo(); is {
			return undone(compensation) + " is due again"
		}
		return named(*x.Of) + ": its time has passed"
	case x.Of.Kind == journal.PauseChild:
		return named(*x.Of) + " ended"
	}
	return named(*x.Of) + " came" + sentBy(x)
}

// sentBy says who sent the signal that came.
func sentBy(x *journal.Response) string {
	if x.Who == "" {
		return ""
	}
	return ", sent by " + x.Who
}

// terminal describes a terminal response.
func (t *teller) terminal(ev *view.Event, x *journal.Response) {
	switch {
	case x.By == journal.BySignal:
		ev.Kind, ev.Text = view.KindWoke, "the signal came"+sentBy(x)
	case x.By == journal.ByTimer:
		ev.Kind, ev.Text = view.KindWoke, "the time has passed"
	case !x.Child.IsZero() && x.Error == nil:
		ev.Text = "the child completed"
	case !x.Child.IsZero():
		ev.Kind, ev.Text = view.KindFailed, fmt.Sprintf("the child failed with code %d", x.Code)
	case x.Error != nil:
		ev.Kind, ev.Text = view.KindFailed, fmt.Sprintf("failed with code %d", x.Code)
	default:
		ev.Text = "done"
	}
	if ev.Kind == view.KindFailed && x.Attempt > 1 {
		ev.Text += fmt.Sprintf(", in attempt %d, the last", x.Attempt)
	}
}

// again notes since when requests are due that this entry updated.
func (t *teller) again(e *journal.Entry) {
	for i := range e.Updated {
		u := &e.Updated[i]
		r := t.requests[u.GUID]
		if r == nil {
			continue
		}
		r.due = e.Time
		if failed(e) { // for others NextAt is only when the row is sent again
			r.due = max(e.Time, u.NextAt)
		}
	}
}

// failed reports the response of a failed attempt that another one follows.
func failed(e *journal.Entry) bool {
	return e.Response != nil && e.Response.Kind == journal.ResponseFailedAttempt
}

// output is the output of a response, even if it is stored separately.
func (t *teller) output(x *journal.Response) *view.Value {
	switch {
	case x.Output != nil:
		return &view.Value{JSON: x.Output}
	case x.Ref.IsZero():
		return nil
	case t.payload == nil:
		return &view.Value{Missing: "stored beside its entry, SHA-256 " + x.Ref.String()}
	}
	b, err := t.payload(x.Ref)
	if err != nil {
		return &view.Value{Missing: err.Error()}
	}
	return &view.Value{JSON: b}
}

// ended keeps the result of an ended activity for the inputs of later ones. It tells the
// result if the engine made it.
func (t *teller) ended(e *journal.Entry, own place) {
	if e.Result != nil && (e.Result.Error != nil || !t.quiet(own.key)) {
		ev := t.event(e, view.KindDone, own)
		ev.Code, ev.Error, ev.Text = e.Result.Code, view.FailureOf(e.Result.Error), "done"
		if a := t.activity(own.key); a != nil && a.HasEach {
			ev.Text = "all its elements have ended"
		}
		if e.Result.Error != nil {
			ev.Kind, ev.Text = view.KindFailed, fmt.Sprintf("failed with code %d", e.Result.Code)
		}
		if e.Result.Taken != nil {
			ev.Text += takenOver(e.Result.Taken)
			ev.Input = t.takenInput(own.key)
		}
		if e.Result.Output != nil {
			ev.Output = &view.Value{JSON: e.Result.Output}
		}
		t.tell(e, &ev)
	}
	if a := t.activity(own.key); a != nil && a.Passes() && (e.Result != nil || e.Response != nil) {
		t.results[passOf(e, own.key)] = t.result(e)
	}
	for _, m := range e.Moves() {
		key := instanceKey(m.Activity, m.DAD)
		switch ended := collation.ActivityLedger(m.After).Finalized() || e.Kind == journal.KindCreated; {
		case ended && key == own.key:
			t.results[key] = t.result(e)
		case ended: // a Leg1 folded into the entry, of an activity without a response
			t.results[key] = &flow.Result{Ran: true, Code: collation.CodeOK}
		}
	}
}

// passOf is the address of the pass that an entry ends: its index is the ordinal minus 1 (C6).
func passOf(e *journal.Entry, key collation.InstanceKey) collation.InstanceKey {
	if n := collation.GUIDLedger(e.Receipt).Ordinal(); n > 1 {
		key.DAD = key.DAD.WithIndex(n - 1)
	}
	return key
}

// quiet reports an activity whose end is not told, because its deed is: the signal it
// sent, the job it interrupted, the pass it began.
func (t *teller) quiet(key collation.InstanceKey) bool {
	a := t.activity(key)
	return a != nil &&
		(a.Type == flow.TypeSignal || a.Type == flow.TypeInterrupt || a.Type == flow.TypeCycle || a.PassThrough())
}

// result is the result of the entry's own activity, as expressions see it; nil if its
// output is stored separately and cannot be read.
func (t *teller) result(e *journal.Entry) *flow.Result {
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

// suspends says what a function waits for, or that a compensation failed and when it runs again.
// The error of a compensation is not recorded before a person is asked.
func suspends(all []journal.Pause) string {
	if len(all) == 1 {
		if compensation, failures, is := all[0].Undo(); is {
			return fmt.Sprintf("%s failed (failure %d); it runs again after %v", undone(compensation), failures, micros(all[0].For))
		}
	}
	return "waits for " + pauses(all)
}

// undone names a compensation, or the run that was to come by all of them.
func undone(compensation string) string {
	if compensation == "" {
		return "the run for its compensations"
	}
	return "compensation " + compensation
}

// pauses lists the first pauses of a function.
func pauses(all []journal.Pause) string {
	const most = 5
	texts := make([]string, 0, most)
	for i := range all {
		if i == most {
			texts = append(texts, fmt.Sprintf("%d more", len(all)-most))
			break
		}
		text := named(all[i].PauseRef)
		if p := &all[i]; p.Kind == journal.PauseSignal {
			text += fmt.Sprintf(" (topic %s, key %s)", p.Topic, p.Key)
		} else if p.Kind == journal.PauseSleep {
			text += fmt.Sprintf(" (%v)", micros(p.For))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func named(p journal.PauseRef) string { return fmt.Sprintf("%s %q", p.Kind, p.Name) }
