package quipu

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// rateOver is the time over which the rate of starts is taken.
const rateOver = 10 * time.Second

// Space looks at what happens in the space now: its processes, open jobs by flow, its topics, and what is
// wrong. Of topics and their queues it knows what Topics knows. It is for people: what it says is past
// already.
func (rt *Runtime) Space(ctx context.Context) (*view.Space, error) {
	now, err := rt.reader.Clock(ctx)
	if err != nil {
		return nil, err
	}
	s := &view.Space{Time: time.UnixMicro(int64(now)).UTC(), Name: rt.cfg.Space, Stuck: []view.Trouble{}}
	g, err := rt.store.Gauges(ctx)
	if err != nil {
		return nil, err
	}
	begun, err := rt.CountJobs(ctx, JobFilter{From: s.Time.Add(-rateOver)})
	if err != nil {
		return nil, err
	}
	topics, err := rt.Topics(ctx)
	if err != nil {
		return nil, err
	}
	if s.Failing, err = rt.reader.Failing(ctx, now); err != nil {
		return nil, err
	}
	s.Processes, s.Started = g.Processes, float64(begun.Looked)/rateOver.Seconds()
	s.Flows, s.Topics = flowLoads(g), topicLoads(topics)
	sight := &health.Sight{Now: s.Time, Gauges: g}
	for i := range topics {
		t := &topics[i]
		sight.Topics = append(sight.Topics, health.Topic{
			Name: t.Name, Queued: t.Queued, Oldest: t.Oldest, Served: t.Served(), Longest: t.Longest,
		})
	}
	wrong, err := rt.reader.Wrong(ctx, sight)
	if err != nil {
		return nil, err
	}
	for i := range wrong {
		x := &wrong[i]
		s.Stuck = append(s.Stuck, view.Trouble{What: x.Text, N: x.N, Oldest: x.For.Seconds(), Help: x.Command})
	}
	return s, nil
}

// flowLoads are the flows with jobs that have not ended, the one with most open jobs first.
func flowLoads(g *store.Gauges) []view.FlowLoad {
	all, place := []view.FlowLoad{}, map[string]int{}
	for of, n := range g.Jobs {
		if n == 0 {
			continue
		}
		at, known := place[of.Flow]
		if !known {
			at = len(all)
			place[of.Flow], all = at, append(all, view.FlowLoad{Flow: of.Flow})
		}
		if of.State == journal.JobQuarantined {
			all[at].Quarantined = n
		} else {
			all[at].Open = n
		}
	}
	slices.SortFunc(all, func(x, y view.FlowLoad) int {
		return cmp.Or(cmp.Compare(y.Open, x.Open), cmp.Compare(x.Flow, y.Flow))
	})
	return all
}

// topicLoads are the topics: first those that nobody serves, then by what waits and runs.
func topicLoads(topics []Topic) []view.TopicLoad {
	all := make([]view.TopicLoad, len(topics))
	for i := range topics {
		t := &topics[i]
		all[i] = view.TopicLoad{
			Topic: t.Name, Oldest: t.Oldest.Seconds(), Running: t.Running, Longest: t.Longest.Seconds(), Rate: t.Rate,
			Processes: append([]string{}, t.Processes...), Elsewhere: t.Elsewhere, Early: t.Early,
		}
		if t.Queued != QueueUnknown {
			all[i].Queued = &t.Queued
		}
	}
	rank := func(t *view.TopicLoad) int {
		if t.Served() {
			return 1
		}
		return 0
	}
	queued := func(t *view.TopicLoad) int64 {
		if t.Queued == nil {
			return QueueUnknown
		}
		return *t.Queued
	}
	slices.SortStableFunc(all, func(x, y view.TopicLoad) int {
		return cmp.Or(rank(&x)-rank(&y), cmp.Compare(queued(&y), queued(&x)), cmp.Compare(y.Running, x.Running))
	})
	return all
}
