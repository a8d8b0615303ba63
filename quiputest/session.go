package quiputest

import (
	"context"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
)

// session is the session of a worker process (W8). A world renews no sessions, since a year would
// have too many renewals. A session ends with its process, or, after the process's death, when a
// real process would end it.
type session struct {
	store.Session
	p *process
}

// Current implements work.Session.
func (s *session) Current() (id int64, alive bool) { return s.ID(), !s.p.dead.Load() }

// Watch implements work.Session. It checks as often as in production, but only while a handler
// runs.
func (s *session) Watch(held func() (l store.Lease, held bool), lost func(error)) (stop func()) {
	w := &watch{s: s, held: held, lost: lost}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(lease/3, w.tick)
	return w.stop
}

// watch is the watch over one run.
type watch struct {
	s    *session
	held func() (l store.Lease, held bool)
	lost func(error)

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (w *watch) tick() {
	if l, ok := w.held(); ok {
		w.s.look(l, w.lost)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.timer.Reset(lease / 3)
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	w.stopped = true
	w.timer.Stop()
	w.mu.Unlock()
	if !w.s.p.w.cfg.lossy {
		return
	}
	if l, ok := w.held(); ok { // the answer is on its way, and may be lost
		time.AfterFunc(lease, func() { w.s.Return(l) })
	}
}

func (s *session) look(l store.Lease, lost func(error)) {
	if s.p.dead.Load() {
		return
	}
	gone, _ := s.Lost(context.Background(), []store.Lease{l}) // tables in memory do not fail
	for _, x := range gone {
		why := store.ErrStale
		if x.Closed {
			why = store.ErrJobClosed
		}
		lost(why)
	}
}

// Return implements work.Session.
func (s *session) Return(l store.Lease) {
	if !s.p.dead.Load() {
		_ = s.p.w.store.HandBack(context.Background(), l) // ErrStale: the process has lost it
	}
}

// end frees what the process holds.
func (s *session) end() { _ = s.End(context.Background()) }
