package memstore

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// signal is the record of a signal from outside. A repetition gets the outcome of the first.
type signal struct {
	state  store.SignalState
	at     collation.Micros
	reason string
}

func (s *Store) mailbox(w *collation.Wait) journal.JobID {
	return collation.Mailbox(s.cfg.Space, w.Topic, w.Key)
}

// moveWaits registers waits, and cancels others by test-and-set.
func (j *job) moveWaits(u *undo, p *collation.Plan) error {
	for i := range p.Waits {
		w := p.Waits[i]
		if j.waits[w.GUID] != nil {
			return lost("wait %s exists", w.GUID)
		}
		put(u, j.waits, w.GUID, &w)
	}
	return moveEach(u, p.CancelWaits, j.cancelWait)
}

// cancelWait cancels a wait that no signal has reached since it was read.
func (j *job) cancelWait(u *undo, x *collation.CancelledWait) error {
	w := j.waits[x.GUID]
	if w == nil || w.Count != x.Count {
		return lost("wait %s is gone, or was counted", x.GUID)
	}
	drop(u, j.waits, w.GUID)
	return nil
}

// meet makes signals due that were kept for a newly registered wait and have not expired (J3), and
// returns those that are to be published. A wait that the same transaction cancelled wakes none.
func (s *Store) meet(u *undo, registered *collation.Wait, by collation.Sending) (out []store.Outgoing) {
	w := s.jobs[registered.Job].waits[registered.GUID]
	if w == nil {
		return nil
	}
	for _, r := range s.kept(s.mailbox(w), w.Wakes()) {
		row := *r
		by.Publish(&row, s.now())
		s.putRow(u, &row)
		if by.Resend > 0 {
			out = append(out, store.OutgoingSignal(row.Job, row.GUID, row.Publication, row.PublishedAt))
		}
	}
	return out
}

// kept lists the oldest kept signals of the mailbox that have not expired, at most most.
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

// mailboxOf reads the mailbox of a want.
func (c *committer) mailboxOf(w *store.Want, l *store.Loaded) {
	switch {
	case w.Box.IsZero() || c.s.owner(w.Box) != c.txn:
		return
	case l.Boxes[w.Box] == nil:
		l.Boxes[w.Box] = c.s.box(w.Box)
		for _, r := range l.Boxes[w.Box].Due {
			c.txn.rows[r.GUID] = true
		}
	}
	if row := c.s.row(w.Box, w.Signal); row != nil {
		c.txn.rows[w.Signal] = true
		l.Boxes[w.Box].Named[w.Signal] = copyRow(row)
	}
}

// box reads a whole mailbox.
func (s *Store) box(id journal.JobID) *collation.Box {
	box := &collation.Box{ID: id, Now: s.now(), All: true, Named: map[journal.GUID]*collation.Row{}}
	for _, j := range s.jobs {
		for _, w := range j.waits {
			if s.mailbox(w) != id || j.State == journal.JobQuarantined {
				continue
			}
			box.Waits = append(box.Waits,
				collation.BoxWait{Wait: *w, JobKey: j.Key, Generation: j.Generation, Flow: j.Flow, Trace: j.Trace})
		}
	}
	slices.SortFunc(box.Waits, func(a, b collation.BoxWait) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), compareIDs(a.GUID, b.GUID))
	})
	for _, r := range s.rows[id] {
		if r.Kind == journal.MessageSignal && r.Held == "" {
			box.Due = append(box.Due, copyRow(r))
		}
	}
	last := func(at collation.Micros) uint64 { return uint64(at) - 1 } // Never, and what was not published, come last
	slices.SortFunc(box.Due, func(a, b *collation.Row) int {
		return cmp.Or(
			cmp.Compare(last(a.WithinAt), last(b.WithinAt)), cmp.Compare(last(a.PublishedAt), last(b.PublishedAt)),
			compareIDs(a.GUID, b.GUID),
		)
	})
	box.Due = box.Due[:min(len(box.Due), collation.MaxDue)]
	return box
}

// moveMail writes what signals did: to waits of any job, by test-and-set, and to the signals' own
// records.
func (s *Store) moveMail(u *undo, p *collation.Plan) error {
	for _, t := range p.Taken {
		j := s.jobs[t.Job]
		if j == nil || j.waits[t.GUID] == nil || j.waits[t.GUID].Count != t.Seen {
			return lost("wait %s is gone, or was counted", t.GUID)
		}
		w := j.waits[t.GUID]
		if t.Ended {
			drop(u, j.waits, w.GUID)
			continue
		}
		next := *w
		next.Count = t.Count
		put(u, j.waits, w.GUID, &next)
	}
	for _, x := range p.Signals {
		record := collation.RowKey{Job: p.Job, GUID: x.GUID}
		is, known := s.signals[record]
		switch {
		case x.New && known:
			return lost("signal %s was here before", x.GUID)
		case x.New:
			is.at = s.now()
		case !known: // it came from a job
			continue
		}
		is.state, is.reason = x.State, x.Reason
		put(u, s.signals, record, is)
	}
	return nil
}
