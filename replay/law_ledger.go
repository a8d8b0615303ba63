package replay

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// ledgerLaw checks the activity ledgers that the entry moves (V4): each before
// is the after that precedes, each digit group grows by what the entry's marks
// stand for and by nothing else (C1, C3, C4), and what they stand for has moved.
func (a *auditor) ledgerLaw(e *journal.Entry, f *facts) {
	own := false
	for i := range e.Ledgers {
		m := &e.Ledgers[i]
		key := collation.InstanceKey{Activity: m.Activity, DAD: collation.DAD(m.DAD)}
		own = own || key == f.key
		var before journal.Ledger
		if known := a.job.Instances[key]; known != nil {
			before = journal.Ledger(known.Ledger)
		}
		if m.Before != before {
			a.at(V4, e, "ledger of %s %s: before is %s, the entries so far left %s; %s",
				key.Activity, key.DAD, m.Before, before, activityDigits.differ(m.Before, before))
		}
		want := a.lawfulGrowth(e, f, key, m)
		if wrong := activityDigits.wrong(m.Before, m.After, want); wrong != "" {
			a.at(V4, e, "ledger of %s %s, %s → %s: %s", key.Activity, key.DAD, m.Before, m.After, wrong)
		}
		if err := collation.ActivityLedger(m.After).Valid(true); err != nil {
			a.at(V4, e, "ledger of %s %s: %v", key.Activity, key.DAD, err)
		}
		if slices.ContainsFunc(e.Ledgers[:i], func(o journal.LedgerMove) bool {
			return o.Activity == m.Activity && o.DAD == m.DAD
		}) {
			a.at(V4, e, "ledger of %s %s is moved twice in one entry", key.Activity, key.DAD)
		}
	}
	if e.Kind == journal.KindCreated && f.marks != entered|work {
		a.at(V4, e, "the inception has the marks %v", e.Marks)
	}
	if want := ownGrowth(e, f); !own && want != (growth{}) {
		a.at(V4, e, "ledger of %s %s does not move, the marks %v ask for it", f.key.Activity, f.key.DAD, e.Marks)
	}
	a.foldedMoves(e)
}

// lawfulGrowth is the growth that the entry allows to one instance.
func (a *auditor) lawfulGrowth(e *journal.Entry, f *facts, key collation.InstanceKey, m *journal.LedgerMove) growth {
	if key == f.key {
		return ownGrowth(e, f)
	}
	want := growth{}
	if foldsInto(e, key) {
		want[gLeg1], want[gComplete] = 1, 1
	}
	got := activityDigits.growth(m.Before, m.After)
	if f.decides && got[gArrivals] > 0 {
		// Arrivals at a join: as many as transitions lead to it from here; position
		// 5 is set by the first one that is taken (1.10).
		want[gArrivals], want[gTaken] = got[gArrivals], min(max(got[gTaken], 0), 1)
	}
	return want
}

// ownGrowth is the growth of the ledger of the message's own activity.
func ownGrowth(e *journal.Entry, f *facts) growth {
	g := growth{}
	switch {
	case e.Kind == journal.KindCreated:
		return activityDigits.growth(0, journal.Ledger(collation.TriggerBorn))
	case e.Kind == journal.KindLeg1:
		g[gLeg1], g[gComplete] = f.marks.one(entered), f.marks.one(work)
		if f.seeds { // a pivot's Leg1 completes with the first of its passes (1.11)
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

// foldsInto reports whether the entry takes the Leg1 of this instance into
// itself (C11).
func foldsInto(e *journal.Entry, key collation.InstanceKey) bool {
	if len(e.Folded) == 0 {
		return false
	}
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		if d.Kind == journal.MessageLeg1 && d.Activity == key.Activity && collation.DAD(d.DAD) == key.DAD {
			return slices.Contains(e.Folded, d.GUID)
		}
	}
	return false
}

// foldedMoves checks that every folded Leg1 has moved its ledger.
func (a *auditor) foldedMoves(e *journal.Entry) {
	if len(e.Folded) == 0 {
		return
	}
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		if !slices.Contains(e.Folded, d.GUID) {
			continue
		}
		if !slices.ContainsFunc(e.Ledgers, func(m journal.LedgerMove) bool {
			return m.Activity == d.Activity && m.DAD == d.DAD
		}) {
			a.at(V4, e, "ledger of %s %s does not move, its Leg1 %s is folded into this entry", d.Activity, d.DAD, d.GUID)
		}
	}
}

// ordinalLaw checks that the accepted Leg2 messages of an instance carry the
// ordinals 1…n, each once, in order (V5, C6). A pre-seed, and a trigger's birth,
// take the first.
func (a *auditor) ordinalLaw(e *journal.Entry, f *facts) {
	ordinal := f.after.Ordinal()
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
