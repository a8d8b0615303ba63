package collation

// A join counts the decided transitions that lead to it. It reads the instances of joins. It
// decides which arrival settles a join. It writes the ledgers, and the Leg1 messages that
// follow.

import "github.com/quipu-journal/quipu/flow"

// children decides every transition of the message's activity: it dispatches the taken ones and
// tells joins of the others (1.10). n is the number of dispatched Leg1 messages, the N of C13.
// Needs are put off, so that one trip loads what all transitions miss.
func (b *builder) children(taken map[*flow.Transition]bool) (n int, err error) {
	for _, t := range b.act.Out {
		switch {
		case t.To.Join != "":
			err = b.arrive(t.To, taken[t], b.at.DAD, &n)
		case taken[t]:
			n++
			dad := b.at.DAD.Child()
			err = b.dispatch(Leg1GUID(b.m.GUID, t.To.Name, dad), t.To, dad)
		case t.To.LeadsToJoin:
			err = b.skip(t.To, b.at.DAD.Child(), &n)
		}
		if err = putOff(err); err != nil {
			return n, err
		}
	}
	return n, b.missing()
}

// skip passes on that an activity is skipped at its address: all its transitions are skipped.
func (b *builder) skip(act *flow.Activity, dad DAD, n *int) error {
	for _, t := range act.Out {
		var err error
		switch {
		case t.To.Join != "":
			err = b.arrive(t.To, false, dad, n)
		case t.To.LeadsToJoin:
			err = b.skip(t.To, dad.Child(), n)
		}
		if err = putOff(err); err != nil {
			return err
		}
	}
	return b.missing()
}

// arrive counts one decided transition at a join. from is the address of the activity that the
// transition leaves; the join's own is that of its immediate dominator plus one segment. The
// arrival that settles the join dispatches it, or passes on that it is skipped.
func (b *builder) arrive(join *flow.Activity, taken bool, from DAD, n *int) error {
	key := InstanceKey{join.Name, from.Prefix(join.Parent.Depth + 1).Child()}
	asked := b.asked(key)
	inst, err := b.instance(key)
	if err != nil && !taken && !asked {
		return b.skip(join, key.DAD, n) // it may be skipped: ask for what follows too
	}
	if err != nil {
		return err
	}
	first := taken && !inst.Ledger.JoinTaken()
	ledger, err := inst.Ledger.Arrive(taken)
	if err != nil {
		return err
	}
	inst.Ledger = ledger
	b.put(key, inst)
	last := ledger.Arrivals() == len(join.In)
	switch {
	case last && !ledger.JoinTaken():
		return b.skip(join, key.DAD, n)
	case join.Join == flow.JoinAny && first, join.Join == flow.JoinAll && last:
		*n++
		return b.dispatch(JoinGUID(b.m.Job, join.Name, key.DAD), join, key.DAD)
	}
	return nil
}
