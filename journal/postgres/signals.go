package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// maxWoken bounds the wake-ups of one transaction that delivers several signals
// (T11); past it each is to be delivered alone.
const maxWoken = 2 * collation.MaxReach

// moreWaits is how many times more waits of a mailbox are read when those that
// were read do not take a signal.
const moreWaits = 32

// maxDue bounds the signals of one mailbox that are delivered together because
// they are due (T11). Where that many are, those that come later wait their turn.
const maxDue = 256

// errManyWoken asks for signals one by one.
var errManyWoken = errors.New("the signals reach too many waits together: deliver them one by one")

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
	mode  collation.Mode
	now   collation.Micros
	boxes map[journal.JobID]*mailbox
	out   []store.Outgoing
	w     writes
	due   []*collation.Row // signals of the mailboxes that are due, named or not
	// became is what the signals became whose row is gone, by their GUID.
	became map[journal.GUID]store.SignalState
}

// mailbox is one topic and key, with its oldest waits.
type mailbox struct {
	id    journal.JobID
	ask   int // waits to be read next
	waits []*waiting
	all   bool // there are no more than these
}

// waiting is an open wait, with the header of its job for the wake-up's message.
type waiting struct {
	collation.Wait
	header store.Outgoing
	seen   int // its count when it was read
	ended  bool
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
	m := &mail{s: s, c: c, mode: mode, boxes: map[journal.JobID]*mailbox{}, became: map[journal.GUID]store.SignalState{}}
	keys := make([]rowKey, 0, len(signals))
	named := make(map[collation.RowKey]bool, len(signals))
	for _, k := range signals {
		if named[k] {
			continue
		}
		named[k] = true
		keys = append(keys, rowKey{k.Job, k.GUID})
		if m.boxes[k.Job] == nil {
			m.boxes[k.Job] = &mailbox{id: k.Job}
		}
		m.boxes[k.Job].ask++ // each takes one, mostly
	}
	var rows []*collation.Row
	err := m.open(ctx, step{"mail_rows", rowKeys(keys), collect(&rows)})
	rows = m.queue(rows)
	if err == nil {
		err = m.post(ctx, rows)
	}
	if err != nil || len(rows) == 0 {
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
	box := collation.Mailbox(s.cfg.Space, x.Topic, x.Key)
	m := &mail{
		s: s, c: c, mode: mode, boxes: map[journal.JobID]*mailbox{box: {id: box, ask: 1}}, became: map[journal.GUID]store.SignalState{},
	}
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
		out.State, out.Reached, err = m.receive(ctx, &x, &r)
	}
	if err != nil {
		abandon(ctx, c)
		return out, settleRead("signal", err)
	}
	out.Out = m.out
	return out, m.commit(ctx, step{name: "signals_put", params: [][]byte{pUUID(x.GUID), pText(string(out.State))}})
}

// receive delivers a signal from outside behind those that are due, or keeps it.
// Behind too many of them it is due itself.
func (m *mail) receive(ctx context.Context, x *collation.Signal, r *collation.Row) (store.SignalState, int, error) {
	before := slices.DeleteFunc(m.queue([]*collation.Row{r}), func(other *collation.Row) bool { return other == r })
	if err := m.post(ctx, before); err != nil {
		return "", 0, err
	}
	if m.full(r.Job) {
		m.w.rows = append(m.w.rows, inserted(r))
		return store.SignalKept, 0, nil
	}
	state, reached, err := m.hand(ctx, x, r.Job)
	if err == nil && state == store.SignalKept {
		*r = x.Kept(*r)
		m.w.rows = append(m.w.rows, inserted(r))
	}
	return state, reached, err
}

// open begins the transaction, locks the mailboxes, and reads their waits and
// what else is to be read.
func (m *mail) open(ctx context.Context, steps ...step) error {
	if err := m.c.require(ctx, mailStatements...); err != nil {
		return err
	}
	ids, boxes := make([]journal.JobID, 0, len(m.boxes)), make([]*mailbox, 0, len(m.boxes))
	for id, box := range m.boxes {
		ids, boxes = append(ids, id), append(boxes, box)
	}
	return m.c.run(ctx, append([]step{
		{name: "begin"},
		{name: "write_mailboxes", params: [][]byte{lockKeys(ids)}},
		{"clock", nil, func(v row) error { m.now = collation.Micros(v.int(0)); return nil }},
		m.look(boxes...),
		{"mail_due", [][]byte{pUUIDs(ids), pInt(maxDue)}, collect(&m.due)},
	}, steps...)...)
}

// queue are the signals to deliver: those that were named, and what was sent
// before them to the same key and is due, since it was kept until a wait came: it
// goes first (1.11). Of a key with more of them than maxDue only they are.
func (m *mail) queue(named []*collation.Row) []*collation.Row {
	known := make(map[journal.GUID]bool, len(named))
	last := make(map[journal.JobID]collation.Micros, len(m.boxes))
	for _, r := range named {
		known[r.GUID] = true
		if x, err := collation.SignalOf(r); err == nil {
			last[r.Job] = max(last[r.Job], x.Sent)
		}
	}
	rows := slices.DeleteFunc(slices.Clone(named), func(r *collation.Row) bool { return m.full(r.Job) && !m.isDue(r.GUID) })
	for _, r := range m.due { // one that cannot be read is left to its own message
		if x, err := collation.SignalOf(r); err == nil && !x.All && !known[r.GUID] && x.Sent < last[r.Job] {
			rows = append(rows, r)
		}
	}
	return rows
}

// full reports whether more signals of the mailbox may be due than were read.
func (m *mail) full(box journal.JobID) bool {
	n := 0
	for _, r := range m.due {
		if r.Job == box {
			n++
		}
	}
	return n >= maxDue
}

func (m *mail) isDue(g journal.GUID) bool {
	return slices.ContainsFunc(m.due, func(r *collation.Row) bool { return r.GUID == g })
}

// look reads the next waits of mailboxes.
func (m *mail) look(boxes ...*mailbox) step {
	n := len(boxes)
	id, since, guid, most := uuids(n), ints(n), uuids(n), ints(n)
	for _, box := range boxes {
		last := &waiting{}
		if read := len(box.waits); read > 0 {
			last = box.waits[read-1]
		}
		id.uuid(box.id)
		since.int(int64(last.Since))
		guid.uuid(last.GUID)
		most.int(int64(box.ask))
		box.all = true // until as many come as were asked for
	}
	return step{"mail_waits", [][]byte{id.value(), since.value(), guid.value(), most.value()}, func(v row) error {
		x := &waiting{Wait: *readWait(v), header: store.Outgoing{
			JobKey: v.text(waitWidth + 1), Generation: v.int(waitWidth + 2), Trace: v.text(waitWidth + 6),
			Flow: journal.FlowRef{Name: v.text(waitWidth + 3), Version: v.text(waitWidth + 4), Digest: v.digest(waitWidth + 5)},
		}}
		x.seen = x.Count
		box := m.boxes[v.job(waitWidth)]
		box.waits = append(box.waits, x)
		box.ask--
		box.all = box.ask > 0
		return nil
	}}
}

// post hands the signals of rows over.
func (m *mail) post(ctx context.Context, rows []*collation.Row) error {
	signals := make([]*collation.Signal, len(rows))
	for i, r := range rows {
		x, err := collation.SignalOf(r)
		if err != nil {
			return rejected("deliver", err)
		}
		signals[i] = x
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(signals[a].Sent, signals[b].Sent) })
	for _, i := range order {
		r, x := rows[i], signals[i]
		state, _, err := m.hand(ctx, x, r.Job)
		if err != nil {
			return err
		}
		if state == store.SignalKept {
			kept := x.Kept(*r)
			m.w.rows = append(m.w.rows, replaced(&kept))
		} else {
			m.became[x.GUID] = state
			m.w.rows = append(m.w.rows, deleted(r))
		}
		if len(m.out) > maxWoken && len(rows) > 1 {
			return rejected("deliver", errManyWoken)
		}
	}
	return nil
}

// hand gives the signal to the oldest wait of its mailbox that takes it, or to
// all that do (1.11).
func (m *mail) hand(ctx context.Context, x *collation.Signal, id journal.JobID) (store.SignalState, int, error) {
	box, reach, none := m.boxes[id], 1, store.SignalKept
	if x.All {
		reach, none = collation.MaxReach, store.SignalMissed
	}
	reached := 0
	for i := 0; reached < reach; i++ {
		if i == len(box.waits) {
			if box.all {
				break
			}
			box.ask = min(max(reach-reached, moreWaits*i), collation.MaxReach)
			if err := m.c.run(ctx, m.look(box)); err != nil {
				return "", 0, err
			}
			if i == len(box.waits) {
				break
			}
		}
		if w := box.waits[i]; !w.ended && w.Takes(x, m.now) {
			m.wake(w, x)
			reached++
		}
	}
	if reached == 0 {
		return none, 0, nil
	}
	return store.SignalConsumed, reached, nil
}

// wake is what a signal does to a wait that takes it.
func (m *mail) wake(w *waiting, x *collation.Signal) {
	out := w.header
	out.Row, w.ended = w.Deliver(x, m.now, m.mode)
	if !w.ended {
		w.Count++
	}
	m.w.rows = append(m.w.rows, inserted(&out.Row))
	m.out = append(m.out, out)
}

// commit writes what was handed over.
func (m *mail) commit(ctx context.Context, steps ...step) error {
	for _, box := range m.boxes {
		for _, w := range box.waits {
			switch x := (&waitWrite{key: rowKey{w.Job, w.GUID}, stood: true, seen: w.seen}); {
			case w.ended:
				m.w.waits = append(m.w.waits, x)
			case w.Count != w.seen:
				x.after = &w.Wait
				m.w.waits = append(m.w.waits, x)
			}
		}
	}
	return m.s.conclude(ctx, m.c, func(b *batch) {
		m.w.queue(b)
		if n := len(m.became); n > 0 {
			guid, state := uuids(n), texts(n)
			for g, became := range m.became {
				guid.uuid(g)
				state.text(string(became))
			}
			b.queue("signals_became", guid.value(), state.value())
		}
		for _, s := range steps {
			b.queue(s.name, s.params...)
		}
	})
}

// ExpireSignals removes kept signals whose time has passed.
func (s *Store) ExpireSignals(ctx context.Context, limit int) (int, error) {
	return s.change(ctx, "signals_expire", pInt(int64(min(limit, store.MaxSweep))))
}
