package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// FindJob implements store.Client.
func (s *Store) FindJob(_ context.Context, key string) (journal.JobID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := s.byKey(key); !id.IsZero() {
		return id, nil
	}
	return journal.JobID{}, fmt.Errorf("memory: job with key %q: %w", key, store.ErrNotFound)
}

// byKey returns the job that has the key, zero if there is none.
func (s *Store) byKey(key string) journal.JobID {
	if id, taken := s.keys[key]; taken && s.living(id) != nil {
		return id
	}
	return journal.JobID{}
}

// Payload implements store.Client.
func (s *Store) Payload(_ context.Context, id journal.JobID, digest journal.Digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.living(id); j != nil && j.payloads[digest] != nil {
		return slices.Clone(j.payloads[digest]), nil
	}
	return nil, fmt.Errorf("memory: job %s, output %s: %w", id, digest, store.ErrNotFound)
}

// Job implements store.Client.
func (s *Store) Job(_ context.Context, id journal.JobID) (*store.JobView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.known(id)
	if j == nil {
		return nil, fmt.Errorf("memory: job %s: %w", id, store.ErrNotFound)
	}
	v := &store.JobView{JobSummary: j.summary(), Ended: j.tasksSeq != 0, Next: j.next}
	if j.State == journal.JobExpired {
		return v, nil
	}
	v.ExpiresAt = j.expires
	if c := j.close(); c != nil {
		v.Code, v.Error = c.Code, clone(c.Error)
	}
	if j.tasksSeq != 0 {
		v.Output = slices.Clone(j.entry(j.tasksSeq).Close.Output)
	}
	v.Instances = slices.Grow(v.Instances, len(j.instances))
	for key, i := range j.instances {
		if i.Ledger != 0 { // a row without a ledger only points to the output of a pass or an element
			v.Instances = append(v.Instances, store.InstanceView{Key: key, Instance: *i})
		}
	}
	slices.SortFunc(v.Instances, func(a, b store.InstanceView) int { return compareKeys(a.Key, b.Key) })
	for _, r := range s.rowsOf(id) {
		v.Rows = append(v.Rows, *copyRow(r))
	}
	for _, w := range j.waits {
		v.Waits = append(v.Waits, *w)
	}
	slices.SortFunc(v.Waits, func(a, b collation.Wait) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), compareIDs(a.GUID, b.GUID))
	})
	for _, l := range s.letters {
		if l.view.Letter.Job == id {
			v.Dead = append(v.Dead, s.letterView(l))
		}
	}
	return v, nil
}

// Ended implements store.Client.
func (s *Store) Ended(_ context.Context, ids []journal.JobID) (map[journal.JobID]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[journal.JobID]bool{}
	for _, id := range ids {
		if j := s.jobs[id]; j != nil {
			out[id] = j.tasksSeq != 0 || j.State == journal.JobQuarantined
		}
	}
	return out, nil
}

// Outcomes implements store.Client.
func (s *Store) Outcomes(_ context.Context, ids []journal.JobID) (map[journal.JobID]store.Outcome, error) {
	if err := store.AtMost("outcomes", len(ids), store.MaxOutcomes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[journal.JobID]store.Outcome{}
	for _, id := range ids {
		j := s.jobs[id]
		if j == nil {
			continue
		}
		o := store.Outcome{Key: j.Key, State: j.State, Ended: j.tasksSeq != 0}
		if o.Ended && j.State != journal.JobExpired {
			c := j.close()
			o.Code, o.Error, o.Output = c.Code, clone(c.Error), slices.Clone(j.entry(j.tasksSeq).Close.Output)
		}
		out[id] = o
	}
	return out, nil
}

func (j *job) summary() store.JobSummary {
	v := store.JobSummary{Job: j.Job, Closed: j.closed}
	v.SetCursor()
	return v
}

// Jobs implements store.Client.
func (s *Store) Jobs(_ context.Context, f store.JobFilter) (page store.JobPage, err error) {
	if err := f.Check(); err != nil {
		return page, err
	}
	f, fits, err := f.Narrowed()
	if err != nil || !fits {
		return page, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.selected(frame(&f))
	for n, j := range all {
		if j.next.IsZero() && s.matches(j, &f) {
			page.Jobs = append(page.Jobs, j.summary())
		}
		switch {
		case len(page.Jobs) == f.Limit:
			page.Next = j.summary().Cursor
			return page, nil
		case f.Compares() && n+1 == f.Looks():
			page.Next, page.Searched = j.summary().Cursor, j.Started
			return page, nil
		}
	}
	return page, err
}

// frame is the part of a filter that decides which jobs a page looks at.
func frame(f *store.JobFilter) store.JobFilter {
	frame := store.JobFilter{Tags: f.Tags, Parent: f.Parent, From: f.From, To: f.To, Before: f.Before}
	if indexed, _ := f.Standing(); indexed && len(f.Tags) == 0 && f.Parent.IsZero() {
		frame.States, frame.Flow = f.States, f.Flow
	}
	return frame
}

// CountJobs implements store.Client. It looks at all jobs: they are in memory anyway.
func (s *Store) CountJobs(_ context.Context, f store.JobFilter) (counts map[journal.JobState]int64, looked int64, err error) {
	f.Before = ""
	f, fits, err := f.Narrowed()
	if err != nil || !fits {
		return map[journal.JobState]int64{}, 0, err
	}
	for _, n := range s.count(store.JobFilter{Tags: f.Tags, Parent: f.Parent, From: f.From, To: f.To}) {
		looked += n
	}
	return s.count(f), looked, nil
}

// Counts implements store.Client.
func (s *Store) Counts(context.Context) (map[journal.JobState]int64, error) {
	return s.count(store.JobFilter{}), nil
}

// count counts by state the jobs that a filter without a cursor selects, and that no other has
// resumed.
func (s *Store) count(f store.JobFilter) map[journal.JobState]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[journal.JobState]int64{}
	all, _ := s.selected(f)
	for _, j := range all {
		if j.next.IsZero() {
			counts[j.State]++
		}
	}
	return counts
}

// selected lists the jobs that a filter selects, the newest first. Its only error is that of the
// cursor.
func (s *Store) selected(f store.JobFilter) (all []*job, err error) {
	before, id, err := f.Bound()
	if err != nil {
		return nil, err
	}
	for _, j := range s.jobs {
		older := cmp.Or(cmp.Compare(j.Started, before), compareIDs(j.ID, id)) < 0
		if older && j.replaced == collation.Never && s.matches(j, &f) {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *job) int {
		return cmp.Or(cmp.Compare(b.Started, a.Started), compareIDs(b.ID, a.ID))
	})
	return all, nil
}

func (s *Store) matches(j *job, f *store.JobFilter) bool {
	child := j.Parent != nil && j.Parent.Job == f.Parent
	return (len(f.States) == 0 || slices.Contains(f.States, j.State)) && (f.Flow == "" || j.Flow.Name == f.Flow) &&
		(f.Version == "" || j.Flow.Version == f.Version) && (f.Parent.IsZero() || child) &&
		j.Started >= f.From && strings.HasPrefix(j.Key, f.Prefix) &&
		!slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(j.Tags, tag) }) && s.waitsFor(j, f)
}

// waitsFor reports whether a job waits for what a filter names.
func (s *Store) waitsFor(j *job, f *store.JobFilter) bool {
	what, name, _ := f.Waiting() // it was checked
	switch what {
	case "":
		return true
	case store.WaitsChild:
		return s.awaits(j.ID)
	case store.WaitsSignal:
		for _, w := range j.waits {
			if name == "" || w.Topic == name {
				return true
			}
		}
	}
	for _, r := range s.rows[j.ID] {
		switch held := r.Held; {
		case what == store.WaitsPerson && (held == collation.HeldParked || held == collation.HeldStuck),
			what == store.WaitsTimer && r.Kind == journal.MessageWakeUp && held == "",
			what == store.WaitsTopic && r.Kind == journal.MessageRequest && (held == "" || held == collation.HeldParallel) && (name == "" || r.Topic == name):
			return true
		}
	}
	return false
}

// awaits reports whether a job awaits another one, which may not have begun.
func (s *Store) awaits(id journal.JobID) bool {
	for _, r := range s.eachRow() {
		if r.Sender == id {
			return true
		}
	}
	for _, j := range s.jobs {
		if j.Parent != nil && j.Parent.Job == id && j.Parent.Awaited && (j.State == journal.JobOpen || j.State == journal.JobQuarantined) {
			return true
		}
	}
	return false
}

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
