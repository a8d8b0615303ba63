package quiputest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// lonely is how long a wait lasts while nothing happens and the clock alone would change nothing.
const lonely = time.Hour

// errImpatient says that a wait has failed.
var errImpatient = errors.New("it did not come")

// until waits for cond, which it calls after every change.
func (w *World) until(cond func() bool) error { return w.untilTold(&w.hub, cond) }

// untilTold is until for a cond that begins to hold only when h is told.
func (w *World) untilTold(h *hub, cond func() bool) error {
	began := time.Now()
	for {
		changed := w.heeded(h)
		w.attend()
		if cond() {
			return nil
		}
		waited := time.Since(began)
		left, quiet := patience-waited, min(w.store.quiet(), waited)
		if left <= 0 || quiet >= lonely && w.hopeless() {
			return errImpatient
		}
		// Until the clock changes something nothing is hopeless.
		if calm := w.store.wait(); quiet >= lonely || calm >= lonely-quiet {
			left = min(left, max(calm, 0)+lonely)
		} else {
			left = min(left, lonely-quiet)
		}
		rest(nil, changed, left)
	}
}

// heeded is closed when a wait for h has to look again: at any change once a process has died,
// for attend. Its death tells of itself.
func (w *World) heeded(h *hub) <-chan struct{} {
	changed := h.changed()
	if c := w.crash; c != nil && !c.died().IsZero() {
		return w.hub.changed()
	}
	return changed
}

// hopeless says that the clock alone will move no job; at most it resends requests that no
// process serves.
func (w *World) hopeless() bool {
	served := w.topics()
	for v, err := range w.views() {
		if err != nil {
			return false
		}
		for i := range v.Rows {
			r := &v.Rows[i]
			request := r.Kind == journal.MessageRequest
			waits := r.NextAt == collation.Never && r.Holder == "" || r.Held != "" ||
				request && r.Publication > 0 && !slices.Contains(served, r.Topic)
			if !waits || request && r.WithinAt != collation.Never {
				return false
			}
		}
	}
	return true
}

// topics returns the topics that a worker process serves.
func (w *World) topics() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return nil
	}
	return slices.Clone(w.process.topics)
}

// still says that nothing is under way: every served queue is empty, and what is open waits for a
// later time, a signal or a person. What looks so may be about to send what it has committed, so
// that every goroutine of the bubble gets to its rest first.
func (w *World) still() bool {
	if !w.quiet() {
		return false
	}
	w.resting <- struct{}{} // one at a time may wait
	synctest.Wait()
	<-w.resting
	return w.quiet()
}

// quiet is still for a moment.
func (w *World) quiet() bool {
	if !w.store.asleep.Load() || w.store.over() {
		return false
	}
	queues := []transport.Destination{transport.ToStart()}
	for lane := range lanes {
		queues = append(queues, transport.ToLane(lane))
	}
	for _, topic := range w.topics() {
		queues = append(queues, transport.ToWork(topic))
	}
	return !slices.ContainsFunc(queues, func(d transport.Destination) bool { return w.bus.Len(d) > 0 })
}

// Settle waits until nothing is under way: all messages are handled, no handler runs, and what is
// open waits for a later time, a signal, a worker that does not run, or a person. Time passes
// only as far as that takes.
func (w *World) Settle() {
	w.t.Helper()
	if w.until(w.still) != nil {
		w.t.Fatalf("the world does not come to rest within %s\n%s", patience, w.sentences())
	}
}

// Advance first lets everything under way settle, and then lets d pass. Everything that falls due
// by then happens.
func (w *World) Advance(d time.Duration) {
	w.t.Helper()
	w.Settle()
	end := time.Now().Add(d)
	for left := d; left > 0; left = time.Until(end) {
		changed := w.heeded(&w.ends)
		w.attend()
		rest(nil, changed, left)
	}
	w.Settle()
}

// Until waits until cond holds, which it calls after every change of the tables. If the wait
// fails, the test fails with what every open job waits for. what names the condition.
func (w *World) Until(what string, cond func() bool) {
	w.t.Helper()
	if w.until(cond) != nil {
		w.t.Fatalf("%s: it does not come to that\n%s", what, w.sentences())
	}
}

// finish lets closed jobs finish: messages that came too late for them soon get their verdict
// (C15).
func (w *World) finish() {
	w.t.Helper()
	w.Settle()
	err := w.until(func() bool {
		for v, err := range w.views() {
			if err != nil || v.State.Closed() && len(v.Rows) > 0 {
				return false
			}
		}
		return true
	})
	if err != nil {
		w.t.Errorf("a closed job has messages that are not handled\n%s", w.sentences())
	}
}

// views yields the jobs of the world.
func (w *World) views() iter.Seq2[*store.JobView, error] {
	return func(yield func(*store.JobView, error) bool) {
		for id, err := range w.store.AuditJobs(context.Background(), nil) {
			var v *store.JobView
			if err == nil {
				v, err = w.store.Job(context.Background(), id)
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// maxSentences bounds the jobs that a failure describes.
const maxSentences = 20

// sentences describes what the open jobs wait for.
func (w *World) sentences() string {
	var out []string
	more := 0
	for v, err := range w.views() {
		switch {
		case err != nil:
			out = append(out, err.Error())
		case v.State.Closed():
		case len(out) == maxSentences:
			more++
		default:
			out = append(out, w.why(v))
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("… and %d more open jobs", more))
	}
	if len(out) == 0 {
		return "no job is open"
	}
	return strings.Join(out, "\n")
}

// why says what the job waits for, one line for each reason.
func (w *World) why(v *store.JobView) string {
	ctx := context.Background()
	j := &explain.Job{View: v, Now: now(), Find: func(id journal.JobID) *store.JobSummary {
		other, err := w.store.Job(ctx, id)
		if err != nil {
			return nil
		}
		return &other.JobSummary
	}}
	if source, err := w.store.Flow(ctx, v.Flow.Name, v.Flow.Version); err == nil {
		j.Flow, _ = flow.FromCanonical(source)
	}
	if v.State != journal.JobOpen && v.State != journal.JobExpired {
		j.Last = w.closing(v.ID)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)", v.Key, v.State)
	for _, r := range explain.Why(j) {
		fmt.Fprintf(&b, "\n  %s", r.Text)
	}
	served := w.topics()
	for i := range v.Rows {
		if r := &v.Rows[i]; r.Kind == journal.MessageRequest && !slices.Contains(served, r.Topic) {
			fmt.Fprintf(&b, "\n  nobody serves topic %s in this world", r.Topic)
			served = append(served, r.Topic)
		}
	}
	return b.String()
}

// closing returns the entry that closed or quarantined the job.
func (w *World) closing(id journal.JobID) *journal.Entry {
	for _, e := range w.entries(id) {
		if e.Kind == journal.KindQuarantine || slices.Contains(e.Marks, journal.MarkClosed) {
			return e
		}
	}
	return nil
}

// entries returns the entries of a job, main chain first.
func (w *World) entries(id journal.JobID) []*journal.Entry {
	w.t.Helper()
	var out []*journal.Entry
	err := w.store.Audit(context.Background(), id,
		func(_ *store.Stored, records iter.Seq2[journal.Record, error]) error {
			for r, err := range records {
				if err != nil {
					return err
				}
				e, err := journal.Decode(r)
				if err != nil {
					return err
				}
				out = append(out, e)
			}
			return nil
		})
	if err != nil {
		w.t.Fatalf("read the journal of job %s: %v", id, err)
	}
	return out
}
