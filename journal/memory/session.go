package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
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
	ran     []int64
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
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Processes implements store.Sessions.
func (s *Store) Processes(context.Context) (all []store.ProcessView, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.members)) {
		if m := s.members[id]; s.alive(id) && m.renewed > s.now()-m.lease {
			all = append(all, store.ProcessView{Process: m.is, Since: m.since, Renewed: m.renewed, Ran: slices.Clone(m.ran)})
		}
	}
	return all[:min(len(all), store.MaxPage)], nil
}

// ID implements store.Session.
func (m *member) ID() int64 { return m.id }

// Renew implements store.Session.
func (m *member) Renew(_ context.Context, ran []int64) (ended []string, err error) {
	s := m.s
	err = s.write("renew", func(*undo) error {
		if !s.alive(m.id) {
			return fmt.Errorf("memory: renew: %w", store.ErrStale)
		}
		now := s.now()
		if now-m.renewed > m.lease*2/3 {
			m.since = now
		}
		m.renewed, m.next, m.engines, m.ran = now, 0, 0, slices.Clone(ran)
		for id, o := range s.members {
			if left := time.Duration(o.renewed+o.lease-now) * time.Microsecond; id != m.id && left > 0 && (m.next == 0 || left < m.next) {
				m.next = left
			}
			o.dead = o.dead || id != m.id && o.renewed <= now-o.lease && m.since <= now-max(o.lease, m.lease)
			if o.is.Engine && !o.dead && o.renewed > now-o.lease {
				m.engines++
			}
			if o.dead && s.free(o) {
				ended = append(ended, o.is.Name)
			}
		}
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
		case r.Holder == "" && (r.Held != "" || r.NextAt == collation.Never || r.PublishedAt <= o.renewed-micros(store.Unpublished)):
			continue
		case s.rowLocked(r.Job, r.GUID):
			all = false
			continue
		}
		row := clone(r)
		if row.Holder != "" {
			row.Fence++
		}
		row.TurnSent = 0
		s.letGo(row)
		s.putRow(&undo{}, row)
	}
	if all {
		delete(s.members, o.id)
	}
	return all
}

// letGo takes a row from its run. It is due now, unless it is held.
func (s *Store) letGo(row *collation.Row) {
	if row.Holder, row.Session = "", 0; row.Held == "" {
		row.NextAt = s.now()
	}
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
		k := m.s.known(l.Job)
		lost = append(lost, store.LostLease{Place: i, Closed: k != nil && k.State.Closed()})
	}
	return lost, nil
}

// Held implements store.Session.
func (m *member) Held(context.Context) (leases []store.Lease, err error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	for j, r := range m.s.eachRow() {
		if j != nil && j.State != journal.JobExpired && r.Session == m.id && r.Holder != "" && r.Kind == journal.MessageRequest {
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

// last refuses plans that take something for a session that has ended.
func (s *Store) last(plans []store.Chained) error {
	for i := range plans {
		if n := plans[i].Plan.Session; n != 0 && !s.alive(n) {
			return &store.LostError{Session: true, Err: errSession}
		}
	}
	return nil
}

// take gives the row to a run and counts the run, under a higher fence (E9). No other run gets
// the row until this one releases it or its session ends (P21).
func (s *Store) take(u *undo, row *collation.Row, l *store.Lease) {
	row.Runs++
	row.Fence++
	row.Holder, row.Session, row.NextAt = l.Holder, l.Session, collation.Never
	s.putRow(u, row)
}

// exhaust makes the row of a request that ran too often due, marked by its runs, so that an engine
// holds it (S8).
func (s *Store) exhaust(u *undo, row *collation.Row) {
	if row.Runs > store.MaxRuns {
		return
	}
	row.Runs++
	row.Holder, row.Session, row.NextAt = "", 0, s.now()
	s.putRow(u, row)
}

func (j *job) lease(row *collation.Row) store.Lease {
	return store.Lease{
		Job: j.ID, Request: row.GUID, Space: j.Space, Generation: j.Generation, Turn: row.Turn,
		Holder: row.Holder, Session: row.Session, Fence: row.Fence, Runs: row.Runs,
	}
}

// Lease implements store.Requests.
func (s *Store) Lease(
	ctx context.Context, id journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	l, spent := store.Lease{Holder: holder, Session: session}, false
	err := s.writeRow(ctx, "lease", id, request, func(u *undo, j *job) error {
		row, err := s.asked(j, request, turn)
		switch {
		case err != nil:
			return err
		case !s.alive(session):
			return store.ErrSession
		case row.Holder != "" && row.Holder != holder || j.busy(row, s.now()):
			return store.ErrLeased
		case row.Runs >= store.MaxRuns:
			spent = true
			s.exhaust(u, row)
			return nil
		}
		s.take(u, row, &l)
		l = j.lease(row)
		return nil
	})
	switch {
	case err != nil:
		return store.Lease{}, err
	case spent:
		return store.Lease{}, fmt.Errorf("memory: lease %s: %w", request, store.ErrExhausted)
	}
	return l, nil
}

// Keep implements store.Requests.
func (s *Store) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	err := s.writeRow(ctx, "keep", l.Job, l.Request, func(u *undo, j *job) error {
		if k := s.known(l.Job); k != nil && k.State.Closed() { // a tombstone, too
			return store.ErrJobClosed
		}
		row, err := s.fenced(j, &l)
		switch {
		case err != nil:
			return err
		case !s.alive(l.Session):
			return store.ErrStale
		case row.Holder == "":
			s.take(u, row, &l)
		default:
			row.Session, row.NextAt = l.Session, collation.Never
			s.putRow(u, row)
		}
		l.Fence, l.Runs, l.Generation, l.Space, l.Fresh = row.Fence, row.Runs, j.Generation, j.Space, false
		return nil
	})
	if err != nil {
		return store.Lease{}, err
	}
	return l, nil
}

// HandBack implements store.Requests.
func (s *Store) HandBack(ctx context.Context, l store.Lease) error {
	return s.writeRow(ctx, "hand back", l.Job, l.Request, func(u *undo, j *job) error {
		if j == nil {
			return store.ErrStale
		}
		row := clone(s.row(j.ID, l.Request))
		if row == nil || row.Kind != journal.MessageRequest || row.Turn != l.Turn || row.Holder != l.Holder || row.Holder == "" {
			return store.ErrStale
		}
		row.Runs = max(row.Runs-1, 0)
		s.letGo(row)
		s.putRow(u, row)
		return nil
	})
}
