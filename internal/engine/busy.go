package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Bounds of the decisions of a loop.
const (
	// maxDeciding bounds how long one batch decides: what is left by then goes into the next one,
	// so that what is decided commits and the others go on.
	maxDeciding = time.Second
	// busyAfter is how long one decision may take before the process says so, and deadAfter how
	// long the database may be silent.
	busyAfter = 2 * time.Second
	deadAfter = 10 * time.Second
	// failAfter is how long transactions may fail, one after the other, before the process says so,
	// and failsFor how long it goes on to say so when nothing is tried any more.
	failAfter = 2 * time.Second
	failsFor  = 5 * time.Second
	// busyLook is the time between two looks at the loops, and busySay the least time between two
	// lines of the log about one loop.
	busyLook = 500 * time.Millisecond
	busySay  = 10 * time.Second
)

// Busy is what a loop of the committer has been doing for too long.
type Busy struct {
	// Deciding: it decides on what follows; otherwise it waits for the database.
	Deciding bool
	For      time.Duration
	Job      journal.JobID // zero: the item is none of a job
	Message  journal.GUID
	Name     string // the kind of the message, or the name of the call
	Activity string
}

// String says it without names: anybody may ask whether a process is ready.
func (b *Busy) String() string {
	if b.Deciding {
		return fmt.Sprintf("an engine of this process has been busy with one message for %d s", int(b.For.Seconds()))
	}
	return fmt.Sprintf("a commit of this process has been waiting for the database for %d s", int(b.For.Seconds()))
}

// Told is what other processes are told of it: the message that holds up an engine.
func (b *Busy) Told() store.Busy {
	if b == nil || !b.Deciding {
		return store.Busy{}
	}
	return store.Busy{For: b.For, Job: b.Job, Message: b.Message}
}

// progress is what a loop does now, and since when. Only its loop changes it; the watch reads it.
type progress struct {
	mu    sync.Mutex
	open  bool      // a transaction is under way
	since time.Time // of what is done now
	item  Busy      // what is decided on
	began time.Time // of the decision, without what it waited for; the loop's own
	said  time.Time // of the watch
	// failing is since when no transaction has succeeded, failed when one failed last, and why.
	failing, failed time.Time
	why             error
}

// enter says that a transaction begins: outside of decisions it waits for the database. Call leave
// at its end.
func (p *progress) enter() { p.set(true, Busy{}) }
func (p *progress) leave() { p.set(false, Busy{}) }

func (p *progress) set(open bool, item Busy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open, p.since, p.item = open, time.Now(), item
}

// begin says that a decision begins, which has taken so much time before. Call end after it.
func (p *progress) begin(item Busy, took time.Duration) {
	item.Deciding = true
	p.set(true, item)
	p.began = p.since.Add(-took)
}

// end returns how long the decision has taken in all.
func (p *progress) end() (took time.Duration) {
	p.set(true, Busy{})
	return p.since.Sub(p.began)
}

// wait says that the decision under way waits for the database, until back is called.
func (p *progress) wait() (back func()) {
	item := p.item
	p.set(true, Busy{})
	from := p.since
	return func() {
		p.set(true, item)
		p.began = p.began.Add(p.since.Sub(from))
	}
}

// tooSlow reports whether the decision under way takes too long (collation.Mode.Stop).
func (l *loop) tooSlow() bool { return time.Since(l.progress.began) >= l.cfg.Slow }

// look tells what the loop has been doing for too long; nil: nothing. A patient loop may wait for
// the database, since it waits for what others hold.
func (p *progress) look(patient bool) *Busy {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.item
	b.For = time.Since(p.since)
	switch {
	case b.Deciding && b.For >= busyAfter:
	case p.open && !b.Deciding && !patient && b.For >= deadAfter:
	default:
		return nil
	}
	return &b
}

// ended notes what became of a transaction.
func (p *progress) ended(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		p.failing, p.why = time.Time{}, nil
	case errors.Is(err, store.ErrLost), errors.Is(err, store.ErrBusy): // others were faster
	default:
		if p.failing.IsZero() {
			p.failing = now
		}
		p.failed, p.why = now, err
	}
}

// Failing is since when a loop of this process tries to commit in vain, the longest, and why; nil:
// what was tried last succeeded.
func (c *Committer) Failing() (since time.Time, why error) {
	now := time.Now()
	for l := range c.all {
		p := &l.progress
		p.mu.Lock()
		if p.why != nil && now.Sub(p.failing) >= failAfter && now.Sub(p.failed) < failsFor &&
			(why == nil || p.failing.Before(since)) {
			since, why = p.failing, p.why
		}
		p.mu.Unlock()
	}
	return since, why
}

// under reports whether a transaction is under way.
func (p *progress) under() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// says reports whether the log gets a line about the loop, and notes it.
func (p *progress) says() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.said.IsZero() && now.Sub(p.said) < busySay {
		return false
	}
	p.said = now
	return true
}

// enter says that a transaction of the loop begins, and has the watch look.
func (l *loop) enter() {
	l.progress.enter()
	select {
	case l.opens <- struct{}{}:
	default:
	}
}

// all are the loops of the committer.
func (c *Committer) all(yield func(*loop) bool) {
	for _, loops := range [][]*loop{c.loops, c.sort.loops, c.aside.loops} {
		for _, l := range loops {
			if !yield(l) {
				return
			}
		}
	}
}

// Busy returns what loops of this process have been doing for too long, the longest first of those
// that decide, then of those that wait for the database; nil: nothing.
func (c *Committer) Busy() (worst *Busy) {
	for l := range c.all {
		b := l.progress.look(l.policy.waits())
		if b != nil &&
			(worst == nil || b.Deciding && !worst.Deciding || b.Deciding == worst.Deciding && b.For > worst.For) {
			worst = b
		}
	}
	return worst
}

// watch says in the log which loops are busy with one item, until ctx ends. It sleeps while no
// transaction is under way.
func (c *Committer) watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.opens:
		}
		for open := true; open; {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(busyLook):
			}
			open = c.tell()
		}
	}
}

// tell says in the log which loops are busy. It reports whether a transaction is under way.
func (c *Committer) tell() (open bool) {
	for l := range c.all {
		open = open || l.progress.under()
		if b := l.progress.look(l.policy.waits()); b != nil && l.progress.says() {
			c.log.Warn(b.String()+"; it holds up what waits behind it", "job", b.Job.String(), "message", b.Message.String(), "kind", b.Name, "activity", b.Activity)
		}
	}
	return open
}
