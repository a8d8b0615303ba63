package look

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/health"
)

// Wrong says what is wrong with the space, as far as its processes tell and s has more of it: whether
// jobs are open, gauges, topics. It fills in what s lacks of the processes.
func Wrong(ctx context.Context, rt *quipu.Runtime, s *health.Sight) ([]health.Finding, error) {
	var err error
	if s.Living == nil {
		if s.Living, err = below.Of(rt).Processes(ctx); err != nil {
			return nil, err
		}
	}
	if s.Silent, err = below.Of(rt).Silent(ctx); err != nil {
		return nil, err
	}
	s.Now = time.Now()
	return health.Space(s), nil
}

// Topics are topics as health judges them.
func Topics(all []quipu.Topic) []health.Topic {
	out := make([]health.Topic, len(all))
	for i := range all {
		t := &all[i]
		out[i] = health.Topic{Name: t.Name, Queued: t.Queued, Oldest: t.Oldest, Served: t.Served(), Longest: t.Longest}
	}
	return out
}

// Unserved compares topics so that those that nobody serves come first.
func Unserved(a, b *quipu.Topic) int {
	switch {
	case a.Served() == b.Served():
		return 0
	case b.Served():
		return -1
	}
	return 1
}
