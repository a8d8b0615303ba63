package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

func init() { moreHandlers = append(moreHandlers, txHandlers) }

// move is one transfer between two accounts.
type move struct {
	ID       string `json:"id"`
	From, To int
	Amount   int
}

// txHandlers write in tables of the user's, without any constraint that would
// hide a second time.
func txHandlers(reg *workers.Registry, receiver string) {
	workers.Handle(reg, "note", func(ctx context.Context, in order) (map[string]string, error) {
		reach := func(ctx context.Context, point string) error { // a place for a kill
			_, err := call(ctx, receiver, point+" "+in.ID, point+" "+in.ID)
			return err
		}
		if err := reach(ctx, "before"); err != nil {
			return nil, err
		}
		_, err := quipu.DoTx(ctx, "note", func(ctx context.Context, tx quipu.EffectTx) (any, error) {
			if _, err := tx.Exec(ctx, "INSERT INTO notes VALUES ($1)", in.ID); err != nil {
				return nil, err
			}
			return nil, reach(ctx, "inside")
		})
		if err != nil {
			return nil, err
		}
		return map[string]string{"receipt": in.ID}, reach(ctx, "after")
	})
	workers.Handle(reg, "move", func(ctx context.Context, in move) (map[string]bool, error) {
		applied, err := quipu.DoTx(ctx, "move", func(ctx context.Context, tx quipu.EffectTx) (bool, error) {
			return transfer(ctx, tx, in)
		})
		if err != nil {
			return nil, err
		}
		if workers.Info(ctx).Try == 1 && strings.HasSuffix(in.ID, "7") {
			return nil, errors.New("fails after its effect")
		}
		for i := range 2 {
			_, err := quipu.DoTx(ctx, "note", func(ctx context.Context, tx quipu.EffectTx) (any, error) {
				_, err := tx.Exec(ctx, "INSERT INTO notes VALUES ($1)", fmt.Sprint(in.ID, "/", i))
				return nil, err
			}, effects.WithKey(fmt.Sprint("note-", i)))
			if err != nil {
				return nil, err
			}
		}
		return map[string]bool{"applied": applied}, nil
	})
}

// transfer moves the amount, if the account has it, and notes that it was asked
// to.
func transfer(ctx context.Context, tx quipu.EffectTx, in move) (bool, error) {
	if _, err := tx.Exec(ctx, "INSERT INTO transfers VALUES ($1)", in.ID); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - $2 WHERE id = $1 AND balance >= $2", in.From, in.Amount)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	_, err = tx.Exec(ctx, "UPDATE accounts SET balance = balance + $2 WHERE id = $1", in.To, in.Amount)
	return true, err
}

// connect looks at the database beside the runtime.
func (e *env) connect() *pgx.Conn {
	e.t.Helper()
	c, err := pgx.Connect(e.t.Context(), e.dsn)
	require.NoError(e.t, err)
	e.t.Cleanup(func() { _ = c.Close(context.Background()) }) // its server may have been restarted
	return c
}

// tables makes the user's tables, and looks at them.
func (e *env) tables() *pgx.Conn {
	e.t.Helper()
	c := e.connect()
	_, err := c.Exec(e.t.Context(), `CREATE TABLE notes (id text); CREATE TABLE transfers (id text);
		CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)`)
	require.NoError(e.t, err)
	return c
}

func (e *env) count(c *pgx.Conn, from string, args ...any) (n int) {
	e.t.Helper()
	require.NoError(e.t, c.QueryRow(e.t.Context(), "SELECT count(*) FROM "+from, args...).Scan(&n))
	return n
}

// 3.2 for Tx: the process dies in each window. The user's row is there once, and
// the body runs again only where it was not committed.
func TestE3TxCrashWindows(t *testing.T) {
	t.Parallel()
	for i, w := range []struct {
		point string // where it stands when it is killed
		calls int    // of the body
	}{{"before", 1}, {"inside", 2}, {"after", 1}, {"acking", 1}, {"ended", 1}} {
		t.Run(fmt.Sprint(i+1, " ", w.point), func(t *testing.T) {
			t.Parallel()
			bothModes(t, func(t *testing.T, e *env) {
				db, r := e.tables(), newReceiver(t)
				rt := e.open(e.config(nil))
				e.deploy(rt, oneStep("note"))
				config := e.child(r)
				gate := holdAcks(t, &config, e.space, 0)
				h := r.hold(t, w.point+" order-1")
				if i >= 3 {
					h.free()
				}
				dying := startChild(t, config)
				job := e.start(rt, "one", "order-1", order{ID: "order-1"})
				switch w.point {
				case "acking":
					<-gate
				case "ended":
					<-gate
					_, err := e.wait(rt, job)
					require.NoError(t, err)
				default:
					<-h.arrived
				}
				dying.kill()
				h.free()
				startChild(t, e.child(r))
				out, err := e.wait(rt, job)
				require.NoError(t, err)
				require.JSONEq(t, `{"receipt":"order-1"}`, string(out))
				require.Equal(t, 1, e.count(db, "notes"))
				calls, _ := r.askedFor("inside order-1")
				require.Equal(t, w.calls, calls)
				require.Equal(t, "201100000000001", e.ledger(rt, job, "step"), "one answer was accepted")
				e.clean(rt)
			})
		})
	}
}

// P17, J8, F2: a worker stands still in the body past its lease; another takes
// the request over and commits; the first wakes up and is refused as a whole.
func TestP17TxOfAStoppedWorker(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		db, r := e.tables(), newReceiver(t)
		rt := e.open(e.config(nil))
		e.deploy(rt, oneStep("note"))
		h := r.hold(t, "inside order-1")
		stopped := startChild(t, e.child(r))
		job := e.start(rt, "one", "order-1", order{ID: "order-1"})
		<-h.arrived
		stopped.signal(syscall.SIGSTOP)
		h.free()
		startChild(t, e.child(r))
		_, err := e.wait(rt, job)
		require.NoError(t, err)
		stopped.signal(syscall.SIGCONT)
		stopped.terminate()
		require.Equal(t, 1, e.count(db, "notes"))
		calls, _ := r.askedFor("inside order-1")
		require.Equal(t, 2, calls, "both ran the body, one stands")
		e.clean(rt)
	})
}

// P18: an empty result of a Tx effect is a result.
func TestP18TxEmptyResultIsCached(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, e *env) {
		db := e.tables()
		var calls atomic.Int64
		rt, _, _, err := single(e, "", func(ctx context.Context, _ charge) (map[string]any, error) {
			_, err := quipu.DoTx(ctx, "note", func(ctx context.Context, tx quipu.EffectTx) (any, error) {
				calls.Add(1)
				_, err := tx.Exec(ctx, "INSERT INTO notes VALUES ('x')")
				return nil, err
			})
			if err == nil && workers.Info(ctx).Try < 3 {
				err = errors.New("fails after the effect")
			}
			return map[string]any{"receipt": "r"}, err
		})
		require.NoError(t, err)
		require.Equal(t, int64(1), calls.Load())
		require.Equal(t, 1, e.count(db, "notes"))
		e.clean(rt)
	})
}

const bankFlow = `
flow: bank
version: "1"
activities:
  start: {type: trigger}
  move:  {type: worker, topic: move, each: start.output.moves, input: {id: "${ item.id }", From: "${ item.From }", To: "${ item.To }", Amount: "${ item.Amount }"}, retry: {attempts: 40, backoff: 100ms, max: 1s}}
transitions:
  start: [move]
`

// What a bank has, and a job of it does.
const (
	bankAccounts = 8
	movesEach    = 3
)

// openBank makes the tables of the user's, with money in the accounts.
func (e *env) openBank() *pgx.Conn {
	e.t.Helper()
	db := e.tables()
	_, err := db.Exec(e.t.Context(), "INSERT INTO accounts SELECT n, 100 FROM generate_series(1, $1::int) n", bankAccounts)
	require.NoError(e.t, err)
	return db
}

// moves are those of one job.
func moves(dice *rand.Rand, key string) (out []move) {
	for n := range movesEach {
		out = append(out, move{
			ID: fmt.Sprintf("%s-%d", key, n), From: 1 + dice.IntN(bankAccounts), To: 1 + dice.IntN(bankAccounts), Amount: 1 + dice.IntN(60),
		})
	}
	return out
}

// checkBank holds the bank to I13: nothing is gained or lost, and of so many moves
// each was made once, with its two notes.
func (e *env) checkBank(moves int) {
	e.t.Helper()
	db := e.connect()
	var total, lowest int
	require.NoError(e.t, db.QueryRow(e.t.Context(), "SELECT sum(balance), min(balance) FROM accounts").Scan(&total, &lowest))
	require.Equal(e.t, bankAccounts*100, total, "I13")
	require.GreaterOrEqual(e.t, lowest, 0)
	require.Equal(e.t, moves, e.count(db, "transfers"))
	require.Equal(e.t, moves, e.count(db, "(SELECT DISTINCT id FROM transfers) x"), "each once")
	require.Equal(e.t, 2*moves, e.count(db, "notes"))
	require.Equal(e.t, 2*moves, e.count(db, "(SELECT DISTINCT id FROM notes) x"), "each once")
}

// I13: transfers between accounts while worker processes are killed at random:
// each is applied once, and the total is what it was.
func TestI13TransfersUnderRandomKills(t *testing.T) {
	t.Parallel()
	const jobs, kills = 60, 6
	bothModes(t, func(t *testing.T, e *env) {
		db, r := e.openBank(), newReceiver(t)
		rt := e.open(e.config(nil))
		e.deploy(rt, bankFlow)
		dice := rand.New(rand.NewPCG(rand.Uint64(), 0)) //nolint:gosec // choices, no secret
		reqs := make([]quipu.StartRequest, jobs)
		for i := range reqs {
			key := fmt.Sprint("bank-", i)
			reqs[i] = quipu.StartRequest{Flow: "bank", Key: key, Input: map[string]any{"moves": moves(dice, key)}}
		}
		started, err := rt.StartMany(t.Context(), reqs)
		require.NoError(t, err)
		workers := []*child{startChild(t, e.child(r)), startChild(t, e.child(r))}
		for kill := range kills {
			e.eventually("progress before the next kill", func() bool { return e.count(db, "transfers") >= kill*jobs*movesEach/(kills+1) })
			victim := rand.N(len(workers))
			workers[victim].kill()
			workers[victim] = startChild(t, e.child(r))
		}
		for _, s := range started {
			require.NoError(t, s.Err)
			_, err := e.wait(rt, s.Job)
			require.NoError(t, err)
		}
		e.checkBank(jobs * movesEach)
		e.clean(rt)
	})
}
