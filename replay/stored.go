package replay

import (
	"bytes"
	"fmt"

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
	a.leftCancelled()
	a.compareResolved()
	if a.effectsUnseen == "" {
		a.compareEffects()
		a.compareUndo()
	}
}

func (a *auditor) compareInstances() {
	for _, key := range sortedKeys(a.stored.Instances) {
		l := a.stored.Instances[key]
		i := a.job.Instances[key]
		switch {
		case i == nil:
			a.differs(V4, 0, ofInstance(key, "", l, ""), "stored ledger of %s %s is %s, no entry moved it", key.Activity, key.DAD, l)
		case i.Ledger != l:
			a.differs(V4, 0, ofInstance(key, "ledger", l, i.Ledger), "stored ledger of %s %s is %s, the entries give %s; %s", key.Activity, key.DAD, l, i.Ledger,
				activityDigits.differ(journal.Ledger(l), journal.Ledger(i.Ledger)))
		}
	}
	for _, key := range sortedKeys(a.job.Instances) {
		if _, ok := a.stored.Instances[key]; !ok {
			a.differs(V4, 0, ofInstance(key, "", "", a.job.Instances[key].Ledger), "no ledger of %s %s is stored, the entries give %s", key.Activity, key.DAD,
				a.job.Instances[key].Ledger)
		}
	}
}

// compareResumed compares which job is resumed, and which job resumes this one.
func (a *auditor) compareResumed() {
	if s, j := a.stored.From,
		a.job.From; (s == nil) != (j == nil) || s != nil && !bytes.Equal(journal.EncodeFrom(s), journal.EncodeFrom(j)) {
		a.differs(V11, 0, of(TableJobs, a.h.Job.String(), "origin", told(s), told(j)), "the table says otherwise than the first entry what the job resumes")
	}
	if a.stored.Next != a.job.Next {
		a.differs(V15, 0, of(TableJobs, a.h.Job.String(), "next", a.stored.Next, a.job.Next), "the table says that job %s resumes it, the entries job %s", a.stored.Next, a.job.Next)
	}
}

// told is what a job resumes, in a difference.
func told(f *journal.From) string {
	if f == nil {
		return ""
	}
	return f.Job.String()
}

func (a *auditor) compareReceipts() {
	for _, g := range sortedGUIDs(a.stored.Receipts) {
		s := a.stored.Receipts[g]
		r := a.job.Receipts[g]
		switch {
		case r == nil:
			a.differs(V4, 0, ofMessage(TableReceipts, g, "", s.Ledger, ""), "stored GUID ledger %s is %s, no entry moved it", g, s.Ledger)
		case r.gone:
			a.differs(V4, 0, ofMessage(TableReceipts, g, "", s.Ledger, ""), "stored GUID ledger %s is %s, entry %d and those after it ended its message and its row", g, s.Ledger, r.Seq)
		case r.Ledger != s.Ledger:
			a.differs(V4, 0, ofMessage(TableReceipts, g, "ledger", s.Ledger, r.Ledger), "stored GUID ledger %s is %s, the entries give %s; %s", g, s.Ledger, r.Ledger,
				guidDigits.differ(journal.Ledger(s.Ledger), journal.Ledger(r.Ledger)))
		case r.Verdict != s.Verdict:
			a.differs(V4, 0, ofMessage(TableReceipts, g, "verdict", s.Verdict, r.Verdict), "stored verdict of message %s is %s, the entries give %s", g, s.Verdict, r.Verdict)
		}
	}
	for _, g := range sortedGUIDs(a.job.Receipts) {
		if _, ok := a.stored.Receipts[g]; !ok && !a.job.Receipts[g].gone {
			a.differs(V4, 0, ofMessage(TableReceipts, g, "", "", a.job.Receipts[g].Ledger), "no receipt of message %s is stored, the entries give %s", g, a.job.Receipts[g].Ledger)
		}
	}
}

func (a *auditor) compareJob() {
	if s := a.stored.Semaphore; s != a.job.Semaphore {
		a.differs(V6, 0, of(TableJobs, a.h.Job.String(), "semaphore", s, a.job.Semaphore), "the stored semaphore is %d, the entries give %d", s, a.job.Semaphore)
	}
	if s := a.stored.State; s != a.job.State {
		a.differs(V7, 0, of(TableJobs, a.h.Job.String(), "state", s, a.job.State), "the stored state is %s, the entries give %s", s, a.job.State)
	}
	for _, c := range []struct {
		column      string
		stored, was int64
	}{{"closed_seq", a.stored.ClosedAt, a.job.ClosedAt}, {"tasks_seq", a.stored.TasksAt, a.job.TasksAt}} {
		if c.stored != c.was {
			a.differs(V7, 0, of(TableJobs, a.h.Job.String(), c.column, c.stored, c.was), "the stored %s is %d, the entries give %d", c.column, c.stored, c.was)
		}
	}
}

// compareOpen compares the open elements of `each`.
func (a *auditor) compareOpen() {
	for _, key := range sortedKeys(a.job.Instances) {
		i := a.job.Instances[key]
		if s := a.stored.Open[key]; s != i.Open {
			a.differs(V6, 0, ofInstance(key, "open", s, i.Open), "%d elements of %s %s are stored as open, the entries give %d", s, key.Activity, key.DAD, i.Open)
		}
	}
	for _, key := range sortedKeys(a.stored.Open) {
		if a.job.Instances[key] == nil {
			a.differs(V6, 0, ofInstance(key, "open", a.stored.Open[key], 0), "%d elements of %s %s are stored as open, no entry wrote them", a.stored.Open[key], key.Activity, key.DAD)
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
			a.differs(V9, 0, ofEffect(s.Key, s.Name, "", "two rows", "one row"), "two rows are stored of effect %q, key %s", s.Name, s.Key)
		case r == nil:
			a.differs(V9, 0, ofEffect(s.Key, s.Name, "", s.State, ""), "a row is stored of effect %q, key %s, no entry speaks of it", s.Name, s.Key)
		case s.Name != r.Name || s.Class != r.Class || s.N != r.N || s.State != r.State || s.Position != r.Position:
			a.differs(V9, 0, ofEffect(s.Key, r.Name, "name, class, not_done, position, state", effectText(s.Name, s.Class, s.N, s.Position, s.State),
				effectText(r.Name, r.Class, r.N, r.Position, r.State)), "effect %q, key %s: stored as %q of class %s, n %d, at %q, %s; the entries give %q of class %s, n %d, at %q, %s",
				r.Name, s.Key, s.Name, s.Class, s.N, s.Position, s.State, r.Name, r.Class, r.N, r.Position, r.State)
		case s.Result != r.Result:
			a.differs(V9, 0, ofEffect(s.Key, r.Name, "result", s.Result, r.Result), "effect %q, key %s: the stored result has digest %s, the recorded one %s", r.Name, s.Key, s.Result, r.Result)
		}
		stored[s.Key] = true
	}
	for _, key := range sortedDigests(a.job.Effects) {
		if !stored[key] {
			a.differs(V9, 0, ofEffect(key, a.job.Effects[key].Name, "", "", a.job.Effects[key].State), "no row is stored of effect %q, key %s",
				a.job.Effects[key].Name, key)
		}
	}
}

// effectText shows the columns of an effect that never change alone.
func effectText(name, class string, n int, position string, state EffectState) string {
	return fmt.Sprintf("%s, %s, %d, %s, %s", name, class, n, position, state)
}
