package replay

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// ledgerLaw checks the activity ledgers that the entry changes (V4). Every digit group must
// grow, from the value of the entries so far, by exactly what the entry's marks stand for (C1,
// C3, C4), and what they stand for must have moved. A change that began from another value
// shows as another result.
func (a *auditor) ledgerLaw(e *journal.Entry, f *facts) {
	own := false
	for i := range f.moves {
		m := &f.moves[i]
		key := keyOf(m)
		own = own || key == f.key
		before := a.job.ledger(key)
		got := activityDigits.growth(before, m.After)
		want := a.lawfulGrowth(e, f, key, got)
		if wrong := activityDigits.wrong(before, m.After, want); wrong != "" {
			a.at(V4, e, "ledger of %s %s, %s → %s: %s", key.Activity, key.DAD, before, m.After, wrong)
		}
		if n := got[gArrivals]; n != int64(m.Arrivals) {
			a.at(V4, e, "ledger of %s %s, %s → %s: positions 6–7 (arrivals) grow by %d, the entry says %d",
				key.Activity, key.DAD, before, m.After, n, m.Arrivals)
		}
		if wrong := unlawfulActivity(m.After); wrong != "" {
			a.at(V4, e, "ledger of %s %s: unlawful digit change: %s, ledger %s", key.Activity, key.DAD, wrong, m.After)
		}
		if slices.ContainsFunc(f.moves[:i], func(o journal.LedgerMove) bool { return keyOf(&o) == key }) {
			a.at(V4, e, "ledger of %s %s is moved twice in one entry", key.Activity, key.DAD)
		}
	}
	if e.Kind == journal.KindCreated && f.marks != entered|work {
		a.at(V4, e, "the inception has the marks %v", e.Marks)
	}
	if want := ownGrowth(e, f); !own && want != (growth{}) {
		a.at(V4, e, "ledger of %s %s does not move, the marks %v ask for it", f.key.Activity, f.key.DAD, e.Marks)
	}
}

// lawfulGrowth is the growth that the entry allows for one instance.
func (a *auditor) lawfulGrowth(e *journal.Entry, f *facts, key collation.InstanceKey, got growth) growth {
	if key == f.key {
		return ownGrowth(e, f)
	}
	want := growth{}
	if foldsInto(e, key) {
		want[gLeg1], want[gComplete] = 1, 1
	}
	if f.decides && got[gArrivals] > 0 {
		// At a join as many arrivals as transitions lead to it from here; the first taken one
		// sets position 5 (1.10).
		want[gArrivals], want[gTaken] = got[gArrivals], min(max(got[gTaken], 0), 1)
	}
	return want
}

// ownGrowth is the growth of the ledger of the message's own activity.
func ownGrowth(e *journal.Entry, f *facts) growth {
	g := growth{}
	switch {
	case e.Kind == journal.KindCreated:
		return growth{gState: 1, gLeg1: 1, gComplete: 1, gLeg2: 1} // as a trigger is born (1.11)
	case e.Kind == journal.KindLeg1:
		g[gLeg1], g[gComplete] = f.marks.one(entered), f.marks.one(work)
		if f.seeds { // a pivot's Leg1 counts the first pass (1.11)
			g[gLeg2] = 1
		}
	case e.Kind == journal.KindLeg2 && !f.start:
		g[gLeg2] = f.marks.one(entered)
	}
	if f.finalizes {
		g[gState] = 2
	}
	return g
}

// foldsInto reports whether the Leg1 of the instance is folded into the entry (C11).
func foldsInto(e *journal.Entry, key collation.InstanceKey) bool {
	return slices.ContainsFunc(e.Dispatched, func(d journal.Dispatched) bool {
		return d.Folded != 0 && d.Kind == journal.MessageLeg1 && d.Activity == key.Activity &&
			collation.DAD(d.DAD) == key.DAD
	})
}

// ordinalLaw checks that the accepted Leg2 messages of an instance have the ordinals 1…n, each
// once, in order (V5, C6). A pre-seed takes the first one, and so does a trigger's inception.
func (a *auditor) ordinalLaw(e *journal.Entry, f *facts) {
	ordinal := ordinal(f.after)
	switch {
	case e.Kind == journal.KindCreated, f.seeds:
		a.ordinals[f.key] = 1
	case e.Kind == journal.KindLeg2 && !f.start && f.marks.has(entered):
		a.ordinals[f.key]++
		if want := a.ordinals[f.key]; ordinal != want {
			a.at(V5, e, "positions 8–15 (ordinal) of GUID ledger %s are %d, the next of %s %s is %d",
				e.GUID, ordinal, f.key.Activity, f.key.DAD, want)
		}
		return
	}
	if ordinal != 0 && e.Kind != journal.KindStale && (f.known == nil || f.start) {
		a.at(V5, e, "positions 8–15 (ordinal) of GUID ledger %s are %d, this message counts no Leg2 entry", e.GUID, ordinal)
	}
}
