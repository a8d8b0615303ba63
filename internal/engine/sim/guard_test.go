package sim

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// guard checks the visible state against the invariants.
type guard struct {
	mu      sync.Mutex
	wrongs  []string
	touched map[journal.JobID]bool // by commits since the last check
	commits int
	looks   int
	open    []string // what ended jobs still had open at the last judgement
}

func (g *guard) init() { g.touched = map[journal.JobID]bool{} }

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

// often is how many looks one is that verifies whole jobs.
const often = 10

// look checks the jobs of the last commits against what must hold at any time: their ids, and now
// and then all that their journals prove (I2–I7, I10).
func (w *world) look() {
	w.guard.mu.Lock()
	touched := w.touched
	w.touched = map[journal.JobID]bool{}
	w.guard.mu.Unlock()
	w.conserved()
	if len(touched) == 0 {
		return
	}
	w.looks++
	for id := range touched {
		w.audit(id, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) (err error) {
			w.own(s)
			w.sourced(s)
			if w.looks%often == 0 {
				_, err = w.reported(s, entries)
			}
			return err
		})
	}
}

func (w *world) audit(id journal.JobID, visit func(*store.Stored, iter.Seq2[journal.Record, error]) error) {
	if err := w.store.Audit(context.Background(), id, visit); err != nil {
		w.wrong("the audit of job %s failed: %v", id, err)
	}
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
	for _, p := range w.processes[1:] {
		if !p.idles() {
			w.open = append(w.open, fmt.Sprintf("W7: process %s has not all of its slots, and nothing is under way", p.name))
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
	for i := range s.Effects {
		e := &s.Effects[i]
		k := w.receiver.keys[e.Key.String()]
		class := effects.Class(e.Class)
		outside := class == effects.Idempotent || class == effects.Guarded
		switch {
		case outside && e.State == store.EffectCompleted && e.Error == nil:
			if k == nil || k.applied != 1 {
				w.wrong("I1: effect %s of %s is completed with key %s, the outside knows %+v", e.Name, s.Job.Key, e.Key, k)
			} else if undo := strings.HasPrefix(e.Name, "undo:"); !undo &&
				string(e.Result) != string(resultOf(e.Key.String())) {
				w.wrong("I1: the result of effect %s of %s is %s, that of key %s", e.Name, s.Job.Key, e.Result, e.Key)
			}
		case redone(s, e):
		case outside && e.State == store.EffectNotDone && k != nil && k.applied > 0:
			w.wrong("I1: effect %s of %s is recorded as not done, and was applied with key %s", e.Name, s.Job.Key, e.Key)
		case outside && k != nil && k.applied > 1:
			w.wrong("I1: effect %s of %s was applied %d times with key %s", e.Name, s.Job.Key, k.applied, e.Key)
		}
	}
}
