package memory

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Tables visits every row of the store, whatever the ports show of it: the table and its columns,
// in the order that the caller and the tables of journal/postgres share. It serves tests that
// compare two stores. Zero values are passed as they are; rows come in no order.
func (s *Store) Tables(visit func(table string, columns ...any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		s.jobTables(j, visit)
	}
	for _, r := range s.eachRow() {
		visit("dispatches", r.GUID, r.Job, r.Kind, r.Activity, r.DAD, r.Topic, r.Element, r.Body, r.NextAt, r.Held, r.Dead,
			r.Publication, r.PublishedAt, r.Turn, r.TurnSent, r.Attempt, r.Runs, r.Holder, r.Session, r.Fence, r.WithinAt,
			r.Effects.Seq, r.Effects.Hash, r.Origin, r.Sender, r.Undo, r.Input)
	}
	for g, x := range s.signals {
		visit("signals", g, x.state, x.at)
	}
	for _, l := range s.letters {
		d, stray := &l.view.Letter, 0
		if l.stray {
			stray = l.size
		}
		visit("dead_letters", l.view.ID, d.Job, d.Row, d.Kind, d.Activity, d.DAD, d.Reason, d.Message, d.Ledger, stray, l.view.At, l.view.State)
	}
	for _, m := range s.members {
		visit("sessions", m.id, m.is.Name, m.lease, m.renewed, m.since, m.dead)
	}
	for name, f := range s.flows {
		for version, d := range f.versions {
			last := collation.Never
			if version == f.active {
				last = f.last
			}
			visit("flows", name, version, d.ref.Digest, d.canonical, version == f.active, d.at, last)
		}
	}
}

// jobTables visits the rows of one job or tombstone.
func (s *Store) jobTables(j *job, visit func(table string, columns ...any)) {
	if j.replaced != collation.Never {
		visit("tombstones", j.ID, j.Key, j.Generation, j.Flow.Name, j.Flow.Version, j.Head.Seq, j.Head.Hash, j.closed, j.expires)
	} else {
		p := j.Parent
		if p == nil {
			p = &journal.Parent{}
		}
		visit("jobs", j.ID, j.Key, j.Generation, j.Flow.Name, j.Flow.Version, j.Flow.Digest, j.State, j.Semaphore, j.Head.Seq,
			j.Head.Hash, j.closedSeq, j.tasksSeq, j.Started, j.closed, j.Trace, j.expires,
			p.Space, p.Job, p.Activity, p.DAD, p.Leg1, p.Turn, p.Awaited, j.next)
	}
	for k, i := range j.instances {
		visit("instances", j.ID, k.Activity, k.DAD, i.Ledger, i.ResultSeq, i.Code, i.Leg1, i.Open, i.Count, i.Size, i.Turn, i.Attempt, i.Child)
	}
	for g, r := range j.receipts {
		visit("receipts", j.ID, g, r.Ledger, r.Verdict, r.Seq)
	}
	for _, w := range j.waits {
		visit("waits", w.Job, w.GUID, s.mailbox(w), w.Activity, w.DAD, w.Topic, w.Key, w.Repeat, w.MaxAge, w.Count, w.Since, w.Origin, w.Request)
	}
	for _, w := range j.resolved {
		visit("resolved_waits", j.ID, w.Request, w.GUID, w.Kind, w.Name, w.Position, w.Seq)
	}
	for _, records := range j.chains {
		for i := range records {
			visit("entries", j.ID, records[i].Chain, records[i].Seq, records[i].Hash)
		}
	}
	for _, f := range j.effects {
		turn, until := f.Turn, f.Until
		if f.State != store.EffectStarted { // only a started effect has these
			turn, until = 0, collation.Never
		}
		visit("effects", j.ID, f.Key, f.Request, f.Seq, f.Name, f.Class, f.N, f.State, f.Result, f.Error, f.Fence, f.Holder,
			turn, until, f.Position, f.Vouched)
	}
	for digest, body := range j.payloads {
		visit("payloads", j.ID, digest, body)
	}
}

// Peeked is what the store holds of one message at a moment.
type Peeked struct {
	State   journal.JobState   // of its job; "" if that does not exist
	Row     *collation.Row     // of the message; nil if it is gone
	Receipt *collation.Receipt // without a response; nil if there is none
}

// Peek reads the state of a message regardless of locks, for the checks of a simulator.
func (s *Store) Peek(id journal.JobID, row, receipt journal.GUID) Peeked {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Peeked{Row: copyRow(s.row(id, row))}
	if j := s.jobs[id]; j != nil {
		p.State, p.Receipt = j.State, clone(j.receipts[receipt])
	}
	return p
}

// Next returns when the clock alone makes something happen next: a row that is not held becomes
// due, the `within` of a request ends, or a kept signal expires. It may be in the past; Never
// means that nothing will. kept is when the first kept signal expires. A simulator sleeps until
// then instead of polling.
func (s *Store) Next() (next, kept collation.Micros) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, kept = collation.Never, collation.Never
	for j, r := range s.eachRow() {
		if j != nil && j.State == journal.JobQuarantined {
			continue
		}
		switch r.Held {
		case "":
			next = sooner(next, r.NextAt)
		case collation.HeldKept:
			kept = sooner(kept, r.WithinAt)
		}
		if r.Kind == journal.MessageRequest {
			next = sooner(next, r.WithinAt)
		}
	}
	return sooner(next, kept), kept
}

func sooner(a, b collation.Micros) collation.Micros {
	if a == collation.Never || b != collation.Never && b < a {
		return b
	}
	return a
}
