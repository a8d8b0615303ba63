package inspect

import (
	"cmp"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// leg1s maps the Leg1 messages that an entry handles, its own and those folded into it,
// to their instances.
type leg1s map[journal.GUID]place

// ordered tells what an entry dispatched, and what it waits for.
func (t *teller) ordered(e *journal.Entry, own place) {
	entered := leg1s{e.GUID: own}
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; d.Folded != 0 {
			entered[d.GUID] = place{instanceKey(d.Activity, d.DAD), none}
		}
	}
	bounds := map[collation.InstanceKey]int64{} // timers of hooks that wait for a signal
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		key := instanceKey(d.Activity, d.DAD)
		if a := t.activity(key); d.Kind == journal.MessageWakeUp && a != nil && a.Topic != "" {
			bounds[key] = d.At
		} else if d.Folded == 0 {
			t.dispatched(e, d, entered, own)
		}
	}
	if e.Elements != nil {
		t.elements(e, entered)
	}
	for i := range e.Waits {
		w := &e.Waits[i]
		at := entered.of(own, func(leg1 journal.GUID) bool {
			return journal.DeriveWakeUp(leg1, journal.BySignal, "") == w.GUID
		})
		if a := t.activity(at.key); a != nil && a.Type != flow.TypeHook {
			continue // a function: told with its response
		}
		ev := t.event(e, view.KindWaits, at)
		ev.Text = fmt.Sprintf("waits for signal %s, key %s", w.Topic, w.Key)
		if until := bounds[at.key]; until > 0 {
			ev.Due = moment(until)
		}
		t.tell(e, &ev)
	}
}

// of is the instance whose Leg1 fits derives, otherwise the entry's own.
func (l leg1s) of(own place, derives func(leg1 journal.GUID) bool) place {
	for leg1, at := range l {
		if derives(leg1) {
			return at
		}
	}
	return own
}

// dispatched tells one dispatch row of an entry.
func (t *teller) dispatched(e *journal.Entry, d *journal.Dispatched, entered leg1s, own place) {
	at := place{instanceKey(d.Activity, d.DAD), none}
	ev := t.event(e, view.KindOther, at)
	switch d.Kind {
	case journal.MessageRequest:
		t.send(d.GUID, &request{place: at, due: max(d.At, e.Time)})
		ev.Kind, ev.Text, ev.Attempt = view.KindSent, "sent to "+d.Topic, 1
		ev.Input = t.input(at.key, d.Input)
	case journal.MessageStart:
		if e.Kind == journal.KindCreated {
			return // the start of this job itself
		}
		ev = t.child(e, d, entered, own)
	case journal.MessageWakeUp:
		if a := t.activity(at.key); a == nil || a.Type != flow.TypeHook {
			return // `within` of an activity, or a function's sleep: told with its response
		}
		ev.Kind, ev.Text = view.KindWaits, "sleeps"
	case journal.MessageSignal:
		at = entered.of(own, func(leg1 journal.GUID) bool { return journal.DeriveSent(leg1) == d.GUID })
		ev = t.event(e, view.KindSignal, at)
		ev.Text = "sends signal " + d.Topic
		if a := t.activity(at.key); a != nil && a.Type == flow.TypeSignal {
			if s, err := a.Signal(t.scope(a, at.key.DAD)); err == nil {
				ev.Text, ev.Input = ev.Text+", key "+s.Key, &view.Value{JSON: s.Payload}
			}
		}
	case journal.MessageInterrupt:
		ev = t.event(e, view.KindOther, entered.of(own, func(leg1 journal.GUID) bool {
			return journal.DeriveInterrupt(leg1, d.Job) == d.GUID
		}))
		ev.Job, ev.Text = d.Job, "interrupts a job"
	case journal.MessageCycle:
		ev = t.event(e, view.KindOther, entered.of(own, func(leg1 journal.GUID) bool {
			return journal.DeriveCycle(leg1) == d.GUID
		}))
		ev.Text = "goes back to " + d.Activity
	default:
		return // a step of the protocol
	}
	if d.At > e.Time {
		ev.Due = moment(d.At)
	}
	t.tell(e, &ev)
}

// child tells the start of another job: by an await, by a function, or for the
// compensations of a function.
func (t *teller) child(e *journal.Entry, d *journal.Dispatched, entered leg1s, own place) view.Event {
	at := entered.of(own, func(leg1 journal.GUID) bool { return journal.DeriveChild(leg1, 1) == d.Job })
	ev := t.event(e, view.KindChild, at)
	switch sent, named := t.children[d.Job]; {
	case t.undo[d.Job] != nil: // its input is an order, made of entries that are told already
		ev = t.event(e, view.KindChild, t.undo[d.Job].place)
		ev.Text = "what it did is compensated by"
	case named:
		ev.Text, ev.Input = "starts child", &view.Value{JSON: sent}
	default:
		ev.Text, ev.Input, ev.Child = "starts child", t.input(at.key, d.Input), t.order(at.key, d.Job)
	}
	ev.Job = d.Job
	return ev
}

// order is the job that an await starts; nil if that cannot be evaluated again.
func (t *teller) order(key collation.InstanceKey, child journal.JobID) *view.Order {
	a := t.activity(key)
	if a == nil || a.Type != flow.TypeAwait {
		return nil
	}
	c, err := a.Child(t.scope(a, key.DAD))
	if err != nil {
		return nil
	}
	return &view.Order{Flow: c.Flow, Key: cmp.Or(c.ID, collation.ChildKey(t.job.ID, a.Name, child))}
}

// send notes a request and the job that would run its compensations.
func (t *teller) send(guid journal.GUID, r *request) {
	t.requests[guid] = r
	t.undo[journal.DeriveUndo(guid)] = r
}

// elements tells the requests of a list.
func (t *teller) elements(e *journal.Entry, entered leg1s) {
	for leg1, at := range entered {
		a := t.activity(at.key)
		if a == nil || !a.HasEach {
			continue
		}
		s := t.scope(a, at.key.DAD)
		items, err := a.Each(s)
		taken := 0
		for i := range e.Elements.Inputs.Len() {
			r := &request{place: place{at.key, i}, due: e.Time}
			sum := e.Elements.Inputs.At(i)
			evaluate := func() ([]byte, error) {
				if err == nil && i >= len(items) {
					return nil, fmt.Errorf("its list has %d elements by now", len(items))
				} else if err != nil {
					return nil, err
				}
				return a.ElementInput(s, items[i], i)
			}
			if sum.IsZero() { // it was not sent: its result is taken over
				taken++
				r.input = unsent(evaluate)
			} else {
				r.input = checked(sum, evaluate)
			}
			t.send(journal.DeriveRequest(leg1, i), r)
		}
		ev := t.event(e, view.KindSent, at)
		many := "elements"
		if e.Elements.Count == 1 {
			many = "element"
		}
		ev.Text = fmt.Sprintf("%d %s sent to %s, %d at a time", e.Elements.Count, many, a.Topic, e.Elements.Parallel)
		if taken > 0 {
			ev.Text = fmt.Sprintf("%d of %s; the others are taken over", e.Elements.Count-taken, ev.Text)
		}
		t.tell(e, &ev)
	}
}

func (t *teller) activity(key collation.InstanceKey) *flow.Activity {
	if t.flow == nil {
		return nil
	}
	a, _ := t.flow.Activity(key.Activity)
	return a
}

// input evaluates an activity's input again and compares it with the recorded sum. nil:
// it has none.
func (t *teller) input(key collation.InstanceKey, sum journal.Sum) *view.Value {
	a := t.activity(key)
	switch {
	case sum.IsZero():
		return nil
	case a == nil:
		return &view.Value{Missing: "the flow's definition cannot be read"}
	}
	return checked(sum, func() ([]byte, error) { return a.Input(t.scope(a, key.DAD)) })
}

// checked is an input that was evaluated again, provided that it has the recorded sum.
func checked(sum journal.Sum, evaluate func() ([]byte, error)) *view.Value {
	b, err := evaluate()
	switch {
	case err != nil:
		return &view.Value{Missing: "it cannot be evaluated again: " + err.Error()}
	case journal.SumOf(b) != sum:
		return &view.Value{Missing: "it evaluates to something else than what was sent"}
	}
	return &view.Value{JSON: b}
}

// unsent is an input that was not sent, because the result is taken over. The flow and what it
// reads are those of the generation that sent it, so it is evaluated to the same.
func unsent(evaluate func() ([]byte, error)) *view.Value {
	b, err := evaluate()
	if err != nil {
		return &view.Value{Missing: "it is in the generation that sent it: " + err.Error()}
	}
	return &view.Value{JSON: b}
}

// takenInput is the input of a worker or an await whose result is taken over.
func (t *teller) takenInput(key collation.InstanceKey) *view.Value {
	a := t.activity(key)
	if a == nil || a.HasEach || a.Type != flow.TypeWorker && a.Type != flow.TypeAwait {
		return nil
	}
	return unsent(func() ([]byte, error) { return a.Input(t.scope(a, key.DAD)) })
}

// scope is what an expression of an activity sees: the results so far.
type scope struct {
	t      *teller
	reader *flow.Activity
	dad    collation.DAD
	budget *flow.Budget
}

func (t *teller) scope(reader *flow.Activity, dad collation.DAD) *scope {
	return &scope{t, reader, dad, flow.NewBudget(nil)}
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

// Budget implements flow.Scope.
func (s *scope) Budget() *flow.Budget { return s.budget }
