package replay

import (
	"bytes"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// givenLaw checks that inputs, lists, decided transitions and outputs are what the flow's
// definition gives on the results that the journal recorded (V17).
func (a *auditor) givenLaw(e *journal.Entry, f *facts) {
	g := &a.given
	if e.Writer != "" || e.Build != "" {
		g.build = e.Build
	}
	if e.Kind == journal.KindCreated {
		g.begin(e, a.attachments)
	}
	if g.flow == nil {
		return
	}
	raw := a.told(e, f)
	for i := range e.Dispatched {
		a.sentLaw(e, f, &e.Dispatched[i])
	}
	for i := range e.Waits {
		a.askedLaw(e, f, &e.Waits[i])
	}
	if e.Elements != nil {
		a.listLaw(e, f)
	}
	if f.decides && !f.halts {
		a.decisionLaw(e, f, raw)
	}
	if c := e.Close; c != nil && f.marks.has(tasks) && c.State == journal.JobCompleted {
		v := &view{g: g, budget: budget()}
		output, err := g.flow.Output(v)
		if err != nil || !bytes.Equal(output, c.Output) {
			a.gives(e, v, "the job's output is not what the flow gives%s", failed(err))
		}
	}
	g.forget(e, f)
}

// failed says that an expression failed.
func failed(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// activity returns an activity of the flow; an entry that names another one is reported.
func (a *auditor) activity(e *journal.Entry, name string) *flow.Activity {
	act, ok := a.given.flow.Activity(name)
	if !ok {
		a.gives(e, nil, "the flow has no activity %s", name)
		return nil
	}
	return act
}

// sentLaw checks what a Leg1 asks for: the input of a request or of a child, or the answer that
// it gives to its own activity because an expression failed.
func (a *auditor) sentLaw(e *journal.Entry, f *facts, d *journal.Dispatched) {
	key := collation.InstanceKey{Activity: d.Activity, DAD: collation.DAD(d.DAD)}
	retry := false
	switch {
	case d.Kind == journal.MessageRequest:
	case d.Kind == journal.MessageAnswer && d.At == 0 && a.job.From == nil && e.From == nil:
	case d.Kind == journal.MessageStart && !d.Job.IsZero() && f.arms[d.GUID] == nil && !has(f.undoes, d.Job):
		if retry = f.pending; retry {
			key = f.key
		} else {
			key = attributed(e, func(leg1 journal.GUID) bool { return journal.DeriveChild(leg1, 1) == d.Job })
		}
	default:
		return
	}
	act := a.activity(e, key.Activity)
	if act == nil {
		return
	}
	v := &view{g: &a.given, budget: budget(), reader: act, dad: key.DAD}
	input, err := asks(act, v)
	switch {
	case d.Kind == journal.MessageAnswer && err == nil && !(act.HasEach && input == nil):
		a.gives(e, v, "%s %s answers itself, its expressions do not fail", key.Activity, key.DAD)
	case d.Kind == journal.MessageAnswer:
	case d.Kind == journal.MessageRequest && d.Topic != act.Topic:
		a.gives(e, v, "the request to %s %s goes to topic %s, the flow says %s", key.Activity, key.DAD, d.Topic, act.Topic)
	case err != nil && retry:
		input = []byte("null") // the order says why it failed
		fallthrough
	case err == nil:
		if sum := journal.SumOf(input); sum != d.Input {
			a.gives(e, v, "the input of %s %s has the sum %s, the flow gives %s", key.Activity, key.DAD, d.Input, sum)
		}
	default:
		a.gives(e, v, "the %s to %s %s has an input, in the flow it fails%s", d.Kind, key.Activity, key.DAD, failed(err))
	}
}

// askedLaw checks the wait that a hook registers: topic, key, and whether it repeats.
func (a *auditor) askedLaw(e *journal.Entry, f *facts, w *journal.Wait) {
	if f.arms[w.GUID] != nil {
		return // a function's
	}
	key := attributed(e, func(leg1 journal.GUID) bool {
		return journal.DeriveWakeUp(leg1, journal.BySignal, "") == w.GUID
	})
	act := a.activity(e, key.Activity)
	if act == nil {
		return
	}
	v := &view{g: &a.given, budget: budget(), reader: act, dad: key.DAD}
	text := ""
	var err error
	if act.Type == flow.TypeHook && act.Topic != "" {
		text, err = act.Key(v)
	}
	if err != nil || w.Topic != act.Topic || !a.keeps(w, text) || w.Repeat != act.Repeat {
		a.gives(e, v, "%s %s waits for signal %s with key %q, the flow gives %s with key %q%s", key.Activity, key.DAD, w.Topic, w.Key,
			act.Topic, text, failed(err))
	}
}

// keeps says whether a wait has the key, or in a space with private keys its digest (S15).
func (a *auditor) keeps(w *journal.Wait, key string) bool {
	return w.Key == key || journal.IsPrivateKey(a.given.job.ID) && w.Key == journal.PrivateKey(a.h.Space, key)
}

func has[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

// asks evaluates what a Leg1 needs before it asks anybody. The input is nil for an empty list.
func asks(act *flow.Activity, v *view) (input []byte, err error) {
	switch {
	case act.HasEach:
		items, err := act.Each(v)
		size := 0
		for i := 0; i < len(items) && err == nil; i++ {
			if input, err = act.ElementInput(v, items[i], i); err != nil {
				return nil, err
			}
			if size += len(input); size > maxElementBytes {
				return nil, nil // too large: it answers itself, too
			}
		}
		return input, err
	case act.Type == flow.TypeAwait:
		if _, err := act.Child(v); err != nil {
			return nil, err
		}
	case act.Type == flow.TypeHook && !act.PassThrough():
		if act.HasSleep {
			if _, err := act.Sleep(v); err != nil {
				return nil, err
			}
		}
		if act.Topic != "" {
			_, err = act.Key(v)
		}
		return nil, err
	case act.Type == flow.TypeSignal:
		_, err := act.Signal(v)
		return nil, err
	case act.Type == flow.TypeInterrupt:
		_, err := act.Interrupt(v)
		return nil, err
	}
	return act.Input(v)
}

// listLaw checks the elements of `each`: how many, how many at once, and the sum of every input.
// One that an earlier generation has answered has none.
func (a *auditor) listLaw(e *journal.Entry, f *facts) {
	act, x := a.activity(e, f.key.Activity), e.Elements
	if act == nil {
		return
	}
	v := &view{g: &a.given, budget: budget(), reader: act, dad: f.key.DAD}
	if !act.HasEach {
		a.gives(e, v, "%s has elements, in the flow it has no list", act.Name)
		return
	}
	items, err := act.Each(v)
	if err != nil || len(items) != x.Count || min(act.Parallel, len(items)) != x.Parallel {
		a.gives(e, v, "%s has %d elements, %d at once; the flow gives %d, %d at once%s", act.Name, x.Count, x.Parallel,
			len(items), min(act.Parallel, len(items)), failed(err))
		return
	}
	for i, item := range items {
		input, err := act.ElementInput(v, item, i)
		got := x.Inputs.At(i)
		if taken := got.IsZero() && a.job.From != nil; !taken && (err != nil || journal.SumOf(input) != got) {
			a.gives(e, v, "the input of element %d of %s has the sum %s, the flow gives %s%s", i, act.Name, got, journal.SumOf(input), failed(err))
			return
		}
	}
}
