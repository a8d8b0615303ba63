package journaltest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Driven is a store with a driver. Each operation is one transaction that loads, lets collation
// decide, and commits. Engines do that for many operations at once.
type Driven struct{ store.Store }

// maxAgain bounds how often an operation is decided again (C3).
const maxAgain = 10

// item is one decision of an operation: what it wants loaded, and how it decides on that. It has a
// plan, nothing to write, or a need; then it is asked again.
type item struct {
	store.Want
	decide func(*store.Loaded) (*collation.Plan, *collation.Need, error)
}

// try runs an operation once, each item after those before it. Without plans it writes nothing.
func try(ctx context.Context, tx store.Tx, items []item) (wrote bool, err error) {
	wants := make([]store.Want, len(items))
	for i := range items {
		wants[i] = items[i].Want
	}
	l, err := tx.Load(ctx, wants, true)
	if err != nil {
		return false, err
	}
	var plans []store.Chained
	for i := 0; i < len(items); {
		x := &items[i]
		p, need, err := x.decide(l)
		if need != nil {
			err = tx.(store.Committer).More(ctx, map[journal.JobID]*collation.Need{cmp.Or(x.Box, x.Job): need})
		} else if i++; p != nil {
			plans = append(plans, x.plan(l, p))
		}
		if err != nil {
			return false, err
		}
	}
	if len(plans) == 0 {
		return false, nil
	}
	return true, tx.Commit(ctx, plans)
}

// plan chains a plan, and applies it to what later items decide on.
func (x *item) plan(l *store.Loaded, p *collation.Plan) store.Chained {
	if box := l.Boxes[x.Box]; box != nil {
		box.Apply(p)
	}
	st := l.States[p.Job]
	if st == nil {
		return chain(p)
	}
	c := store.Chain(&st.Job, p)
	st.Apply(p)
	return c
}

// chain chains the plan of an inception, or one without an entry.
func chain(p *collation.Plan) store.Chained {
	e := p.Entry
	if e == nil {
		return store.Chained{Plan: p}
	}
	return store.Chain(&collation.Job{ID: e.Job, Space: e.Space, Generation: e.Generation}, p)
}

// Decide lets how decide on what one want brings, as often as it needs more, and commits the plan.
func (d Driven) Decide(
	ctx context.Context, want store.Want, how func(*store.Loaded) (*collation.Plan, *collation.Need, error),
) error {
	return d.transact(ctx, item{Want: want, decide: how})
}

// transact runs an operation, after a lost test-and-set again. If its session has ended, another
// try would not help.
func (d Driven) transact(ctx context.Context, items ...item) error {
	c, err := d.Committer(ctx, true)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; ; n++ {
		wrote, err := try(ctx, c, items)
		if !wrote {
			return errors.Join(err, c.Rollback(ctx))
		}
		lost, named := errors.AsType[*store.LostError](err)
		if !errors.Is(err, store.ErrLost) || n == maxAgain || named && lost.Session {
			return err
		}
	}
}

// rejected is the error of a decision that refuses what it was asked for.
func rejected(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", store.ErrRejected, err)
}

// WantOf returns what a message asks to have locked and read.
func WantOf(m *collation.Message) store.Want {
	return store.Want{
		Job: m.Job, Receipt: m.GUID, Row: m.Row,
		Instances: []collation.InstanceKey{{Activity: m.Activity, DAD: m.DAD}},
	}
}

// Step decides a message on the state of its job; mostly it is collation.Step.
type Step func(*collation.State, *collation.Message) (*collation.Plan, *collation.Need)

// Carrying is the message with what its row carries, if it has not been accepted.
func Carrying(st *collation.State, m *collation.Message) (x collation.Message, err error) {
	x = *m
	if row := st.Rows[m.Row]; row != nil && m.Response == nil && st.Receipts[m.GUID] == nil {
		switch row.Kind {
		case journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle:
			x.Response, err = journal.DecodeResponse(row.Body)
		}
	}
	return x, err
}

// handling are the items of messages, which set the plans.
func handling(step Step, ms []*collation.Message, plans []*collation.Plan) []item {
	items := make([]item, len(ms))
	for i, m := range ms {
		items[i] = item{
			Want: WantOf(m),
			decide: func(l *store.Loaded) (p *collation.Plan, need *collation.Need, err error) {
				st := l.States[m.Job]
				if st == nil {
					return nil, nil, nil
				}
				x, err := Carrying(st, m)
				if err != nil {
					return nil, nil, err
				}
				plans[i], need = step(st, &x)
				return plans[i], need, nil
			},
		}
	}
	return items
}

// Handle takes messages through one transaction, each after those before it, and returns the plan of
// each; nil if its job is not there.
func (d Driven) Handle(ctx context.Context, step Step, ms ...*collation.Message) ([]*collation.Plan, error) {
	plans := make([]*collation.Plan, len(ms))
	return plans, d.transact(ctx, handling(step, ms, plans)...)
}

// Attempt is Handle in a transaction of the caller's, which is not decided again.
func (d Driven) Attempt(ctx context.Context, tx store.Tx, step Step, ms ...*collation.Message) error {
	_, err := try(ctx, tx, handling(step, ms, make([]*collation.Plan, len(ms))))
	return err
}

// Start begins jobs in one transaction, each after those before it; the results are in their order.
func (d Driven) Start(ctx context.Context, starts []store.Start, mode collation.Mode) ([]store.Started, error) {
	space, err := d.Space(ctx)
	if err != nil {
		return nil, err
	}
	out, items := make([]store.Started, len(starts)), make([]item, len(starts))
	for i := range starts {
		in := &starts[i]
		items[i] = item{
			Want: store.Want{Key: in.Key},
			decide: func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
				p := collation.Begin(in.Inception(space, l.Now), l.Holders[in.Key], mode)
				if p == nil {
					out[i] = already(in, l.Holders[in.Key])
					return nil, nil, nil
				}
				out[i] = store.Started{Job: p.Job}
				l.Holders[in.Key] = &collation.Holder{ID: p.Job, State: journal.JobOpen, Flow: in.Flow, Input: in.Input}
				return p, nil, nil
			},
		}
	}
	if err := d.transact(ctx, items...); err != nil {
		return nil, err
	}
	return out, nil
}

func already(in *store.Start, h *collation.Holder) store.Started {
	return store.Started{Job: h.ID, Err: &store.AlreadyStartedError{
		Flow: h.Flow, Job: h.ID, Key: in.Key, SameFlow: h.Flow.Name == in.Flow.Name,
		SameInput: bytes.Equal(h.Input, in.Input),
	}}
}

// ordered decides on the row of a child's start, if it is still as it was seen: store.ErrStale.
func (d Driven) ordered(ctx context.Context, seen *collation.Row, key string,
	decide func(*collation.Row, *store.Loaded) (*collation.Plan, error),
) error {
	return d.transact(ctx, item{
		Want: store.Want{Order: seen.Job, Key: key},
		decide: func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
			row := l.Orders[seen.Job]
			if row == nil || row.Sender != seen.Sender {
				return nil, nil, fmt.Errorf("%w: the start of job %s", store.ErrStale, seen.Job)
			}
			p, err := decide(row, l)
			return p, nil, err
		},
	})
}

// Spawn begins the child that the row orders.
func (d Driven) Spawn(ctx context.Context, seen *collation.Row, in store.Start, mode collation.Mode) error {
	order, err := seen.Order()
	if err != nil {
		return err
	}
	space, err := d.Space(ctx)
	if err != nil {
		return err
	}
	return d.ordered(ctx, seen, in.Key, func(row *collation.Row, l *store.Loaded) (*collation.Plan, error) {
		x := in.Inception(space, l.Now)
		x.Order, x.Parent = row, &order.Parent
		p := collation.Begin(x, l.Holders[in.Key], mode)
		if p == nil {
			return nil, already(&in, l.Holders[in.Key]).Err
		}
		return p, nil
	})
}

// Refuse ends the row of a child's start that is refused, with its reply, if any.
func (d Driven) Refuse(ctx context.Context, seen *collation.Row, reply *collation.Row) error {
	return d.ordered(ctx, seen, "", func(row *collation.Row, _ *store.Loaded) (*collation.Plan, error) {
		p := &collation.Plan{
			Job:       row.Job,
			Message:   row.GUID,
			Outcome:   collation.Handled,
			RowWrites: collation.RowWrites{Delete: []journal.GUID{row.GUID}},
		}
		if reply != nil {
			p.Insert = []collation.Row{*reply}
		}
		return p, nil
	})
}

// Interrupt inserts the row of an interrupt of a job, and says whether it was not known. It is not
// inserted if the job is closed.
func (d Driven) Interrupt(ctx context.Context, row collation.Row, mode collation.Mode) (fresh bool, err error) {
	want := store.Want{
		Job: row.Job, Row: row.GUID, Receipt: row.GUID, Known: collation.RowKey{Job: row.Job, GUID: row.GUID},
	}
	return fresh, d.transact(ctx,
		item{Want: want, decide: func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
			st := l.States[row.Job]
			if st == nil {
				return nil, nil, fmt.Errorf("%w: job %s", store.ErrNotFound, row.Job)
			}
			_, known := l.Known[collation.RowKey{Job: row.Job, GUID: row.GUID}]
			p, err := collation.Interrupt(st, row, known, false, mode)
			fresh = p != nil
			return p, nil, rejected(err)
		}})
}

// wakeUps are what a decision on a mailbox sends; none of no decision.
func wakeUps(m *collation.Mail) (p *collation.Plan, out []store.Outgoing) {
	if m == nil {
		return nil, nil
	}
	for i, w := range m.ResolvedWaits {
		out = append(out, store.Outgoing{
			Row: m.Plan.Insert[i], JobKey: w.JobKey, Generation: w.Generation, Flow: w.Flow, Trace: w.Trace,
		})
	}
	return m.Plan, out
}

// Signal takes a signal from outside and delivers it at once.
func (d Driven) Signal(
	ctx context.Context, in *collation.Signal, mode collation.Mode) (out store.Signalled, err error,
) {
	space, err := d.Space(ctx)
	if err != nil {
		return out, err
	}
	box := collation.Mailbox(space, in.Topic, in.Key)
	record := collation.RowKey{Job: box, GUID: in.GUID}
	err = d.transact(ctx, item{
		Want: store.Want{Box: box, Known: record},
		decide: func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
			if state, known := l.Known[record]; known {
				out = store.Signalled{State: state, Duplicate: true}
				return nil, nil, nil
			}
			m, need, err := collation.Receive(l.Boxes[box], space, *in, mode)
			p, woken := wakeUps(m)
			if m != nil {
				out = store.Signalled{State: m.State, Reached: m.Reached, Out: woken}
			}
			return p, need, rejected(err)
		},
	})
	return out, err
}

// inBoxes are the items of an operation on signals of mailboxes.
func inBoxes(signals []collation.RowKey,
	decide func(int, *collation.Box, journal.GUID) (*collation.Plan, *collation.Need, error),
) []item {
	items := make([]item, len(signals))
	for i, k := range signals {
		items[i] = item{
			Want: store.Want{Box: k.Job, Signal: k.GUID},
			decide: func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
				return decide(i, l.Boxes[k.Job], k.GUID)
			},
		}
	}
	return items
}

// Deliver delivers the signals of rows in one transaction.
func (d Driven) Deliver(
	ctx context.Context, signals []collation.RowKey, mode collation.Mode) (out []store.Outgoing, err error,
) {
	woken := make([][]store.Outgoing, len(signals))
	err = d.transact(ctx, inBoxes(signals,
		func(i int, box *collation.Box, g journal.GUID) (p *collation.Plan, need *collation.Need, err error) {
			m, need, err := collation.Deliver(box, g, mode)
			p, woken[i] = wakeUps(m)
			return p, need, rejected(err)
		})...)
	if err != nil {
		return nil, err
	}
	return slices.Concat(woken...), nil
}

// ExpireSignals ends kept signals whose time has passed, at most limit.
func (d Driven) ExpireSignals(ctx context.Context, limit int) (n int, err error) {
	late, err := d.Late(ctx, journal.MessageSignal, limit)
	if err != nil || len(late) == 0 {
		return 0, err
	}
	ended := make([]bool, len(late))
	err = d.transact(ctx,
		inBoxes(late, func(i int, box *collation.Box, g journal.GUID) (*collation.Plan, *collation.Need, error) {
			p := collation.Lapse(box, g)
			ended[i] = p != nil
			return p, nil, nil
		})...)
	return len(slices.DeleteFunc(ended, func(e bool) bool { return !e })), err
}

// onJob is an item that decides on a job with one of its rows: store.ErrStale.
func onJob(
	job journal.JobID, row journal.GUID, decide func(*collation.State) (*collation.Plan, *collation.Need, error),
) item {
	return item{
		Want: store.Want{Job: job, Row: row},
		decide: func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
			if st := l.States[job]; st != nil {
				return decide(st)
			}
			return nil, nil, store.ErrStale
		},
	}
}

// Act carries out an operator's action on a dead letter (E10).
func (d Driven) Act(ctx context.Context, x store.Action) error {
	if err := x.Check(); err != nil {
		return err
	}
	seen, err := d.Letter(ctx, x.ID)
	if err != nil {
		return err
	}
	want := store.Want{Job: seen.Job, Row: seen.Row, Letter: x.ID}
	return d.transact(ctx, item{Want: want, decide: func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
		if l.Letters[x.ID] == nil {
			return nil, nil, fmt.Errorf("%w: dead letter %d", store.ErrNotFound, x.ID)
		}
		return collation.Act(l.States[seen.Job], l.Letters[x.ID], &x, effectMode)
	}})
}

// TurnOverdue ends requests that are past their time (E9), and returns their number.
func (d Driven) TurnOverdue(ctx context.Context, limit int) (n int, err error) {
	late, err := d.Late(ctx, journal.MessageRequest, limit)
	for i := 0; i < len(late) && err == nil; i++ {
		turned := 0
		err = d.transact(ctx,
			onJob(late[i].Job, late[i].GUID, func(st *collation.State) (p *collation.Plan, _ *collation.Need, _ error) {
				if p = collation.Overdue(st, late[i].GUID, effectMode); p != nil {
					turned = 1
				}
				return p, nil, nil
			}))
		n += turned
	}
	return n, err
}

// DeadLetter records a message for which no row was read (T3, S15).
func (d Driven) DeadLetter(ctx context.Context, letter collation.DeadLetter, raw []byte) error {
	letter.Raw, letter.Unclaimed = raw, true
	return d.transact(ctx, item{decide: func(*store.Loaded) (*collation.Plan, *collation.Need, error) {
		return collation.WriteDeadLetter(letter), nil, nil
	}})
}

// Discard deletes rows whose job is only a tombstone (C5) or was cancelled before it began. Rows
// of existing jobs stay.
func (d Driven) Discard(ctx context.Context, rows []collation.RowKey) error {
	items := make([]item, len(rows))
	for i, k := range rows {
		items[i] = item{
			Want: store.Want{Job: k.Job, Order: k.Job},
			decide: func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
				return collation.Discard(k, l.Tombstones[k.Job], l.States[k.Job], l.Orders[k.Job]), nil, nil
			},
		}
	}
	return d.transact(ctx, items...)
}
