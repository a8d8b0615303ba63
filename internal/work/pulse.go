package work

import (
	"context"
	"errors"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// fastest bounds how often a pulse ticks.
const fastest = 5 * time.Millisecond

func (p *pulse) start(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r, p.kept = r, r.began
	p.timer = time.AfterFunc(p.interval(), p.tick)
}

// stop ends the pulse; a tick under way sees that it is stopped.
func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// answering says that the bus has the response: from now on the pulse only waits for its
// PubAck.
func (p *pulse) answering() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = time.Now()
	if !p.stopped {
		p.timer.Reset(p.r.rt.cfg.ResponseWait)
	}
}

// hurry says that the handler's context has ended: its grace begins now, not with the
// next tick.
func (p *pulse) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || !p.answered.IsZero() {
		return
	}
	p.ended = time.Now()
	p.timer.Reset(p.interval())
}

// interval is how long the pulse may sleep.
func (p *pulse) interval() time.Duration {
	cfg := &p.r.rt.cfg
	every := cfg.AckWait / 3
	if !p.ended.IsZero() { // also when the context ended before open returned
		every = min(every, cfg.Grace/2)
	}
	return max(every, fastest)
}

// due is what one tick has to do.
type due struct{ keep, hold, giveUp, late bool }

func (p *pulse) tick() {
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return
	}
	what := p.look(time.Now())
	p.mu.Unlock()
	r := p.r
	if what.keep {
		if err := r.d.InProgress(); err != nil && !errors.Is(err, transport.ErrFinished) {
			r.rt.cfg.Logger.Debug("a delivery could not be kept", "topic", r.h.Topic, "error", err)
		}
	}
	if what.hold {
		go p.hold() // it waits for the store, and the delivery must be kept meanwhile
	}
	if what.giveUp {
		r.giveUp()
	}
	if what.late {
		r.handBack("wait for the PubAck of the response", transport.ErrUnavailable)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped && p.answered.IsZero() {
		p.timer.Reset(p.interval())
	}
}

// look decides what is due; the caller holds mu.
func (p *pulse) look(now time.Time) (what due) {
	cfg := &p.r.rt.cfg
	if !p.answered.IsZero() {
		what.late = now.Sub(p.answered) >= cfg.ResponseWait
		return what
	}
	if what.keep = now.Sub(p.kept) >= cfg.AckWait/3; what.keep {
		p.kept = now
	}
	if !p.running {
		return what
	}
	what.giveUp = p.r.ctx.Err() != nil && !p.ended.IsZero() && now.Sub(p.ended) >= cfg.Grace
	// The lease is also taken for a handler whose context has ended: it may still be in a
	// call outside.
	what.hold = !what.giveUp && !p.holds && now.Sub(p.r.began) >= cfg.AckWait/3
	p.holds = p.holds || what.hold
	return what
}

// hold takes the lease of a long run, and may find that the run has lost its request
// (E9). From then on the session of the process keeps the lease (W8).
func (p *pulse) hold() {
	r := p.r
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.rt.base), storeWait)
	defer cancel()
	err := r.session.Keep(ctx)
	switch {
	case err == nil:
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrJobClosed), errors.Is(err, store.ErrLeased):
		r.cancel(err)
	default:
		p.mu.Lock()
		p.holds = false
		p.mu.Unlock()
		r.log().Warn("a run could not take its request for long; it is tried again", "error", err)
	}
}
