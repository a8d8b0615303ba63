package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
)

// Letter implements store.Engine.
func (s *Store) Letter(ctx context.Context, id int64) (*collation.Letter, error) {
	l, found, err := readOne(ctx, s, "letters_read", readOpenLetter, pInts(id))
	if err == nil && !found {
		err = fmt.Errorf("%w: dead letter %d in space %s", store.ErrNotFound, id, s.cfg.Space)
	}
	return l, err
}

func pInts(ids ...int64) []byte {
	c := ints(len(ids))
	for _, id := range ids {
		c.int(id)
	}
	return c.value()
}

func readOpenLetter(v row) (*collation.Letter, error) {
	return &collation.Letter{
		ID: v.int(0), Job: v.job(1), Row: v.guid(2), State: v.text(3), Reason: v.text(4), Acted: int(v.int(5)),
	}, nil
}

// readLetters returns the statement that reads the wanted dead letters.
func (w *wanted) readLetters(loaded *store.Loaded) []step {
	if len(w.letters) == 0 {
		return nil
	}
	return []step{{"letters_read", [][]byte{pInts(w.letters...)}, func(v row) error {
		l, err := readOpenLetter(v)
		loaded.Letters[l.ID] = l
		return err
	}}}
}
