package engine

import (
	"container/list"
	"maps"
	"sync"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Bounds of the effect chains that are kept.
const (
	maxChains       = 4096 // about a kilobyte each
	maxChainEffects = 64   // that have not ended, of one chain
)

// cache stands in front of the load (W6). It keeps what this process committed last: the states of
// jobs, so that their next message needs no load, and the effect chains of running requests, so
// that what a run records next needs none. What it has is only a guess: the commit compares what a
// decision relied on. A kept state is never changed, only replaced; a chain is taken out while a
// batch decides on it. The cache is safe for concurrent use.
type cache struct {
	mu     sync.Mutex
	most   int // bytes of states
	bytes  int
	byJob  map[journal.JobID]*list.Element
	used   *list.List // of *kept, the least recently used last
	chains map[collation.RowKey]*collation.Chain
}

type kept struct {
	state *collation.State
	size  int
}

// newCache makes a cache of that many bytes; below 1 it keeps nothing.
func newCache(most int) *cache {
	return &cache{most: most, byJob: map[journal.JobID]*list.Element{}, used: list.New()}
}

// on reports whether anything is kept at all.
func (c *cache) on() bool { return c.most > 0 }

// state returns the state of a job; nil: it has to be loaded.
func (c *cache) state(job journal.JobID) *collation.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byJob[job]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*kept).state
}

// put keeps a state that was just committed; if it may not be kept, the job is dropped. The
// state then belongs to the cache.
func (c *cache) put(s *collation.State) {
	if !c.on() {
		return
	}
	keep, size := s.Keep(), 0
	if keep {
		size = s.Size()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(s.Job.ID)
	if keep {
		c.push(s, size)
	}
}

// push keeps a state of a job of which none is kept.
func (c *cache) push(s *collation.State, size int) {
	if size > c.most {
		return
	}
	c.byJob[s.Job.ID] = c.used.PushFront(&kept{s, size})
	for c.bytes += size; c.bytes > c.most; {
		c.remove(c.used.Back().Value.(*kept).state.Job.ID)
	}
}

// add gives the kept state of a job rows that the plans of others have inserted for it: wake-ups
// by signals, and outcomes of children.
func (c *cache) add(job journal.JobID, rows []*collation.Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byJob[job]
	if e == nil {
		return
	}
	state := *e.Value.(*kept).state
	c.remove(job)
	if len(state.Instances)+len(state.Results)+len(state.Rows)+len(rows) > collation.MaxHot {
		return
	}
	state.Rows = maps.Clone(state.Rows)
	for _, r := range rows {
		row := *r // its plan does not stay in memory for it
		state.Rows[r.GUID] = &row
	}
	c.push(&state, state.Size())
}

// maxMoved bounds the rows of a state that is copied for each effect.
const maxMoved = 16

// move gives the kept state of a job a request's row as its effects have left it. It drops the
// state if that does not have the row as it was before.
func (c *cache) move(k collation.RowKey, row *collation.Row, was int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byJob[k.Job]
	if e == nil {
		return
	}
	old := e.Value.(*kept)
	r := old.state.Rows[k.GUID]
	if row == nil || r == nil || r.Rev != was || len(old.state.Rows) > maxMoved {
		c.remove(k.Job)
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
func (c *cache) drop(jobs ...journal.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, job := range jobs {
		c.remove(job)
	}
}

// clear forgets everything.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes = 0
	clear(c.byJob)
	c.used.Init()
	c.chains = nil
}

func (c *cache) remove(job journal.JobID) {
	if e := c.byJob[job]; e != nil {
		c.bytes -= c.used.Remove(e).(*kept).size
		delete(c.byJob, job)
	}
}

// takeChain removes a chain and returns it; nil: it has to be loaded.
func (c *cache) takeChain(k collation.RowKey) *collation.Chain {
	c.mu.Lock()
	defer c.mu.Unlock()
	chain := c.chains[k]
	delete(c.chains, k)
	return chain
}

// putChain keeps a chain as a commit has left it, if a run holds its request. The chain then
// belongs to the cache, and has no more effects than those that have not ended, and the one that
// ended last.
func (c *cache) putChain(k collation.RowKey, chain *collation.Chain, last *collation.ChainWrite) {
	if chain.Row == nil || chain.Row.Holder == "" {
		return
	}
	maps.DeleteFunc(chain.Effects, func(key journal.Digest, f *collation.Effect) bool {
		if f.State == collation.EffectStarted {
			return false
		}
		f.Result, f.Error = nil, nil
		return key != last.Effect.Key
	})
	if len(chain.Effects) > maxChainEffects {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chains == nil || len(c.chains) >= maxChains {
		c.chains = make(map[collation.RowKey]*collation.Chain)
	}
	c.chains[k] = chain
}
