package effect

import (
	"context"
	"errors"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// runTx runs an effect of class Tx (E3). again says that the effect meanwhile ended as
// not done, so the next key is to be tried.
func (s *Session) runTx(
	ctx context.Context, c *Call, e journal.Effect, fn function,
) (result []byte, again bool, err error) {
	began := time.Now()
	defer func() { s.span(c, e.Key, began, err) }()
	last := c.last(e.N)
	called := false
	var notDone error // of fn
	var failure *journal.Failure
	var rolledBack *store.TxError
	if err := s.Flush(); err != nil {
		return nil, false, err
	}
	row, err := s.cfg.Store.TxEffect(ctx, s.current(), e,
		func(ctx context.Context, tx any) (end store.TxEnd, err error) {
			called, notDone = true, nil
			result, err := fn(Body(ctx, e.Key.String(), c.String()), tx)
			read := s.tell(err)
			failure = read.failure
			switch {
			case err == nil:
				end.Result = result
			case read.final, read.notDone && last:
				end.Result, end.Error = codeJSON(read.code), failure
			case read.notDone:
				end.Error, end.NotDone, notDone = failure, true, err
			default:
				return end, err
			}
			return end, nil
		})
	if err == nil {
		s.adopt(&row)
	}
	switch {
	case errors.As(err, &rolledBack):
		s.count(c, "failed")
		return nil, false, s.fails(c, rolledBack.Err)
	case err != nil:
		return nil, false, s.trouble(c, "commit it", err)
	case row.State == store.EffectCompleted:
		s.count(c, "completed")
		result, err = replay(c, row)
		return result, false, err
	case called && notDone != nil:
		s.count(c, "not_done")
		return nil, false, c.failed(failure, notDone)
	}
	return nil, true, nil
}
