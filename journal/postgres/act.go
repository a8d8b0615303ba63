package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// Actions of an operator, as entries name them (E10).
const (
	actionRetry  = "retry"
	actionAnswer = "answer"
)

// letter is a dead letter as Act meets it.
type letter struct {
	job   journal.JobID
	guid  journal.GUID
	state string
	acted int
}

// Act carries out an operator's decision on a dead letter, as one entry (E10).
func (s *Store) Act(ctx context.Context, a store.Action) error {
	if a.Retry == (a.Response != nil) {
		return fmt.Errorf("postgres: act: %w: either retry or answer", store.ErrRejected)
	}
	return s.decide(ctx, "act", func(c *conn) error { return s.act(ctx, c, &a) })
}

func (s *Store) act(ctx context.Context, c *conn, a *store.Action) error {
	l := letter{}
	err := c.query(ctx, "letter_read", func(v row) error {
		l = letter{job: v.job(0), guid: v.guid(1), state: v.text(2), acted: int(v.int(3))}
		return nil
	}, pInt(a.ID))
	switch {
	case err != nil:
		return err
	case l.state == "":
		return fmt.Errorf("postgres: act: %w: dead letter %d", store.ErrNotFound, a.ID)
	case l.state != letterOpen:
		return fmt.Errorf("postgres: act: %w: dead letter %d is %s", store.ErrStale, a.ID, l.state)
	}
	if err := c.require(ctx, "letter_end", "effects_of_request"); err != nil {
		return err
	}
	d, err := s.openTurn(ctx, c, l.job, l.guid)
	if err != nil {
		return err
	}
	switch { // a row that a closed job has left is its closer's, with step 3 to come
	case d.job.ID.IsZero():
		abandon(ctx, c)
		return s.actAlone(ctx, c, a)
	case d.row == nil || d.job.State != journal.JobOpen && !(a.Retry && d.job.State.Closed()):
		abandon(ctx, c)
		return fmt.Errorf("postgres: act: %w: the message of dead letter %d has ended", store.ErrStale, a.ID)
	}
	state, err := d.decide(ctx, a)
	if err != nil {
		abandon(ctx, c)
		return settle("act", err)
	}
	effects := d.more
	d.more = func(b *batch) {
		if effects != nil {
			effects(b)
		}
		b.queue("letter_end", pInt(a.ID), pText(state))
	}
	action := actionAnswer
	if a.Retry {
		action = actionRetry
	}
	e := d.entry(journal.KindOperator)
	e.GUID = collation.OperatorGUID(l.guid, action, l.acted)
	e.Activity, e.DAD = d.row.Activity, string(d.row.DAD)
	e.Operator = &journal.Operator{Action: action, Who: a.Who, Reason: a.Reason}
	e.Updated = []journal.Updated{updated(d.row)}
	return d.commit(ctx, e)
}

// actAlone ends the letter of a message that has no row: there is nothing to
// send again, and no job whose journal could tell of it.
func (s *Store) actAlone(ctx context.Context, c *conn, a *store.Action) error {
	if a.Retry {
		return fmt.Errorf("postgres: act: %w: the message of dead letter %d has no row that could be sent again: end it with an answer",
			store.ErrRejected, a.ID)
	}
	return c.query(ctx, "letter_end", nil, pInt(a.ID), pText(answered(a.Response)))
}

// answered is the state of a letter that an operator answered.
func answered(r *journal.Response) string {
	if r.Code == collation.CodeOK {
		return letterResolved
	}
	return letterFailed
}

// decide changes the row as the operator says and gives the letter's new
// state.
func (d *deed) decide(ctx context.Context, a *store.Action) (string, error) {
	x := d.row
	if a.Retry {
		if x.Held == collation.HeldParked {
			if err := d.undo(ctx, a); err != nil {
				return "", err
			}
		}
		x.Runs, x.Holder, x.LeaseUntil = retries(x), "", 0
		d.release()
		return letterRetried, nil
	}
	if x.Kind != journal.MessageRequest && x.Kind != journal.MessageAnswer {
		return "", fmt.Errorf("postgres: act: %w: a message of kind %s cannot be answered: retry it", store.ErrRejected, x.Kind)
	}
	x.Kind, x.Body, x.WithinAt = journal.MessageAnswer, wire.Encode(wire.FromJournal(a.Response)), collation.Never
	d.release()
	return answered(a.Response), nil
}

// retries is what the runs of a row are after an operator's retry: a request's
// count anew (E9); those of a Leg1 are the operator's retries, each of which
// allows one more entry (C4).
func retries(x *collation.Row) int {
	if x.Kind == journal.MessageLeg1 {
		return x.Runs + 1
	}
	return 0
}

// release lets the row go, to be sent at once.
func (d *deed) release() {
	d.row.Held, d.row.Dead, d.row.NextAt, d.row.TurnSent = "", false, d.now, 0
}

// undo records the unfinished effects of a parked request as not done, each on
// the request's chain: the operator says that they may run again.
func (d *deed) undo(ctx context.Context, a *store.Action) error {
	x := d.row
	var open []*store.EffectRow
	err := d.c.query(ctx, "effects_of_request", func(v row) error {
		f, err := readEffect(v)
		if err == nil && f.State == store.EffectStarted {
			open = append(open, f)
		}
		return err
	}, pUUID(x.Job), pUUID(x.GUID))
	if err != nil {
		return err
	}
	h := &chain{s: d.s, head: x.Effects}
	for _, f := range open {
		f.State, f.Error = store.EffectNotDone, &journal.Failure{Class: "operator", Message: a.Reason}
		e := d.entry(journal.KindEffectFailed)
		e.Chain, e.Seq, e.GUID, e.Activity, e.DAD = x.GUID, h.head.Seq+1, x.GUID, x.Activity, string(x.DAD)
		e.Effect = &journal.Effect{Key: f.Key, Name: f.Name, Class: f.Class, N: f.N, Turn: x.Turn, Fence: f.Fence, Error: f.Error}
		d.entries = append(d.entries, h.link(e))
	}
	x.Effects = h.head
	l := store.Lease{Job: x.Job, Request: x.GUID, Turn: x.Turn}
	d.more = func(b *batch) {
		for _, f := range open {
			queueEffect(b, l, 0, f, collation.Never)
		}
	}
	return nil
}
