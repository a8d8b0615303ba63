package effectstest

import (
	"maps"
	"slices"
	"sync"

	"github.com/quipu-journal/quipu/internal/store"
)

// Session is the session of a process, for a runtime of workers. It is alive until End,
// and tells its runs nothing before, unless a test calls Tell. It is safe for concurrent
// use.
type Session struct {
	mu    sync.Mutex
	ended bool
	runs  map[*watched]struct{}
}

// watched is one run.
type watched struct {
	lease func() (l store.Lease, held bool)
	lost  func(error)
}

// Current implements work.Session: session 1, alive until End.
func (s *Session) Current() (id int64, alive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 1, !s.ended
}

// Watch implements work.Session.
func (s *Session) Watch(lease func() (l store.Lease, held bool), lost func(error)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		s.runs = make(map[*watched]struct{})
	}
	w := &watched{lease, lost}
	s.runs[w] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.runs, w)
	}
}

// Held are the leases that the watched runs say they have.
func (s *Session) Held() (leases []store.Lease) {
	for _, w := range s.watched() {
		if l, held := w.lease(); held {
			leases = append(leases, l)
		}
	}
	return leases
}

func (s *Session) watched() []*watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.runs))
}

// Return implements work.Session.
func (s *Session) Return(store.Lease) {}

// Tell calls lost for every watched run, as when the runs have lost their requests.
func (s *Session) Tell(why error) {
	for _, w := range s.watched() {
		w.lost(why)
	}
}

// End ends the session, and tells its runs.
func (s *Session) End() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.Tell(store.ErrStale)
}
