package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// call is what somebody in this process wants committed, as an item of a batch.
type call struct {
	name string // of the operation, for errors
	// wants is want; nil: nothing.
	wants func() []store.Want
	// decides is decide, without a plan of its own.
	decides func(b *batch) error
	// lost is lose; nil: it does not matter.
	lost func(*store.LostError)
	// effect is what the call writes on an effect chain. Such calls of one job go through one loop,
	// so that no two meet a locked row. They never share a batch with messages of the job, which
	// may change that row, too.
	effect *effect
	box    *journal.JobID // the mailbox of a signal; one loop has all calls of a mailbox
	of     string         // what the call may have to wait for; "": nothing that others wait for, too
	size   int            // bytes that it adds to a batch, if they are many
	// answered gets the answer of a call that nobody waits for; nil: somebody waits.
	answered func(error)

	place  atomic.Int32 // one of the places below
	tries  int          // attempts that did not reach the database
	done   chan struct{}
	answer error // of the batch, once done is closed
	err    error // for the caller, once do has returned
}

// Places of a call in its life.
const (
	callWaits int32 = iota
	callUnderWay
	callLeft // its caller waits no more
)

// take begins the call, unless its caller waits no more.
func (x *call) take() bool { return x.place.CompareAndSwap(callWaits, callUnderWay) }

// end answers the call.
func (x *call) end(err error) {
	x.answer = err
	close(x.done)
	if x.answered != nil {
		x.answered(err)
	}
}

func (x *call) about() Busy { return Busy{Name: x.name} }

func (x *call) job() (id journal.JobID) {
	switch {
	case x.effect != nil:
		return x.effect.of.Job
	case x.box != nil:
		return *x.box
	}
	return id
}

func (x *call) unit() (name string, together bool) {
	if x.box != nil {
		return ofBox(*x.box), true
	}
	return x.of, x.of != ""
}

func (x *call) rank() int {
	if x.effect != nil {
		return rankEffect
	}
	return rankCall
}

func (x *call) want(*batch) []store.Want {
	if x.wants == nil {
		return nil
	}
	return x.wants()
}

func (x *call) decide(_ context.Context, b *batch) (*collation.Plan, error) { return nil, x.decides(b) }

func (x *call) lose(e *store.LostError) {
	if x.lost != nil {
		x.lost(e)
	}
}

func (x *call) refuse(error) bool { return false }

// maxAway is how many attempts a call makes while the database cannot be reached (J4).
const maxAway = 5

func (x *call) giveUp(err error, _ time.Time, ending bool) bool {
	x.tries++
	return ending || errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrLogin) || x.tries >= maxAway
}

func (x *call) stopping() bool { return false }

func (x *call) settle(_ *loop, _ *batch, _ fate, err error) { x.end(x.held(err)) }

// held names what the call waited for in vain, and what to do, if that was the lock of another
// transaction.
func (x *call) held(err error) error {
	if _, blocked := errors.AsType[*blockedError](err); !blocked || x.of == "" {
		return err
	}
	return fmt.Errorf("%s: another transaction holds %.90q, and did not end in %d attempts: commit it or roll it back, and try again "+
		"(it may be a StartTx of the same key: pg_blocking_pids and pg_stat_activity show it, mostly as idle in transaction): %w",
		x.name, x.of, x.tries, err)
}

// do has the calls carried and waits for all of them. The end of ctx ends the waiting, never a
// batch. A call that no batch has taken is then given up, with ErrUnavailable. The outcome of a
// call in progress is not known then: ErrUnknown, and it may be repeated.
func (c *Committer) do(ctx context.Context, calls ...*call) {
	for i, x := range calls {
		x.done = make(chan struct{})
		queue := c.queue(x)
		select {
		case queue <- x:
			continue
		default:
		}
		select {
		case queue <- x:
		case <-ctx.Done():
			for _, unsent := range calls[i:] {
				unsent.err = notSent(unsent, context.Cause(ctx))
			}
			c.await(ctx, calls[:i])
			return
		case <-c.gone:
			for _, unsent := range calls[i:] {
				unsent.err = errEnded
			}
			c.await(ctx, calls[:i])
			return
		}
	}
	c.await(ctx, calls)
}

// queue is where a call waits for its batch.
func (c *Committer) queue(x *call) chan *call {
	if job := x.job(); !job.IsZero() {
		return c.loops[c.loopOf(job)].own
	}
	return c.calls
}

// send has a call carried for which nobody waits: answered gets its answer.
func (c *Committer) send(x *call) {
	x.done = make(chan struct{})
	select {
	case c.queue(x) <- x:
	case <-c.gone:
	}
	select {
	case <-c.gone: // nobody takes calls from the queue any more
		if x.take() {
			x.end(errEnded)
		}
	default:
	}
}

func (c *Committer) await(ctx context.Context, calls []*call) {
	for _, x := range calls {
		x.err = c.wait(ctx, x)
	}
}

// wait waits for the answer of one call.
func (c *Committer) wait(ctx context.Context, x *call) error {
	left, gone := ctx.Done(), c.gone
	for {
		select {
		case <-x.done:
			return x.answer
		default:
		}
		select {
		case <-x.done:
		case <-gone: // nobody takes calls from the queue any more
			gone = nil
			if x.place.CompareAndSwap(callWaits, callLeft) {
				return errEnded
			}
		case <-left:
			if x.place.CompareAndSwap(callWaits, callLeft) {
				return notSent(x, context.Cause(ctx))
			}
			return fmt.Errorf("%s: %w: %w", x.name, store.ErrUnknown, context.Cause(ctx))
		}
	}
}

func notSent(x *call, cause error) error {
	return fmt.Errorf("%s: %w: %w", x.name, store.Unavailable("nothing was sent"), cause)
}
