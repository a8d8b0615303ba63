package engine

import (
	"maps"
	"sync"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Bounds of the effect chains that are kept.
const (
	maxWarm        = 4096 // chains; about a kilobyte each
	maxWarmEffects = 64   // that have not ended, of one chain
)

// warm keeps the effect chains that this process committed last, like the states of hot jobs (W6):
// what a run records next needs no load. A kept chain is only a guess: the commit compares the rev
// of its row, and none of its effects begins or ends twice. It is safe for concurrent use.
type warm struct {
	mu    sync.Mutex
	byKey map[collation.RowKey]*collation.Chain
}

// take removes a chain and returns it; nil: it has to be loaded.
func (w *warm) take(k collation.RowKey) *collation.Chain {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.byKey[k]
	delete(w.byKey, k)
	return h
}

// put keeps a chain as a commit has left it, if a run holds its request. The chain then belongs
// to the cache, and has no more effects than those that have not ended, and the one that ended
// last.
func (w *warm) put(k collation.RowKey, h *collation.Chain, last *collation.ChainWrite) {
	if h.Row == nil || h.Row.Holder == "" {
		return
	}
	maps.DeleteFunc(h.Effects, func(key journal.Digest, f *collation.Effect) bool {
		if f.State == collation.EffectStarted {
			return false
		}
		f.Result, f.Error = nil, nil
		return key != last.Effect.Key
	})
	if len(h.Effects) > maxWarmEffects {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil || len(w.byKey) >= maxWarm {
		w.byKey = make(map[collation.RowKey]*collation.Chain)
	}
	w.byKey[k] = h
}

// clear forgets all chains.
func (w *warm) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byKey = nil
}

// warmUp gives the batch the kept chains on which its calls can be decided. All calls of a chain
// are decided on what is kept, or none.
func (l *loop) warmUp(b *batch, calls []*call) {
	if !l.hot.on() {
		return
	}
	cold := map[collation.RowKey]bool{}
	for _, x := range calls {
		if e := x.effect; e != nil && (e.cold || e.of.Resumes) {
			cold[e.of.Key()] = true
		}
	}
	for _, x := range calls {
		if x.effect == nil {
			continue
		}
		k := x.effect.of.Key()
		if h := l.warm.take(k); h != nil && !cold[k] {
			b.warm[k] = h
		}
	}
}

// keepWarm keeps the chains that the commit has moved, and moves the requests' rows in the hot
// states of their jobs.
func (l *loop) keepWarm(b *batch) {
	if !l.hot.on() {
		return
	}
	type moved struct {
		was  int64 // the row's rev before
		last *collation.ChainWrite
	}
	all := map[collation.RowKey]moved{}
	for i := range b.plans {
		p := b.plans[i].Plan
		if p.Chain == nil || p.Entry != nil {
			continue
		}
		k := collation.RowKey{Job: p.Job, GUID: p.Chain.Request}
		m, again := all[k]
		if !again && p.Chain.Row != nil {
			m.was = p.Chain.Row.Rev - 1
		}
		m.last = p.Chain
		all[k] = m
	}
	for k, m := range all {
		l.hot.move(k, m.last.Row, m.was)
		if h := b.loaded.Chains[k]; h != nil {
			l.warm.put(k, h, m.last)
		}
	}
}
