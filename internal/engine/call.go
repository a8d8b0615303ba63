package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// call is one thing that a caller of this process wants committed: one item of a batch, like a
// delivery (W3).
type call struct {
	name string // of the operation, for errors
	// want lists what the decision needs loaded, for each attempt anew; nil: nothing.
	want func() []store.Want
	// decide decides on what was loaded, for each attempt anew, and adds its plans to the batch.
	// An error ends only this call, and nothing of it is committed.
	decide func(b *batch) error
	// lost learns what a test-and-set of the batch was lost to, before the next attempt.
	lost func(*store.LostError)
	// effect is what the call writes on an effect chain. Such calls of one job go through one loop,
	// so that no two meet a locked row. They never share a batch with messages of the job, which
	// may change that row, too.
	effect *effect
	box    *journal.JobID // the mailbox of a signal; one loop has all calls of a mailbox
	of     string         // what the call may have to wait for, see unit; "": nothing that others wait for, too
	size   int            // bytes that it adds to a batch, if they are many
	// ended gets the answer of a call that nobody waits for; nil: somebody waits.
	ended func(error)

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

// needs is the state that a call misses: it is loaded, and the call is asked again.
type needs map[journal.JobID]*collation.Need

// Error is for a call that never finds what it misses.
func (n needs) Error() string { return fmt.Sprintf("it misses state of %d jobs", len(n)) }

// take begins the call, unless its caller waits no more.
func (x *call) take() bool { return x.place.CompareAndSwap(callWaits, callUnderWay) }

// end answers the call.
func (x *call) end(err error) {
	x.answer = err
	close(x.done)
	if x.ended != nil {
		x.ended(err)
	}
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
			for _, late := range calls[i:] {
				late.err = notSent(late, context.Cause(ctx))
			}
			c.await(ctx, calls[:i])
			return
		case <-c.gone:
			for _, late := range calls[i:] {
				late.err = errEnded
			}
			c.await(ctx, calls[:i])
			return
		}
	}
	c.await(ctx, calls)
}

// queue is where a call waits for its batch.
func (c *Committer) queue(x *call) chan *call {
	switch {
	case x.effect != nil:
		return c.loops[c.loopOf(x.effect.of.Job)].own
	case x.box != nil:
		return c.loops[c.loopOf(*x.box)].own
	}
	return c.calls
}

// send has a call carried for which nobody waits: it has an ended.
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
		x.err = c.answer(ctx, x)
	}
}

// answer waits for the answer of one call.
func (c *Committer) answer(ctx context.Context, x *call) error {
	ended, gone := ctx.Done(), c.gone
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
		case <-ended:
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

// held names what the call waited for in vain, and what to do, if that was the lock of another
// transaction.
func (x *call) held(err error) error {
	if _, blocked := errors.AsType[*blockedError](err); !blocked || x.of == "" {
		return err
	}
	return fmt.Errorf("%s: another transaction holds %.90q, and did not end in %d attempts: commit it or roll it back, and try again "+
		"(it may be a StartTx of the same key: pg_blocking_pids and pg_stat_activity show it, mostly as idle in transaction): %w", x.name, x.of, x.tries, err)
}

// maxAway is how many attempts a call makes while the database cannot be reached (J4).
const maxAway = 5

// away counts an attempt without a database, and reports whether the call is given up.
func (x *call) away(err error) bool {
	x.tries++
	return errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrLogin) || x.tries >= maxAway
}
