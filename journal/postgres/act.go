package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

// letter is a dead letter as Act meets it.
type letter struct {
	job    journal.JobID
	guid   journal.GUID
	state  string
	acted  int
	reason string
}

// Act carries out an operator's decision on a dead letter, as one entry, and one on
// the chain of the effect that it is about (E10, 3.3).
func (s *Store) Act(ctx context.Context, a store.Action) error {
	if err := a.Check(); err != nil {
		return fmt.Errorf("postgres: act: %w", err)
	}
	return s.decide(ctx, "act", func(c *conn) error { return s.act(ctx, c, &a) })
}

func (s *Store) act(ctx context.Context, c *conn, a *store.Action) error {
	l, err := openLetter(ctx, c, a.ID)
	if err != nil {
		return err
	}
	if err := c.require(ctx, "letter_end", "effects_of_request", "effects_put", "effect_void", "effect_vouch"); err != nil {
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
	if l, err = openLetter(ctx, c, a.ID); err != nil { // it may have ended before the row was locked; now it cannot
		abandon(ctx, c)
		return err
	}
	e := d.entry(journal.KindOperator)
	e.GUID = collation.OperatorGUID(l.guid, a.Name(), l.acted)
	e.Activity, e.DAD = d.row.Activity, string(d.row.DAD)
	e.Operator = &journal.Operator{Action: a.Name(), Who: a.Who, Reason: a.Reason}
	state, err := d.decide(ctx, a, l.reason, e)
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
	e.Updated = []journal.Updated{updated(d.row)}
	return d.commit(ctx, e)
}

// openLetter reads a dead letter that has not ended: store.ErrStale.
func openLetter(ctx context.Context, c *conn, id int64) (l letter, err error) {
	err = c.query(ctx, "letter_read", func(v row) error {
		l = letter{job: v.job(0), guid: v.guid(1), state: v.text(2), acted: int(v.int(3)), reason: v.text(4)}
		return nil
	}, pInt(id))
	switch {
	case err != nil:
		return l, err
	case l.state == "":
		return l, fmt.Errorf("postgres: act: %w: dead letter %d", store.ErrNotFound, id)
	case l.state != letterOpen:
		return l, fmt.Errorf("postgres: act: %w: dead letter %d is %s", store.ErrStale, id, l.state)
	}
	return l, nil
}

// actAlone ends the letter of a message that has no row: there is nothing to
// send again, and no job whose journal could tell of it.
func (s *Store) actAlone(ctx context.Context, c *conn, a *store.Action) error {
	if a.Response == nil {
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

// decide changes the row as the operator says, with the effect that is meant, and
// gives the letter's new state. reason is the letter's, e the action's entry.
func (d *deed) decide(ctx context.Context, a *store.Action, reason string, e *journal.Entry) (string, error) {
	x := d.row
	if a.Response == nil {
		state := letterRetried
		if a.Done != nil {
			state = letterResolved
		}
		if a.Done != nil || a.Effect != (journal.Digest{}) || x.Held == collation.HeldParked {
			if x.Kind == journal.MessageAnswer { // its chain is bound, or is about to be (J8)
				return "", fmt.Errorf("postgres: act: %w: the request of dead letter %d has been answered: nothing is said of its effects any more; retry it without an effect",
					store.ErrStale, a.ID)
			}
			if err := d.judge(ctx, a, reason, e); err != nil {
				return "", err
			}
		}
		x.Runs, x.Holder, x.LeaseUntil = retries(x), "", 0
		d.release()
		return state, nil
	}
	if x.Kind != journal.MessageRequest && x.Kind != journal.MessageAnswer {
		return "", fmt.Errorf("postgres: act: %w: a message of kind %s cannot be answered: retry it", store.ErrRejected, x.Kind)
	}
	if x.Undo && x.Kind == journal.MessageRequest {
		x.Input = x.Body // its compensations need it (3.5)
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

// judge records what the operator says of an effect of the request: the action's
// entry names it, and the request's chain has its outcome.
func (d *deed) judge(ctx context.Context, a *store.Action, reason string, entry *journal.Entry) error {
	x := d.row
	var all []store.EffectRow
	err := d.c.query(ctx, "effects_of_request", func(v row) error {
		f, err := readEffect(v)
		if err == nil {
			all = append(all, *f)
		}
		return err
	}, pUUID(x.Job), pUUID(x.GUID))
	if err != nil {
		return err
	}
	decision, f, err := a.Judge(reason, all)
	if err != nil {
		return fmt.Errorf("postgres: act on dead letter %d: %w", a.ID, err)
	}
	if decision == store.LeaveEffects {
		return nil
	}
	e := journal.Effect{Key: f.Key, Name: f.Name, Class: f.Class, N: f.N, Position: f.Position, Turn: x.Turn}
	named := e
	entry.Effect = &named
	e.Fence = f.Fence
	kind := journal.KindEffectFailed
	switch decision {
	case store.EffectUndone:
		f.State, e.Error = store.EffectNotDone, &journal.Failure{Class: store.FailureOperator, Message: a.Reason}
	case store.EffectVoided:
		e.Error = &journal.Failure{Class: store.FailureVoided, Message: a.Reason}
	case store.EffectDone:
		kind, f.State, e.Result = journal.KindEffectCompleted, store.EffectCompleted, a.Done
	case store.EffectVouched:
		d.more = func(b *batch) { b.queue("effect_vouch", pUUID(x.Job), pDigest(f.Key)) }
		return nil
	}
	d.append(kind, &e)
	f.Result, f.Error = e.Result, e.Error
	d.more = func(b *batch) {
		if decision == store.EffectVoided {
			b.queue("effect_void", pUUID(x.Job), pDigest(f.Key), encodeFailure(e.Error))
			return
		}
		queueEffects(b, []effectWrite{{x.Job, &collation.Effect{EffectRow: *f, Request: x.GUID, Turn: x.Turn}}})
		if decision == store.EffectDone {
			b.queue("effect_vouch", pUUID(x.Job), pDigest(f.Key))
		}
	}
	return nil
}

// append appends an entry about an effect to the chain of the request.
func (d *deed) append(kind journal.Kind, effect *journal.Effect) {
	x := d.row
	e := d.entry(kind)
	e.Chain, e.Seq, e.GUID, e.Activity, e.DAD, e.Effect = x.GUID, x.Effects.Seq+1, x.GUID, x.Activity, string(x.DAD), effect
	previous := x.Effects.Hash
	if x.Effects.Seq == 0 {
		previous = journal.Genesis(e.Space, e.Job, e.Generation, e.Chain)
	}
	body := journal.Encode(e)
	x.Effects = journal.Head{Seq: e.Seq, Hash: journal.Next(previous, body)}
	d.entries = append(d.entries, entryWrite{job: e.Job, chain: e.Chain, seq: e.Seq, body: body, hash: x.Effects.Hash})
}
