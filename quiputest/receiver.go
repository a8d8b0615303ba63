package quiputest

import (
	"context"
	"maps"
	"runtime"
	"sync"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// Receiver stands for an outside service in the bodies of effects. It counts requests and what it
// did for them. CrashEverywhere compares what the receivers did, and lets processes die right
// after a request. The zero value is a receiver outside any world.
type Receiver struct {
	w    *World // nil: outside any world
	name string

	mu        sync.Mutex
	requested int
	applied   map[string]int // by key, each at most once
	done      map[string]int // without a key
}

// Receiver returns the receiver with that name; the first call makes it.
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

// Apply is a request to a service that removes duplicates: the first request with a key is
// applied and returns true, later ones change nothing. ctx is that of the body. key is what the
// body would send, such as effects.Key(ctx).
func (r *Receiver) Apply(ctx context.Context, key string) (first bool) {
	r.ask(ctx, key, func() {
		first = r.applied[key] == 0
		r.applied[key] = 1
	})
	return first
}

// Do is a request to a service that does not remove duplicates: it is done each time. ctx is that
// of the body or handler.
func (r *Receiver) Do(ctx context.Context, what string) {
	r.ask(ctx, what, func() { r.done[what]++ })
}

// ask counts a request. A dead process sends none.
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

// Applied returns how often the request with the key was done; Apply does it at most once.
func (r *Receiver) Applied(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied[key] + r.done[key]
}

// Total returns how many requests came, and how many were done.
func (r *Receiver) Total() (requested, applied int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.done {
		applied += n
	}
	applied += len(r.applied)
	return r.requested, applied
}

// Verifier tells the runtime whether an effect was done (3.3): whether Apply was called with its
// key. result returns what the body would have returned.
func (r *Receiver) Verifier(result func(key string) any) effects.Verifier {
	return effects.VerifierFunc(func(_ context.Context, q effects.Question) (effects.Answer, error) {
		if r.Applied(q.Key) == 0 {
			return effects.Answer{State: effects.StateNotDone}, nil
		}
		raw, err := canonical.Marshal(result(q.Key))
		return effects.Answer{State: effects.StateDone, Result: raw}, err
	})
}

// underKeys is the name that did gives to everything applied under keys.
const underKeys = "something under a key"

// did returns what CrashEverywhere compares: the number of applied keys, but not the keys, since
// an effect that a person declared not done gets another one; and what was done without a key.
// Keys of effects in losing branches do not count.
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
