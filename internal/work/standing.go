package work

import (
	"sync"

	"github.com/quipu-journal/quipu/internal/durable"
	"github.com/quipu-journal/quipu/journal"
)

// standing has the durable functions that stand at their waits in this process, at most
// limit. The next turn of one goes on there, if it comes to this process; any other run
// begins at the top, with the record. So all of them can be dropped at any time.
type standing struct {
	limit int

	mu   sync.Mutex
	over bool
	puts uint64
	all  map[journal.GUID]stood
}

// stood is a function that stands.
type stood struct {
	*durable.Function
	turn int // that it has answered
	top  int // the last turn that ran from the top
	nth  uint64
}

// often bounds the turns in which a function goes on before it runs from its top again:
// one for every so many turns that it had by then. So a function of few turns always runs
// from its top, and in a long one a difference from the record shows before long (E15).
const often = 25

// put keeps the function of a request for its next turn. If there are too many, the one
// that stands longest is dropped.
func (s *standing) put(request journal.GUID, f stood) {
	if out := s.replace(request, f); out.Function != nil {
		out.Drop()
	}
}

// replace is put; it gives the function that has to go, whose deferred calls may take
// their time.
func (s *standing) replace(request journal.GUID, f stood) (out stood) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return f
	}
	out, is := s.all[request]
	if !is && len(s.all) >= s.limit {
		var longest journal.GUID
		for other, g := range s.all {
			if out.Function == nil || g.nth < out.nth {
				longest, out = other, g
			}
		}
		delete(s.all, longest)
	}
	if s.all == nil {
		s.all = make(map[journal.GUID]stood)
	}
	s.puts++
	f.nth = s.puts
	s.all[request] = f
	return out
}

// take gives the function with which that turn of the request goes on; ok is false where
// there is none, or where it is time for a run from the top.
func (s *standing) take(request journal.GUID, turn int) (f stood, ok bool) {
	s.mu.Lock()
	f, ok = s.all[request]
	delete(s.all, request)
	s.mu.Unlock()
	if ok && (turn != f.turn+1 || turn-f.top > f.top/often) {
		f.Drop()
		return stood{}, false
	}
	return f, ok
}

// close drops all functions, and those that are still put.
func (s *standing) close() {
	s.mu.Lock()
	all := s.all
	s.over, s.all = true, nil
	s.mu.Unlock()
	for _, f := range all {
		f.Drop()
	}
}
