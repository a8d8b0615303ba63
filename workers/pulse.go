package workers

import (
	"context"
	"errors"
	"time"

	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/transport"
)

// fastest bounds how often a pulse can come.
const fastest = 5 * time.Millisecond

func (p *pulse) start(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r, p.kept, p.beat = r, r.began, r.began
	p.timer = time.AfterFunc(p.interval(), p.tick)
}

// stop ends the pulse; a tick under way ends by itself and finds it stopped.
func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// answering says that the response is with the bus: from here on the pulse waits
// for the PubAck only.
func (p *pulse) answering() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = time.Now()
	if !p.stopped {
		p.timer.Reset(p.r.rt.cfg.ResponseWait)
	}
}

// hurry says that the handler's context has ended: the handler has its grace from
// now on, and not from the next tick.
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
	every := min(cfg.AckWait, cfg.Lease) / 3
	if !p.ended.IsZero() { // also where the context ended before open was done
		every = min(every, cfg.Grace/2)
	}
	return max(every, fastest)
}

// due is what one tick has to do.
type due struct{ keep, beat, giveUp, late bool }

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
			r.rt.cfg.Logger.Debug("a delivery could not be kept", "topic", r.h.topic, "error", err)
		}
	}
	if what.beat {
		p.heartbeat()
	}
	if what.giveUp {
		r.giveUp()
	}
	if what.late {
		r.unheard("wait for the PubAck of the response", transport.ErrUnavailable)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped && p.answered.IsZero() {
		p.timer.Reset(p.interval())
	}
}

// look decides; the caller holds mu.
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
	if p.r.ctx.Err() == nil {
		what.beat = now.Sub(p.beat) >= cfg.Lease/3
		return what
	}
	what.giveUp = !p.ended.IsZero() && now.Sub(p.ended) >= cfg.Grace
	// The lease is kept as long as the handler may still be outside.
	what.beat = !what.giveUp && now.Sub(p.beat) >= cfg.Lease/3
	return what
}

// heartbeat extends the lease, and learns that the run is lost (E9).
func (p *pulse) heartbeat() {
	r := p.r
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.rt.base), r.rt.cfg.Lease/3)
	defer cancel()
	err := r.session.Beat(ctx)
	switch {
	case err == nil:
		p.mu.Lock()
		p.beat = time.Now()
		p.mu.Unlock()
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrJobClosed), errors.Is(err, store.ErrLeased):
		r.cancel(err)
	default:
		r.log().Warn("a heartbeat failed, it is tried again", "error", err)
	}
}
