package replay

import (
	"github.com/quipu-journal/quipu/journal"
)

// receiptLaw checks the GUID ledger that the entry changes (V4): it grows, from the value of
// the entries so far, by the steps that the entry takes.
func (a *auditor) receiptLaw(e *journal.Entry, f *facts) {
	if e.Receipts() {
		a.receiptGrows(e, f)
	}
	if m := f.marks; e.Kind == journal.KindLeg1 && m.has(work) && e.Receipts() && e.Result == nil &&
		!failedExpression(e) && !f.halts {
		a.at(V4, e, "position 5 (step 1): the message has steps of its own, but no result")
	}
	if !e.Receipts() && hasSteps(e, f) {
		a.at(V4, e, "GUID ledger %s does not move, the entry of kind %s with marks %v asks for it", e.GUID, e.Kind, e.Marks)
	}
}

func (a *auditor) receiptGrows(e *journal.Entry, f *facts) {
	var before journal.Ledger
	if f.known != nil {
		before = journal.Ledger(f.known.Ledger)
	}
	if f.known != nil && e.Kind == journal.KindStale {
		a.at(V4, e, "GUID ledger %s: the message is refused, a receipt of it stands already", e.GUID)
	}
	want := growth{
		gSnapshot: f.marks.one(closed), gStep1: f.marks.one(work),
		gStep2: f.marks.one(children), gStep3: f.marks.one(tasks),
	}
	if f.known == nil && e.Kind != journal.KindStale {
		want[gOrdinal] = guidDigits.growth(before, e.Receipt)[gOrdinal] // V5 judges it
	}
	if wrong := guidDigits.wrong(before, e.Receipt, want); wrong != "" {
		a.at(V4, e, "GUID ledger %s, %s → %s: %s", e.GUID, before, e.Receipt, wrong)
	}
	if wrong := unlawfulMessage(e.Receipt); wrong != "" {
		a.at(V4, e, "GUID ledger %s: unlawful digit change: %s, GUID ledger %s", e.GUID, wrong, e.Receipt)
	}
}

// hasSteps reports whether the message has a receipt that this entry must change (1.3). A Leg1
// has one only in category B or C, which shows by its own result or its step 2.
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
