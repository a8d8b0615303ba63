package quipu_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

const reserve = `
flow: reserve
version: "1"
activities:
  start: {type: trigger}
  work: {type: worker, topic: stock.reserve, retry: {attempts: 3, backoff: 10ms}}
transitions: {start: [work]}
`

// E17, E3: a job and a signal of a Tx effect appear with its rows, exactly once, even if the
// handler runs again after it. Those of a failed effect never existed.
func TestE17StartInAnEffectOfAHandler(t *testing.T) {
	t.Parallel()
	var s *space
	var tries atomic.Int32
	reg := workers.New()
	workers.Handle(reg, "stock.reserve", func(ctx context.Context, _ any) (string, error) {
		attempt := tries.Add(1)
		key, err := quipu.DoTx(ctx, "place", func(ctx context.Context, tx quipu.EffectTx) (string, error) {
			key := "shipping-of-" + workers.Info(ctx).Key
			_, err := tx.Exec(ctx, "INSERT INTO placed VALUES ($1)", key)
			_, errStart := s.StartTx(ctx, tx, "listen", key, nil)
			_, errSignal := s.SignalTx(ctx, tx, "news.told", key, "shipped")
			if err = errors.Join(err, errStart, errSignal); err == nil && attempt == 1 {
				err = errors.New("not yet")
			}
			return key, err
		})
		if err == nil && attempt == 2 {
			err = errors.New("behind the effect")
		}
		return key, err
	})
	s = newSpaceOf(t, reg, reserve, listen)
	ctx := t.Context()
	db := s.db()
	_, err := db.Exec(ctx, "CREATE TABLE placed (key text)")
	require.NoError(t, err)
	s.output(s.begin("reserve", "order-1", nil), `null`)
	require.EqualValues(t, 3, tries.Load())
	shipping, err := s.Find(ctx, "shipping-of-order-1")
	require.NoError(t, err)
	s.output(shipping, `{"got":"shipped","code":200}`)
	var rows int
	require.NoError(t, db.QueryRow(ctx, "SELECT count(*) FROM placed").Scan(&rows))
	require.Equal(t, 1, rows)
	counts, err := below.Of(s.Runtime).Counts(ctx)
	require.NoError(t, err)
	require.Equal(t, map[journal.JobState]int64{journal.JobCompleted: 2}, counts)
	tx, err := db.Begin(ctx)
	require.NoError(t, err)
	_, err = s.StartTx(ctx, tx, "nobody", "k", nil)
	require.ErrorIs(t, err, quipu.ErrNotFound)
	_, err = s.SignalTx(ctx, tx, "no topic", "k", nil)
	require.ErrorIs(t, err, quipu.ErrSignal)
	require.NoError(t, tx.Rollback(ctx))
}
