package effectstest

import (
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Decide changes the recorded state of an effect of a request, as an operator's
// decision does (E10).
func (s *Store) Decide(id journal.GUID, key journal.Digest, f func(*store.EffectRow)) {
	s.change(id, func(r *request) { f(r.find(key)) })
}
