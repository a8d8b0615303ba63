package engine

import (
	"container/list"
	"sync"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// hot keeps the states that this process committed last (W6): a message whose job is
// hot needs no Load. What it holds is never changed, only replaced, and is at most a
// guess: the commit compares what a decision stood on. It is safe for concurrent use.
type hot struct {
	mu    sync.Mutex
	most  int // bytes
	bytes int
	byJob map[journal.JobID]*list.Element
	used  *list.List // of *kept, the least recently used last
}

type kept struct {
	state *collation.State
	size  int
}

// newHot gives a cache of so many bytes; none for less than one.
func newHot(most int) *hot {
	return &hot{most: most, byJob: map[journal.JobID]*list.Element{}, used: list.New()}
}

// on says whether anything is kept at all.
func (h *hot) on() bool { return h.most > 0 }

// get gives the state of a job, nil where it has to be loaded.
func (h *hot) get(job journal.JobID) *collation.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.byJob[job]
	if e == nil {
		return nil
	}
	h.used.MoveToFront(e)
	return e.Value.(*kept).state
}

// put keeps a state that was just committed, if it may be kept; otherwise the job is
// not hot any more. The state is the cache's from then on.
func (h *hot) put(s *collation.State) {
	if !h.on() {
		return
	}
	keep, size := s.Keep(), 0
	if keep {
		size = s.Size()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(s.Job.ID)
	if !keep || size > h.most {
		return
	}
	h.byJob[s.Job.ID] = h.used.PushFront(&kept{s, size})
	for h.bytes += size; h.bytes > h.most; {
		h.remove(h.used.Back().Value.(*kept).state.Job.ID)
	}
}

// drop forgets jobs: they are loaded the next time.
func (h *hot) drop(jobs ...journal.JobID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, job := range jobs {
		h.remove(job)
	}
}

func (h *hot) remove(job journal.JobID) {
	if e := h.byJob[job]; e != nil {
		h.bytes -= h.used.Remove(e).(*kept).size
		delete(h.byJob, job)
	}
}
