package history

import (
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// ordered tells what an entry sent, and what it waits for. What belongs to no instance
// by itself is that of the Leg1 before it.
func (t *Teller) ordered(e *journal.Entry, own place) {
	sender := own
	leg1s := map[journal.GUID]place{e.GUID: own}
	bounds := map[collation.InstanceKey]int64{} // of hooks that wait for a signal
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		if d.Folded != 0 {
			sender = place{instance(d.Activity, d.DAD), none}
			leg1s[d.GUID] = sender
			continue
		}
		if a := t.activity(instance(d.Activity, d.DAD)); d.Kind == journal.MessageWakeUp && a != nil && a.Topic != "" {
			bounds[instance(d.Activity, d.DAD)] = d.At
			continue
		}
		t.dispatched(e, d, sender)
	}
	if e.Elements != nil {
		t.elements(e, leg1s)
	}
	for i := range e.Waits {
		w := &e.Waits[i]
		at := own
		for leg1, of := range leg1s {
			if collation.WakeUpGUID(leg1, journal.BySignal, "") == w.GUID {
				at = of
			}
		}
		if e.Response != nil && e.Response.Kind == journal.ResponseSuspended {
			continue // its response says it
		}
		ev := t.event(e, KindWaits, at)
		ev.Text = fmt.Sprintf("waits for signal %s, key %s", w.Topic, w.Key)
		t.since[at.key] = e.Time
		ev.Due = collation.Micros(bounds[at.key])
		t.tell(e, &ev)
	}
}

// dispatched tells one row that an entry inserted.
func (t *Teller) dispatched(e *journal.Entry, d *journal.Dispatched, sender place) {
	at := sender
	if d.Activity != "" {
		at = place{instance(d.Activity, d.DAD), none}
	}
	ev := t.event(e, KindOther, at)
	if d.At > e.Time {
		ev.Due = collation.Micros(d.At)
	}
	switch d.Kind {
	case journal.MessageRequest:
		due := max(d.At, e.Time)
		t.requests[d.GUID] = &request{place: at, due: due}
		ev.Kind, ev.Text, ev.Attempt = KindSent, "sent to "+d.Topic, 1
		ev.Input = t.input(at.key, d.Input)
	case journal.MessageStart:
		if e.Kind == journal.KindCreated {
			return // of the job itself
		}
		ev.Kind, ev.Job, ev.Text = KindChild, d.Job, "starts child"
		ev.Input = t.childInput(e, d, at)
		if at.key.Activity == "" {
			ev.Text = "what was done is compensated by"
		}
	case journal.MessageWakeUp:
		if a := t.activity(at.key); a == nil || a.Type != flow.TypeHook {
			return // the bound of an activity, or a function's sleep: its response says it
		}
		t.since[at.key] = e.Time
		ev.Kind, ev.Text = KindWaits, "sleeps"
	case journal.MessageSignal:
		ev.Kind, ev.Text = KindSignal, "sends signal "+d.Topic
		if a := t.activity(at.key); a != nil && a.Type == flow.TypeSignal {
			if s, err := a.Signal(&scope{t, a, at.key.DAD}); err == nil {
				ev.Text, ev.Input = ev.Text+", key "+s.Key, &Value{JSON: s.Payload}
			}
		}
	case journal.MessageInterrupt:
		ev.Job, ev.Text = d.Job, "interrupts a job"
	case journal.MessageCycle:
		ev.Activity, ev.DAD = sender.key.Activity, sender.key.DAD
		ev.Text = "goes back to " + d.Activity
	default:
		return // steps of the protocol, which --digits shows
	}
	t.tell(e, &ev)
}

// childInput is that of a child which a function named, or an await, or none: the order
// to compensate says what the job's journal has.
func (t *Teller) childInput(e *journal.Entry, d *journal.Dispatched, at place) *Value {
	if x := e.Response; x != nil {
		for i := range x.Pauses {
			if p := &x.Pauses[i]; p.Kind == journal.PauseChild && collation.NamedChild(x.Request, p.PauseRef).Start() == d.GUID {
				return &Value{JSON: p.Input}
			}
		}
	}
	if at.key.Activity == "" {
		return nil
	}
	return t.input(at.key, d.Input)
}

// elements tells the requests of a list.
func (t *Teller) elements(e *journal.Entry, leg1s map[journal.GUID]place) {
	for leg1, at := range leg1s {
		a := t.activity(at.key)
		if a == nil || !a.HasEach {
			continue
		}
		s := &scope{t, a, at.key.DAD}
		items, err := a.Each(s)
		for i := range e.Elements.Count {
			r := &request{place: place{at.key, i}, due: e.Time}
			r.input = checked(e.Elements.Inputs.At(i), func() ([]byte, error) {
				if err == nil && i >= len(items) {
					return nil, fmt.Errorf("its list has %d elements by now", len(items))
				} else if err != nil {
					return nil, err
				}
				return a.ElementInput(s, items[i], i)
			})
			t.requests[collation.RequestGUID(leg1, i)] = r
		}
		ev := t.event(e, KindSent, at)
		ev.Text = fmt.Sprintf("%d elements sent to %s, %d at a time", e.Elements.Count, a.Topic, e.Elements.Parallel)
		t.tell(e, &ev)
	}
}

func (t *Teller) activity(key collation.InstanceKey) *flow.Activity {
	if t.flow == nil {
		return nil
	}
	a, _ := t.flow.Activity(key.Activity)
	return a
}

// input evaluates what an activity was given, and holds it to the sum that was
// recorded. nil: there is none.
func (t *Teller) input(key collation.InstanceKey, sum journal.Sum) *Value {
	a := t.activity(key)
	switch {
	case sum.IsZero():
		return nil
	case a == nil:
		return &Value{Missing: "the flow's definition cannot be read"}
	}
	return checked(sum, func() ([]byte, error) { return a.Input(&scope{t, a, key.DAD}) })
}

// checked is an input that was evaluated again, if it has the recorded sum.
func checked(sum journal.Sum, evaluate func() ([]byte, error)) *Value {
	b, err := evaluate()
	switch {
	case err != nil:
		return &Value{Missing: "it cannot be evaluated again: " + err.Error()}
	case journal.SumOf(b) != sum:
		return &Value{Missing: "it evaluates to something else than what was sent"}
	}
	return &Value{JSON: b}
}

// scope is what an expression of an activity saw: the results so far.
type scope struct {
	t      *Teller
	reader *flow.Activity
	dad    collation.DAD
}

// Result implements flow.Scope.
func (s *scope) Result(name string) (flow.Result, bool) {
	a, ok := s.t.flow.Activity(name)
	if !ok {
		return flow.Result{}, false
	}
	r, known := s.t.results[collation.AddressOf(a, s.reader, s.dad)]
	switch {
	case !known:
		return flow.Result{}, true // it did not run
	case r == nil:
		return flow.Result{}, false
	}
	return *r, true
}

// Job implements flow.Scope.
func (s *scope) Job() flow.JobInfo { return s.t.job }
