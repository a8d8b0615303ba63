package replay

import (
	"bytes"

	"github.com/quipu-journal/quipu/journal"
)

// compare compares the tables with the rebuilt state, whole, digit for digit (J1).
func (a *auditor) compare() {
	s := a.stored
	why := a.short
	if s == nil {
		why = "no tables in this input: rebuilt from the entries only"
	}
	if why != "" {
		for _, c := range []Check{V4, V6, V7, V9, V10, V12, V13} {
			a.note(c, why)
		}
		return
	}
	a.compareInstances()
	a.compareReceipts()
	a.compareJob()
	a.compareResumed()
	a.compareOpen()
	came := a.came()
	a.compareRows(came)
	a.compareWaits(came)
	a.leftAdrift()
	a.compareResolved()
	if a.blindEffects == "" {
		a.compareEffects()
		a.compareUndo()
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

// compareResumed compares which job is resumed, and which job resumes this one.
func (a *auditor) compareResumed() {
	if s, j := a.stored.From, a.job.From; (s == nil) != (j == nil) || s != nil && !bytes.Equal(journal.EncodeFrom(s), journal.EncodeFrom(j)) {
		a.whole(V11, "the table says otherwise than the first entry what the job resumes")
	}
	if a.stored.Next != a.job.Next {
		a.whole(V15, "the table says that job %s resumes it, the entries job %s", a.stored.Next, a.job.Next)
	}
}

func (a *auditor) compareReceipts() {
	for _, g := range sortedGUIDs(a.stored.Receipts) {
		s := a.stored.Receipts[g]
		r := a.job.Receipts[g]
		switch {
		case r == nil:
			a.whole(V4, "stored GUID ledger %s is %s, no entry moved it", g, s.Ledger)
		case r.gone:
			a.whole(V4, "stored GUID ledger %s is %s, entry %d and those after it ended its message and its row", g, s.Ledger, r.Seq)
		case r.Ledger != s.Ledger:
			a.whole(V4, "stored GUID ledger %s is %s, the entries give %s; %s", g, s.Ledger, r.Ledger,
				guidDigits.differ(journal.Ledger(s.Ledger), journal.Ledger(r.Ledger)))
		case r.Verdict != s.Verdict:
			a.whole(V4, "stored verdict of message %s is %s, the entries give %s", g, s.Verdict, r.Verdict)
		}
	}
	for _, g := range sortedGUIDs(a.job.Receipts) {
		if _, ok := a.stored.Receipts[g]; !ok && !a.job.Receipts[g].gone {
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

// compareOpen compares the open elements of `each`.
func (a *auditor) compareOpen() {
	for _, key := range sortedKeys(a.job.Instances) {
		i := a.job.Instances[key]
		if s := a.stored.Open[key]; s != i.Open {
			a.whole(V6, "%d elements of %s %s are stored as open, the entries give %d", s, key.Activity, key.DAD, i.Open)
		}
	}
	for _, key := range sortedKeys(a.stored.Open) {
		if a.job.Instances[key] == nil {
			a.whole(V6, "%d elements of %s %s are stored as open, no entry wrote them", a.stored.Open[key], key.Activity, key.DAD)
		}
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
		case s.Name != r.Name || s.Class != r.Class || s.N != r.N || s.State != r.State || s.Position != r.Position:
			a.whole(V9, "effect %q, key %s: stored as %q of class %s, n %d, at %q, %s; the entries give %q of class %s, n %d, at %q, %s",
				r.Name, s.Key, s.Name, s.Class, s.N, s.Position, s.State, r.Name, r.Class, r.N, r.Position, r.State)
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
