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
		mail := map[collation.RowKey]*collation.Signal{}
		for _, k := range signals {
			row := s.row(k.Job, k.GUID)
			if row == nil || row.Held != "" || row.Kind != journal.MessageSignal {
				continue
			}
			x, err := collation.SignalOf(row)
			if err != nil {
				return fmt.Errorf("memory: deliver: %w", err)
			}
			mail[k] = x
			s.older(mail, k.Job, x.Sent)
		}
		var err error
		out, err = s.post(u, mail, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// older adds the signals of a mailbox that are due and were sent before: they go
// first (1.11).
func (s *Store) older(mail map[collation.RowKey]*collation.Signal, box journal.JobID, sent collation.Micros) {
	for g, row := range s.rows[box] {
		if row.Kind != journal.MessageSignal || row.Held != "" {
			continue
		}
		if x, err := collation.SignalOf(row); err == nil && !x.All && x.Sent < sent {
			mail[collation.RowKey{Job: box, GUID: g}] = x
		}
	}
}

// post delivers signals, the oldest first.
func (s *Store) post(u *undo, mail map[collation.RowKey]*collation.Signal, mode collation.Mode) ([]store.Outgoing, error) {
	keys := slices.SortedFunc(maps.Keys(mail), func(a, b collation.RowKey) int {
		return cmp.Or(cmp.Compare(mail[a].Sent, mail[b].Sent), compareIDs(a.GUID, b.GUID))
	})
	var out []store.Outgoing
	for _, k := range keys {
		x := mail[k]
		woken, state, err := s.deliver(u, k.Job, x, mode)
		if err != nil {
			return nil, err
		}
		if out = append(out, woken...); state == store.SignalKept {
			kept := x.Kept(*s.row(k.Job, k.GUID))
			s.putRow(u, &kept)
			continue
		}
		s.dropRow(u, k.Job, k.GUID)
		s.became(u, k.GUID, state)
	}
	return out, nil
}

// deliver hands a signal to the waits of its mailbox that take it: the oldest,
// or all of them (1.11).
func (s *Store) deliver(
	u *undo, box journal.JobID, x *collation.Signal, mode collation.Mode,
) ([]store.Outgoing, store.SignalState, error) {
	now := s.now()
	waits := slices.SortedFunc(maps.Values(s.waits[box]), func(a, b *collation.Wait) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), compareIDs(a.GUID, b.GUID))
	})
	waits = slices.DeleteFunc(waits, func(w *collation.Wait) bool { return !w.Takes(x, now) || s.jobs[w.Job].State == journal.JobQuarantined })
	reach, none := 1, store.SignalKept
	if x.All {
		reach, none = collation.MaxReach, store.SignalMissed
	}
	var out []store.Outgoing
	for _, w := range waits[:min(len(waits), reach)] {
		wake, ends := w.Deliver(x, now, mode)
		if err := s.insertRow(u, wake); err != nil {
			return nil, "", err
		}
		out = append(out, *s.outgoing(&wake))
		if ends {
			s.dropWait(u, s.jobs[w.Job], w)
			continue
		}
		next := *w
		next.Count++
		s.putWait(u, s.jobs[w.Job], &next)
	}
	if len(out) == 0 {
		return nil, none, nil
	}
	return out, store.SignalConsumed, nil
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
		before := map[collation.RowKey]*collation.Signal{}
		s.older(before, row.Job, sent.Sent)
		first, err := s.post(u, before, mode)
		if err != nil {
			return err
		}
		woken, state, err := s.deliver(u, row.Job, &sent, mode)
		if err != nil {
			return err
		}
		put(u, s.signals, x.GUID, &signal{state: state, at: sent.Sent})
		out = store.Signalled{State: state, Reached: len(woken), Out: append(first, woken...)}
		if state == store.SignalKept {
			return s.insertRow(u, sent.Kept(row))
		}
		return nil
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
