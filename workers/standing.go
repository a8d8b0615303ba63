package workers

import (
	"sync"

	"github.com/quipu-journal/quipu/durable"
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, is := s.all[request]; is {
		old.Drop()
	} else if len(s.all) >= s.limit {
		s.shrink()
	}
	if s.over {
		f.Drop()
		return
	}
	if s.all == nil {
		s.all = make(map[journal.GUID]stood)
	}
	s.puts++
	f.nth = s.puts
	s.all[request] = f
}

// shrink drops the function that stands longest.
func (s *standing) shrink() {
	var longest journal.GUID
	for request, f := range s.all {
		if longest.IsZero() || f.nth < s.all[longest].nth {
			longest = request
		}
	}
	if f, is := s.all[longest]; is {
		f.Drop()
		delete(s.all, longest)
	}
}

// take gives the function with which that turn of the request goes on; ok is false where
// there is none, or where it is time for a run from the top.
func (s *standing) take(request journal.GUID, turn int) (f stood, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok = s.all[request]; !ok {
		return f, false
	}
	delete(s.all, request)
	if turn != f.turn+1 || turn-f.top > f.top/often {
		f.Drop()
		return stood{}, false
	}
	return f, true
}

// close drops all functions, and those that are still put.
func (s *standing) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, f := range s.all {
		f.Drop()
	}
	s.all = nil
}
