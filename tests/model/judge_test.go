package model

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// sample names a ledger that is looked at again and again.
type sample struct {
	job journal.JobID
	key collation.InstanceKey
}

// look holds what is seen at any time to the invariants: no ledger shrinks
// (I10), digits are lawful (I2), the semaphore is never negative (I4), nothing
// is dead or quarantined.
func (w *world) look(views []*store.JobView) {
	for _, v := range views {
		w.explained(v)
		w.parallel(v)
		if v.Semaphore < 0 || v.State == journal.JobQuarantined || len(v.Dead) > 0 {
			w.wrong("job %s of flow %s is %s with semaphore %d, dead letters %+v", v.Key, v.Flow.Name, v.State, v.Semaphore, v.Dead)
		}
		for _, i := range v.Instances {
			s := sample{v.ID, i.Key}
			if before := w.samples[s]; i.Ledger < before {
				w.wrong("I10: %s %s of %s went from %s to %s", i.Key.Activity, i.Key.DAD, v.Key, before, i.Ledger)
			}
			w.samples[s] = i.Ledger
			if err := lawful(i.Ledger); err != "" {
				w.wrong("I2: %s %s of %s: %s: %s", i.Key.Activity, i.Key.DAD, v.Key, i.Ledger, err)
			}
		}
	}
}

// parallel says whether more elements of a list are under way than may be.
func (w *world) parallel(v *store.JobView) {
	underWay := map[collation.InstanceKey]int{}
	d := w.plan.def(v.Flow.Name)
	for _, r := range v.Rows {
		a := d.byName[r.Activity]
		if a == nil || a.props["each"] == nil || r.Held != "" {
			continue
		}
		key := collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}
		if underWay[key]++; r.Kind != journal.MessageLeg1 && underWay[key] > a.count("parallel", 100) {
			w.wrong("%d elements of %s %s of %s are under way", underWay[key], r.Activity, r.DAD, v.Key)
		}
	}
}

// lawful says which digit of an activity ledger is against spec 1.2. It reads the
// digits as text, so as not to share code with the ledger.
func lawful(l collation.ActivityLedger) string {
	d := fmt.Sprintf("%015d", int64(l))
	switch {
	case len(d) != 15:
		return "not 15 digits"
	case d[0] > '2':
		return "digit 1"
	case d[3] > '1' || d[4] > '1':
		return "a marker is neither 0 nor 1"
	case d[3] == '1' && d[1:3] == "00":
		return "complete and never entered"
	case d[0] == '2' && d[3] == '0':
		return "finalized and Leg1 not complete"
	case d[7:] != "00000000" && d[3] == '0':
		return "Leg2 entries and Leg1 not complete"
	}
	return ""
}

// judge compares the jobs with what the model says of them.
func (w *world) judge() {
	for _, v := range w.plan.vague {
		w.wrong("the model does not know %s", v)
	}
	for _, j := range w.jobs() {
		w.sound(j.ID)
	}
	children := map[journal.JobID][]*store.JobView{}
	for _, j := range w.jobs() {
		v := w.view(j.ID)
		if v.Parent != nil {
			children[v.Parent.Job] = append(children[v.Parent.Job], v)
		} else if !slices.Contains(w.roots, v.ID) {
			w.wrong("job %s of flow %s was started by nobody", v.Key, v.Flow.Name)
		}
	}
	for i, o := range w.plan.outcomes {
		w.compare(o, w.view(w.roots[i]), children, false)
	}
}

func (w *world) view(id journal.JobID) *store.JobView {
	return must(func() (*store.JobView, error) { return w.store.Job(context.Background(), id) })
}

// compare holds one job and its children to the model's outcome. cut says that
// an end from outside, or of its parent, may have come in between.
func (w *world) compare(o *outcome, v *store.JobView, children map[journal.JobID][]*store.JobView, cut bool) {
	wrong := func(format string, args ...any) {
		w.wrong("job %s of flow %s: %s", v.Key, v.Flow.Name, fmt.Sprintf(format, args...))
	}
	got := end{string(v.State), v.Code}
	if len(o.ends) > 0 && !o.ends[got] && !cut {
		wrong("it is %v (%v), the model says %v", got, v.Error, o.ends)
	}
	if len(v.Waits) > 0 || v.Semaphore != 0 {
		wrong("semaphore %d and waits %+v after the end", v.Semaphore, v.Waits)
	}
	if out := unspell(v.Output); got.state == "completed" && !matches(o.output, out) {
		wrong("its output is\n  %s, the model says\n  %s", spell(out), spell(o.output))
	}
	if o.loose || cut && slices.Contains(sleepers, v.Flow.Name) {
		return
	}
	part := o.early || cut
	runs, entries := map[string]int{}, map[string]int{}
	for _, i := range v.Instances {
		if i.Ledger.Leg1Complete() && i.Key.Activity != "start" {
			runs[i.Key.Activity]++
			entries[i.Key.Activity] += i.Ledger.Leg2Entries()
		}
	}
	sameCounts(wrong, "runs", o.runs, runs, part)
	sameCounts(wrong, "Leg2 entries", o.entries, entries, part)
	asked := map[string][]string{}
	for _, r := range w.ran.requests(v.ID) {
		asked[r.activity] = append(asked[r.activity], mask(r.input))
	}
	for _, name := range either(o.asked, asked) {
		if !sameList(o.asked[name], asked[name], part) {
			wrong("the inputs of %s are\n  %s, the model says\n  %s", name, strings.Join(asked[name], " "), strings.Join(o.asked[name], " "))
		}
	}
	w.compareKids(o, v, children, cut, wrong)
}

// compareKids finds the model's child for each child.
func (w *world) compareKids(
	o *outcome, v *store.JobView, children map[journal.JobID][]*store.JobView, cut bool, wrong func(string, ...any),
) {
	unsure := cut || o.early && !o.stopped // the script from outside may have been first
	part := o.early || cut
	left := slices.Clone(o.kids)
	for _, c := range children[v.ID] {
		input := mask(w.input(c.ID))
		at := slices.IndexFunc(left, func(k *kid) bool {
			return k.act == c.Parent.Activity && k.turn == c.Parent.Turn && k.flow == c.Flow.Name &&
				k.id == mask(c.Key) && spell(k.input) == input
		})
		if at < 0 {
			wrong("%s started a child %s of flow %s in turn %d with input %s, which the model does not", c.Parent.Activity, c.Key, c.Flow.Name, c.Parent.Turn, input)
			continue
		}
		k := left[at].outcome
		asleep := slices.Contains(sleepers, c.Flow.Name) && (unsure || len(k.ends) == 0)
		w.compare(k, c, children, asleep || part && o.descends)
		left = slices.Delete(left, at, at+1)
	}
	for _, k := range left {
		if !(part && !k.stopped || unsure || k.maybe) {
			wrong("%s should have started a child of flow %s in turn %d with input %s", k.act, k.flow, k.turn, spell(k.input))
		}
	}
}

// derived is the part of a child's key that stands for its id.
var derived = regexp.MustCompile(`-[0-9a-f]{12}\b`)

// mask makes keys comparable with the model's.
func mask(s string) string { return derived.ReplaceAllString(s, "-*") }

// either are the names that one of the two has, in their order.
func either[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return sorted(all)
}

// sameCounts compares counts; of a job that was cut off they may be smaller.
func sameCounts(wrong func(string, ...any), what string, want, got map[string]int, part bool) {
	for _, name := range either(want, got) {
		if got[name] != want[name] && !(part && got[name] < want[name]) {
			wrong("%s of %s: %d, the model says %d", what, name, got[name], want[name])
		}
	}
}

// sameList compares lists whatever their order; of a job that was cut off the
// second may be a part of the first.
func sameList(want, got []string, part bool) bool {
	left := slices.Clone(want)
	for _, g := range got {
		i := slices.Index(left, g)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return part || len(left) == 0
}

// input is the input of a job, from its first entry.
func (w *world) input(id journal.JobID) string {
	input := ""
	w.audit(id, func(_ *store.Stored, entries iter.Seq2[journal.Record, error]) error {
		for rec, err := range entries {
			if err != nil {
				return err
			}
			e, err := journal.Decode(rec)
			if err != nil {
				return err
			}
			input = string(e.Input)
			break
		}
		return nil
	})
	return input
}

func (w *world) audit(id journal.JobID, visit func(*store.Stored, iter.Seq2[journal.Record, error]) error) {
	must(func() (bool, error) { return true, w.store.Audit(context.Background(), id, visit) })
}

// sound verifies the job's journal, with its tables and without, and counts its
// closes (I3, I4, I5, I7).
func (w *world) sound(id journal.JobID) {
	w.audit(id, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
		closes, tasks := 0, 0
		for g, r := range s.Receipts {
			if r.Ledger.Closed() {
				closes++
			}
			if r.Ledger.Step3() {
				tasks++
			}
			if r.Verdict == journal.VerdictStale && r.Ledger != 0 {
				w.wrong("I2: the stale receipt %s of %s has digits: %s", g, s.Job.Key, r.Ledger)
			}
		}
		if closes != 1 || tasks != 1 {
			w.wrong("I5: job %s has %d closes and %d runs of completion tasks", s.Job.Key, closes, tasks)
		}
		header, tables := s.Replay()
		beside, err := replay.ReadAttachments(s.Attachments)
		if err != nil {
			return err
		}
		for _, stored := range []*replay.Stored{tables, nil} {
			report, err := replay.Verify(header, stored, beside, entries)
			if err != nil {
				return err
			}
			for _, c := range report.Checks {
				if c.Status == replay.Violated || stored != nil && c.Status != replay.Proved {
					w.wrong("job %s of flow %s: %s (%s) is %s: %v %s", s.Job.Key, s.Job.Flow.Name, c.Check, c.Check.Title(), c.Status, c.Violation, c.Note)
				}
			}
		}
		return nil
	})
}
