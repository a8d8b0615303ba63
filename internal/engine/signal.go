package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Signals belong to no job, so they have no part in a job's transaction (J3). Those of a batch
// are carried together, each under the lock of its mailbox. All signals of one mailbox go
// through one loop of the process.

// Signal takes a signal from outside and delivers it at once, in one transaction with the
// record of its GUID (1.11, E13). Errors: store.ErrRejected: the signal cannot be written.
// store.ErrUnavailable: nothing was sent. store.ErrUnknown: it may have been, and the call may
// be repeated.
func (c *Committer) Signal(ctx context.Context, in collation.Signal) (store.Signalled, error) {
	var out store.Signalled // the batch sets it, whether the caller waits or not
	box := collation.Mailbox(c.cfg.Space, in.Topic, in.Key)
	x := &call{
		name: "signal", box: &box, size: len(in.Payload),
		wants: func() []store.Want {
			return []store.Want{{Box: box, Known: collation.RowKey{Job: box, GUID: in.GUID}}}
		},
		decides: func(b *batch) (err error) {
			out, err = b.signal(box, in)
			return err
		},
	}
	if c.do(ctx, x); x.err != nil {
		return store.Signalled{}, x.err
	}
	return out, nil
}

// Post writes the row of a signal, which an engine then delivers: the part of a client whose login
// may take no waits (S8). The answer says that the signal is kept, or known. Errors are those of
// Signal.
func (c *Committer) Post(ctx context.Context, in collation.Signal) (store.Signalled, error) {
	var out store.Signalled
	x := &call{
		name: "signal", size: len(in.Payload), wants: func() []store.Want { return []store.Want{{Known: c.record(&in)}} },
		decides: func(b *batch) (err error) {
			var p *collation.Plan
			if p, out, err = b.post(in); p != nil {
				b.write(p)
			}
			return err
		},
	}
	if c.do(ctx, x); x.err != nil {
		return store.Signalled{}, x.err
	}
	return out, nil
}

// record names what is kept of a signal from outside.
func (c *Committer) record(in *collation.Signal) collation.RowKey {
	return collation.RowKey{Job: collation.Mailbox(c.cfg.Space, in.Topic, in.Key), GUID: in.GUID}
}

// post decides to write the row of a signal, unless it is known.
func (b *batch) post(in collation.Signal) (*collation.Plan, store.Signalled, error) {
	record := collation.RowKey{Job: collation.Mailbox(b.cfg.Space, in.Topic, in.Key), GUID: in.GUID}
	if state, known := b.loaded.Known[record]; known {
		return nil, store.Signalled{State: state, Duplicate: true}, nil
	}
	p, err := collation.Send(b.cfg.Space, in, b.loaded.Now)
	if err != nil {
		return nil, store.Signalled{}, fmt.Errorf("%w: %w", store.ErrRejected, err)
	}
	b.loaded.Known[record] = store.SignalKept
	return p, store.Signalled{State: store.SignalKept}, nil
}

// SignalTx sends a signal inside the caller's transaction tx, the store's handle (E17). Its row
// commits with tx or not at all; an engine then delivers it. If another open transaction sends
// the same signal, SignalTx waits for it. Errors are those of Joiner.
func (c *Committer) SignalTx(ctx context.Context, tx any, in collation.Signal) (out store.Signalled, err error) {
	err = c.cfg.Store.Join(ctx, tx, func(t store.Tx) error {
		loaded, err := t.Load(ctx, []store.Want{{Known: c.record(&in)}}, true)
		if err != nil {
			return err
		}
		var p *collation.Plan
		if p, out, err = c.joined(loaded).post(in); err != nil || p == nil {
			return err
		}
		return t.Commit(ctx, []store.Chained{{Plan: p}})
	})
	if err != nil {
		return store.Signalled{}, err
	}
	return out, nil
}

// lapse ends kept signals whose time has passed.
func (c *Committer) lapse(ctx context.Context, signals []collation.RowKey) error {
	calls := make([]*call, len(signals))
	for i, k := range signals {
		calls[i] = &call{
			name: "expire signal", box: &k.Job,
			wants: func() []store.Want { return []store.Want{{Box: k.Job, Signal: k.GUID}} },
			decides: func(b *batch) error {
				box := b.loaded.Boxes[k.Job]
				if box == nil {
					return store.ErrBusy
				}
				if p := collation.Lapse(box, k.GUID); p != nil {
					b.write(p)
					box.Apply(p)
				}
				return nil
			},
		}
	}
	c.do(ctx, calls...)
	errs := make([]error, len(calls))
	for i, x := range calls {
		errs[i] = x.err
	}
	return errors.Join(errs...)
}

// signal decides on a signal from outside.
func (b *batch) signal(id journal.JobID, in collation.Signal) (store.Signalled, error) {
	record := collation.RowKey{Job: id, GUID: in.GUID}
	if state, known := b.loaded.Known[record]; known {
		return store.Signalled{State: state, Duplicate: true}, nil
	}
	box := b.loaded.Boxes[id]
	if box == nil {
		return store.Signalled{}, store.ErrBusy
	}
	m, need, err := collation.Receive(box, b.cfg.Space, in, b.mode)
	switch {
	case err != nil:
		return store.Signalled{}, fmt.Errorf("%w: %w", store.ErrRejected, err)
	case need != nil:
		return store.Signalled{}, needs{id: need}
	}
	out, err := b.mail(box, m)
	if err != nil {
		return store.Signalled{}, err
	}
	b.loaded.Known[record] = m.State
	return store.Signalled{State: m.State, Reached: m.Reached, Out: out}, nil
}

// mail adds the delivery to the batch and returns the wake-ups. Error: errLater.
func (b *batch) mail(box *collation.Box, m *collation.Mail) ([]store.Outgoing, error) {
	if b.wakeUps > 0 && b.wakeUps+len(m.ResolvedWaits) > collation.MaxWakeUps {
		return nil, errLater
	}
	b.wakeUps += len(m.ResolvedWaits)
	out := make([]store.Outgoing, len(m.ResolvedWaits))
	for i := range m.ResolvedWaits {
		w := &m.ResolvedWaits[i]
		out[i] = store.Outgoing{
			Row: m.Plan.Insert[i], JobKey: w.JobKey, Generation: w.Generation, Flow: w.Flow, Trace: w.Trace,
		}
	}
	if b.sends {
		b.out = append(b.out, out...)
	}
	b.write(m.Plan)
	box.Apply(m.Plan)
	return out, nil
}

// signalled is what became of a signal's message.
type signalled struct {
	state store.SignalState
	out   []store.Outgoing
}

// deliver decides on a signal's message. An unreadable or refused signal becomes a dead letter.
func (m *message) deliver(b *batch) error {
	m.signal = signalled{state: store.SignalKept} // unless it was handled before
	if m.reject != nil {
		b.deadLetter(m, reasonRefused, m.reject)
		return nil
	}
	box := b.loaded.Boxes[m.msg.Job]
	if box == nil {
		return store.ErrBusy
	}
	mail, need, err := collation.Deliver(box, m.msg.GUID, b.mode)
	switch {
	case errors.Is(err, collation.ErrSignal):
		b.deadLetter(m, reasonRefused, err)
		return nil
	case err != nil:
		return err
	case need != nil:
		return needs{m.msg.Job: need}
	case mail == nil:
		return nil
	}
	out, err := b.mail(box, mail)
	if err != nil {
		return err
	}
	m.signal = signalled{mail.State, out}
	return nil
}

// tell counts the outcome of a signal, and traces each job that it reached.
func (s *signalled) tell(l *loop, b *batch) {
	end := time.Now()
	for i := range s.out {
		o := &s.out[i]
		l.cfg.Observer.Told(observer.Message{Job: o.Row.Job, Traceparent: o.Trace, GUID: o.Row.GUID}, observer.Span{
			Name: observer.SpanSignal, Start: b.timing.began, End: end, Subject: SignalSubject(l.cfg.Space, o),
		})
	}
	l.cfg.Observer.Count(observer.MetricSignals, 1, "outcome", string(s.state))
}

// SignalSubject names the job and activity that a signal's wake-up reached.
func SignalSubject(space string, o *store.Outgoing) observer.Subject {
	return observer.Subject{
		Space: space, Job: o.Row.Job.String(), Key: o.JobKey, Flow: o.Flow.Name,
		Activity: o.Row.Activity, DAD: string(o.Row.DAD), GUID: o.Row.GUID.String(),
	}
}
