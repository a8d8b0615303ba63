package quipu

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/internal/session"
)

// QueueUnknown is the Queued of a topic whose queue cannot be read here.
const QueueUnknown = -1

// Topic is what a space has of one topic now.
type Topic struct {
	Name string
	// Queued are the requests that wait in NATS for a process; QueueUnknown without NATS, or without the
	// rights of an engine there. Oldest is how long the oldest of them has been there, 0 where that
	// was not looked at.
	Queued int64
	Oldest time.Duration
	// Running are the requests that processes hold. A request of less than a third of the ack wait
	// is held only where the process took it over from its own commit (W7).
	Running int64
	// Rate is how many runs of its handlers have ended a second, over the last minute: attempts,
	// however they ended. Workers in other languages, and processes that have ended, are not in it.
	Rate float64
	// Longest is how long ago the request was sent whose run has gone on longest; 0 for none.
	Longest time.Duration
	// Processes are the names of the living processes that have a handler for it, the oldest first.
	// A worker in another language is none of them.
	Processes []string
	// Elsewhere says that none of Processes serves it and that somebody asks NATS for its requests: a
	// worker in another language. It is false where Queued is QueueUnknown.
	Elsewhere bool
}

// Served says that somebody takes the requests of the topic.
func (t *Topic) Served() bool { return len(t.Processes) > 0 || t.Elsewhere }

// Topics lists the topics that living processes serve, and those with requests that wait or run, by
// name. Of the latter it has the 100 with most. It is for people: what it says is past already.
func (rt *Runtime) Topics(ctx context.Context) ([]Topic, error) {
	g, err := rt.store.Gauges(ctx)
	if err != nil {
		return nil, err
	}
	living, err := rt.store.Processes(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]*Topic{}
	of := func(name string) *Topic {
		if all[name] == nil {
			all[name] = &Topic{Name: name, Queued: QueueUnknown}
		}
		return all[name]
	}
	for name, n := range g.Running {
		of(name).Running, of(name).Longest = n.N, n.Age
	}
	for i := range living {
		p := &living[i]
		for n, name := range p.Topics {
			if name == "" { // it serves that one no more
				continue
			}
			t := of(name)
			if t.Processes = append(t.Processes, p.Name); n < len(p.Ran) {
				t.Rate += float64(p.Ran[n]) / session.RanSpan.Seconds()
			}
		}
	}
	if rt.proc.Bus != nil {
		if q, err := rt.proc.Bus.Queues(ctx); err == nil {
			for _, t := range all {
				t.Queued = 0
			}
			for _, t := range q.Topics {
				x := of(t.Topic)
				x.Queued, x.Oldest = t.Queued, t.Oldest
				x.Elsewhere = t.Pulled && len(x.Processes) == 0
			}
		}
	}
	out := make([]Topic, 0, len(all))
	for _, t := range all {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}
