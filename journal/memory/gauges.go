package memory

import (
	"context"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Gauges implements store.Client. It counts all: they are in memory anyway.
func (s *Store) Gauges(context.Context) (*store.Gauges, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	g := &store.Gauges{Jobs: map[store.JobsOf]int64{}, Closed: map[store.JobsOf]int64{}, Running: map[string]int64{}, Dead: map[string]int64{}, Processes: map[string]int64{}}
	for name := range s.flows {
		for _, state := range []journal.JobState{journal.JobOpen, journal.JobQuarantined} {
			g.Jobs[store.JobsOf{Flow: name, State: state}] = 0
		}
	}
	for _, j := range s.jobs {
		of := store.JobsOf{Flow: j.Flow.Name, State: j.State}
		if _, shown := g.Jobs[of]; shown {
			g.Jobs[of]++
		}
		if _, shown := g.Jobs[store.JobsOf{Flow: j.Flow.Name, State: journal.JobOpen}]; shown && j.State.Closed() && j.State != journal.JobExpired {
			g.Closed[store.JobsOf{Flow: j.Flow.Name, State: j.State}]++
		}
		if j.expires != collation.Never && j.expires <= now {
			add(&g.Expired, now-j.expires)
		}
	}
	for _, r := range s.overdue() {
		add(&g.Overdue, now-r.NextAt)
		if r.Kind == journal.MessageWakeUp && r.Publication == 0 {
			add(&g.Timers, now-r.NextAt)
		}
	}
	for _, r := range s.eachRow() {
		if r.Kind == journal.MessageRequest && r.Holder != "" {
			g.Running[r.Topic]++
		}
	}
	for _, l := range s.letters {
		if l.view.State == collation.LetterOpen {
			g.Dead[l.view.Letter.Reason]++
		}
	}
	for id, m := range s.members {
		if s.alive(id) && m.renewed > now-m.lease {
			for _, role := range m.is.Roles {
				g.Processes[role]++
			}
		}
	}
	return g, nil
}

// add adds one thing that is late by age.
func add(b *store.Backlog, age collation.Micros) {
	b.N++
	b.Age = max(b.Age, time.Duration(age)*time.Microsecond)
}
