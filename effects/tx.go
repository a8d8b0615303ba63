package effects

import (
	"context"
	"errors"
	"time"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// withinTx marks the context of a Tx effect's body, by the effect's name.
type withinTx struct{}

// runTx runs an effect of class Tx (E3). again says that it was found to have
// ended as not done meanwhile: the next key is to be tried.
func (s *Session) runTx(ctx context.Context, c *call, e journal.Effect, fn function) (result []byte, again bool, err error) {
	began := time.Now()
	defer func() { s.span(c, e.Key, began, err) }()
	s.leaseMu.Lock()
	l := s.lease
	s.leaseMu.Unlock()
	last := c.attempts > 0 && e.N+1 >= c.attempts
	called := false
	var notDone error // of fn
	var rolledBack *store.TxError
	row, err := s.cfg.Store.TxEffect(ctx, l, e, func(ctx context.Context, tx any) (end store.TxEnd, err error) {
		called, notDone = true, nil
		ctx = context.WithValue(context.WithValue(ctx, keyOf{}, e.Key.String()), withinTx{}, c.name)
		result, err := fn(ctx, tx)
		switch code, failure, final := ending(err); {
		case err == nil:
			end.Result = result
		case final, IsNotDone(err) && last:
			end.Result, end.Error = codeJSON(code), failure
		case IsNotDone(err):
			end.Error, end.NotDone, notDone = failure, true, err
		default:
			return end, err
		}
		return end, nil
	})
	switch {
	case errors.As(err, &rolledBack):
		s.count(c, "failed")
		return nil, false, rolledBack.Err
	case err != nil:
		return nil, false, s.trouble(c, "commit it", err)
	case row.State == store.EffectCompleted:
		s.count(c, "completed")
		result, err = replay(c, row)
		return result, false, err
	case called && notDone != nil:
		s.count(c, "not_done")
		return nil, false, notDone
	}
	return nil, true, nil
}
