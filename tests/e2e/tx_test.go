package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/soak"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/tests/faults/play"
	"github.com/quipu-journal/quipu/tests/rig"
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
			_, err := play.Call(ctx, receiver, point+" "+in.ID, point+" "+in.ID)
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
		return map[string]string{"receipt": "done " + in.ID}, reach(ctx, "after")
	})
	workers.Handle(reg, "move", func(ctx context.Context, in move) (map[string]bool, error) {
		applied, err := quipu.DoTx(ctx, "move", func(ctx context.Context, tx quipu.EffectTx) (bool, error) {
			return transfer(ctx, tx, in)
		})
		if err != nil {
			return nil, err
		}
		if workers.Info(ctx).Attempt == 1 && strings.HasSuffix(in.ID, "7") {
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
	jobs, kills := soak.Times(10, 60), soak.Times(2, 6)
	inAMode(t, func(t *testing.T, e *env) {
		db, r := e.openBank(), rig.NewOutside(t)
		rt := e.client()
		e.deploy(rt, bankFlow)
		dice := rand.New(rand.NewPCG(rand.Uint64(), 0)) //nolint:gosec // choices, no secret
		reqs := make([]quipu.StartRequest, jobs)
		for i := range reqs {
			key := fmt.Sprint("bank-", i)
			reqs[i] = quipu.StartRequest{Flow: "bank", Key: key, Input: map[string]any{"moves": moves(dice, key)}}
		}
		started, err := rt.StartMany(t.Context(), reqs)
		require.NoError(t, err)
		workers := []*rig.Process{startChild(t, e.child(r)), startChild(t, e.child(r))}
		for kill := range kills {
			e.eventually("progress before the next kill", func() bool { return e.count(db, "transfers") >= kill*jobs*movesEach/(kills+1) })
			victim := rand.N(len(workers))
			workers[victim].Kill()
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
