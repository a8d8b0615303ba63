package quiputest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// scribbled is a transaction that notes the statements of a body.
type scribbled struct {
	quipu.EffectTx // what the body does not use
	said           []string
}

func (s *scribbled) Exec(_ context.Context, sql string, _ ...any) (pgconn.CommandTag, error) {
	s.said = append(s.said, sql)
	return pgconn.CommandTag{}, nil
}

// insert registers a handler whose body is one Tx effect.
func insert(reg *workers.Registry) {
	quipu.HandleTx(reg, "insert", func(ctx context.Context, tx quipu.EffectTx, in string) (int, error) {
		_, err := tx.Exec(ctx, in)
		return 1, err
	})
}

// The bodies of quipu.DoTx and quipu.HandleTx run on a handle of the test's own. For another
// handle, or a world without one, the error says what to call.
func TestWithTxGivesBodiesAHandle(t *testing.T) {
	t.Parallel()
	var committed []string
	ours := quiputest.WithTx(func(context.Context) (quipu.EffectTx, func(bool)) {
		tx := &scribbled{}
		return tx, func(commit bool) {
			if commit {
				committed = append(committed, tx.said...)
			}
		}
	})
	quiputest.Run(t, func(_ testing.TB, w *quiputest.World) {
		w.Serve(insert)
		w.Call("insert", "i-1", "insert into t").Output(nil)
	}, ours)
	require.Equal(t, []string{"insert into t"}, committed)
	other := quiputest.WithTx(func(context.Context) (int, func(bool)) { return 7, func(bool) {} })
	for says, options := range map[string][]quiputest.Option{
		"give it a quipu.EffectTx of your own with quiputest.WithTx": nil,
		"with quiputest.WithTx, it has a int":                        {other},
	} {
		quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
			w.Serve(insert)
			require.Contains(t, w.Call("insert", "i-1", "insert into t").Fails(500).Message, says)
		}, options...)
	}
}
