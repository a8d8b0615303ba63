package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

var transfer = journal.Effect{Key: journal.Digest{9}, Name: "transfer", Class: "tx"}

// till is a space with a table of the user's on the database's search path, and a leased request.
type till struct {
	*Store
	testing.TB
	user *pgx.Conn
	row  collation.Row
	l    store.Lease
}

func newTill(t testing.TB) *till { return newTillIn(t, open(t)) }

func newTillIn(t testing.TB, s *Store) *till {
	id := startJobs(t, s, "k")[0]
	x := &till{Store: s, TB: t, user: user(t, s), row: request(t, s, id)}
	l, err := s.Lease(t.Context(), id, x.row.GUID, 1, "w", liveSession(t, s))
	require.NoError(t, err)
	x.l = l
	return x
}

// do runs the body as the effect.
func (x *till) do(e journal.Effect, body func(ctx context.Context, tx EffectTx) error) (store.EffectRow, error) {
	x.Helper()
	return x.driven().TxEffect(x.Context(), x.l, e, func(ctx context.Context, tx any) (store.TxEnd, error) {
		err := body(ctx, tx.(EffectTx))
		return store.TxEnd{Result: []byte(`"done"`)}, err
	})
}

// named returns an effect with that name.
func effectNamed(name string) journal.Effect {
	e := transfer
	e.Name, e.Key = name, journal.Digest{}
	copy(e.Key[:], name)
	return e
}

func (x *till) orders() int { return x.rows(x, "public.orders") }

func order(ctx context.Context, tx EffectTx) error {
	_, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1)", "mine")
	return err
}

// E3, J8: the user's rows, the effect and its entry appear together. The body reads a table of
// the user's, although one of ours has the same name.
func TestE3TxCommitsTogether(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	require.NoError(t, x.run(t, "CREATE TABLE public.entries (n int)"))
	row, err := x.do(transfer, func(ctx context.Context, tx EffectTx) error {
		require.NoError(t, order(ctx, tx))
		_, err := tx.Exec(ctx, "INSERT INTO entries VALUES (1)")
		require.NoError(t, err)
		n, err := tx.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"name"}, pgx.CopyFromRows([][]any{{"a"}, {"b"}}))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		var count int
		require.NoError(t, tx.QueryRow(ctx, "SELECT count(*) FROM orders").Scan(&count))
		require.Equal(t, 3, count)
		rows, _ := tx.Query(ctx, "SELECT name FROM orders ORDER BY name")
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "mine"}, names)
		require.Zero(t, x.orders(), "nobody sees it yet")
		return err
	})
	require.NoError(t, err)
	require.Equal(t, store.EffectCompleted, row.State)
	require.Equal(t, []int{3, 1, 1}, []int{x.orders(), x.rows(t, "public.entries"), x.rows(t, "effects")})
	e := lastOfChain(t, x.Store, x.row.Job, x.row.GUID)
	require.Equal(t, journal.KindEffectCompleted, e.Kind)
	require.Equal(t, int64(1), rowOf(t, x.Store, x.row.Job, x.row.GUID).Effects.Seq)

	row, err = x.do(transfer, func(context.Context, EffectTx) error { panic("not again") })
	require.NoError(t, err)
	require.Equal(t, `"done"`, string(row.Result))
}

// running waits until the database runs the statement.
func (x *till) running(statement string) {
	const count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query = $1"
	for n := 0; n == 0 && x.Context().Err() == nil; time.Sleep(time.Millisecond) {
		_ = x.user.QueryRow(x.Context(), count, statement).Scan(&n)
	}
}

// E5: every end without a result rolls the user's rows back.
func TestE5TxRollsBack(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	own := errors.New("no funds")
	_, err := x.do(transfer, func(ctx context.Context, tx EffectTx) error {
		require.NoError(t, order(ctx, tx))
		return own
	})
	require.ErrorIs(t, err, own)
	require.Panics(t, func() {
		_, _ = x.do(transfer, func(ctx context.Context, tx EffectTx) error {
			require.NoError(t, order(ctx, tx))
			panic("broken")
		})
	})
	const long = "SELECT pg_sleep(60)"
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = x.driven().TxEffect(ctx, x.l, transfer, func(ctx context.Context, tx any) (store.TxEnd, error) {
		require.NoError(t, order(ctx, tx.(EffectTx)))
		go func() {
			defer cancel(own)
			x.running(long)
		}()
		// A body that ignores its context loses the connection.
		_, err := tx.(EffectTx).Exec(context.WithoutCancel(ctx), long)
		require.Error(t, err)
		return store.TxEnd{Result: []byte(`1`)}, nil
	})
	require.ErrorIs(t, err, own)
	for name, end := range map[string]store.TxEnd{
		"refused":  {Result: []byte(`{"code":402}`), Error: &journal.Failure{Class: "business", Message: "declined"}},
		"not done": {Error: &journal.Failure{Class: "error", Message: "locked"}, NotDone: true},
	} {
		_, err = x.driven().TxEffect(t.Context(), x.l, effectNamed(name),
			func(ctx context.Context, tx any) (store.TxEnd, error) {
				require.NoError(t, order(ctx, tx.(EffectTx)))
				_, err := tx.(EffectTx).Exec(ctx, "SELECT 1/0") // and the transaction is broken
				require.Error(t, err)
				return end, nil
			})
		require.NoError(t, err)
	}
	require.Zero(t, x.orders())
	require.Equal(t, 2, x.rows(t, "effects"), "what ended for good is recorded all the same")
}

// J8: a body whose request was taken over meanwhile has no effect.
func TestJ8TxIsFenced(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	_, err := x.do(transfer, func(ctx context.Context, tx EffectTx) error {
		require.NoError(t, order(ctx, tx))
		require.NoError(t, x.HandBack(ctx, x.l))
		_, err := x.Lease(ctx, x.row.Job, x.row.GUID, 1, "w2", x.l.Session)
		require.NoError(t, err)
		return nil
	})
	require.ErrorIs(t, err, store.ErrStale)
	require.Zero(t, x.orders())
	require.Zero(t, x.rows(t, "effects"))
}

// J8: the request's row is locked last: while the body runs, the engine and Keep can lock it.
func TestJ8TxLocksLast(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	_, err := x.do(transfer, func(ctx context.Context, tx EffectTx) error {
		require.NoError(t, order(ctx, tx))
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := x.Keep(bounded, x.l)
		return err
	})
	require.NoError(t, err)
}

// A forbidden statement is refused before it is sent, and the effect can go on. Anything that
// leaves the transaction in a bad state fails the effect.
func TestTxStatements(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	_, err := x.do(transfer, func(ctx context.Context, tx EffectTx) error {
		for _, sql := range []string{
			"COMMIT", "commit and chain", "END", "ROLLBACK", "ROLLBACK TO SAVEPOINT quipu_effect", "ABORT", "BEGIN", "START TRANSACTION",
			"SAVEPOINT a", "RELEASE quipu_effect", "PREPARE TRANSACTION 'a'", "PREPARE a AS SELECT 1", "DISCARD ALL", "LISTEN a",
			" -- harmless\n/* /* really */ */ ; COMMIT", "COPY orders FROM STDIN",
		} {
			_, err := tx.Exec(ctx, sql)
			require.ErrorIs(t, err, ErrEffectTx, sql)
			require.ErrorIs(t, tx.QueryRow(ctx, sql).Scan(), ErrEffectTx, sql)
			rows, err := tx.Query(ctx, sql)
			require.ErrorIs(t, err, ErrEffectTx, sql)
			_, err = pgx.CollectRows(rows, pgx.RowToMap)
			require.ErrorIs(t, err, ErrEffectTx, sql)
		}
		_, err := tx.Exec(ctx, "SELECT 1", pgx.QueryExecModeSimpleProtocol)
		require.ErrorIs(t, err, ErrEffectTx)
		_, err = tx.Exec(ctx, "INSERT INTO orders VALUES (@name)", pgx.NamedArgs{"name": "named"})
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 1, x.orders())

	for name, body := range map[string]func(context.Context, EffectTx) error{
		"several statements in one text": func(ctx context.Context, tx EffectTx) error {
			_, err := tx.Exec(ctx, "INSERT INTO orders VALUES ('several'); COMMIT; BEGIN")
			return err
		},
		"a procedure that commits": func(ctx context.Context, tx EffectTx) error {
			require.NoError(t, order(ctx, tx))
			_, err := tx.Exec(ctx, "DO $$ BEGIN COMMIT; END $$")
			return err
		},
		"a failure that the body hides": func(ctx context.Context, tx EffectTx) error {
			require.NoError(t, order(ctx, tx))
			_, err := tx.Exec(ctx, "SELECT 1/0")
			require.Error(t, err)
			return nil
		},
		"a deferred constraint": func(ctx context.Context, tx EffectTx) error {
			for range 2 {
				_, err := tx.Exec(ctx, "INSERT INTO public.later VALUES (1)")
				require.NoError(t, err)
			}
			return nil
		},
		"rows left open": func(ctx context.Context, tx EffectTx) error {
			require.NoError(t, order(ctx, tx))
			rows, err := tx.Query(ctx, "SELECT repeat('x', 1000) FROM generate_series(1, 100000)")
			require.True(t, rows.Next())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, x.run(t, "CREATE TABLE IF NOT EXISTS public.later (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)"))
			_, err := x.do(effectNamed(name), body)
			require.ErrorAs(t, err, new(*store.TxError), "%v", err)
			require.Equal(t, 1, x.orders())
			require.Equal(t, 1, x.rows(t, "effects"))
		})
	}
}

// A savepoint can be undone alone. The handle belongs to the effect and ends with it.
func TestTxSavepointsAndTheEndOfTheHandle(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	var kept EffectTx
	_, err := x.do(transfer, func(ctx context.Context, tx EffectTx) error {
		kept = tx
		require.NoError(t, order(ctx, tx))
		err := tx.Savepoint(ctx, func(ctx context.Context) error {
			require.NoError(t, order(ctx, tx))
			require.NoError(t, tx.Savepoint(ctx, func(ctx context.Context) error { return order(ctx, tx) }))
			_, err := tx.Exec(ctx, "SELECT 1/0")
			return err
		})
		require.ErrorContains(t, err, "division by zero")
		require.Panics(t, func() {
			_ = tx.Savepoint(ctx, func(ctx context.Context) error {
				require.NoError(t, order(ctx, tx))
				panic("broken")
			})
		})
		return tx.Savepoint(ctx, func(ctx context.Context) error { return order(ctx, tx) })
	})
	require.NoError(t, err)
	require.Equal(t, 2, x.orders())
	require.ErrorIs(t, order(t.Context(), kept), ErrEffectTx)
	require.ErrorIs(t, kept.Savepoint(t.Context(), func(ctx context.Context) error {
		return order(ctx, kept)
	}), ErrEffectTx)
	_, err = kept.CopyFrom(t.Context(), pgx.Identifier{"orders"}, []string{"name"}, pgx.CopyFromRows(nil))
	require.ErrorIs(t, err, ErrEffectTx)

	started := make(chan struct{})
	var group sync.WaitGroup
	_, err = x.do(effectNamed("two goroutines"), func(ctx context.Context, tx EffectTx) error {
		group.Go(func() {
			close(started)
			_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
			if err == nil {
				t.Error("the statement went on behind its effect")
			}
		})
		devtest.Await(t, "the other goroutine", started)
		waitFor(t, x.Store, "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND state = 'active' AND datname = current_database()")
		require.ErrorIs(t, order(ctx, tx), ErrEffectTx)
		return nil
	})
	require.ErrorIs(t, err, ErrEffectTx)
	devtest.AwaitAll(t, "the end of all bodies", group.Wait)
}

// What a body changes on its connection ends with its effect, also if it affects our own
// statements.
func TestTxLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	x := newTillIn(t, fresh(t, func(c *Config) { c.MaxConns = 1 }))
	require.NoError(t, x.run(t, "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'quipu_nobody') THEN CREATE ROLE quipu_nobody; END IF; END $$"))
	look := func(ctx context.Context, tx EffectTx) string {
		var seen string
		require.NoError(t, tx.QueryRow(ctx, `SELECT concat_ws(' ', current_setting('search_path'), current_setting('statement_timeout'),
			current_setting('enable_seqscan'), current_user = session_user, to_regclass('pg_temp.entries') IS NULL,
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), (SELECT count(*) FROM pg_cursors))`).Scan(&seen))
		return seen
	}
	var before, after string
	spoil := func(ctx context.Context, tx EffectTx) error {
		before = look(ctx, tx)
		for _, sql := range []string{
			"CREATE TEMPORARY TABLE entries (n int)", "CREATE TEMPORARY TABLE effects (n int)",
			"SET search_path = pg_temp, nowhere", "SET statement_timeout = '1h'", "SELECT set_config('enable_seqscan', 'off', false)",
			"SELECT pg_advisory_lock(7)", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "SET ROLE quipu_nobody",
		} {
			_, err := tx.Exec(ctx, sql)
			require.NoError(t, err, sql)
		}
		return nil
	}
	for i, fail := range []error{nil, errors.New("rolled back")} {
		_, err := x.do(effectNamed(fmt.Sprint("spoil ", i)), func(ctx context.Context, tx EffectTx) error {
			return errors.Join(spoil(ctx, tx), fail)
		})
		require.ErrorIs(t, err, fail)
		_, err = x.do(effectNamed(fmt.Sprint("look ", i)), func(ctx context.Context, tx EffectTx) error {
			after = look(ctx, tx)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.True(t, strings.HasPrefix(before, `"$user", public 0 on t`), before)
	}
}

// J4: a body that met the loss of its connection, and hid it, runs again, as after a loss that it
// returned.
func TestJ4TxHiddenLossOfTheConnection(t *testing.T) {
	t.Parallel()
	x, runs := newTill(t), 0
	_, err := x.do(transfer, func(ctx context.Context, tx EffectTx) error {
		if runs++; runs == 1 {
			_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			require.Error(t, err)
			return nil
		}
		return order(ctx, tx)
	})
	require.NoError(t, err)
	require.Equal(t, 2, runs)
	require.Equal(t, 1, x.orders())
}

// J4: two bodies lock in opposite orders. The one that the server ends runs again at once, from
// its start.
func TestJ4TxDeadlockIsRunAgain(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	require.NoError(t, x.run(t, "CREATE TABLE public.accounts (name text PRIMARY KEY, n int); INSERT INTO public.accounts VALUES ('a', 0), ('b', 0)"))
	var mu sync.Mutex
	calls := 0
	var met sync.WaitGroup
	met.Add(2)
	body := func(first, second string) func(context.Context, EffectTx) error {
		once := sync.OnceFunc(func() { met.Done(); met.Wait() })
		return func(ctx context.Context, tx EffectTx) error {
			mu.Lock()
			calls++
			mu.Unlock()
			for i, name := range []string{first, second} {
				if i == 1 {
					once()
				}
				if _, err := tx.Exec(ctx, "UPDATE accounts SET n = n + 1 WHERE name = $1", name); err != nil {
					return fmt.Errorf("hidden by the body") // the handle has seen it
				}
			}
			return nil
		}
	}
	var group sync.WaitGroup
	for _, way := range [][2]string{{"a", "b"}, {"b", "a"}} {
		group.Go(func() {
			if _, err := x.do(effectNamed(way[0]), body(way[0], way[1])); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
	devtest.AwaitAll(t, "the end of all bodies", group.Wait)
	require.GreaterOrEqual(t, calls, 3)
	require.Equal(t, 2, x.rows(t, "public.accounts WHERE n = 2"))
}

// J4: a lock for which the body does not wait is tried for a while. Then the error is the body's,
// and the attempt has failed: the database is well.
func TestJ4TxLockNotAvailable(t *testing.T) {
	t.Parallel()
	x := newTill(t)
	_, err := x.user.Exec(t.Context(), "BEGIN; LOCK TABLE orders")
	require.NoError(t, err)
	calls := 0
	body := func(ctx context.Context, tx EffectTx) error {
		calls++
		_, err := tx.Exec(ctx, "LOCK TABLE orders IN SHARE MODE NOWAIT")
		return err
	}
	_, err = x.do(transfer, body)
	require.ErrorAs(t, err, new(*store.TxError))
	require.ErrorContains(t, err, "55P03")
	require.Equal(t, maxAttempts, calls)
	_, err = x.user.Exec(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	_, err = x.do(transfer, body)
	require.NoError(t, err)
}

// J4: the connection is lost just before the answer of COMMIT: the marker says that it was
// committed, and the body does not run again. If it is lost before the COMMIT, the body does.
func TestJ4TxUnknownCommit(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]struct {
		cutAt string
		calls int
	}{"COMMIT was": {"COMMIT\x00", 1}, "it was not": {"INSERT 0 1\x00", 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p *cut.Proxy
			x := newTillIn(t, fresh(t, func(c *Config) { p, c.DSN = through(t, c.DSN) }))
			calls := 0
			row, err := x.do(transfer, func(ctx context.Context, tx EffectTx) error {
				if calls++; calls == 1 {
					p.ResetAt(w.cutAt, nil)
				}
				return order(ctx, tx)
			})
			require.NoError(t, err)
			require.Equal(t, store.EffectCompleted, row.State)
			require.Equal(t, w.calls, calls)
			require.Equal(t, 1, x.orders())
			require.Equal(t, 1, x.rows(t, "effects"))
		})
	}
}

// J6: besides the body's own statements an effect takes three round trips and one commit.
func TestJ6TxRoundTrips(t *testing.T) {
	t.Parallel()
	var p *cut.Proxy
	x := newTillIn(t, fresh(t, func(c *Config) { p, c.DSN = through(t, c.DSN) }))
	for i := range 3 { // the first ones open the connection, and prepare
		before := p.Trips()
		_, err := x.do(effectNamed(fmt.Sprint(i)), order)
		require.NoError(t, err)
		if i == 2 {
			require.EqualValues(t, 3+1, p.Trips()-before)
		}
	}
}
