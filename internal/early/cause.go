package early

import (
	"context"
	"slices"
	"sync"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// ErrUncommitted says that the transaction that caused a run did not commit (L5, L6). The run is
// stopped, and its answer and its effects are dropped. It is final, and it is an store.ErrStale:
// the request does not belong to the run, and never did.
var ErrUncommitted error = uncommitted{}

type uncommitted struct{}

func (uncommitted) Error() string {
	return "the transaction that caused this run did not commit: what the run does is dropped"
}

// Unwrap makes it an ErrStale.
func (uncommitted) Unwrap() error { return store.ErrStale }

// Start is the start of a run's first effect. It commits with the run's cause, if the batch has decided
// it: then Row has a state. Row and Taken are set before the cause is settled.
type Start struct {
	Lease  store.Lease
	Effect journal.Effect
	Row    store.EffectRow
	Taken  bool
}

// Offers are what runs give the batch of their cause, in their order.
type Offers struct {
	Answers []transport.Message // each with its holder
	Starts  []*Start
}

// Cause is a transaction that has not committed yet, for the runs that it has caused. It is safe for
// concurrent use.
type Cause struct {
	settled chan struct{} // closed when the outcome is known
	came    chan struct{} // capacity 1: there is an offer

	mu     sync.Mutex
	closed bool // no offer is taken any more
	offers Offers
	waits  func()        // see OnWait
	stops  []func(error) // of handlers, in the order of their begin; nil: it has ended
	failed bool
}

// NewCause returns a Cause that takes offers.
func NewCause() *Cause {
	return &Cause{settled: make(chan struct{}), came: make(chan struct{}, 1)}
}

// Answer gives the batch the answer of a run, with its holder. taken is called when the batch takes
// the answer, and before it can act on it. If it does not, the run waits for the outcome, and then
// sends the answer.
func (c *Cause) Answer(m *transport.Message, taken func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	taken()
	c.offers.Answers = append(c.offers.Answers, *m)
	c.signal()
	return true
}

// Start gives the batch the start of a run's first effect. If it does not take it, or does not decide
// it, the run has it committed itself once its cause has committed.
func (c *Cause) Start(x *Start) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.offers.Starts = append(c.offers.Starts, x)
	c.signal()
	return true
}

func (c *Cause) signal() {
	select {
	case c.came <- struct{}{}:
	default:
	}
}

// Came is signalled when offers have come since the last Take.
func (c *Cause) Came() <-chan struct{} { return c.came }

// Take returns the offers that have come since the last Take.
func (c *Cause) Take() Offers {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.offers
	c.offers = Offers{}
	return all
}

// Close takes no further offers, and returns the answers that have come since the last Take.
func (c *Cause) Close() []transport.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	all := c.offers.Answers
	c.offers = Offers{}
	return all
}

// OnWait has waits called by each run that begins to wait for the outcome: its goroutine serves nobody
// else until then.
func (c *Cause) OnWait(waits func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = waits
}

// Settle tells the runs the outcome, once. If the cause has not committed, they are stopped.
func (c *Cause) Settle(committed bool) {
	c.mu.Lock()
	c.closed, c.failed = true, !committed
	stops := slices.Clone(c.stops)
	close(c.settled)
	c.mu.Unlock()
	if committed {
		return
	}
	for _, stop := range stops {
		if stop != nil {
			stop(ErrUncommitted)
		}
	}
}

// OnFailure has stop called when the cause turns out not to commit, once, and at once if that is
// known already. forget ends that.
func (c *Cause) OnFailure(stop func(error)) (forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.failed:
		stop(ErrUncommitted)
		return func() {}
	case !c.Open():
		return func() {}
	}
	at := len(c.stops)
	c.stops = append(c.stops, stop)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if at < len(c.stops) {
			c.stops[at] = nil
		}
	}
}

// Open reports whether the outcome is not known yet.
func (c *Cause) Open() bool {
	select {
	case <-c.settled:
		return false
	default:
		return true
	}
}

// Wait waits for the outcome (L3). Errors: ErrUncommitted, or the cause of ctx.
func (c *Cause) Wait(ctx context.Context) error {
	select {
	case <-c.settled:
	default:
		c.mu.Lock()
		waits := c.waits
		c.mu.Unlock()
		if waits != nil {
			waits()
		}
		select {
		case <-c.settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed {
		return ErrUncommitted
	}
	return nil
}

// Delivery is the delivery of a request whose cause has not committed yet.
type Delivery interface {
	transport.Delivery

	// Cause is its cause.
	Cause() *Cause
	// Serve leaves the run to who has begun it, who chooses its goroutine.
	Serve(run func())
}
