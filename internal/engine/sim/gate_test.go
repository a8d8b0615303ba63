package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/quipu-journal/quipu/internal/store"
)

// kind is the kind of a call, which decides what faults it may have.
type kind uint8

const (
	kindRead    kind = iota // of the store: done, or not
	kindWrite               // of the store: also done and reported as failed
	kindCommit              // of a batch: the end of its context does not cancel it
	kindSend                // to the bus
	kindFinish              // of a delivery: Ack, Nak, Term
	kindKeep                // of a delivery: InProgress
	kindBody                // a handler is about to begin
	kindOutside             // a call outside, from a handler
)

// call is one call at the gate.
type call struct {
	p    *process
	kind kind
	id   string // the same in every run of a seed
	say  chan verdict
	// stalled calls wait while others pass.
	stalled bool
}

// verdict is the fate of a call. It is carried out or not; with err its caller gets an error
// either way.
type verdict struct {
	do  bool
	err error
}

// errOver ends the calls that still wait when the run is over.
var errOver = errors.New("the simulation is over")

// gate holds the waiting calls.
type gate struct {
	mu      sync.Mutex
	waiting []*call        // by process and id
	idle    []chan verdict // of calls that have had theirs
	kick    chan struct{}
	over    chan struct{} // closed at the end: every call fails at once
}

func newGate() *gate {
	return &gate{kick: make(chan struct{}, 1), over: make(chan struct{})}
}

func compareCalls(a, b *call) int {
	return cmp.Or(cmp.Compare(a.p.number, b.p.number), cmp.Compare(a.id, b.id))
}

// pass waits at the gate for a verdict. A call of a dead process never gets one.
func (g *gate) pass(ctx context.Context, p *process, k kind, id string) verdict {
	if p.gone() {
		return verdict{err: p.park()}
	}
	if run, ok := ctx.Value(runKey{}).(string); ok {
		id += " in " + run
	}
	g.mu.Lock()
	c := &call{p: p, kind: k, id: id, say: g.channel()}
	at, _ := slices.BinarySearchFunc(g.waiting, c, compareCalls)
	g.waiting = slices.Insert(g.waiting, at, c)
	g.mu.Unlock()
	g.wake()
	var ended <-chan struct{}
	if k == kindRead || k == kindWrite || k == kindSend {
		ended = ctx.Done()
	}
	for {
		select {
		case v := <-c.say:
			g.mu.Lock()
			g.idle = append(g.idle, c.say)
			g.mu.Unlock()
			return v
		case <-g.over:
			return verdict{err: errOver}
		case <-ended:
			if g.cancel(c) {
				return verdict{err: fmt.Errorf("%s: %w: %w", id, store.ErrUnavailable, context.Cause(ctx))}
			}
			ended = nil // its process is dead or hangs, or it has its verdict
		}
	}
}

// channel returns a channel for a verdict.
func (g *gate) channel() chan verdict {
	last := len(g.idle) - 1
	if last < 0 {
		return make(chan verdict, 1)
	}
	say := g.idle[last]
	g.idle = g.idle[:last]
	return say
}

// cancel removes a call whose context has ended. A call of a process that is dead or hangs does
// not notice.
func (g *gate) cancel(c *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.p.gone() || c.p.paused.Load() {
		return false
	}
	at := slices.Index(g.waiting, c)
	if at < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, at, at+1)
	return true
}

// wake tells the simulator that something waits.
func (g *gate) wake() {
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

// take removes a call that may pass.
func (g *gate) take(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.waiting, c); at >= 0 {
		g.waiting = slices.Delete(g.waiting, at, at+1)
	}
}

// remove removes the calls of a process that died: they wait for ever.
func (g *gate) remove(p *process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(c *call) bool { return c.p == p })
}

// through carries a call of p through the gate.
func through[T any](ctx context.Context, p *process, k kind, id string, do func() (T, error)) (T, error) {
	var none T
	v := p.world.gate.pass(ctx, p, k, id)
	if !v.do {
		return none, v.err
	}
	out, err := do()
	if p.gone() {
		return none, p.park()
	}
	if v.err != nil {
		return none, v.err
	}
	return out, err
}

// action is through for calls without a result.
func action(ctx context.Context, p *process, k kind, id string, do func() error) error {
	_, err := through(ctx, p, k, id, func() (struct{}, error) { return struct{}{}, do() })
	return err
}
