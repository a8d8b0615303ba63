package memory

import (
	"errors"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// ordered returns the row that orders a child. It is nil if the child has begun, or its start was
// cancelled or refused.
func (s *Store) ordered(child journal.JobID) *collation.Row {
	row := s.row(child, child.Start())
	if row == nil || row.Kind != journal.MessageStart || s.jobs[child] != nil {
		return nil
	}
	return row
}

// birth creates the job of an inception (1.11). Its key must be free, or that of a tombstone of
// an earlier generation.
func (s *Store) birth(u *undo, e *journal.Entry, active bool) error {
	if id, taken := s.keys[e.Key]; taken {
		switch j := s.jobs[id]; {
		case j.next == e.Job: // a plan before this one resumes it
		case j.State == journal.JobExpired && j.Generation < e.Generation:
			set(u, &j.replaced, s.now())
		default:
			return &store.LostError{Keys: []string{e.Key}, Err: errTaken}
		}
	}
	if e.Generation <= s.floor {
		return &store.LostError{Keys: []string{e.Key}, Err: errTaken}
	}
	if f := s.flows[e.Flow.Name]; active && (f == nil || f.active != e.Flow.Version) {
		return &store.LostError{Flows: []string{e.Flow.Name}, Err: errInactive}
	}
	j := &job{
		Job: collation.Job{
			ID: e.Job, Space: s.cfg.Space, Key: e.Key, Generation: e.Generation, Flow: *e.Flow,
			State: journal.JobOpen, Started: collation.Micros(e.Time), Tags: e.Tags, Trace: e.Trace, Parent: e.Parent, From: e.From,
		},
		instances: map[collation.InstanceKey]*collation.Instance{}, receipts: map[journal.GUID]*collation.Receipt{},
		waits: map[journal.GUID]*collation.Wait{}, chains: map[journal.GUID][]*record{},
		resolved: map[journal.GUID]*collation.ResolvedWait{}, came: map[journal.GUID]*came{},
		effects: map[journal.Digest]*collation.Effect{}, payloads: map[journal.Digest][]byte{},
	}
	put(u, s.jobs, j.ID, j)
	put(u, s.keys, e.Key, j.ID)
	return nil
}

var (
	errTaken    = errors.New("memory: the key is taken")
	errInactive = errors.New("memory: another version of the flow is the active one")
)

// outside reads what starts and signals from outside need, for which no lock is taken.
func (s *Store) outside(wants []store.Want) *store.Loaded {
	l := &store.Loaded{
		Now: s.now(), States: map[journal.JobID]*collation.State{}, Busy: map[journal.JobID]bool{}, Tombstones: map[journal.JobID]bool{},
		Holders: map[string]*collation.Holder{}, Orders: map[journal.JobID]*collation.Row{}, Chains: map[collation.RowKey]*collation.Chain{},
		Boxes: map[journal.JobID]*collation.Box{}, Known: map[journal.GUID]store.SignalState{}, Letters: map[int64]*collation.Letter{},
	}
	for i := range wants {
		if key := wants[i].Key; key != "" {
			s.holder(l, key)
		}
		if was := s.signals[wants[i].Known]; was != nil {
			l.Known[wants[i].Known] = was.state
		}
	}
	return l
}

// holder reads the job that has a key, with the input that it was started with.
func (s *Store) holder(l *store.Loaded, key string) {
	id, taken := s.keys[key]
	switch {
	case !taken && s.floor > 0:
		l.Holders[key] = &collation.Holder{Generation: s.floor, State: journal.JobExpired}
		return
	case !taken:
		return
	}
	j := s.jobs[id]
	h := &collation.Holder{ID: id, Generation: j.Generation, State: j.State, Flow: j.Flow, Floor: s.floor}
	if j.State == journal.JobExpired {
		h.Generation = max(h.Generation, s.floor)
	} else {
		h.Input = j.entry(1).Input
	}
	l.Holders[key] = h
}
