package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
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

func (e *loadsError) Unwrap() error { return store.ErrRejected }

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
func asksTooOften(b Busy) error {
	if b.Job.IsZero() {
		return &loadsError{b.Name}
	}
	return &loadsError{fmt.Sprintf("the decision on %s %s of job %s at %q", b.Name, b.Message, b.Job, b.Activity)}
}

// halted is the plan of a message whose decision was stopped.
func (m *message) halted() *collation.Plan {
	return &collation.Plan{Job: m.msg.Job, Message: m.msg.GUID, Outcome: collation.Stopped}
}

// retrySlow goes on with a message whose decision was stopped. Such messages are tried again one
// after another, on a connection of their own, so that they hold up nobody. again is what this loop
// carries.
func (l *loop) retrySlow(ctx context.Context, m *message) (again []item) {
	l.cfg.Observer.Count(observer.MetricStopped, 1)
	m.stops++
	l.log.Warn("a decision took too long and was stopped; nothing was written", "job", m.msg.Job.String(),
		"message", m.msg.GUID.String(), "kind", string(m.msg.Kind), "activity", m.msg.Activity,
		"limit", l.cfg.Slow, "attempt", m.stops, "attempts", slowTries)
	switch {
	case m.stops >= slowTries:
		m.reject = &slowError{l.cfg.Slow}
		return []item{m}
	case l.ending.Load() || m.stopping():
		l.giveUp([]item{m}, errStopping)
	case l.policy.waits():
		l.pause(m.stops, slowPause)
		return []item{m}
	default:
		l.aside.take(ctx, []item{m})
	}
	return nil
}
