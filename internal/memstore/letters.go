package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// addLetter drops the raw message, which only serves people who look into a database.
func (s *Store) addLetter(u *undo, d collation.DeadLetter) {
	if d.Unclaimed && !d.Row.IsZero() && s.row(d.Job, d.Row) == nil {
		d.Job, d.Row = journal.JobID{}, journal.GUID{} // it names a row only if that is there
	}
	d.Raw, d.Unclaimed = nil, false
	set(u, &s.letterID, s.letterID+1)
	l := &store.DeadView{ID: s.letterID, At: s.now(), Letter: d, State: collation.LetterOpen}
	set(u, &s.letters, append(s.letters, l))
}

// dropLetters drops the first of the dead letters that are to go, at most limit, and counts them.
func (s *Store) dropLetters(u *undo, limit int, goes func(*store.DeadView) bool) (dropped int) {
	kept := slices.DeleteFunc(slices.Clone(s.letters), func(l *store.DeadView) bool {
		gone := dropped < limit && goes(l)
		if gone {
			dropped++
		}
		return gone
	})
	set(u, &s.letters, kept)
	return dropped
}

// moveLetters writes a plan's dead letters. It ends those that an operator acted on, and those
// whose rows got a late answer (E10).
func (s *Store) moveLetters(u *undo, p *collation.Plan) error {
	for i := range p.Letters {
		if err := s.endLetter(u, &p.Letters[i]); err != nil {
			return err
		}
	}
	for _, g := range p.Resolve {
		s.answerLetters(u, p.Job, g)
	}
	for _, d := range p.Dead {
		s.addLetter(u, d)
	}
	return nil
}

// answerLetters ends the open dead letters of a row that got a late answer.
func (s *Store) answerLetters(u *undo, id journal.JobID, row journal.GUID) {
	for _, l := range s.letters {
		if d := &l.Letter; d.Job == id && d.Row == row && l.State == collation.LetterOpen {
			set(u, &l.State, collation.LetterAnswered)
		}
	}
}

func (s *Store) letterView(l *store.DeadView) store.DeadView {
	v := *l
	if j := s.living(v.Letter.Job); j != nil {
		v.Key, v.Flow = j.Key, j.Flow.Name
	}
	if r := s.rows[v.Letter.Job][v.Letter.Row]; r != nil {
		v.Topic = r.Topic
	}
	return v
}

// DeadLetters implements store.Client. It selects by All, Jobs and Reason.
func (s *Store) DeadLetters(_ context.Context, f store.DeadFilter) ([]store.DeadView, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []store.DeadView
	for _, l := range slices.Backward(s.letters) {
		open := f.All || l.State == collation.LetterOpen
		of := len(f.Jobs) == 0 || slices.Contains(f.Jobs, l.Letter.Job)
		if open && of && (f.Reason == "" || l.Letter.Reason == f.Reason) && len(out) < f.Limit {
			out = append(out, s.letterView(l))
		}
	}
	return out, nil
}

// Letter implements store.Engine.
func (s *Store) Letter(_ context.Context, id int64) (*collation.Letter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.read(id); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("memory: dead letter %d: %w", id, store.ErrNotFound)
}

// read returns a dead letter for an operator; nil if it does not exist.
func (s *Store) read(id int64) *collation.Letter {
	l := s.letter(id)
	if l == nil {
		return nil
	}
	d := &l.Letter
	return &collation.Letter{
		ID: id, Job: d.Job, Row: d.Row, Reason: d.Reason, State: l.State, Acted: s.acted(d.Job, d.Row),
	}
}

func (s *Store) letter(id int64) *store.DeadView {
	i, found := slices.BinarySearchFunc(s.letters, id, func(l *store.DeadView, id int64) int {
		return cmp.Compare(l.ID, id)
	})
	if !found {
		return nil
	}
	return s.letters[i]
}

// endLetter ends an open dead letter.
func (s *Store) endLetter(u *undo, e *collation.LetterEnd) error {
	l := s.letter(e.ID)
	if l == nil || l.State != collation.LetterOpen {
		return lost("dead letter %d is not open", e.ID)
	}
	set(u, &l.State, e.State)
	return nil
}

// acted counts the dead letters of a row that an operator has ended.
func (s *Store) acted(id journal.JobID, row journal.GUID) int {
	n := 0
	for _, l := range s.letters {
		ended := l.State != collation.LetterOpen && l.State != collation.LetterAnswered
		if d := &l.Letter; d.Job == id && d.Row == row && ended {
			n++
		}
	}
	return n
}
