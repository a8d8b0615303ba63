package effectstest

import (
	"sync"

	"github.com/quipu-journal/quipu/journal/store"
)

// Session is the session of a process, for a runtime of workers. It is alive until End,
// and tells its runs nothing before, unless a test calls Tell. It is safe for concurrent
// use.
type Session struct {
	mu    sync.Mutex
	ended bool
	lost  map[*int]func(error)
}

// Current implements workers.Session: session 1, alive until End.
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
func (s *Session) Return(store.Lease) {}

// Tell calls lost for every watched run, as when the runs have lost their requests.
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

// End ends the session, and tells its runs.
func (s *Session) End() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.Tell(store.ErrStale)
}
