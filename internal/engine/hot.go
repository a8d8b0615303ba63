package engine

import (
	"container/list"
	"maps"
	"sync"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// hot keeps the states that this process committed last (W6): a message of a hot job needs no
// load. A kept state is never changed, only replaced. It is only a guess: the commit compares
// what the decision relied on. hot is safe for concurrent use.
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

// newHot makes a cache of that many bytes; below 1 it keeps nothing.
func newHot(most int) *hot {
	return &hot{most: most, byJob: map[journal.JobID]*list.Element{}, used: list.New()}
}

// on reports whether anything is kept at all.
func (h *hot) on() bool { return h.most > 0 }

// get returns the state of a job; nil: it has to be loaded.
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

// put keeps a state that was just committed; if it may not be kept, the job is dropped. The
// state then belongs to the cache.
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
	if keep {
		h.push(s, size)
	}
}

// push keeps a state of a job of which none is kept.
func (h *hot) push(s *collation.State, size int) {
	if size > h.most {
		return
	}
	h.byJob[s.Job.ID] = h.used.PushFront(&kept{s, size})
	for h.bytes += size; h.bytes > h.most; {
		h.remove(h.used.Back().Value.(*kept).state.Job.ID)
	}
}

// add gives the kept state of a job rows that the plans of others have inserted for it: wake-ups
// by signals, and outcomes of children.
func (h *hot) add(job journal.JobID, rows []*collation.Row) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.byJob[job]
	if e == nil {
		return
	}
	state := *e.Value.(*kept).state
	h.remove(job)
	if len(state.Instances)+len(state.Results)+len(state.Rows)+len(rows) > collation.MaxHot {
		return
	}
	state.Rows = maps.Clone(state.Rows)
	for _, r := range rows {
		row := *r // its plan does not stay in memory for it
		state.Rows[r.GUID] = &row
	}
	h.push(&state, state.Size())
}

// maxMoved bounds the rows of a state that is copied for each effect.
const maxMoved = 16

// move gives the kept state of a job a request's row as its effects have left it. It drops the
// state if that does not have the row as it was before.
func (h *hot) move(k collation.RowKey, row *collation.Row, was int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.byJob[k.Job]
	if e == nil {
		return
	}
	old := e.Value.(*kept)
	r := old.state.Rows[k.GUID]
	if row == nil || r == nil || r.Rev != was || len(old.state.Rows) > maxMoved {
		h.remove(k.Job)
		return
	}
	after, state := *r, *old.state
	after.SetEffects(row)
	after.Rev = row.Rev
	state.Rows = maps.Clone(state.Rows)
	state.Rows[k.GUID] = &after
	e.Value = &kept{&state, old.size}
}

// drop forgets jobs: their next message loads them.
func (h *hot) drop(jobs ...journal.JobID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, job := range jobs {
		h.remove(job)
	}
}

// clear forgets all jobs.
func (h *hot) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes = 0
	clear(h.byJob)
	h.used.Init()
}

func (h *hot) remove(job journal.JobID) {
	if e := h.byJob[job]; e != nil {
		h.bytes -= h.used.Remove(e).(*kept).size
		delete(h.byJob, job)
	}
}
