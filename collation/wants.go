package collation

import (
	"slices"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Wants names what the message will most likely need, so that one load is
// enough: the instance it is addressed to and the results that expressions of
// its next decisions mention. It is a hint: Step asks for what it misses.
func Wants(f *flow.Flow, m *Message, mode Mode) (instances, results []InstanceKey) {
	act, ok := f.Activity(m.Activity)
	if !ok {
		return nil, nil
	}
	key := InstanceKey{m.Activity, m.DAD}
	want := func(names []string, dad DAD) {
		for _, n := range names {
			if a, ok := f.Activity(n); ok {
				if k := addressOf(a, dad); !slices.Contains(results, k) {
					results = append(results, k)
				}
			}
		}
	}
	if m.Kind == journal.MessageLeg1 {
		want(act.InputNeeds(), m.DAD)
		return []InstanceKey{key}, results
	}
	if m.Kind == journal.MessageStart || mode.Stepwise || m.Response == nil {
		results = append(results, key)
	}
	closes := true
	for _, t := range act.Out {
		want(t.Needs(), m.DAD)
		if mode.Fold && !mode.Stepwise {
			want(t.To.InputNeeds(), m.DAD.Child())
		}
		if len(t.Needs()) == 0 && !t.OnError {
			closes = false // success always goes on to t
		}
	}
	if closes {
		want(f.OutputNeeds(), m.DAD)
	}
	return []InstanceKey{key}, dropOwn(results, key, m)
}

// dropOwn leaves out the message's own result where the message brings it.
func dropOwn(results []InstanceKey, key InstanceKey, m *Message) []InstanceKey {
	if m.Response == nil || !m.Response.Ref.IsZero() || m.Kind == journal.MessageStart {
		return results
	}
	return slices.DeleteFunc(results, func(k InstanceKey) bool { return k == key })
}
