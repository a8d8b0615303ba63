package journaltest

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// deliver records the result of a decision on a mailbox, which the next decision sees.
func (a *attempt) deliver(id journal.JobID, done *collation.Mail, need *collation.Need) {
	if a.lacks(id, need) || done == nil {
		return
	}
	for i, w := range done.ResolvedWaits {
		a.out = append(a.out, store.Outgoing{
			Row: done.Plan.Insert[i], JobKey: w.JobKey, Generation: w.Generation, Flow: w.Flow, Trace: w.Trace,
		})
	}
	a.write(done.Plan)
	a.Boxes[id].Apply(done.Plan)
}

// Signal takes a signal from outside and delivers it at once.
func (d Driven) Signal(ctx context.Context, in *collation.Signal, mode collation.Mode) (out store.Signalled, err error) {
	space, err := d.Space(ctx)
	if err != nil {
		return out, err
	}
	box := collation.Mailbox(space, in.Topic, in.Key)
	err = d.transact(ctx, []store.Want{{Box: box, Known: in.GUID}}, func(a *attempt) error {
		if state, known := a.Known[in.GUID]; known {
			out = store.Signalled{State: state, Duplicate: true}
			return nil
		}
		done, need, err := collation.Receive(a.Boxes[box], space, *in, mode)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrRejected, err)
		}
		if a.deliver(box, done, need); done != nil {
			out = store.Signalled{State: done.State, Reached: done.Reached, Out: a.out}
		}
		return nil
	})
	if err != nil {
		return store.Signalled{}, err
	}
	return out, nil
}

// SignalTx sends a signal inside the caller's transaction.
func (d Driven) SignalTx(ctx context.Context, tx any, in *collation.Signal) (out store.Signalled, err error) {
	space, err := d.Space(ctx)
	if err != nil {
		return out, err
	}
	err = d.join(ctx, tx, []store.Want{{Known: in.GUID}}, func(a *attempt) error {
		state, known := a.Known[in.GUID]
		if out = (store.Signalled{State: state, Duplicate: known}); known {
			return nil
		}
		out.State = store.SignalKept
		p, err := collation.Send(space, *in, a.Now)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrRejected, err)
		}
		a.write(p)
		return nil
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
	var out []store.Outgoing
	err := d.transact(ctx, inBoxes(signals), func(a *attempt) error {
		for _, k := range signals {
			if a.done[k] {
				continue
			}
			done, need, err := collation.Deliver(a.Boxes[k.Job], k.GUID, mode)
			if err != nil {
				return fmt.Errorf("%w: %w", store.ErrRejected, err)
			}
			a.deliver(k.Job, done, need)
			a.done[k] = need == nil
		}
		out = a.out
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func inBoxes(signals []collation.RowKey) []store.Want {
	wants := make([]store.Want, len(signals))
	for i, k := range signals {
		wants[i] = store.Want{Box: k.Job, Signal: k.GUID}
	}
	return wants
}

// ExpireSignals ends kept signals whose time has passed, at most limit.
func (d Driven) ExpireSignals(ctx context.Context, limit int) (n int, err error) {
	late, err := d.LateSignals(ctx, limit)
	if err != nil || len(late) == 0 {
		return 0, err
	}
	err = d.transact(ctx, inBoxes(late), func(a *attempt) error {
		n = 0
		for _, k := range late {
			if p := collation.Lapse(a.Boxes[k.Job], k.GUID); p != nil {
				a.write(p)
				a.Boxes[k.Job].Apply(p)
				n++
			}
		}
		return nil
	})
	return n, err
}
