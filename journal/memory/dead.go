package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// The states of a dead letter.
const (
	letterOpen     = "open"
	letterRetried  = "retried"
	letterResolved = "resolved"
	letterFailed   = "failed"
	letterAnswered = "answered"
)

type letter struct{ view store.DeadView }

func (s *Store) addLetter(u *undo, d collation.DeadLetter) {
	set(u, &s.letterID, s.letterID+1)
	v := store.DeadView{ID: s.letterID, At: s.now(), Letter: d, State: letterOpen}
	set(u, &s.letters, append(s.letters, &letter{view: v}))
}

// DeadLetter implements store.Engine. The raw message is for a person who looks
// into a database; nothing reads it here.
func (s *Store) DeadLetter(_ context.Context, d collation.DeadLetter, _ []byte) error {
	return s.write("dead letter", func(u *undo) error {
		s.addLetter(u, d)
		return nil
	})
}

// moveLetters writes a plan's dead letters and ends those whose answer came
// after all (E10).
func (s *Store) moveLetters(u *undo, j *job, p *collation.Plan) {
	for _, g := range p.Undead {
		s.endLetters(u, j.ID, g, letterAnswered)
	}
	for _, d := range p.Dead {
		s.addLetter(u, d)
	}
}

func (s *Store) endLetters(u *undo, id journal.JobID, row journal.GUID, state string) {
	for _, l := range s.letters {
		if d := &l.view.Letter; d.Job == id && d.Row == row && l.view.State == letterOpen {
			set(u, &l.view.State, state)
		}
	}
}

func (s *Store) letterView(l *letter) store.DeadView {
	v := l.view
	if j := s.living(v.Letter.Job); j != nil {
		v.Key = j.Key
	}
	return v
}

// DeadLetters implements store.Operator.
func (s *Store) DeadLetters(_ context.Context, all bool, limit int) ([]store.DeadView, error) {
	if limit <= 0 {
		limit = defaultPage
	}
	if limit > store.MaxPage {
		return nil, fmt.Errorf("%w: a page of %d dead letters, at most %d", errLimits, limit, store.MaxPage)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []store.DeadView
	for _, l := range slices.Backward(s.letters) {
		if (all || l.view.State == letterOpen) && len(out) < limit {
			out = append(out, s.letterView(l))
		}
	}
	return out, nil
}

// Act implements store.Operator.
func (s *Store) Act(ctx context.Context, a store.Action) error {
	if err := a.Check(); err != nil {
		return fmt.Errorf("memory: act: %w", err)
	}
	l := s.letter(a.ID)
	if l == nil {
		return fmt.Errorf("memory: dead letter %d: %w", a.ID, store.ErrNotFound)
	}
	d := l.view.Letter // but for its state, a letter does not change
	err := s.writeRow(ctx, "act", d.Job, d.Row, true, func(u *undo, j *job) error {
		if l.view.State != letterOpen {
			return store.ErrStale
		}
		if j == nil {
			return actAlone(u, l, &a)
		}
		return s.act(u, j, l, &a)
	})
	if err != nil {
		return fmt.Errorf("memory: act on dead letter %d: %w", a.ID, err)
	}
	return nil
}

// letter finds a dead letter; nil: there is none.
func (s *Store) letter(id int64) *letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := slices.BinarySearchFunc(s.letters, id, func(l *letter, id int64) int { return cmp.Compare(l.view.ID, id) })
	if !found {
		return nil
	}
	return s.letters[i]
}

// actAlone ends the letter of a message that has no row.
func actAlone(u *undo, l *letter, a *store.Action) error {
	if a.Response == nil {
		return fmt.Errorf("%w: there is no row that could be sent again: end it with an answer", store.ErrRejected)
	}
	set(u, &l.view.State, answered(a.Response))
	return nil
}

// answered is the state of a letter that an operator answered.
func answered(r *journal.Response) string {
	if r.Code == collation.CodeOK {
		return letterResolved
	}
	return letterFailed
}

// act releases or answers the row of a dead letter, with an entry (E10).
func (s *Store) act(u *undo, j *job, l *letter, a *store.Action) error {
	g, now := l.view.Letter.Row, s.now()
	// A row that a closed job has left is its closer's, with step 3 to come.
	if s.row(j.ID, g) == nil || j.State != journal.JobOpen && !(a.Retry && j.State.Closed()) {
		return store.ErrStale
	}
	row, state := clone(s.row(j.ID, g)), letterRetried
	entry := &journal.Entry{
		Kind: journal.KindOperator, GUID: collation.OperatorGUID(g, a.Name(), s.acted(j.ID, g)), Activity: row.Activity,
		DAD: string(row.DAD), Operator: &journal.Operator{Action: a.Name(), Who: a.Who, Reason: a.Reason},
	}
	if a.Response == nil {
		if a.Done != nil {
			state = letterResolved
		}
		if a.Done != nil || a.Effect != (journal.Digest{}) || row.Held == collation.HeldParked {
			if row.Kind == journal.MessageAnswer { // its chain is bound, or is about to be (J8)
				return store.ErrStale
			}
			if err := s.judge(u, j, row, l.view.Letter.Reason, a, entry); err != nil {
				return err
			}
		}
		row.Held, row.NextAt, row.TurnSent = "", now, 0
		if row.Kind == journal.MessageLeg1 {
			row.Runs++ // allows one more entry (C4)
		} else {
			row.Runs = 0
		}
		row.Holder, row.LeaseUntil = "", collation.Never
	} else {
		if row.Kind != journal.MessageRequest && row.Kind != journal.MessageAnswer {
			return fmt.Errorf("%w: a message of kind %s cannot be answered: retry it", store.ErrRejected, row.Kind)
		}
		state = answered(a.Response)
		answer(row, now, a.Response)
	}
	row.Dead = false
	s.putRow(u, row)
	s.endLetters(u, j.ID, g, state)
	entry.Updated = []journal.Updated{updated(row)}
	_, err := j.write(u, now, entry)
	return err
}

// acted counts the dead letters of a row that an operator has ended.
func (s *Store) acted(id journal.JobID, row journal.GUID) int {
	n := 0
	for _, l := range s.letters {
		ended := l.view.State != letterOpen && l.view.State != letterAnswered
		if d := &l.view.Letter; d.Job == id && d.Row == row && ended {
			n++
		}
	}
	return n
}

// judge records what the operator says of an effect of the request: the action's
// entry names it, and the request's chain has its outcome (3.3).
func (s *Store) judge(u *undo, j *job, row *collation.Row, reason string, a *store.Action, entry *journal.Entry) error {
	decision, f, err := a.Judge(reason, s.effectRows(j, func(f *collation.Effect) bool { return f.Request == row.GUID }))
	if err != nil || decision == store.LeaveEffects {
		return err
	}
	old := j.effects[f.Key]
	next := clone(old)
	put(u, j.effects, f.Key, next)
	e := journal.Effect{Key: f.Key, Name: f.Name, Class: f.Class, N: f.N, Position: f.Position, Turn: row.Turn}
	named := e
	entry.Effect = &named
	e.Fence = f.Fence
	kind := journal.KindEffectFailed
	switch decision {
	case store.EffectVouched:
		next.Vouched = true
		return nil
	case store.EffectDone:
		kind, next.State, e.Result = journal.KindEffectCompleted, store.EffectCompleted, slices.Clone(a.Done)
		next.Vouched = true
	case store.EffectUndone:
		next.State, e.Error = store.EffectNotDone, &journal.Failure{Class: store.FailureOperator, Message: a.Reason}
	case store.EffectVoided:
		next.State, e.Error = store.EffectNotDone, &journal.Failure{Class: store.FailureVoided, Message: a.Reason}
		next.Vouched = false
	}
	next.Result, next.Error = e.Result, e.Error
	row.Effects, err = j.write(u, s.now(), &journal.Entry{
		Chain: row.GUID, Kind: kind, GUID: row.GUID, Activity: row.Activity, DAD: string(row.DAD), Effect: &e,
	})
	return err
}
