package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// signal is the record of a signal from outside: a repetition is told what
// became of the first.
type signal struct {
	state store.SignalState
	at    collation.Micros
}

func (s *Store) mailbox(w *collation.Wait) journal.JobID {
	return collation.Mailbox(s.cfg.Space, w.Topic, w.Key)
}

// putWait inserts or replaces a wait, in its job and in its mailbox.
func (s *Store) putWait(u *undo, j *job, w *collation.Wait) {
	box := s.mailbox(w)
	set := s.waits[box]
	if set == nil {
		set = map[journal.GUID]*collation.Wait{}
		put(u, s.waits, box, set)
	}
	put(u, set, w.GUID, w)
	put(u, j.waits, w.GUID, w)
}

// dropWait deletes a wait that is there.
func (s *Store) dropWait(u *undo, j *job, w *collation.Wait) {
	box := s.mailbox(w)
	drop(u, j.waits, w.GUID)
	drop(u, s.waits[box], w.GUID)
	if len(s.waits[box]) == 0 {
		drop(u, s.waits, box)
	}
}

// moveWaits registers waits, and takes others back by test-and-set.
func (s *Store) moveWaits(u *undo, j *job, p *collation.Plan) error {
	for i := range p.Waits {
		w := p.Waits[i]
		if j.waits[w.GUID] != nil {
			return lost("wait %s exists", w.GUID)
		}
		s.putWait(u, j, &w)
	}
	for _, x := range p.Unwait {
		w := j.waits[x.GUID]
		if w == nil || w.Count != x.Count {
			return lost("wait %s is gone, or was counted", x.GUID)
		}
		s.dropWait(u, j, w)
	}
	return nil
}

// meet makes due what was kept for a wait that the transaction has registered, and
// is not past its time (J3). One that it took back again wakes nobody.
func (s *Store) meet(u *undo, registered *collation.Wait) {
	w := s.waits[s.mailbox(registered)][registered.GUID]
	if w == nil {
		return
	}
	for _, r := range s.kept(s.mailbox(w), w.Wakes()) {
		row := *r
		row.Held, row.NextAt = "", s.now()
		s.putRow(u, &row)
	}
}

// kept are the oldest signals that are kept in the mailbox and not past their
// time, at most most.
func (s *Store) kept(box journal.JobID, most int) []*collation.Row {
	var out []*collation.Row
	for _, r := range s.rows[box] {
		if r.Held == collation.HeldKept && r.WithinAt > s.now() {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *collation.Row) int {
		return cmp.Or(cmp.Compare(a.PublishedAt, b.PublishedAt), bytes.Compare(a.GUID[:], b.GUID[:]))
	})
	return out[:min(most, len(out))]
}

// Deliver implements store.Engine.
func (s *Store) Deliver(_ context.Context, signals []collation.RowKey, mode collation.Mode) ([]store.Outgoing, error) {
	if len(signals) > store.MaxBatch {
		return nil, fmt.Errorf("%w: Deliver of %d signals, at most %d", errLimits, len(signals), store.MaxBatch)
	}
	var out []store.Outgoing
	err := s.write("deliver", func(u *undo) error {
		named := map[journal.JobID]map[journal.GUID]*collation.Row{}
		for _, k := range signals {
			if row := s.row(k.Job, k.GUID); row != nil && row.Held == "" && row.Kind == journal.MessageSignal {
				if named[k.Job] == nil {
					named[k.Job] = map[journal.GUID]*collation.Row{}
				}
				named[k.Job][k.GUID] = row
			}
		}
		for _, id := range slices.SortedFunc(maps.Keys(named), compareIDs) {
			box := s.box(id)
			box.Named = slices.Collect(maps.Values(named[id]))
			m, _, err := collation.Deliver(box, mode)
			if err != nil {
				return fmt.Errorf("memory: deliver: %w", err)
			}
			woken, err := s.post(u, m)
			if err != nil {
				return err
			}
			out = append(out, woken...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// box reads a mailbox whole.
func (s *Store) box(id journal.JobID) *collation.Box {
	box := &collation.Box{ID: id, Now: s.now(), All: true}
	for _, w := range s.waits[id] {
		if j := s.jobs[w.Job]; j.State != journal.JobQuarantined {
			box.Waits = append(box.Waits, collation.BoxWait{Wait: *w, JobKey: j.Key, Generation: j.Generation, Flow: j.Flow, Trace: j.Trace})
		}
	}
	slices.SortFunc(box.Waits, func(a, b collation.BoxWait) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), compareIDs(a.GUID, b.GUID))
	})
	for _, r := range s.rows[id] {
		if r.Kind == journal.MessageSignal && r.Held == "" {
			box.Due = append(box.Due, r)
		}
	}
	kept := func(r *collation.Row) uint64 { return uint64(r.WithinAt) - 1 } // Never comes last
	slices.SortFunc(box.Due, func(a, b *collation.Row) int {
		return cmp.Or(cmp.Compare(kept(a), kept(b)), cmp.Compare(a.PublishedAt, b.PublishedAt), compareIDs(a.GUID, b.GUID))
	})
	box.Due = box.Due[:min(len(box.Due), collation.MaxDue)]
	return box
}

// post writes what signals did to a mailbox, and gives the wake-ups.
func (s *Store) post(u *undo, m *collation.Mail) ([]store.Outgoing, error) {
	if err := s.apply(u, &store.Chained{Plan: m.Plan}); err != nil {
		return nil, err
	}
	var out []store.Outgoing
	for i := range m.Woken {
		out = append(out, *s.outgoing(&m.Plan.Insert[i]))
	}
	return out, nil
}

// moveMail writes what signals did: to waits of any jobs, by test-and-set, and to
// their records.
func (s *Store) moveMail(u *undo, p *collation.Plan) error {
	for _, t := range p.Taken {
		j := s.jobs[t.Job]
		if j == nil || j.waits[t.GUID] == nil || j.waits[t.GUID].Count != t.Seen {
			return lost("wait %s is gone, or was counted", t.GUID)
		}
		w := j.waits[t.GUID]
		if t.Ended {
			s.dropWait(u, j, w)
			continue
		}
		next := *w
		next.Count = t.Count
		s.putWait(u, j, &next)
	}
	for _, x := range p.Signals {
		if x.New {
			put(u, s.signals, x.GUID, &signal{state: x.State, at: s.now()})
		} else {
			s.became(u, x.GUID, x.State)
		}
	}
	return nil
}

// became notes what became of a signal, where it came from outside.
func (s *Store) became(u *undo, g journal.GUID, state store.SignalState) {
	if old := s.signals[g]; old != nil {
		put(u, s.signals, g, &signal{state: state, at: old.at})
	}
}

// Signal implements store.Client.
func (s *Store) Signal(_ context.Context, x *collation.Signal, mode collation.Mode) (store.Signalled, error) {
	var out store.Signalled
	err := s.write("signal", func(u *undo) error {
		sent := *x
		sent.Sent = s.now()
		row, err := sent.Row(s.cfg.Space)
		if err != nil {
			return err
		}
		if known := s.signals[x.GUID]; known != nil {
			out = store.Signalled{State: known.state, Duplicate: true}
			return nil
		}
		if s.row(row.Job, row.GUID) != nil { // longer than its record
			out = store.Signalled{State: store.SignalKept, Duplicate: true}
			return nil
		}
		m, _, err := collation.Receive(s.box(row.Job), &sent, row, mode)
		if err != nil {
			return err
		}
		out = store.Signalled{State: m.State, Reached: m.Reached}
		out.Out, err = s.post(u, m)
		return err
	})
	if err != nil {
		return store.Signalled{}, err
	}
	return out, nil
}

// ExpireSignals implements store.Engine. A signal that nobody waited for in its
// time was missed.
func (s *Store) ExpireSignals(_ context.Context, limit int) (int, error) {
	n := 0
	err := s.write("expire signals", func(u *undo) error {
		now := s.now()
		late := s.collect(func(_ *job, r *collation.Row) bool {
			return r.Held == collation.HeldKept && r.WithinAt <= now
		}, func(r *collation.Row) collation.Micros { return r.WithinAt })
		for _, r := range late[:min(len(late), limit)] {
			s.dropRow(u, r.Job, r.GUID)
			s.became(u, r.GUID, store.SignalMissed)
			n++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
