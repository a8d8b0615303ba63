package collation

import (
	"slices"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Wants names what the message will probably need, so that one load is enough: its instance,
// and the results that the expressions of its next decisions mention. It is a hint: Step asks
// for what is missing.
func Wants(f *flow.Flow, m *Message, mode Mode) (instances, results []InstanceKey) {
	act, ok := f.Activity(m.Activity)
	if m.Kind == journal.MessageStart {
		act, ok = f.Trigger(), true
	}
	if !ok || m.Kind == journal.MessageSignal || m.Kind == journal.MessageInterrupt {
		return nil, nil
	}
	w := &wants{f: f, m: m, fold: mode.Fold && !mode.Stepwise}
	w.key = InstanceKey{act.Name, m.DAD}
	w.instances = []InstanceKey{w.key}
	if m.Kind == journal.MessageLeg1 {
		w.see(act.InputNeeds(), act, m.DAD)
		if act.Type == flow.TypeSignal || act.PassThrough() {
			w.decisions(act)
		}
		return w.instances, w.dropOwn()
	}
	if act.HasEach || act.Passes() { // mostly not the last element; a pass's address is unknown
		return w.instances, nil
	}
	if m.Kind == journal.MessageStart || mode.Stepwise || m.Kind == journal.MessageResponse && m.Response == nil {
		w.results = append(w.results, w.key)
	}
	w.decisions(act)
	return w.instances, w.dropOwn()
}

type wants struct {
	f                  *flow.Flow
	m                  *Message
	fold               bool
	key                InstanceKey
	instances, results []InstanceKey
}

// decisions adds what the expressions of the activity's transitions mention, and those of the
// activities that are reached in the same plan.
func (w *wants) decisions(act *flow.Activity) {
	w.see(act.MapNeeds(), act, w.m.DAD)
	closes := true
	for _, t := range act.Out {
		w.see(t.Needs(), act, w.m.DAD)
		if len(t.Needs()) == 0 && !t.OnError {
			closes = false // success always goes on to t
		}
		switch {
		case t.To.Join != "":
			w.instances = append(w.instances, InstanceKey{t.To.Name, w.m.DAD.Prefix(t.To.Parent.Depth + 1).Child()})
		case w.fold && foldable(t.To):
			w.see(t.To.InputNeeds(), t.To, w.m.DAD.Child())
		}
	}
	if closes {
		w.see(w.f.OutputNeeds(), nil, RootDAD)
	}
}

// see adds the results that the reader's expressions mention.
func (w *wants) see(names []string, reader *flow.Activity, dad DAD) {
	for _, n := range names {
		a, ok := w.f.Activity(n)
		if !ok || reader == nil && passes(a) {
			continue
		}
		if k := addressOf(a, reader, dad); !slices.Contains(w.results, k) {
			w.results = append(w.results, k)
		}
	}
}

// dropOwn leaves out the message's own result if the message itself brings it.
func (w *wants) dropOwn() []InstanceKey {
	if w.m.Kind == journal.MessageStart || w.m.Response != nil && !w.m.Response.Ref.IsZero() {
		return w.results
	}
	if w.m.Response == nil && w.m.Kind != journal.MessageLeg1 {
		return w.results
	}
	return slices.DeleteFunc(w.results, func(k InstanceKey) bool { return k == w.key })
}
