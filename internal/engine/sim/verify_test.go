package sim

import (
	"context"
	"hash/fnv"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// verified are the effects that have verifiers, and the result of a disagreement.
var verified = map[string]effects.Mode{
	"e0": effects.Strict, "e1": effects.Human, "e2": effects.Warn,
	"s0": effects.Strict, "s1": effects.Human, "s2": effects.Warn, "s3": effects.Strict, "s4": effects.Human,
	topicGuarded: effects.Human, topicIdempotent: effects.Strict,
}

func (p *process) verifiers(reg *workers.Registry) {
	if !p.world.features.verify {
		return
	}
	for name, mode := range verified {
		workers.Verify(reg, name, effects.VerifierFunc(p.verify), mode)
	}
}

// verify looks outside (3.3). Of an unfinished effect it tells the truth, or that it does not
// know; with a recorded one it now and then disagrees.
func (p *process) verify(ctx context.Context, q effects.Question) (effects.Answer, error) {
	w := p.world
	v := w.gate.pass(ctx, p, kindOutside, "verify "+q.Name+" "+q.Key[:12])
	switch {
	case p.gone():
		return effects.Answer{}, p.park()
	case v.err != nil:
		return effects.Answer{}, v.err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(q.Key))
	return w.receiver.answer(&q, h.Sum64(), !w.weather.mild), nil
}

// answer is what the outside knows of a key. At the first question lot decides how doubtful that
// is.
func (r *receiver) answer(q *effects.Question, lot uint64, doubt bool) effects.Answer {
	r.rmu.Lock()
	defer r.rmu.Unlock()
	r.asked[q.Key]++
	first := doubt && r.asked[q.Key] == 1
	k := r.keys[q.Key]
	applied := k != nil && k.applied > 0
	switch {
	case r.flying(q.Key), first && lot%5 == 0:
		return effects.Answer{State: effects.StateUnknown, Note: "as told"}
	case !applied, first && lot%5 == 1 && q.Recorded != nil:
		return effects.Answer{State: effects.StateNotDone}
	}
	return effects.Answer{State: effects.StateDone, Result: resultOf(q.Key)}
}

// applied says that the call with the key was carried out.
func (r *receiver) applied(key string) bool {
	r.rmu.Lock()
	defer r.rmu.Unlock()
	return r.keys[key] != nil && r.keys[key].applied > 0
}

// flight is one call on its way to the outside.
type flight struct {
	p       *process
	request string
}

// fly records that a call is on its way, until land.
func (r *receiver) fly(p *process, key, request string) (land func()) {
	r.rmu.Lock()
	defer r.rmu.Unlock()
	f := &flight{p, request}
	if r.flights[key] == nil {
		r.flights[key] = map[*flight]bool{}
	}
	r.flights[key][f] = true
	return func() {
		r.rmu.Lock()
		defer r.rmu.Unlock()
		delete(r.flights[key], f)
	}
}

// flying says that a call with the key may still arrive. The caller has the lock.
func (r *receiver) flying(key string) bool {
	for f := range r.flights[key] {
		if !f.p.gone() {
			return true
		}
	}
	return false
}

// away says that a call with the key may still arrive, whoever made it.
func (r *receiver) away(key string) bool {
	r.rmu.Lock()
	defer r.rmu.Unlock()
	return r.flying(key)
}

// awaits says that a call of the request may still arrive: looking outside now proves nothing.
func (r *receiver) awaits(request journal.GUID) bool {
	r.rmu.Lock()
	defer r.rmu.Unlock()
	for key, flights := range r.flights {
		for f := range flights {
			if f.request == request.String() && r.flying(key) {
				return true
			}
		}
	}
	return false
}
