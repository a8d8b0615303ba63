package replay

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// decisionLaw checks the result that the engine made of a response, and the transitions that it
// decided (V17). raw is the result before.
func (a *auditor) decisionLaw(e *journal.Entry, f *facts, raw *seen) {
	act := a.activity(e, f.key.Activity)
	if act == nil {
		return
	}
	v := &view{g: &a.given, reader: act, dad: f.at.DAD, own: a.given.results[f.at]}
	if a.overran(e, f, v) {
		return
	}
	gathered := e.Kind == journal.KindLeg1 || f.inst != nil && f.inst.Count > 0
	if failedExpression(e) {
		if gathered {
			return // what its condition saw is not told
		}
		v.own = raw
	}
	if v.own == nil {
		a.gives(e, v, "%s %s decides, and has no result", f.at.Activity, f.at.DAD)
		return
	}
	if !gathered && act.HasOutput() && raw != nil && raw.Code == codeOK && !raw.Taken {
		a.mapped(e, v, raw)
	}
	taken, err := v.taken(v.own.Code != codeOK)
	if (err != nil) != failedExpression(e) {
		a.gives(e, v, "a condition behind %s %s fails: %t, in the flow%s", f.at.Activity, f.at.DAD, failedExpression(e), failed(err))
		return
	}
	if err != nil {
		v.own = a.given.results[f.at]
		if taken, err = v.taken(true); err != nil {
			taken = nil
		}
	}
	want := &follow{
		a: a, leg1: map[collation.InstanceKey]bool{}, joins: map[collation.InstanceKey]joinDigits{},
	}
	if v.own.Code == codeOK || len(taken) > 0 {
		want.children(act, taken, f.at.DAD)
	} else if !f.marks.has(closed) {
		a.gives(e, v, "no transition takes the error of %s %s, and the job goes on", f.at.Activity, f.at.DAD)
	}
	a.followed(e, f, v, want)
}

// overran reports whether a cycle went round more often than it may: it then fails the job.
func (a *auditor) overran(e *journal.Entry, f *facts, v *view) bool {
	if f.message != journal.MessageCycle || f.row == nil {
		return false
	}
	by := a.activity(e, f.row.Topic)
	over := by != nil && ordinal(f.after)-1 > by.Max
	if over && !f.marks.has(closed) {
		a.gives(e, v, "%s makes pass %d, its max is %d", by.Name, ordinal(f.after)-1, by.Max)
	}
	return over
}

// mapped checks the activity's `output`, which becomes its result; v.own is that result then.
func (a *auditor) mapped(e *journal.Entry, v *view, raw *seen) {
	v.own = raw
	var signal []byte
	if x := a.given.brought[e.GUID]; x != nil {
		signal = x.signal
	}
	v.budget = budget()
	output, err := v.reader.MapOutput(v, signal)
	r := e.Result
	switch {
	case failedExpression(e): // its condition saw this result, which is not told
		v.own = &seen{
			Result: flow.Result{Ran: true, Code: codeOK, Output: output, By: raw.By}, hidden: raw.hidden,
		}
		return
	case r == nil, (err != nil) != (r.Error != nil), err == nil && !bytes.Equal(r.Output, output):
		a.gives(e, v, "the result of %s is not what its output gives%s", v.reader.Name, failed(err))
	}
	v.own = a.given.results[collation.InstanceKey{Activity: v.reader.Name, DAD: v.dad}]
}

// taken evaluates the transitions of the reader (E11).
func (v *view) taken(failed bool) (map[*flow.Transition]bool, error) {
	v.budget = budget()
	out := make(map[*flow.Transition]bool, len(v.reader.Out))
	for _, t := range v.reader.Out {
		if t.OnError != failed {
			continue
		}
		ok, err := t.Taken(v)
		if err != nil {
			return nil, err
		}
		if ok {
			out[t] = true
		}
	}
	return out, nil
}

// follow is what decided transitions lead to: Leg1 messages, and joins with their ledgers
// (1.10).
type follow struct {
	a     *auditor
	leg1  map[collation.InstanceKey]bool
	joins map[collation.InstanceKey]joinDigits
}

func (w *follow) children(act *flow.Activity, taken map[*flow.Transition]bool, dad collation.DAD) {
	for _, t := range act.Out {
		switch {
		case t.To.Join != "":
			w.arrive(t.To, taken[t], dad)
		case taken[t]:
			w.leg1[collation.InstanceKey{Activity: t.To.Name, DAD: child(dad)}] = true
		case t.To.LeadsToJoin:
			w.skip(t.To, child(dad))
		}
	}
}

// skip passes on that an activity is skipped.
func (w *follow) skip(act *flow.Activity, dad collation.DAD) {
	for _, t := range act.Out {
		if t.To.Join != "" {
			w.arrive(t.To, false, dad)
		} else if t.To.LeadsToJoin {
			w.skip(t.To, child(dad))
		}
	}
}

func (w *follow) arrive(join *flow.Activity, taken bool, from collation.DAD) {
	key := collation.InstanceKey{Activity: join.Name, DAD: child(prefix(from, join.Parent.Depth+1))}
	before, moved := w.joins[key]
	if !moved {
		before = joinOf(w.a.job.ledger(key))
	}
	after, counts := before.arrive(taken)
	if !counts {
		return // beyond what the digits count (V4)
	}
	w.joins[key] = after
	last := after.arrivals == int64(len(join.In))
	switch {
	case last && !after.taken:
		w.skip(join, key.DAD)
	case join.Join == flow.JoinAny && taken && !before.taken, join.Join == flow.JoinAll && last:
		w.leg1[key] = true
	}
}

// followed compares what follows in the entry with what the flow gives.
func (a *auditor) followed(e *journal.Entry, f *facts, v *view, want *follow) {
	got := map[collation.InstanceKey]bool{}
	for i := range e.Dispatched {
		if d := &e.Dispatched[i]; d.Kind == journal.MessageLeg1 {
			got[collation.InstanceKey{Activity: d.Activity, DAD: collation.DAD(d.DAD)}] = true
		}
	}
	if !maps.Equal(got, want.leg1) {
		a.gives(e, v, "behind %s %s follows %s, the flow gives %s", f.at.Activity, f.at.DAD, listed(got), listed(want.leg1))
		return
	}
	for i := range f.moves {
		key, after := keyOf(&f.moves[i]), joinOf(f.moves[i].After)
		flows, moved := want.joins[key]
		if !moved {
			flows = joinOf(a.job.ledger(key))
		}
		delete(want.joins, key)
		if after != flows {
			a.gives(e, v, "at the join %s %s arrive %d, taken %t; the flow gives %d, taken %t", key.Activity, key.DAD,
				after.arrivals, after.taken, flows.arrivals, flows.taken)
		}
	}
	for _, key := range sortedKeys(want.joins) {
		a.gives(e, v, "nothing arrives at the join %s %s, in the flow it does", key.Activity, key.DAD)
	}
}

func listed(keys map[collation.InstanceKey]bool) string {
	if len(keys) == 0 {
		return "nothing"
	}
	all := make([]string, 0, len(keys))
	for key := range keys {
		all = append(all, fmt.Sprintf("%s %s", key.Activity, key.DAD))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
