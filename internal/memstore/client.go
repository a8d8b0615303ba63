package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
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
		return &store.JobView{JobSummary: v.JobSummary, Ended: true}, nil
	}
	v.ExpiresAt = j.expires
	if c := j.close(); c != nil {
		v.Closed = collation.Micros(j.entry(j.closedSeq).Time)
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
	slices.SortFunc(v.Instances, func(a, b store.InstanceView) int {
		return cmp.Or(cmp.Compare(a.Key.Activity, b.Key.Activity), cmp.Compare(a.Key.DAD, b.Key.DAD))
	})
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
		if l.Letter.Job == id {
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

func (j *job) summary() store.JobSummary { return store.JobSummary{Job: j.Job, Closed: j.closed} }

// Jobs lists all jobs in states of a filter, or in any, of its flow, or of any, newest first. The
// store has nothing else of store.Lists.
func (s *Store) Jobs(_ context.Context, f store.JobFilter) (page store.JobPage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if !j.replaced && j.next.IsZero() &&
			(len(f.States) == 0 || slices.Contains(f.States, j.State)) && (f.Flow == "" || j.Flow.Name == f.Flow) {
			page.Jobs = append(page.Jobs, j.summary())
		}
	}
	slices.SortFunc(page.Jobs, func(a, b store.JobSummary) int {
		return cmp.Or(cmp.Compare(b.Started, a.Started), compareIDs(b.ID, a.ID))
	})
	return page, nil
}
