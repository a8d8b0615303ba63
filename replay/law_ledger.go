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
	if want := a.ownGrowth(e, f); !own && want != (growth{}) {
		a.at(V4, e, "ledger of %s %s does not move, the marks %v ask for it", f.key.Activity, f.key.DAD, e.Marks)
	}
	a.foldedMoves(e)
}

// lawfulGrowth is the growth that the entry allows to one instance.
func (a *auditor) lawfulGrowth(e *journal.Entry, f *facts, key collation.InstanceKey, m *journal.LedgerMove) growth {
	got := activityDigits.growth(m.Before, m.After)
	if key == f.key {
		want := a.ownGrowth(e, f)
		// A pivot's Leg1 completes with its pre-seed (1.11); what dispatches a
		// request is no pivot.
		if f.marks.has(work) && e.Leg == 1 && got[gLeg2] == 1 && len(e.Dispatched) == 0 {
			want[gLeg2] = 1
		}
		return want
	}
	if a.foldsInto(e, key) {
		return growth{gLeg1: 1, gComplete: 1}
	}
	if f.marks.has(children) && got[gArrivals] > 0 {
		// Arrivals at a join: as many as transitions lead to it from here (1.10).
		return growth{gTaken: min(max(got[gTaken], 0), 1), gArrivals: got[gArrivals]}
	}
	return growth{}
}

// ownGrowth is the growth of the ledger of the message's own activity.
func (a *auditor) ownGrowth(e *journal.Entry, f *facts) growth {
	switch {
	case e.Kind == journal.KindCreated:
		return activityDigits.growth(0, journal.Ledger(collation.TriggerBorn))
	case e.Kind == journal.KindLeg1:
		g := growth{gLeg1: f.marks.one(entered), gComplete: f.marks.one(work)}
		if f.ends {
			g[gState] = 2
		}
		return g
	case e.Kind == journal.KindLeg2 && !f.start:
		g := growth{gLeg2: f.marks.one(entered)}
		if f.ends {
			g[gState] = 2
		}
		return g
	}
	return growth{}
}

// foldsInto reports whether the entry takes the Leg1 of this instance into
// itself (C11).
func (a *auditor) foldsInto(e *journal.Entry, key collation.InstanceKey) bool {
	for i := range e.Dispatched {
		d := &e.Dispatched[i]
		if d.Kind == journal.MessageLeg1 && d.Activity == key.Activity && collation.DAD(d.DAD) == key.DAD {
			return slices.Contains(e.Folded, d.GUID)
		}
	}
	return false
}

// foldedMoves checks that each folded Leg1 has moved its ledger.
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

// receiptLaw checks the GUID ledger that the entry moves (V4).
func (a *auditor) receiptLaw(e *journal.Entry, f *facts) {
	for i := range e.Receipts {
		m := &e.Receipts[i]
		if m.GUID != e.GUID || i > 0 {
			a.at(V4, e, "GUID ledger %s is moved by an entry of %s", m.GUID, e.GUID)
			continue
		}
		if f.known == nil != m.New {
			a.at(V4, e, "GUID ledger %s: new is %t, a receipt stands already: %t", m.GUID, m.New, f.known != nil)
		} else if f.known != nil && m.Before != journal.Ledger(f.known.Ledger) {
			a.at(V4, e, "GUID ledger %s: before is %s, the entries so far left %s; %s",
				m.GUID, m.Before, f.known.Ledger, guidDigits.differ(m.Before, journal.Ledger(f.known.Ledger)))
		}
		want := growth{
			gSnapshot: f.marks.one(closed), gStep1: f.marks.one(work),
			gStep2: f.marks.one(children), gStep3: f.marks.one(tasks),
		}
		if m.New && e.Kind != journal.KindStale {
			want[gOrdinal] = guidDigits.growth(m.Before, m.After)[gOrdinal] // for V5 to judge
		}
		if wrong := guidDigits.wrong(m.Before, m.After, want); wrong != "" {
			a.at(V4, e, "GUID ledger %s, %s → %s: %s", m.GUID, m.Before, m.After, wrong)
		}
		if err := collation.GUIDLedger(m.After).Valid(); err != nil {
			a.at(V4, e, "GUID ledger %s: %v", m.GUID, err)
		}
		if stale := e.Kind == journal.KindStale; stale != (m.Verdict == journal.VerdictStale) {
			a.at(V4, e, "GUID ledger %s has verdict %s in an entry of kind %s", m.GUID, m.Verdict, e.Kind)
		}
	}
	a.receiptMoved(e, f)
}

// receiptMoved checks that a message with steps has moved its GUID ledger.
func (a *auditor) receiptMoved(e *journal.Entry, f *facts) {
	steps := e.Kind == journal.KindLeg2 && f.marks&^afterClose != 0
	if len(e.Receipts) == 0 && (steps || e.Kind == journal.KindCreated || e.Kind == journal.KindStale) {
		a.at(V4, e, "GUID ledger %s does not move, the entry of kind %s with marks %v asks for it", e.GUID, e.Kind, e.Marks)
	}
}

// ordinalLaw checks that the accepted Leg2 messages of an instance carry the
// ordinals 1…n, each once, in order (V5, C6). A pre-seed, and a trigger's birth,
// take the first.
func (a *auditor) ordinalLaw(e *journal.Entry, f *facts) {
	ordinal := f.after.Ordinal()
	switch {
	case e.Kind == journal.KindCreated:
		a.ordinals[f.key] = 1
	case e.Kind == journal.KindLeg1 && f.marks.has(work) && a.preSeeded(e, f):
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

func (a *auditor) preSeeded(e *journal.Entry, f *facts) bool {
	return slices.ContainsFunc(e.Ledgers, func(m journal.LedgerMove) bool {
		return m.Activity == f.key.Activity && collation.DAD(m.DAD) == f.key.DAD &&
			activityDigits.growth(m.Before, m.After)[gLeg2] == 1
	})
}
