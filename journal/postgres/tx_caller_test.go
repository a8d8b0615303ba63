package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

// E17 in a Tx effect: jobs, signals, the user's rows and the effect's entry appear together and
// once.
func TestE17StartInAnEffect(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	runs := 0
	body := func(ctx context.Context, tx EffectTx) error {
		runs++
		require.NoError(t, order(ctx, tx))
		out := must(x.startTx(ctx, tx, keyed("a", "k")))(t)
		require.NoError(t, out[0].Err)
		require.Equal(t, collation.NewJobID(x.cfg.Space, "a", 1), out[0].Job)
		require.ErrorAs(t, out[1].Err, new(*store.AlreadyStartedError))
		sent, err := x.signalTx(ctx, tx, signalOf(x.Store, "s", "once"))
		require.NoError(t, err)
		require.Equal(t, store.SignalKept, sent.State)
		require.NoError(t, tx.Savepoint(ctx, func(ctx context.Context) error {
			must(x.startTx(ctx, tx, keyed("b")))(t)
			return nil
		}))
		require.EqualError(t, tx.Savepoint(ctx, func(ctx context.Context) error {
			must(x.startTx(ctx, tx, keyed("c")))(t)
			return errors.New("back")
		}), "back")
		require.NoError(t, order(ctx, tx), "his tables are where they were")
		require.ErrorIs(t, failed(x.FindJob(ctx, "a")), store.ErrNotFound, "nobody sees it yet")
		return nil
	}
	for range 2 {
		row := must(x.do(transfer, body))(t)
		require.Equal(t, store.EffectCompleted, row.State)
	}
	require.Equal(t, 1, runs)
	require.Equal(t, []int{2, 3, 1}, []int{x.orders(), x.rows(t, "jobs"), x.rows(t, "signals")})
	due, _, err := x.Due(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, due, 4, "two starts and a signal beside the job's own")
}

// E17: a refused call leaves the effect unchanged, and misuse is refused before it is sent.
func TestE17EffectGoesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	var kept EffectTx
	_, err := x.do(transfer, func(ctx context.Context, tx EffectTx) error {
		kept = tx
		bad := signalOf(x.Store, "s", "")
		bad.Payload = []byte("{")
		require.ErrorIs(t, failed(x.signalTx(ctx, tx, bad)), store.ErrRejected)
		_, err := x.startTx(ctx, struct{ EffectTx }{tx}, keyed("a"))
		require.ErrorIs(t, err, ErrEffectTx)
		require.ErrorIs(t, err, store.ErrRejected)
		rows := must(tx.Query(ctx, "SELECT 1"))(t)
		require.Error(t, failed(x.startTx(ctx, tx, keyed("a"))), "rows are open")
		rows.Close()
		return order(ctx, tx)
	})
	require.NoError(t, err)
	_, err = x.startTx(t.Context(), kept, keyed("a"))
	require.ErrorIs(t, err, ErrEffectTx)
	require.ErrorIs(t, err, store.ErrRejected)
	require.Equal(t, []int{1, 1}, []int{x.orders(), x.rows(t, "jobs")})
}

// P25: of a body that fails nothing follows, whether it ends with an error, a refusal, or as not done, or its request
// was taken over meanwhile.
func TestP25NothingFollowsABodyThatFails(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	stale := x.l
	stale.Fence++
	for name, c := range map[string]struct {
		lease store.Lease
		end   store.TxEnd
		err   error
	}{
		"error":    {x.l, store.TxEnd{}, errors.New("no funds")},
		"refused":  {x.l, store.TxEnd{Error: &journal.Failure{Class: "business"}}, nil},
		"not done": {x.l, store.TxEnd{Error: &journal.Failure{Class: "error"}, NotDone: true}, nil},
		"stale":    {stale, store.TxEnd{Result: []byte(`1`)}, nil},
	} {
		_, _ = x.driven().TxEffect(t.Context(), c.lease, effectNamed(name),
			func(ctx context.Context, tx any) (store.TxEnd, error) {
				must(x.startTx(ctx, tx, keyed(name)))(t)
				must(x.signalTx(ctx, tx, signalOf(x.Store, "s", name)))(t)
				return c.end, c.err
			})
	}
	require.Equal(t, []int{1, 0, 2}, []int{x.rows(t, "jobs"), x.rows(t, "signals"), x.rows(t, "effects")})
}

// J4: two effects that start the same jobs in different orders deadlock. The server ends one, and
// its body runs again.
func TestJ4EffectsThatStartTheSameJobs(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	var met, done sync.WaitGroup
	var all atomic.Int32
	met.Add(2)
	for name, keys := range map[string][]string{"one": {"a", "b"}, "two": {"b", "a"}} {
		done.Go(func() {
			runs := 0
			_, err := x.do(effectNamed(name), func(ctx context.Context, tx EffectTx) error {
				runs++
				all.Add(1)
				for n, key := range keys {
					if _, err := x.startTx(ctx, tx, keyed(key)); err != nil {
						return err
					}
					if runs == 1 && n == 0 {
						met.Done()
						met.Wait()
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	devtest.AwaitAll(t, "the end of both effects", done.Wait)
	require.Greater(t, all.Load(), int32(2))
	require.Equal(t, []int{3, 2}, []int{x.rows(t, "jobs"), x.rows(t, "effects")})
}

// A batch is many statements in one trip, each under the rules for one.
func TestTxBatch(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	must(x.do(transfer, func(ctx context.Context, tx EffectTx) error {
		b := &pgx.Batch{}
		b.Queue("INSERT INTO orders VALUES ($1)", "a")
		b.Queue("INSERT INTO orders VALUES ($1), ($2)", "b", "c").Exec(func(tag pgconn.CommandTag) error {
			require.EqualValues(t, 2, tag.RowsAffected())
			return nil
		})
		n := 0
		b.Queue("SELECT count(*) FROM orders").QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		require.NoError(t, tx.Batch(ctx, b))
		require.Equal(t, 3, n)
		require.NoError(t, tx.Batch(ctx, &pgx.Batch{}), "of nothing")
		for _, sql := range []string{"COMMIT", "INSERT INTO orders VALUES ('x'); COMMIT"} {
			bad := &pgx.Batch{}
			bad.Queue("INSERT INTO orders VALUES ('x')")
			bad.Queue(sql)
			err := tx.Savepoint(ctx, func(ctx context.Context) error { return tx.Batch(ctx, bad) })
			require.Error(t, err)
		}
		return order(ctx, tx)
	}))(t)
	require.Equal(t, 4, x.orders())
	_, err := x.do(effectNamed("broken"), func(ctx context.Context, tx EffectTx) error {
		b := &pgx.Batch{}
		b.Queue("INSERT INTO orders VALUES ('x')")
		b.Queue("SELECT 1/0")
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return tx.Batch(bounded, b)
	})
	require.ErrorContains(t, err, "division by zero")
	require.Equal(t, 4, x.orders())
}

// E17: a transaction on another database is refused by name, whether that has no space or one of
// the same name. The transaction can go on.
func TestE17TransactionOnAnotherDatabase(t *testing.T) {
	t.Parallel()
	s, same := fresh(t), openIn(t, devtest.Postgres(t))
	require.Equal(t, s.cfg.Space, same.cfg.Space)
	startJobs(t, s, "k")
	for name, dsn := range map[string]string{"no space": devtest.Postgres(t), "of the same name": same.cfg.DSN} {
		conn := must(pgx.Connect(t.Context(), dsn))(t)
		defer conn.Close(context.WithoutCancel(t.Context()))
		tx := must(conn.Begin(t.Context()))(t)
		_, err := s.startTx(t.Context(), tx, keyed("a"))
		require.ErrorIs(t, err, store.ErrRejected, name)
		require.ErrorContains(t, err, `the transaction is on another database than the space "`+s.cfg.Space+`": take one`, name)
		_, err = tx.Exec(t.Context(), "SELECT 1")
		require.NoError(t, err, name)
		require.NoError(t, tx.Rollback(t.Context()))
	}
}
