package membus

import (
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/transport"
)

// Tell implements transport.Bus. With Loss, some calls are lost.
func (b *Bus) Tell(jobs ...[16]byte) {
	for _, job := range jobs {
		b.mu.Lock()
		listening := slices.Collect(maps.Keys(b.told[job]))
		lost := (dice{seed: b.cfg.Seed, id: string(job[:])}).falls(loseTold, b.cfg.Loss)
		b.mu.Unlock()
		if lost {
			continue
		}
		for _, told := range listening {
			(*told)()
		}
	}
}

// Listen implements transport.Bus.
func (b *Bus) Listen(job [16]byte, told func()) (stop func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ending {
		return nil, transport.ErrClosed
	}
	if b.told[job] == nil {
		b.told[job] = map[*func()]struct{}{}
	}
	b.told[job][&told] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.told[job], &told)
		if len(b.told[job]) == 0 {
			delete(b.told, job)
		}
	}, nil
}
