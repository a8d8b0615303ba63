package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// A decision that takes too long on this machine says nothing of its message: it is stopped, and
// nothing is written. The message is tried again by itself, and then waits for a person. Counted
// steps end a decision far earlier, and the same everywhere (flow.Budget).

// Bounds of what is not decided.
const (
	// slowTries is how often the decision on a message may be stopped before the message waits for
	// a person, and slowPause the pause before the next attempt; it doubles.
	slowTries = 3
	slowPause = 500 * time.Millisecond
	// maxLoads bounds how often a decision may ask for state. What a decision asks for does not
	// grow with its job, so one that asks more often would never end.
	maxLoads = 32
)

// slowError says that the decision on a message is too slow here.
type slowError struct{ limit time.Duration }

func (e *slowError) Error() string {
	return fmt.Sprintf("the decision was stopped %d times, because it took longer than %s on this machine; nothing of it was recorded: "+
		"let the flow's expressions and its schema do less, or try it again when the machine has less to do", slowTries, e.limit)
}

// loadsError says that a decision asks for state again and again.
type loadsError struct{ what string }

func (e *loadsError) Error() string {
	return fmt.Sprintf("%s asked for further state more than %d times, the limit of one decision: this is a fault of Quipu, please report it; "+
		"try it again with another build, or interrupt the job", e.what, maxLoads)
}

// heldFor is the reason of the dead letter of a message that is held because of err.
func heldFor(err error) string {
	if _, slow := errors.AsType[*slowError](err); slow {
		return collation.ReasonSlow
	}
	if _, loads := errors.AsType[*loadsError](err); loads {
		return collation.ReasonLoads
	}
	return collation.HeldStuck
}

// asksTooOften is the loadsError about an item.
func (it *item) asksTooOften() error {
	m := &it.msg
	return &loadsError{fmt.Sprintf("the decision on %s %s of job %s at %s %s", m.Kind, m.GUID, m.Job, m.Activity, m.DAD)}
}

// halt notes that the decision on an item was stopped.
func (b *batch) halt(it *item) {
	b.decide(it, &collation.Plan{Job: it.msg.Job, Message: it.msg.GUID, Outcome: collation.Stopped})
}

// full reports whether the batch has decided for so long that the rest goes into the next one.
func (b *batch) full() bool { return b.finished > 0 && b.deciding >= maxDeciding }

// retrySlow goes on with the items whose decisions were stopped. They are tried again one after
// another, on a connection of their own, so that they hold up nobody. again are those that this
// loop carries.
func (l *loop) retrySlow(ctx context.Context, items []*item) (again []*item) {
	var others work
	for _, it := range items {
		l.cfg.Observer.Count(observer.MetricStopped, 1)
		it.slow++
		l.log.Warn("a decision took too long and was stopped; nothing was written", "job", it.msg.Job.String(), "message", it.msg.GUID.String(),
			"kind", string(it.msg.Kind), "activity", it.msg.Activity, "limit", l.cfg.Slow, "attempt", it.slow, "attempts", slowTries)
		switch {
		case it.slow >= slowTries:
			it.reject = &slowError{l.cfg.Slow}
			again = append(again, it)
		case l.ending.Load() || stopping([]*item{it}):
			l.handBack([]*item{it}, errStopping)
		case l.patient:
			l.pause(it.slow, slowPause)
			again = append(again, it)
		default:
			others.items = append(others.items, it)
		}
	}
	if !others.empty() {
		l.aside.take(ctx, others)
	}
	return again
}

// timed is one, for those who watch how long it takes.
func (l *loop) timed(ctx context.Context, b *batch, it *item) (*collation.Need, error) {
	before := it.took
	l.progress.begin(it.busy(), before)
	need, err := l.one(ctx, b, it)
	it.took = l.progress.end()
	b.deciding += it.took - before
	return need, err
}

// busy names the item.
func (it *item) busy() Busy {
	return Busy{Job: it.msg.Job, Message: it.msg.GUID, Name: string(it.msg.Kind), Activity: it.msg.Activity}
}
