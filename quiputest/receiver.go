package quiputest

import (
	"context"
	"maps"
	"runtime"
	"sync"

	"github.com/quipu-journal/quipu/effects"
)

// Receiver stands for a service outside, for the bodies of effects: it counts what
// it was asked, and what it did. CrashEverywhere compares what the receivers of a
// world did, and lets processes die right after it. The zero value is a receiver
// outside of any world.
type Receiver struct {
	w    *World // nil: none
	name string

	mu        sync.Mutex
	requested int
	applied   map[string]int // under keys, each at most once
	done      map[string]int // without
}

// Receiver is the receiver of the name; the first call makes it.
func (w *World) Receiver(name string) *Receiver {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.receivers[name]
	if r == nil {
		r = &Receiver{w: w, name: name}
		w.receivers[name] = r
	}
	return r
}

// Apply is a request to a service that dedupes: the first under a key is applied,
// and reported as such; later ones change nothing. ctx is that of the body, key
// what the body would send, as effects.Key(ctx).
func (r *Receiver) Apply(ctx context.Context, key string) (first bool) {
	r.ask(ctx, key, func() {
		first = r.applied[key] == 0
		r.applied[key] = 1
	})
	return first
}

// Do is a request to a service that does not dedupe: it does what it is asked each
// time, however often. ctx is that of the body or handler.
func (r *Receiver) Do(ctx context.Context, what string) {
	r.ask(ctx, what, func() { r.done[what]++ })
}

// ask counts a request. Nobody hears of a dead process.
func (r *Receiver) ask(ctx context.Context, what string, apply func()) {
	p, _ := ctx.Value(processKey{}).(*process)
	if p != nil && p.dead.Load() {
		runtime.Goexit()
	}
	r.mu.Lock()
	if r.applied == nil {
		r.applied, r.done = map[string]int{}, map[string]int{}
	}
	r.requested++
	apply()
	r.mu.Unlock()
	if p == nil || r.w == nil || r.w.crash == nil {
		return
	}
	if where, ok := r.w.crash.applied(ctx, r.name, what); ok {
		p.reach(where)
		_ = p.alive(ctx) // ends the goroutine
	}
}

// Applied is how often what was asked under the key was done: by Apply at most
// once.
func (r *Receiver) Applied(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied[key] + r.done[key]
}

// Total is how often anything was asked, and how often anything was done.
func (r *Receiver) Total() (requested, applied int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.done {
		applied += n
	}
	applied += len(r.applied)
	return r.requested, applied
}

// Verifier finds out for the runtime whether an effect was done (3.3): whether Apply
// was called with its key. result is what the body would have returned.
func (r *Receiver) Verifier(result func(key string) any) effects.Verifier {
	return effects.VerifierFunc(func(_ context.Context, q effects.Question) (effects.Answer, error) {
		if r.Applied(q.Key) == 0 {
			return effects.Answer{State: effects.StateNotDone}, nil
		}
		raw, err := marshal(result(q.Key))
		return effects.Answer{State: effects.StateDone, Result: raw}, err
	})
}

// underKeys is how did calls what was applied under keys.
const underKeys = "something under a key"

// did is what is compared: how much was applied under keys, since an effect that a
// person said was not done has another key, and what was done without one. Keys of
// effects in branches that lost do not count.
func (r *Receiver) did(lost map[string]bool) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	maps.Copy(out, r.done)
	for key := range r.applied {
		if !lost[key] {
			out[underKeys]++
		}
	}
	return out
}
