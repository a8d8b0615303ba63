package postgres

import (
	"context"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var mailStatements = []string{
	"begin", "write_mailboxes", "clock", "mail_rows", "mail_due", "mail_waits", "signal_known", "signals_put", "signals_became",
	"write_marker", "write_waits_delete", "write_waits", "write_rows_delete", "write_rows_new", "write_rows", "commit", "rollback",
}

// mail is a transaction that delivers signals, under the locks of their
// mailboxes (J3): nobody else ends or adds waits of theirs, but for jobs that
// take their own back, which the test-and-set of each wait finds.
type mail struct {
	s     *Store
	c     *conn
	now   collation.Micros
	boxes []*mailbox // each once
	of    map[journal.JobID]*mailbox
	plans []store.Chained
	out   []store.Outgoing
	rows  int // of signals that were delivered
}

// mailbox is one that is read.
type mailbox struct {
	collation.Box
	ask int // waits to be read next
}

func (s *Store) mail(c *conn) *mail { return &mail{s: s, c: c, of: map[journal.JobID]*mailbox{}} }

// box adds a mailbox from which one signal more, mostly, takes one wait.
func (m *mail) box(id journal.JobID) *mailbox {
	box := m.of[id]
	if box == nil {
		box = &mailbox{Box: collation.Box{ID: id}}
		m.of[id] = box
		m.boxes = append(m.boxes, box)
	}
	box.ask++
	return box
}

// Deliver hands signals to the waits of their keys (1.11), oldest signal first.
func (s *Store) Deliver(ctx context.Context, signals []collation.RowKey, mode collation.Mode) ([]store.Outgoing, error) {
	if len(signals) > store.MaxBatch {
		return nil, tooMany("deliver", len(signals), store.MaxBatch)
	}
	if len(signals) == 0 {
		return nil, nil
	}
	var out []store.Outgoing
	err := s.decide(ctx, "deliver", func(c *conn) (err error) {
		out, err = s.deliver(ctx, c, signals, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Store) deliver(ctx context.Context, c *conn, signals []collation.RowKey, mode collation.Mode) ([]store.Outgoing, error) {
	m := s.mail(c)
	keys, named := make([]rowKey, 0, len(signals)), make(map[collation.RowKey]bool, len(signals))
	for _, k := range signals {
		if !named[k] {
			named[k] = true
			keys = append(keys, rowKey{k.Job, k.GUID})
			m.box(k.Job)
		}
	}
	err := m.open(ctx, step{"mail_rows", rowKeys(keys), m.collect(func(b *mailbox) *[]*collation.Row { return &b.Named })})
	for i := 0; i < len(m.boxes) && err == nil; i++ {
		box := m.boxes[i]
		if len(box.Named) == 0 {
			continue
		}
		err = m.decide(ctx, "deliver", box, func() (*collation.Mail, int, error) { return collation.Deliver(&box.Box, mode) })
	}
	if err != nil || m.rows == 0 {
		abandon(ctx, c)
		return nil, settleRead("deliver", err)
	}
	return m.out, m.commit(ctx)
}

// Signal takes a signal from outside and delivers it at once. Its GUID is looked
// for under the lock of its mailbox: the same twice is a duplicate of the first.
func (s *Store) Signal(ctx context.Context, in *collation.Signal, mode collation.Mode) (store.Signalled, error) {
	var out store.Signalled
	err := s.decide(ctx, "signal", func(c *conn) (err error) {
		out, err = s.signal(ctx, c, *in, mode)
		return err
	})
	if err != nil {
		return store.Signalled{}, err
	}
	return out, nil
}

func (s *Store) signal(ctx context.Context, c *conn, x collation.Signal, mode collation.Mode) (out store.Signalled, err error) {
	m := s.mail(c)
	box := m.box(collation.Mailbox(s.cfg.Space, x.Topic, x.Key))
	err = m.open(ctx, step{"signal_known", [][]byte{pUUID(x.GUID)}, func(v row) error {
		out = store.Signalled{State: store.SignalState(v.text(0)), Duplicate: true}
		return nil
	}})
	if err != nil || out.Duplicate {
		abandon(ctx, c)
		return out, settleRead("signal", err)
	}
	x.Sent = m.now // its time decides how long it is kept, and for whom (J5)
	r, err := x.Row(s.cfg.Space)
	if err != nil {
		err = rejected("signal", err)
	} else {
		err = m.decide(ctx, "signal", box, func() (*collation.Mail, int, error) {
			done, more, err := collation.Receive(&box.Box, &x, r, mode)
			if done != nil {
				out.State, out.Reached = done.State, done.Reached
			}
			return done, more, err
		})
	}
	if err != nil {
		abandon(ctx, c)
		return out, settleRead("signal", err)
	}
	out.Out = m.out
	return out, m.commit(ctx)
}

// decide has what signals do to a mailbox decided, reads the waits that it misses,
// and notes what is to be written and sent.
func (m *mail) decide(ctx context.Context, op string, box *mailbox, decide func() (*collation.Mail, int, error)) error {
	for {
		done, more, err := decide()
		switch {
		case err != nil:
			return rejected(op, err)
		case more > 0:
			box.ask = more
			if err := m.c.run(ctx, m.look(box)); err != nil {
				return err
			}
			continue
		}
		m.plans = append(m.plans, store.Chained{Plan: done.Plan})
		for i, w := range done.Woken {
			m.out = append(m.out, store.Outgoing{
				Row: done.Plan.Insert[i], JobKey: w.JobKey, Generation: w.Generation, Flow: w.Flow, Trace: w.Trace,
			})
		}
		if m.rows += len(done.Plan.Update) + len(done.Plan.Delete); len(m.out) > collation.MaxWoken && m.rows > 1 {
			return rejected(op, collation.ErrManyWoken)
		}
		return nil
	}
}

// open begins the transaction, locks the mailboxes, and reads their waits and
// what else is to be read.
func (m *mail) open(ctx context.Context, steps ...step) error {
	if err := m.c.require(ctx, mailStatements...); err != nil {
		return err
	}
	ids := make([]journal.JobID, len(m.boxes))
	for i, box := range m.boxes {
		ids[i] = box.ID
	}
	err := m.c.run(ctx, append([]step{
		{name: "begin"},
		{name: "write_mailboxes", params: [][]byte{lockKeys(ids)}},
		{"clock", nil, func(v row) error { m.now = collation.Micros(v.int(0)); return nil }},
		m.look(m.boxes...),
		{
			"mail_due",
			[][]byte{pUUIDs(ids), pInt(collation.MaxDue)},
			m.collect(func(b *mailbox) *[]*collation.Row { return &b.Due }),
		},
	}, steps...)...)
	for _, box := range m.boxes {
		box.Now = m.now
	}
	return err
}

// collect appends rows to those of their mailboxes.
func (m *mail) collect(to func(*mailbox) *[]*collation.Row) func(row) error {
	return func(v row) error {
		x, err := readRow(v)
		if err == nil {
			rows := to(m.of[x.Job])
			*rows = append(*rows, x)
		}
		return err
	}
}

// look reads the next waits of mailboxes.
func (m *mail) look(boxes ...*mailbox) step {
	n := len(boxes)
	id, since, guid, most := uuids(n), ints(n), uuids(n), ints(n)
	for _, box := range boxes {
		last := &collation.BoxWait{}
		if read := len(box.Waits); read > 0 {
			last = &box.Waits[read-1]
		}
		id.uuid(box.ID)
		since.int(int64(last.Since))
		guid.uuid(last.GUID)
		most.int(int64(box.ask))
		box.All = true // until as many come as were asked for
	}
	return step{"mail_waits", [][]byte{id.value(), since.value(), guid.value(), most.value()}, func(v row) error {
		box := m.of[v.job(waitWidth)]
		box.Waits = append(box.Waits, collation.BoxWait{
			Wait: *readWait(v), JobKey: v.text(waitWidth + 1), Generation: v.int(waitWidth + 2), Trace: v.text(waitWidth + 6),
			Flow: journal.FlowRef{Name: v.text(waitWidth + 3), Version: v.text(waitWidth + 4), Digest: v.digest(waitWidth + 5)},
		})
		box.ask--
		box.All = box.ask > 0
		return nil
	}}
}

// commit writes what the signals did.
func (m *mail) commit(ctx context.Context) error {
	w, err := merge(m.plans)
	if err != nil {
		abandon(ctx, m.c)
		return rejected("deliver", err)
	}
	return m.s.conclude(ctx, m.c, w.queue)
}

// ExpireSignals removes kept signals whose time has passed.
func (s *Store) ExpireSignals(ctx context.Context, limit int) (int, error) {
	return s.change(ctx, "signals_expire", pInt(int64(min(limit, store.MaxSweep))))
}
