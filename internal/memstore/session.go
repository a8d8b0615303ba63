package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

var errSession = errors.New("memory: the session has ended")

// member is the session of a process (W8). Its rows are freed when it ends.
type member struct {
	s       *Store
	id      int64
	is      store.Process
	lease   collation.Micros
	renewed collation.Micros
	since   collation.Micros // since then it was renewed without a gap
	next    time.Duration
	engines int
	killers []string
	doing   store.Doing
	dead    bool // it may still have rows to free
}

// OpenSession implements store.Sessions.
func (s *Store) OpenSession(_ context.Context, p store.Process) (store.Session, error) {
	var m *member
	err := s.write("open session", func(*undo) error {
		s.memberID++
		now := s.now()
		m = &member{s: s, id: s.memberID, is: p, lease: micros(p.Lease), renewed: now, since: now}
		s.members[m.id] = m
		m.killers = s.killers()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Processes implements store.Sessions.
func (s *Store) Processes(context.Context) ([]store.ProcessView, error) {
	return s.processes(false), nil
}

// Silent implements store.Sessions.
func (s *Store) Silent(context.Context) ([]store.ProcessView, error) { return s.processes(true), nil }

func (s *Store) processes(silent bool) (all []store.ProcessView) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.members)) {
		if m := s.members[id]; s.alive(id) && (m.renewed <= s.now()-m.lease) == silent {
			all = append(all, store.ProcessView{Process: m.is, Since: m.since, Renewed: m.renewed, Doing: m.doing})
		}
	}
	return all[:min(len(all), store.MaxPage)]
}

// ID implements store.Session.
func (m *member) ID() int64 { return m.id }

// Renew implements store.Session.
func (m *member) Renew(_ context.Context, d store.Doing) (ended []string, err error) {
	s := m.s
	err = s.write("renew", func(*undo) error {
		if !s.alive(m.id) {
			return fmt.Errorf("memory: renew: %w", store.ErrStale)
		}
		now := s.now()
		if now-m.renewed > m.lease*2/3 {
			m.since = now
		}
		m.renewed, m.next, m.engines, m.doing = now, 0, 0, d
		m.doing.Ran, m.doing.Early = slices.Clone(d.Ran), slices.Clone(d.Early)
		m.doing.Troubles = slices.Clone(d.Troubles[:min(len(d.Troubles), store.MaxTroubles)])
		for id, o := range s.members {
			if left := time.Duration(o.renewed+o.lease-now) * time.Microsecond; id != m.id && left > 0 &&
				(m.next == 0 || left < m.next) {
				m.next = left
			}
			if !o.dead && id != m.id && o.renewed <= now-o.lease && m.since <= now-max(o.lease, m.lease) {
				o.dead = true
				for _, topic := range o.is.Early {
					s.killed[topic] = now
				}
			}
			if o.is.Engine && !o.dead && o.renewed > now-o.lease {
				m.engines++
			}
			if o.dead && s.free(o) {
				ended = append(ended, o.is.Name)
			}
		}
		m.killers = s.killers()
		return nil
	})
	return ended, err
}

// Next implements store.Session.
func (m *member) Next() time.Duration {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.next
}

// killers lists the topics that are early nowhere, for a session that has just been heard of. The caller
// holds mu.
func (s *Store) killers() (topics []string) {
	for _, o := range s.members {
		if !o.dead && o.renewed <= s.now()-o.lease/2 {
			topics = append(topics, o.is.Early...)
		}
	}
	for topic, at := range s.killed {
		if at > s.now()-micros(store.EarlyAgain) {
			topics = append(topics, topic)
		} else {
			delete(s.killed, topic)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// Killers implements store.Session.
func (m *member) Killers() []string {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.killers
}

// Engines implements store.Session.
func (m *member) Engines() int {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.engines
}

// free frees the rows of a dead session: they get a higher fence and are due now. It skips locked
// rows, and returns false if there were any.
func (s *Store) free(o *member) (all bool) {
	all = true
	for _, r := range s.eachRow() {
		switch {
		case r.Session != o.id:
			continue
		case r.Holder == "" &&
			(r.Held != "" || r.NextAt == collation.Never || r.PublishedAt <= o.renewed-micros(store.Unpublished)):
			continue
		case s.rowLocked(r.Job, r.GUID):
			all = false
			continue
		}
		row := clone(r)
		if row.Holder != "" {
			row.Fence++
		}
		row.TurnSent = collation.NoTurn
		s.letGo(row)
		s.putRow(&undo{}, row)
	}
	if all {
		delete(s.members, o.id)
	}
	return all
}

// Lost implements store.Session.
func (m *member) Lost(_ context.Context, leases []store.Lease) (lost []store.LostLease, err error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	for i := range leases {
		l := &leases[i]
		row, err := m.s.asked(m.s.living(l.Job), l.Request, l.Turn)
		if err == nil && row.Holder == l.Holder {
			continue
		}
		k := m.s.jobs[l.Job]
		lost = append(lost, store.LostLease{Place: i, Closed: k != nil && k.State.Closed()})
	}
	return lost, nil
}

// Held implements store.Session.
func (m *member) Held(context.Context) (leases []store.Lease, err error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	for j, r := range m.s.eachRow() {
		if j != nil && j.State != journal.JobExpired && r.Session == m.id && r.Holder != "" &&
			r.Kind == journal.MessageRequest {
			leases = append(leases, j.lease(r))
		}
	}
	return leases, nil
}

// End implements store.Session.
func (m *member) End(context.Context) error {
	return m.s.write("end session", func(*undo) error {
		if m.s.alive(m.id) {
			m.dead = true
			m.renewed = m.s.now() + micros(store.Unpublished) // marks everything as published
			m.s.free(m)
		}
		return nil
	})
}

// alive says whether the session lasts. The caller holds mu.
func (s *Store) alive(session int64) bool {
	m := s.members[session]
	return m != nil && !m.dead
}
