package sim

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
)

// guard checks the visible state against the invariants.
type guard struct {
	mu      sync.Mutex
	wrongs  []string
	touched map[journal.JobID]bool // by commits since the last check
	samples map[sample]collation.ActivityLedger
	marks   map[mark]collation.GUIDLedger
	commits int
	open    []string // what ended jobs still had open at the last judgement
}

// sample names a ledger that is checked again and again.
type sample struct {
	job journal.JobID
	key collation.InstanceKey
}

// mark names an existing receipt.
type mark struct {
	job  journal.JobID
	guid journal.GUID
}

func (g *guard) init() {
	g.touched = map[journal.JobID]bool{}
	g.samples, g.marks = map[sample]collation.ActivityLedger{}, map[mark]collation.GUIDLedger{}
}

func (g *guard) wrong(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrongs = append(g.wrongs, fmt.Sprintf(format, args...))
}

// committed records the jobs that a commit changed.
func (g *guard) committed(plans []store.Chained) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commits++
	for i := range plans {
		if plans[i].Plan.Entry != nil {
			g.touched[plans[i].Plan.Job] = true
		}
	}
}

// look checks the jobs of the last commit against what must hold at any time.
func (w *world) look() {
	w.guard.mu.Lock()
	touched := w.touched
	if len(touched) > 0 {
		w.touched = map[journal.JobID]bool{}
	}
	w.guard.mu.Unlock()
	w.conserved()
	for id := range touched {
		w.audit(id, func(s *store.Stored, _ iter.Seq2[journal.Record, error]) error {
			w.digits(s)
			w.rowsStand(s)
			return nil
		})
	}
}

func (w *world) audit(id journal.JobID, visit func(*store.Stored, iter.Seq2[journal.Record, error]) error) {
	if err := w.store.Audit(context.Background(), id, visit); err != nil {
		w.wrong("the audit of job %s failed: %v", id, err)
	}
}

// digits checks ledgers and receipts (I2, I5, I10).
func (w *world) digits(s *store.Stored) {
	for key, i := range s.Instances {
		l := i.Ledger
		at := sample{s.Job.ID, key}
		before := w.samples[at]
		if before == l {
			continue // it was checked when it came
		}
		if !before.Grows(l) {
			w.wrong("I10: %s %s of %s went from %s to %s", key.Activity, key.DAD, s.Job.Key, before, l)
		}
		w.samples[at] = l
		if err := l.Valid(true); err != nil {
			w.wrong("I2: %s %s of %s: %v", key.Activity, key.DAD, s.Job.Key, err)
		}
	}
	w.own(s)
	w.sourced(s)
	closes, tasks := 0, 0
	for g, r := range s.Receipts {
		at := mark{s.Job.ID, g}
		if before, known := w.marks[at]; !known || before != r.Ledger {
			if known && !before.Grows(r.Ledger) {
				w.wrong("I10: receipt %s of %s went from %s to %s", g, s.Job.Key, before, r.Ledger)
			}
			if err := r.Ledger.Valid(); err != nil {
				w.wrong("I2: receipt %s of %s: %v", g, s.Job.Key, err)
			}
			w.marks[at] = r.Ledger
		}
		if r.Ledger.Closed() {
			closes++
		}
		if r.Ledger.Step3() {
			tasks++
		}
	}
	closed := s.Job.State.Closed()
	if closes > 1 || tasks > closes || closed != (closes == 1) {
		w.wrong("I5: job %s is %s with %d snapshots and %d runs of completion tasks", s.Job.Key, s.Job.State, closes, tasks)
	}
	if s.Job.Semaphore < 0 || closed != (s.Job.Semaphore == 0) {
		w.wrong("I4: job %s is %s with semaphore %d", s.Job.Key, s.Job.State, s.Job.Semaphore)
	}
	if s.Job.State == journal.JobQuarantined {
		w.wrong("J1: job %s is quarantined", s.Job.Key)
	}
}

// rowsStand checks that something exists for each thing that an open job waits for, and where its
// rows come from (I6).
func (w *world) rowsStand(s *store.Stored) {
	for g, r := range s.Rows {
		own := r.Kind == journal.MessageLeg1 || r.Kind == journal.MessageRequest || r.Kind == journal.MessageCycle
		if own && r.Origin > s.Job.Head.Seq {
			w.wrong("I6: row %s of %s is of entry %d, the chain ends at %d", g, s.Job.Key, r.Origin, s.Job.Head.Seq)
		}
	}
	if s.Job.State != journal.JobOpen || len(s.Rows) > 0 || len(s.Waits) > 0 {
		return
	}
	v, err := w.store.Job(context.Background(), s.Job.ID)
	if err != nil {
		w.wrong("the view of job %s failed: %v", s.Job.Key, err)
		return
	}
	for i := range v.Instances {
		if !v.Instances[i].Child.IsZero() {
			return
		}
	}
	w.wrong("I6: job %s is open with semaphore %d, and has neither row nor wait nor child", s.Job.Key, s.Job.Semaphore)
}

// judge is the end: it verifies every job (I3, I7), and compares what the outside received with
// the record (I1). It returns false if an ended job still has something open, which must come to
// its end, too (I6).
func (w *world) judge() bool {
	known := map[journal.JobID]bool{}
	w.open = w.open[:0]
	views := w.views()
	for _, v := range views {
		if known[v.ID] = true; v.State == journal.JobExpired {
			continue
		}
		w.audit(v.ID, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
			w.digits(s)
			w.received(s)
			w.transferred(s)
			return w.proved(s, entries)
		})
	}
	for key, id := range w.acked {
		if !known[id] {
			w.wrong("I9: the start of %s was acknowledged, and there is no job %s", key, id)
		}
	}
	letters, err := w.store.DeadLetters(context.Background(), store.DeadFilter{All: true, Limit: store.MaxPage})
	if err != nil {
		panic(err)
	}
	for _, d := range letters {
		if w.weather.mild && d.Letter.Reason != "undecodable" && !w.excused(d.Letter.Message) {
			w.wrong("P31: no process died and no call failed, and there is a dead letter: %s: %s", d.Letter.Reason, d.Letter.Message)
		}
		if r := d.Letter.Reason; r == "foreign" || r == "undecodable" && w.flipped == 0 {
			w.wrong("C5: a message of this space became a dead letter: %s: %s", r, d.Letter.Message)
		}
	}
	if len(w.open) == 0 {
		w.followed(views)
		w.forksFit(views)
	}
	return len(w.open) == 0
}

// compiledFlows are the flows of the jobs that were verified; many seeds share them.
var compiledFlows = replay.NewFlows("")

// reported verifies the journal of a job against its tables.
func (w *world) reported(s *store.Stored, entries iter.Seq2[journal.Record, error]) (*replay.Report, error) {
	report, err := s.Verify(compiledFlows, entries)
	if err != nil {
		return nil, err
	}
	for _, c := range report.Checks {
		if c.Status != replay.Proved {
			w.wrong("I3: job %s: %s (%s) is %s: %v %s", s.Job.Key, c.Check, c.Check.Title(), c.Status, c.Violation, c.Note)
		}
	}
	return report, nil
}

// proved verifies the journal of a job that has ended.
func (w *world) proved(s *store.Stored, entries iter.Seq2[journal.Record, error]) error {
	report, err := w.reported(s, entries)
	if err != nil {
		return err
	}
	// An early close cancels rows of messages that have steps left.
	whole := s.Job.State == journal.JobCompleted && !strings.Contains(strings.Join(w.plan.texts, ""), "throw: false")
	for g, r := range s.Receipts {
		if whole && r.Verdict == journal.VerdictHandled && !r.Ledger.Complete() {
			w.wrong("C5: job %s has ended, and steps are left of message %s: %s", s.Job.Key, g, r.Ledger)
		}
	}
	if report.OpenCount > 0 || len(s.Rows) > 0 || len(s.Waits) > 0 {
		w.open = append(w.open, fmt.Sprintf("I6: job %s has ended and has open: %+v", s.Job.Key, report.Open))
	}
	return nil
}

// received compares the effects of a job with what the outside knows (I1).
func (w *world) received(s *store.Stored) {
	resumed := s.Job.From != nil && !s.Job.From.Forks()
	for i := range s.Effects {
		e := &s.Effects[i]
		k := w.receiver.keys[e.Key.String()]
		class := effects.Class(e.Class)
		outside := class == effects.Idempotent || class == effects.Guarded
		switch {
		case outside && e.State == store.EffectCompleted && e.Error == nil:
			if k == nil || k.applied != 1 {
				w.wrong("I1: effect %s of %s is completed with key %s, the outside knows %+v", e.Name, s.Job.Key, e.Key, k)
			} else if undo := strings.HasPrefix(e.Name, "undo:"); !undo && string(e.Result) != string(resultOf(e.Key.String())) {
				w.wrong("I1: the result of effect %s of %s is %s, that of key %s", e.Name, s.Job.Key, e.Result, e.Key)
			}
		case resumed && e.State == store.EffectNotDone && e.Error != nil && e.Error.Class != "operator": // an error, or undone, in the job before
		case outside && e.State == store.EffectNotDone && k != nil && k.applied > 0 && !isPlain(w.seed):
			w.wrong("I1: effect %s of %s is recorded as not done, and was applied with key %s", e.Name, s.Job.Key, e.Key)
		case outside && k != nil && k.applied > 1:
			w.wrong("I1: effect %s of %s was applied %d times with key %s", e.Name, s.Job.Key, k.applied, e.Key)
		}
	}
}
