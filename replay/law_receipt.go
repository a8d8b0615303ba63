package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

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
	if m := f.marks; e.Kind == journal.KindLeg1 && m.has(work) && len(e.Receipts) > 0 && e.Result == nil && !failedExpression(e) && !f.halts {
		a.at(V4, e, "position 5 (step 1): the message has steps of its own, but no result")
	}
	if len(e.Receipts) == 0 && hasSteps(e, f) {
		a.at(V4, e, "GUID ledger %s does not move, the entry of kind %s with marks %v asks for it", e.GUID, e.Kind, e.Marks)
	}
}

// hasSteps reports whether the entry's message leaves a receipt that this entry
// moves (1.3): a Leg1 only where it is of category B or C, which its own result
// or its step 2 tells.
func hasSteps(e *journal.Entry, f *facts) bool {
	switch e.Kind {
	case journal.KindCreated, journal.KindStale:
		return true
	case journal.KindLeg2, journal.KindInterrupt:
		return f.marks&^afterClose != 0
	case journal.KindLeg1:
		return f.marks&(children|closed|tasks) != 0 || e.Result != nil
	}
	return false
}
