package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Driven is a store with a driver. Each operation is one transaction that loads, lets collation
// decide, and commits. Engines do that for many operations at once.
type Driven struct{ store.Store }

// maxAgain bounds how often an operation is decided again (C3).
const maxAgain = 10

// attempt is one attempt at an operation: what it loaded, and what it decided.
type attempt struct {
	*store.Loaded
	plans []store.Chained
	needs map[journal.JobID]*collation.Need // what decisions lack
	done  map[collation.RowKey]bool         // signals that were delivered
	out   []store.Outgoing                  // what it sends
}

// write adds a plan without an entry.
func (a *attempt) write(p *collation.Plan) { a.plans = append(a.plans, store.Chained{Plan: p}) }

// enter adds a plan with an entry of the job.
func (a *attempt) enter(j *collation.Job, p *collation.Plan) {
	a.plans = append(a.plans, store.Chain(j, p))
}

// lacks records what a decision needs, and reports whether it needs anything.
func (a *attempt) lacks(id journal.JobID, need *collation.Need) bool {
	if need != nil {
		a.needs[id] = need
	}
	return need != nil
}

// try runs an operation once. It calls decide again with what that lacked, until it lacks nothing.
// Without plans it writes nothing.
func try(ctx context.Context, tx store.Tx, wants []store.Want, decide func(*attempt) error) (wrote bool, err error) {
	a := &attempt{done: map[collation.RowKey]bool{}}
	if a.Loaded, err = tx.Load(ctx, wants, true); err != nil {
		return false, err
	}
	for first := true; first || len(a.needs) > 0; first = false {
		if !first {
			if err := tx.(store.Committer).More(ctx, a.needs); err != nil {
				return false, err
			}
		}
		a.needs = map[journal.JobID]*collation.Need{}
		if err := decide(a); err != nil {
			return false, err
		}
	}
	if len(a.plans) == 0 {
		return false, nil
	}
	return true, tx.Commit(ctx, a.plans)
}

// transact runs an operation, after a lost test-and-set again. If its session has ended, another
// try would not help.
func (d Driven) transact(ctx context.Context, wants []store.Want, decide func(*attempt) error) error {
	c, err := d.Committer(ctx, true)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; ; n++ {
		wrote, err := try(ctx, c, wants, decide)
		if !wrote {
			return errors.Join(err, c.Rollback(ctx))
		}
		lost, named := errors.AsType[*store.LostError](err)
		if !errors.Is(err, store.ErrLost) || n == maxAgain || named && lost.Session {
			return err
		}
	}
}

// join runs an operation inside the caller's transaction.
func (d Driven) join(ctx context.Context, tx any, wants []store.Want, decide func(*attempt) error) error {
	return d.Join(ctx, tx, func(t store.Tx) error {
		_, err := try(ctx, t, wants, decide)
		return err
	})
}

// Start begins jobs in one transaction, each after those before it; the results are in their order.
func (d Driven) Start(ctx context.Context, starts []store.Start, mode collation.Mode) ([]store.Started, error) {
	return d.start(ctx, starts, mode, d.transact)
}

// StartTx is Start inside the caller's transaction.
func (d Driven) StartTx(ctx context.Context, tx any, starts []store.Start, mode collation.Mode) ([]store.Started, error) {
	return d.start(ctx, starts, mode, func(ctx context.Context, wants []store.Want, decide func(*attempt) error) error {
		return d.join(ctx, tx, wants, decide)
	})
}

func (d Driven) start(
	ctx context.Context, starts []store.Start, mode collation.Mode, in func(context.Context, []store.Want, func(*attempt) error) error,
) ([]store.Started, error) {
	space, err := d.Space(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]store.Started, len(starts))
	wants := make([]store.Want, len(starts))
	for i := range starts {
		wants[i].Key = starts[i].Key
	}
	err = in(ctx, wants, func(a *attempt) error {
		for i := range starts {
			in := &starts[i]
			p := collation.Begin(in.Inception(space, a.Now), a.Holders[in.Key], mode)
			if p == nil {
				out[i] = already(in, a.Holders[in.Key])
				continue
			}
			out[i] = store.Started{Job: p.Job}
			a.Holders[in.Key] = &collation.Holder{ID: p.Job, State: journal.JobOpen, Flow: in.Flow, Input: in.Input}
			a.plans = append(a.plans, chain(p))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func chain(p *collation.Plan) store.Chained {
	e := p.Entry
	return store.Chain(&collation.Job{ID: e.Job, Space: e.Space, Generation: e.Generation}, p)
}

func already(in *store.Start, h *collation.Holder) store.Started {
	return store.Started{Job: h.ID, Err: &store.AlreadyStartedError{
		Job: h.ID, Key: in.Key, SameFlow: h.Flow.Name == in.Flow.Name, SameInput: bytes.Equal(h.Input, in.Input),
	}}
}

// Order reads the row of a child's start that has no inception yet:
// store.ErrNotFound.
func (d Driven) Order(ctx context.Context, child journal.JobID) (row *collation.Row, err error) {
	err = d.transact(ctx, []store.Want{{Order: child}}, func(a *attempt) error {
		if row = a.Orders[child]; row == nil {
			return fmt.Errorf("%w: no start of job %s waits for its inception", store.ErrNotFound, child)
		}
		return nil
	})
	return row, err
}

// ordered returns the row of an order, if it is still as it was seen: store.ErrStale.
func (a *attempt) ordered(seen *collation.Row) (*collation.Row, error) {
	if row := a.Orders[seen.Job]; row != nil && row.Sender == seen.Sender {
		return row, nil
	}
	return nil, fmt.Errorf("%w: the start of job %s", store.ErrStale, seen.Job)
}

// Spawn begins the child that the row orders, with its reply, if any.
func (d Driven) Spawn(ctx context.Context, seen *collation.Row, in store.Start, reply *collation.Row, mode collation.Mode) error {
	order, err := seen.Order()
	if err != nil {
		return err
	}
	space, err := d.Space(ctx)
	if err != nil {
		return err
	}
	return d.transact(ctx, []store.Want{{Order: seen.Job, Key: in.Key}}, func(a *attempt) error {
		row, err := a.ordered(seen)
		if err != nil {
			return err
		}
		x := in.Inception(space, a.Now)
		x.Order, x.Parent = row, &order.Parent
		p := collation.Begin(x, a.Holders[in.Key], mode)
		if p == nil {
			return already(&in, a.Holders[in.Key]).Err
		}
		if reply != nil {
			p.Insert = append(p.Insert, *reply)
		}
		a.plans = append(a.plans, chain(p))
		return nil
	})
}

// Refuse ends the row of a child's start that is refused, with its reply, if any.
func (d Driven) Refuse(ctx context.Context, seen *collation.Row, reply *collation.Row) error {
	return d.transact(ctx, []store.Want{{Order: seen.Job}}, func(a *attempt) error {
		row, err := a.ordered(seen)
		if err != nil {
			return err
		}
		p := &collation.Plan{Job: row.Job, Message: row.GUID, Outcome: collation.Handled, Delete: []journal.GUID{row.GUID}}
		if reply != nil {
			p.Insert = []collation.Row{*reply}
		}
		a.write(p)
		return nil
	})
}

// Interrupt inserts the row of an interrupt of a job, unless the interrupt is known. out is nil
// then, and also if the job is closed.
func (d Driven) Interrupt(ctx context.Context, row collation.Row, mode collation.Mode) (out *store.Outgoing, fresh bool, err error) {
	wants := []store.Want{{Job: row.Job, Row: row.GUID, Receipt: row.GUID, Known: row.GUID}}
	err = d.transact(ctx, wants, func(a *attempt) error {
		st := a.States[row.Job]
		if st == nil {
			return fmt.Errorf("%w: job %s", store.ErrNotFound, row.Job)
		}
		_, known := a.Known[row.GUID]
		p, err := collation.Interrupt(st, row, known, mode)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrRejected, err)
		}
		if fresh = p != nil; !fresh {
			return nil
		}
		if len(p.Insert) > 0 {
			j := &st.Job
			out = &store.Outgoing{Row: p.Insert[0], JobKey: j.Key, Generation: j.Generation, Flow: j.Flow, Trace: j.Trace}
		}
		a.write(p)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return out, fresh, nil
}

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

var _ store.Worker = Driven{}

// effectMode is the mode of workers' writes.
var effectMode = collation.Mode{Writer: "suite", Build: "test"}

func chainWant(l *store.Lease, e *journal.Effect) []store.Want {
	return []store.Want{{Chain: l.Key(), Effects: []journal.Digest{e.Key}, Past: l.Resumes}}
}

// onChain decides on the effect of a request, and sets out to the effect after it.
func onChain(of store.Lease, out *collation.Effected, decide func(*collation.Chain) (collation.Effected, error)) func(*attempt) error {
	return func(a *attempt) (err error) {
		h := a.Chains[of.Key()]
		if h == nil {
			return fmt.Errorf("%w: the chain of request %s was not loaded", store.ErrBusy, of.Request)
		}
		if *out, err = decide(h); err == nil && out.Plan != nil {
			a.write(out.Plan)
		}
		return err
	}
}

func (d Driven) effect(ctx context.Context, of store.Lease, e *journal.Effect, decide func(*collation.Chain) (collation.Effected, error)) (out collation.Effected, err error) {
	if err = d.transact(ctx, chainWant(&of, e), onChain(of, &out, decide)); err != nil {
		return collation.Effected{}, err
	}
	return out, nil
}

// StartEffect implements store.Worker.
func (d Driven) StartEffect(ctx context.Context, l store.Lease, e journal.Effect) (store.EffectRow, bool, error) {
	out, err := d.effect(ctx, l, &e, func(h *collation.Chain) (collation.Effected, error) { return h.Start(l, e, effectMode) })
	return out.EffectRow, out.Taken, err
}

// FinishEffect implements store.Worker.
func (d Driven) FinishEffect(ctx context.Context, l store.Lease, e journal.Effect, notDone bool) (store.EffectRow, error) {
	if e.Class == store.ClassTx {
		return store.EffectRow{}, store.ErrRejected
	}
	out, err := d.effect(ctx, l, &e, func(h *collation.Chain) (collation.Effected, error) { return h.Finish(l, e, notDone, effectMode) })
	return out.EffectRow, err
}

// SendOutcome implements store.Worker; it waits.
func (d Driven) SendOutcome(ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error)) {
	ended(d.FinishEffect(context.WithoutCancel(ctx), l, e, false))
}

// TxEffect implements store.Worker.
func (d Driven) TxEffect(ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall) (store.EffectRow, error) {
	if e.Class != store.ClassTx {
		return store.EffectRow{}, store.ErrRejected
	}
	var out collation.Effected
	stood, err := d.Body(ctx, l.Job, e.Key, call, func(ctx context.Context, tx store.Tx, with store.TxEnd) error {
		e.Result, e.Error = with.Result, with.Error
		_, err := try(ctx, tx, chainWant(&l, &e), onChain(l, &out, func(h *collation.Chain) (collation.Effected, error) {
			return h.Finish(l, e, with.NotDone, effectMode)
		}))
		return err
	})
	switch {
	case err != nil:
		return store.EffectRow{}, err
	case stood != nil:
		return *stood, nil
	}
	return out.EffectRow, nil
}

// Lease implements store.Worker. As an engine would, it holds a request that ran too often.
func (d Driven) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	l, err := d.Store.Lease(ctx, job, request, turn, holder, session)
	if !errors.Is(err, store.ErrExhausted) {
		return l, err
	}
	failed := d.transact(ctx, []store.Want{{Job: job, Row: request}}, func(a *attempt) error {
		st := a.States[job]
		if st == nil {
			return store.ErrStale
		}
		p, need, err := collation.Exhaust(st, request, turn, effectMode)
		if err == nil && !a.lacks(job, need) {
			a.enter(&st.Job, p)
		}
		return err
	})
	if failed != nil {
		return l, failed
	}
	return l, err
}

// PutPayload implements store.Worker. It commits without a Load.
func (d Driven) PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error {
	p, err := collation.PutPayload(job, digest, body)
	if err != nil {
		return err
	}
	c, err := d.Committer(ctx, true)
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.Commit(ctx, []store.Chained{{Plan: p}})
	if lost, ok := errors.AsType[*store.LostError](err); ok && len(lost.Jobs) > 0 {
		return fmt.Errorf("%w: job %s", store.ErrNotFound, job)
	}
	return err
}
