package durable

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/quipu-journal/quipu/effects"
)

// ErrLost is the cause of the context of a branch of First that another branch
// was faster than.
var ErrLost = errors.New("another branch of First was faster")

// status says what a branch is about.
type status int

const (
	isBusy      status = iota // it runs or is about to, or it waits for branches of which one does
	isOutside                 // it is in a call outside, or waits for branches of which one is
	isSuspended               // it has ended at a wait
	isEnded
	statuses
)

// branch is one line of calls of a durable function: its own, or one of an All or
// a First. It is a goroutine. Of the goroutines of a function one runs at a time,
// the one that has the baton; the others have ended, wait for branches of their
// own, or are outside: in the body of an effect, or in the store. So branches
// begin in their order, each when the one before has gone as far as it can, and
// what they share of the user's is not touched by two at once.
//
// A branch that waits for what has not come ends its goroutine
// (runtime.Goexit): its deferred functions run, nothing else of it does, and no
// recover holds it up. So does one that has lost, at its next call.
type branch struct {
	w     *walk
	of    *fork  // nil of the function's own branch
	path  string // "" of the function's own, "3.0" of the first branch of the fork at 3
	self  uint64 // its goroutine
	calls int    // positions taken
	last  int64  // seq of the entry that brought the latest of what it waited for

	calling  atomic.Bool // a call of it is under way
	stopping atomic.Bool // it is to end, or ends, its goroutine
	out      bool        // it is outside
	grant    chan struct{}
	over     chan struct{} // closed at its end

	// Guarded by walk.mu.
	status   status
	waits    *fork // what it waits for
	lost     bool  // another one was faster: it goes no further
	slower   bool  // another one is recorded as faster: nobody waited for its end
	panicked *PanicError
}

// fork is the branches of one All or First.
type fork struct {
	by       *branch
	first    bool
	decided  bool // by the record: which branch of a First was the first
	branches []*branch
	count    [statuses]int
}

// PanicError is the panic of a durable function, or of a branch of it.
type PanicError struct {
	Value any
	Stack []byte
}

// Error gives the panic's value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// ErrGoexit is what a durable function, or a branch, ends with that ends its
// goroutine itself.
var ErrGoexit = errors.New("the handler ended its goroutine (runtime.Goexit) instead of returning")

type branchKey struct{}

func (w *walk) branch(of *fork, path string) *branch {
	return &branch{w: w, of: of, path: path, grant: make(chan struct{}, 1), over: make(chan struct{})}
}

// start runs body as the branch, from when it gets the baton.
func (b *branch) start(ctx context.Context, body func(context.Context)) {
	go func() {
		b.self = goroutine()
		<-b.grant
		returned := false
		defer func() { b.end(returned, recover()) }()
		body(context.WithValue(ctx, branchKey{}, b))
		returned = true
	}()
}

// end is the end of the branch's goroutine.
func (b *branch) end(returned bool, panicked any) {
	to := isEnded
	var failed *PanicError
	switch {
	case panicked != nil:
		if e, ok := panicked.(*PanicError); ok { // of a branch of its own
			failed = e
		} else {
			failed = &PanicError{panicked, debug.Stack()}
		}
	case returned:
	case b.stopping.Load():
		to = isSuspended
	default:
		failed = &PanicError{ErrGoexit, debug.Stack()}
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
	close(b.over)
}

// ours refuses a call from a goroutine that is not the branch's.
func (b *branch) ours(c *call) error {
	if goroutine() != b.self {
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

// exit is halt where it is known that the goroutine is the branch's.
func (b *branch) exit() {
	b.stopping.Store(true)
	b.calling.Store(false)
	runtime.Goexit()
}

// leave gives the baton away while the branch is outside.
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

// hold gives the baton away as leave does, and waits until no other branch goes on
// without going outside: so all that is recorded has been come by before anything
// new is begun. It returns the first recorded call that was not come by all the
// same, though nothing is under way that could lead there.
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

// enter takes the baton again.
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

// wait gives the baton to the branches of k that run, in their order, and waits
// until the fork is over.
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

// isLost reports that the branch is one of a First that another branch was faster
// than, or within one.
func (b *branch) isLost() bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.lostLocked()
}

// failed reports that the branch has panicked.
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
	if b.of == nil {
		return nil
	}
	return b.of.by
}

// idles gives the baton to the next in line if nobody has it. The caller holds mu.
func (w *walk) idles() {
	if w.holder == nil {
		w.next()
	}
}

// next gives the baton to the next in line. Where there is none, those go outside
// that were held. The caller holds mu.
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

// moved changes what a branch is about, and what those are about that wait for
// it. The caller holds mu.
func (w *walk) moved(b *branch, to status) {
	for b.status != to {
		k := b.of
		if k != nil {
			k.count[b.status]--
			k.count[to]++
		}
		b.status = to
		if k == nil || k.by.waits != k {
			return
		}
		if b = k.by; k.over() {
			b.waits, to = nil, isBusy
			w.line = append([]*branch{b}, w.line...) // before branches beside it begin
			w.idles()
		} else {
			to = k.status()
		}
	}
}

// over says whether the branch that waits for the fork goes on: of All when
// nothing goes on any more, of First when one has ended and the others have gone
// as far as they can.
func (k *fork) over() bool {
	return k.count[isBusy] == 0 && (k.count[isOutside] == 0 || k.first && k.count[isEnded] > 0)
}

// status is what the branch is about that waits for the fork.
func (k *fork) status() status {
	if k.count[isBusy] > 0 {
		return isBusy
	}
	return isOutside
}

// goroutine is the number of the goroutine that calls it. It walks the stack, so
// it is asked at the beginning and the end of a branch only.
func goroutine() (id uint64) {
	var text [len("goroutine ") + 20]byte
	for _, c := range text[len("goroutine "):runtime.Stack(text[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + uint64(c-'0')
	}
	return id
}
