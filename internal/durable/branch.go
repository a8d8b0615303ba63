package durable

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/usercode"
)

// ErrLost is the cause of the context of a branch of First when another branch was
// faster.
var ErrLost = errors.New("another branch of First was faster")

// status is what a branch is doing.
type status int

const (
	isBusy      status = iota // it runs or is about to, or one of the branches that it waits for does
	isOutside                 // it is in a call outside, or one of the branches that it waits for is
	isSuspended               // it has ended at a wait
	isEnded
	statuses
)

// branch is one line of calls of a durable function: the function's own, or one of an All
// or a First. Each branch is a goroutine. One goroutine of a function runs at a time, the
// one with the baton. The others have ended, wait for their own branches, or are outside:
// in the body of an effect, or in the store. So branches begin in order, each when the
// one before has gone as far as it can, and two branches never touch the user's shared
// data at once.
//
// A branch whose wait is not over ends its goroutine with runtime.Goexit: its deferred
// functions run, and no recover can stop that. A branch that has lost does the same at
// its next call.
type branch struct {
	w     *walk
	fork  *fork  // nil for the function's own branch
	path  string // "" for the function's own, "3.0" for the first branch of the fork at 3
	self  uint64 // number of its goroutine
	calls int    // positions taken
	last  int64  // seq of the entry that ended its latest wait

	calling  atomic.Bool // a call of the branch is under way
	stopping atomic.Bool // its goroutine must end, or is ending
	out      bool        // the branch is outside
	grant    chan struct{}
	ended    chan struct{} // closed at its end

	// Guarded by walk.mu.
	status   status
	waits    *fork // the fork that it waits for
	lost     bool  // another branch was faster: this one stops at its next call
	slower   bool  // another branch is recorded as faster: nobody waited for the end of this one
	panicked *PanicError
}

// fork is the set of branches of one All or First.
type fork struct {
	by       *branch
	first    bool
	decided  bool // the record says which branch of a First won
	branches []*branch
	count    [statuses]int
}

// PanicError is the panic of a durable function, or of a branch of it. It has text alone: the
// value that the function panicked with was read where it was recovered.
type PanicError struct {
	Text  string // of the value, at most usercode.MaxText bytes
	Stack []byte

	exited bool // no panic: the goroutine was ended, see ErrGoexit
}

// NewPanic reads what was recovered, in the goroutine that panicked.
func NewPanic(v any) *PanicError { return &PanicError{Text: usercode.Value(v), Stack: debug.Stack()} }

// exited is the panic of a branch that ended its own goroutine.
func exited() *PanicError {
	return &PanicError{Text: ErrGoexit.Error(), Stack: debug.Stack(), exited: true}
}

// Error gives the panic's value.
func (e *PanicError) Error() string { return "panic: " + e.Text }

// ErrGoexit is the error of a durable function, or a branch, that ended its own
// goroutine.
var ErrGoexit = errors.New("the handler ended its goroutine (runtime.Goexit) instead of returning")

// Alone runs fn in its own goroutine. A panic becomes a *PanicError, and a Goexit ErrGoexit.
func Alone(ctx context.Context, fn func(context.Context) error) error {
	ends := make(chan error, 1)
	go func() {
		err := ErrGoexit
		defer func() {
			if v := recover(); v != nil {
				err = NewPanic(v)
			}
			ends <- err
		}()
		err = fn(ctx)
	}()
	return <-ends
}

type branchKey struct{}

func (w *walk) branch(k *fork, path string) *branch {
	return &branch{w: w, fork: k, path: path, grant: make(chan struct{}, 1), ended: make(chan struct{})}
}

// start runs body in the branch's goroutine, which waits for the baton first.
func (b *branch) start(ctx context.Context, body func(context.Context)) {
	go func() {
		b.self = number()
		<-b.grant
		returned := false
		defer func() { b.end(returned, recover()) }()
		body(context.WithValue(ctx, branchKey{}, b))
		returned = true
	}()
}

// end records how the branch's goroutine ended, and passes the baton on.
func (b *branch) end(returned bool, panicked any) {
	to := isEnded
	var failed *PanicError
	switch {
	case panicked != nil:
		if e, ok := panicked.(*PanicError); ok { // from a branch within this one
			failed = e
		} else {
			failed = NewPanic(panicked)
		}
	case returned:
	case b.stopping.Load():
		to = isSuspended
	default:
		failed = exited()
	}
	w := b.w
	w.mu.Lock()
	defer w.mu.Unlock()
	b.panicked = failed
	w.moved(b, to)
	if w.holder == b {
		w.next()
	}
	w.live--
	if w.live == 0 && w.idle != nil {
		close(w.idle)
	}
	close(b.ended)
}

// ours refuses a call from a goroutine that is not the branch's.
func (b *branch) ours(c *call) error {
	if !b.within() {
		return fmt.Errorf("%s: %w: it is called in a goroutine of your own: use workers.All for what is to go on at the same time", c, effects.ErrUsage)
	}
	return nil
}

// halt ends the branch's goroutine. It returns only where it is called in another.
func (b *branch) halt(c *call) error {
	if err := b.ours(c); err != nil {
		return err
	}
	b.exit()
	return nil
}

// exit is halt for a caller that is known to be in the branch's goroutine.
func (b *branch) exit() {
	b.stopping.Store(true)
	b.calling.Store(false)
	runtime.Goexit()
}

// leave passes the baton on while the branch is outside.
func (b *branch) leave() {
	if b.out {
		return
	}
	b.out = true
	w := b.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abroad++
	w.moved(b, isOutside)
	w.next()
}

// hold passes the baton on as leave does, and waits until no other branch can go on
// without going outside. So the run has passed all recorded calls that it can reach
// before anything new begins. It returns the first recorded call that was still not made
// although nothing under way could lead there.
func (b *branch) hold() *record {
	b.out = true
	w := b.w
	w.mu.Lock()
	w.moved(b, isOutside)
	w.held = append(w.held, b)
	w.next()
	w.mu.Unlock()
	<-b.grant
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.missed
}

// enter waits for the baton again.
func (b *branch) enter() {
	if !b.out {
		return
	}
	w := b.w
	w.mu.Lock()
	w.abroad--
	w.moved(b, isBusy)
	w.line = append(w.line, b)
	w.idles()
	w.mu.Unlock()
	<-b.grant
	b.out = false
}

// wait gives the baton to the running branches of k, in order, and waits until the fork
// is over.
func (b *branch) wait(k *fork, run []*branch) {
	w := b.w
	w.mu.Lock()
	k.count[isBusy] = len(run)
	b.waits = k
	w.live += len(run)
	w.line = append(run[:len(run):len(run)], w.line...)
	w.next()
	w.mu.Unlock()
	<-b.grant
}

// isLost reports that the branch, or one around it, lost a First.
func (b *branch) isLost() bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.lostLocked()
}

func (b *branch) failed() bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.panicked != nil
}

func (b *branch) lostLocked() bool {
	for ; b != nil; b = b.parent() {
		if b.lost {
			return true
		}
	}
	return false
}

func (b *branch) parent() *branch {
	if b.fork == nil {
		return nil
	}
	return b.fork.by
}

// idles gives the baton to the next in line if no branch has it. The caller holds mu.
func (w *walk) idles() {
	if w.holder == nil {
		w.next()
	}
}

// next gives the baton to the next in line. If there is none, the held branches go
// outside. The caller holds mu.
func (w *walk) next() {
	w.holder = nil
	if len(w.line) > 0 {
		w.holder, w.line = w.line[0], w.line[1:]
		w.holder.grant <- struct{}{}
		return
	}
	if len(w.held) > 0 && w.abroad == 0 {
		w.missed = w.history.unseen(w.lost)
	}
	w.abroad += len(w.held)
	for _, b := range w.held {
		b.grant <- struct{}{}
	}
	w.held = nil
}

// moved changes the status of a branch, and of the branches that wait for it. The caller
// holds mu.
func (w *walk) moved(b *branch, to status) {
	for b.status != to {
		k := b.fork
		if k != nil {
			k.count[b.status]--
			k.count[to]++
		}
		b.status = to
		if k == nil || k.by.waits != k {
			return
		}
		if b = k.by; k.isSettled() {
			b.waits, to = nil, isBusy
			w.line = append([]*branch{b}, w.line...) // before its sibling branches begin
			w.idles()
		} else {
			to = k.status()
		}
	}
}

// isSettled says whether the branch that waits for the fork goes on. For an All that is when
// no branch goes on any more; for a First, when one has ended and the others have gone as
// far as they can.
func (k *fork) isSettled() bool {
	return k.count[isBusy] == 0 && (k.count[isOutside] == 0 || k.first && k.count[isEnded] > 0)
}

// status is the status of the branch that waits for the fork.
func (k *fork) status() status {
	if k.count[isBusy] > 0 {
		return isBusy
	}
	return isOutside
}
