package replay

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// compare holds the tables against what the entries say they must be (J1):
// whole, digit for digit.
func (a *auditor) compare() {
	s := a.stored
	why := a.short
	if s == nil {
		why = "no tables in this input: rebuilt from the entries only"
	}
	if why != "" {
		for _, c := range []Check{V4, V6, V7, V9, V10, V12} {
			a.note(c, why)
		}
		return
	}
	a.compareInstances()
	a.compareReceipts()
	a.compareJob()
	a.compareRows()
	if a.blindEffects == "" {
		a.compareEffects()
	}
}

// whole reports a difference between tables and entries.
func (a *auditor) whole(c Check, format string, args ...any) {
	a.report(c, journal.MainChain, 0, format, args...)
}

func (a *auditor) compareInstances() {
	for _, key := range sortedKeys(a.stored.Instances) {
		l := a.stored.Instances[key]
		i := a.job.Instances[key]
		switch {
		case i == nil:
			a.whole(V4, "stored ledger of %s %s is %s, no entry moved it", key.Activity, key.DAD, l)
		case i.Ledger != l:
			a.whole(V4, "stored ledger of %s %s is %s, the entries give %s; %s", key.Activity, key.DAD, l, i.Ledger,
				activityDigits.differ(journal.Ledger(l), journal.Ledger(i.Ledger)))
		}
	}
	for _, key := range sortedKeys(a.job.Instances) {
		if _, ok := a.stored.Instances[key]; !ok {
			a.whole(V4, "no ledger of %s %s is stored, the entries give %s", key.Activity, key.DAD, a.job.Instances[key].Ledger)
		}
	}
}

func (a *auditor) compareReceipts() {
	for _, g := range sortedGUIDs(a.stored.Receipts) {
		s := a.stored.Receipts[g]
		r := a.job.Receipts[g]
		switch {
		case r == nil:
			a.whole(V4, "stored GUID ledger %s is %s, no entry moved it", g, s.Ledger)
		case r.Ledger != s.Ledger:
			a.whole(V4, "stored GUID ledger %s is %s, the entries give %s; %s", g, s.Ledger, r.Ledger,
				guidDigits.differ(journal.Ledger(s.Ledger), journal.Ledger(r.Ledger)))
		case r.Verdict != s.Verdict:
			a.whole(V4, "stored verdict of message %s is %s, the entries give %s", g, s.Verdict, r.Verdict)
		}
	}
	for _, g := range sortedGUIDs(a.job.Receipts) {
		if _, ok := a.stored.Receipts[g]; !ok {
			a.whole(V4, "no receipt of message %s is stored, the entries give %s", g, a.job.Receipts[g].Ledger)
		}
	}
}

func (a *auditor) compareJob() {
	if s := a.stored.Semaphore; s != a.job.Semaphore {
		a.whole(V6, "the stored semaphore is %d, the entries give %d", s, a.job.Semaphore)
	}
	if s := a.stored.State; s != a.job.State {
		a.whole(V7, "the stored state is %s, the entries give %s", s, a.job.State)
	}
}

func (a *auditor) compareRows() {
	for _, g := range sortedGUIDs(a.stored.Rows) {
		s := a.stored.Rows[g]
		if r := a.job.Rows[g]; r != nil {
			a.compareRow(g, &s, r)
		} else {
			a.whole(V10, "a %s row %s of %s %s is stored, but must not stand%s", s.Kind, g, s.Activity, s.DAD, a.fate(g))
		}
	}
	for _, g := range sortedGUIDs(a.job.Rows) {
		if _, ok := a.stored.Rows[g]; !ok {
			r := a.job.Rows[g]
			a.whole(V10, "no %s row %s of %s %s is stored, dispatched by entry %d and not ended", r.Kind, g, r.Activity, r.DAD, r.Origin)
		}
	}
}

// compareRow compares what entries tell of a row. Two moves of a row have no
// entry of the main chain: a request past its `within` is turned into an answer
// (E9), and one that was parked for an effect is released by that effect's end
// (E4).
func (a *auditor) compareRow(g journal.GUID, s *collation.Row, r *Row) {
	overdue := s.Kind == journal.MessageAnswer && r.Kind == journal.MessageRequest
	released := s.Held == "" && (overdue || r.Held == collation.HeldParked && a.job.Chains[g].Seq > 0)
	differ := func(c Check, what string, stored, rebuilt any) {
		a.whole(c, "the stored %s of row %s (%s %s) is %v, the entries give %v", what, g, r.Activity, r.DAD, stored, rebuilt)
	}
	switch {
	case s.Kind != r.Kind && !overdue:
		differ(V10, "kind", s.Kind, r.Kind)
	case s.Activity != r.Activity:
		differ(V10, "activity", s.Activity, r.Activity)
	case s.DAD != r.DAD:
		differ(V10, "address", s.DAD, r.DAD)
	case s.Topic != r.Topic:
		differ(V10, "topic", s.Topic, r.Topic)
	case s.Held != r.Held && !released:
		differ(V10, "reason for being held", s.Held, r.Held)
	case s.Origin != r.Origin:
		differ(V10, "origin", s.Origin, r.Origin)
	case s.Turn != r.Turn:
		differ(V12, "turn", s.Turn, r.Turn)
	case s.Try != r.Try:
		differ(V12, "try", s.Try, r.Try)
	}
}

func (a *auditor) compareEffects() {
	stored := make(map[journal.Digest]bool, len(a.stored.Effects))
	for i := range a.stored.Effects {
		s := &a.stored.Effects[i]
		r := a.job.Effects[s.Key]
		switch {
		case stored[s.Key]:
			a.whole(V9, "two rows are stored of effect %q, key %s", s.Name, s.Key)
		case r == nil:
			a.whole(V9, "a row is stored of effect %q, key %s, no entry speaks of it", s.Name, s.Key)
		case s.Name != r.Name || s.Class != r.Class || s.N != r.N || s.State != r.State:
			a.whole(V9, "effect %q, key %s: stored as %q of class %s, n %d, %s; the entries give %q of class %s, n %d, %s",
				r.Name, s.Key, s.Name, s.Class, s.N, s.State, r.Name, r.Class, r.N, r.State)
		case s.Result != r.Result:
			a.whole(V9, "effect %q, key %s: the stored result has digest %s, the recorded one %s", r.Name, s.Key, s.Result, r.Result)
		}
		stored[s.Key] = true
	}
	for _, key := range sortedDigests(a.job.Effects) {
		if !stored[key] {
			a.whole(V9, "no row is stored of effect %q, key %s", a.job.Effects[key].Name, key)
		}
	}
}
