package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// letter is a dead letter. unclaimed says that retention bounds it by its size (S15).
type letter struct {
	view      store.DeadView
	unclaimed bool
	size      int
}

// addLetter drops the raw message, which only serves people who look into a database.
func (s *Store) addLetter(u *undo, d collation.DeadLetter) {
	l := &letter{unclaimed: d.Unclaimed, size: d.Size()}
	if d.Unclaimed && !d.Row.IsZero() && s.row(d.Job, d.Row) == nil {
		d.Job, d.Row = journal.JobID{}, journal.GUID{} // a unclaimed names a row only if that is there
	}
	d.Raw, d.Unclaimed = nil, false
	set(u, &s.letterID, s.letterID+1)
	l.view = store.DeadView{ID: s.letterID, At: s.now(), Letter: d, State: collation.LetterOpen}
	set(u, &s.letters, append(s.letters, l))
}

// dropUnclaimed drops the oldest unclaimed dead letters beyond their bound, at most limit, and counts
// them (S15).
func (s *Store) dropUnclaimed(u *undo, limit int) (dropped int) {
	n, size, beyond := 0, 0, int64(0)
	for _, l := range slices.Backward(s.letters) {
		if !l.unclaimed {
			continue
		}
		if n, size = n+1, size+l.size; n > store.MaxUnclaimed || size > store.MaxUnclaimedBytes {
			beyond = l.view.ID
			break
		}
	}
	return s.dropLetters(u, limit, func(l *letter) bool { return l.unclaimed && l.view.ID <= beyond })
}

// dropLetters drops the first of the dead letters that are to go, at most limit, and counts them.
func (s *Store) dropLetters(u *undo, limit int, goes func(*letter) bool) (dropped int) {
	kept := slices.DeleteFunc(slices.Clone(s.letters), func(l *letter) bool {
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
		if d := &l.view.Letter; d.Job == id && d.Row == row && l.view.State == collation.LetterOpen {
			set(u, &l.view.State, collation.LetterAnswered)
		}
	}
}

func (s *Store) letterView(l *letter) store.DeadView {
	v := l.view
	if j := s.living(v.Letter.Job); j != nil {
		v.Key, v.Flow = j.Key, j.Flow.Name
	}
	if r := s.rows[v.Letter.Job][v.Letter.Row]; r != nil {
		v.Topic = r.Topic
	}
	return v
}

// DeadLetters implements store.Client.
func (s *Store) DeadLetters(_ context.Context, f store.DeadFilter) ([]store.DeadView, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []store.DeadView
	for _, l := range slices.Backward(s.letters) {
		if v := s.letterView(l); selects(&f, &v) && len(out) < f.Limit {
			out = append(out, v)
		}
	}
	return out, nil
}

func selects(f *store.DeadFilter, v *store.DeadView) bool {
	if v.State != collation.LetterOpen && !f.All {
		return false
	}
	if len(f.Jobs) > 0 {
		return slices.Contains(f.Jobs, v.Letter.Job)
	}
	return (f.Flow == "" || v.Flow == f.Flow) && (f.Topic == "" || v.Topic == f.Topic) &&
		(f.Reason == "" || v.Letter.Reason == f.Reason) && (f.Before <= 0 || v.ID < f.Before) &&
		strings.HasPrefix(v.Key, f.Prefix) && v.At >= f.From && (f.To == 0 || v.At < f.To)
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
	d := &l.view.Letter
	return &collation.Letter{
		ID: id, Job: d.Job, Row: d.Row, Reason: d.Reason, State: l.view.State, Acted: s.acted(d.Job, d.Row),
	}
}

func (s *Store) letter(id int64) *letter {
	i, found := slices.BinarySearchFunc(s.letters, id, func(l *letter, id int64) int {
		return cmp.Compare(l.view.ID, id)
	})
	if !found {
		return nil
	}
	return s.letters[i]
}

// endLetter ends an open dead letter.
func (s *Store) endLetter(u *undo, e *collation.LetterEnd) error {
	l := s.letter(e.ID)
	if l == nil || l.view.State != collation.LetterOpen {
		return lost("dead letter %d is not open", e.ID)
	}
	set(u, &l.view.State, e.State)
	if !l.view.Letter.Row.IsZero() { // what an operator did to a row is counted
		set(u, &l.unclaimed, false)
	}
	return nil
}

// acted counts the dead letters of a row that an operator has ended.
func (s *Store) acted(id journal.JobID, row journal.GUID) int {
	n := 0
	for _, l := range s.letters {
		ended := l.view.State != collation.LetterOpen && l.view.State != collation.LetterAnswered
		if d := &l.view.Letter; d.Job == id && d.Row == row && ended {
			n++
		}
	}
	return n
}
