package effectstest

import (
	"sync"

	"github.com/quipu-journal/quipu/journal/store"
)

// Session is that of a process, for a runtime of workers: it lives until End, and
// tells its runs nothing before. It is safe for concurrent use.
type Session struct {
	mu    sync.Mutex
	ended bool
	lost  map[*int]func(error)
	back  []store.Lease
}

// Current implements workers.Session: it is session 1.
func (s *Session) Current() (id int64, alive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 1, !s.ended
}

// Watch implements workers.Session.
func (s *Session) Watch(_ func() (l store.Lease, held bool), lost func(error)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = make(map[*int]func(error))
	}
	w := new(int)
	s.lost[w] = lost
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.lost, w)
	}
}

// Return implements workers.Session.
func (s *Session) Return(l store.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = append(s.back, l)
}

// Returned are the leases that Return was given.
func (s *Session) Returned() []store.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]store.Lease(nil), s.back...)
}

// Tell tells the runs that are watched that they have their requests no more.
func (s *Session) Tell(why error) {
	s.mu.Lock()
	runs := make([]func(error), 0, len(s.lost))
	for _, lost := range s.lost {
		runs = append(runs, lost)
	}
	s.mu.Unlock()
	for _, lost := range runs {
		lost(why)
	}
}

// End ends it, and tells its runs.
func (s *Session) End() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.Tell(store.ErrStale)
}
