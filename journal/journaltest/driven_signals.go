package journaltest

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// mail is a transaction on mailboxes. Each decision sees the ones before it.
type mail struct {
	*store.Loaded
	plans []store.Chained
	out   []store.Outgoing
	needs map[journal.JobID]*collation.Need
	done  map[collation.RowKey]bool // signals that were decided
}

// take records the result of a decision.
func (m *mail) take(id journal.JobID, done *collation.Mail, need *collation.Need) {
	switch {
	case need != nil:
		m.needs[id] = need
	case done != nil:
		for i, w := range done.ResolvedWaits {
			m.out = append(m.out, store.Outgoing{
				Row: done.Plan.Insert[i], JobKey: w.JobKey, Generation: w.Generation, Flow: w.Flow, Trace: w.Trace,
			})
		}
		m.plan(m.Boxes[id], done.Plan)
	}
}

func (m *mail) plan(box *collation.Box, p *collation.Plan) {
	m.plans = append(m.plans, store.Chained{Plan: p})
	box.Apply(p)
}

// post runs one transaction on mailboxes. It loads what decide needs and calls it again, until it
// needs nothing.
func (d Driven) post(ctx context.Context, wants []store.Want, decide func(*mail) error) (out []store.Outgoing, err error) {
	c, err := d.Committer(ctx, true)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for attempt := 0; ; attempt++ {
		loaded, err := c.Load(ctx, wants, true)
		if err != nil {
			return nil, err
		}
		m := &mail{Loaded: loaded, needs: map[journal.JobID]*collation.Need{}, done: map[collation.RowKey]bool{}}
		for {
			clear(m.needs)
			if err := decide(m); err != nil {
				return nil, err
			}
			if len(m.needs) == 0 {
				break
			}
			if err := c.More(ctx, m.needs); err != nil {
				return nil, err
			}
		}
		if len(m.plans) == 0 {
			return nil, c.Rollback(ctx)
		}
		if err = c.Commit(ctx, m.plans); again(err, attempt) {
			continue
		}
		return m.out, err
	}
}

// Signal takes a signal from outside and delivers it at once.
func (d Driven) Signal(ctx context.Context, in *collation.Signal, mode collation.Mode) (out store.Signalled, err error) {
	space, err := d.Space(ctx)
	if err != nil {
		return out, err
	}
	box := collation.Mailbox(space, in.Topic, in.Key)
	sent, err := d.post(ctx, []store.Want{{Box: box, Known: in.GUID}}, func(m *mail) error {
		if state, known := m.Known[in.GUID]; known {
			out = store.Signalled{State: state, Duplicate: true}
			return nil
		}
		done, need, err := collation.Receive(m.Boxes[box], space, *in, mode)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrRejected, err)
		}
		if m.take(box, done, need); done != nil {
			out = store.Signalled{State: done.State, Reached: done.Reached}
		}
		return nil
	})
	if err != nil {
		return store.Signalled{}, err
	}
	out.Out = sent
	return out, nil
}

// SignalTx sends a signal inside the caller's transaction.
func (d Driven) SignalTx(ctx context.Context, tx any, in *collation.Signal) (out store.Signalled, err error) {
	space, err := d.Space(ctx)
	if err != nil {
		return out, err
	}
	err = d.Join(ctx, tx, func(t store.Tx) error {
		l, err := t.Load(ctx, []store.Want{{Known: in.GUID}}, true)
		if err != nil {
			return err
		}
		state, known := l.Known[in.GUID]
		if out = (store.Signalled{State: state, Duplicate: known}); known {
			return nil
		}
		out.State = store.SignalKept
		p, err := collation.Send(space, *in, l.Now)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrRejected, err)
		}
		return t.Commit(ctx, []store.Chained{{Plan: p}})
	})
	if err != nil {
		return store.Signalled{}, err
	}
	return out, nil
}

// Deliver delivers the signals of rows in one transaction.
func (d Driven) Deliver(ctx context.Context, signals []collation.RowKey, mode collation.Mode) ([]store.Outgoing, error) {
	if len(signals) == 0 {
		return nil, nil
	}
	wants := make([]store.Want, len(signals))
	for i, k := range signals {
		wants[i] = store.Want{Box: k.Job, Signal: k.GUID}
	}
	return d.post(ctx, wants, func(m *mail) error {
		for _, k := range signals {
			if m.done[k] {
				continue
			}
			done, need, err := collation.Deliver(m.Boxes[k.Job], k.GUID, mode)
			if err != nil {
				return fmt.Errorf("%w: %w", store.ErrRejected, err)
			}
			m.take(k.Job, done, need)
			m.done[k] = need == nil
		}
		return nil
	})
}

// ExpireSignals ends kept signals whose time has passed, at most limit.
func (d Driven) ExpireSignals(ctx context.Context, limit int) (n int, err error) {
	late, err := d.LateSignals(ctx, limit)
	if err != nil || len(late) == 0 {
		return 0, err
	}
	wants := make([]store.Want, len(late))
	for i, k := range late {
		wants[i] = store.Want{Box: k.Job, Signal: k.GUID}
	}
	_, err = d.post(ctx, wants, func(m *mail) error {
		n = 0
		for _, k := range late {
			if p := collation.Lapse(m.Boxes[k.Job], k.GUID); p != nil {
				m.plan(m.Boxes[k.Job], p)
				n++
			}
		}
		return nil
	})
	return n, err
}
