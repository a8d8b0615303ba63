package quiputest

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/journal/store"
)

// session is the session of a worker process (W8). A world renews no sessions, since a year would
// have too many renewals. A session ends with its process, or, after the process's death, when a
// real process would end it.
type session struct {
	store.Session
	p *process
}

// Current implements workers.Session.
func (s *session) Current() (id int64, alive bool) { return s.ID(), !s.p.dead.Load() }

// Watch implements workers.Session. It checks as often as in production, but only while a handler
// runs.
func (s *session) Watch(held func() (l store.Lease, held bool), lost func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		tick := time.NewTicker(lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if l, ok := held(); ok {
				s.look(ctx, l, lost)
			}
		}
	}()
	return func() {
		cancel()
		if l, ok := held(); ok { // the answer is on its way, and may be lost
			time.AfterFunc(lease, func() { s.Return(l) })
		}
	}
}

func (s *session) look(ctx context.Context, l store.Lease, lost func(error)) {
	if s.p.dead.Load() {
		return
	}
	gone, _ := s.Lost(ctx, []store.Lease{l}) // tables in memory do not fail
	for _, x := range gone {
		why := store.ErrStale
		if x.Closed {
			why = store.ErrJobClosed
		}
		lost(why)
	}
}

// Return implements workers.Session.
func (s *session) Return(l store.Lease) {
	if !s.p.dead.Load() {
		_ = s.p.w.tables.HandBack(context.Background(), l) // ErrStale: the process has lost it
	}
}

// end frees what the process holds.
func (s *session) end() { _ = s.End(context.Background()) }
