package quipu_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/workers"
)

type Transfer struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int    `json:"amount"`
}

// transfer moves money between two rows of the user's. However often the handler runs, the rows
// change once, since they commit together with the effect's result.
func transfer(ctx context.Context, in Transfer) (int, error) {
	return quipu.DoTx(ctx, "transfer", func(ctx context.Context, tx quipu.EffectTx) (left int, err error) {
		err = tx.QueryRow(ctx, "update accounts set balance = balance - $2 where name = $1 and balance >= $2 returning balance",
			in.From, in.Amount).Scan(&left)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, workers.Fail(402, "no funds") // a result: it is recorded, and nothing is written
		}
		if err == nil {
			_, err = tx.Exec(ctx, "update accounts set balance = balance + $2 where name = $1", in.To, in.Amount)
		}
		return left, err // an error rolls everything back, and the attempt has failed
	})
}

const transferFlow = `
flow: transfer
version: "1"
output: {left: "${ move.output }"}
activities:
  start: {type: trigger}
  move:  {type: worker, topic: bank.transfer, input: "${ start.output }"}
transitions: {start: [move]}
`

// The user's SQL in a handler, exactly once.
func ExampleDoTx() {
	ctx := context.Background()
	reg := workers.New()
	workers.Handle(reg, "bank.transfer", transfer)
	rt, dsn, end := example(transferFlow, reg)
	defer end()
	conn, err := pgx.Connect(ctx, dsn)
	must(err)
	defer func() { must(conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, "create table accounts as select * from (values ('ann', 10), ('bob', 0)) as v (name, balance)")
	must(err)

	for _, key := range []string{"first", "second"} {
		job, err := rt.Start(ctx, "transfer", key, Transfer{From: "ann", To: "bob", Amount: 7})
		must(err)
		out, err := rt.Wait(ctx, job)
		fmt.Println(string(out), err)
	}
	var ann, bob int
	must(conn.QueryRow(ctx, "select (select balance from accounts where name = 'ann'), (select balance from accounts where name = 'bob')").Scan(&ann, &bob))
	fmt.Println(ann, bob)
	// Output:
	// {"left":3} <nil>
	//  job "second" failed with code 402: no funds
	// 3 7
}

// E14: the same handler in a user's unit test, on a transaction that the test looks at and rolls
// back.
func TestE14HandlerWithTx(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), devtest.Postgres(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "create table accounts as select * from (values ('ann', 10), ('bob', 0)) as v (name, balance)")
	require.NoError(t, err)
	ctx := quipu.WithTx(t.Context(), tx)
	left, err := transfer(ctx, Transfer{From: "ann", To: "bob", Amount: 7})
	require.NoError(t, err)
	require.Equal(t, 3, left)
	_, err = transfer(ctx, Transfer{From: "ann", To: "bob", Amount: 7})
	require.ErrorAs(t, err, new(*workers.Error), "plainly: nothing is recorded")
	var kept quipu.EffectTx
	_, err = quipu.DoTx(ctx, "broken", func(ctx context.Context, tx quipu.EffectTx) (int, error) {
		kept = tx
		_, err := tx.Exec(ctx, "delete from accounts")
		require.NoError(t, err)
		_, err = tx.Exec(ctx, "COMMIT")
		return 0, err
	})
	require.ErrorIs(t, err, quipu.ErrEffectTx)
	_, err = kept.Exec(t.Context(), "select 1")
	require.ErrorIs(t, err, quipu.ErrEffectTx)
	var n int
	require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from accounts").Scan(&n))
	require.Equal(t, 2, n)
	require.NoError(t, tx.Rollback(t.Context()))

	_, err = transfer(t.Context(), Transfer{})
	require.ErrorIs(t, err, quipu.ErrNoTx)
}

// E3: a body that is one Tx effect.
func TestE3HandleTx(t *testing.T) {
	t.Parallel()
	reg := workers.New()
	quipu.HandleTx(reg, "bank.transfer", func(ctx context.Context, tx quipu.EffectTx, in Transfer) (one int, err error) {
		return in.Amount, tx.QueryRow(ctx, "select 1").Scan(&one)
	})
	rt, _, end := example(transferFlow, reg)
	defer end()
	job, err := rt.Start(t.Context(), "transfer", "k", Transfer{Amount: 5})
	require.NoError(t, err)
	out, err := rt.Wait(t.Context(), job)
	require.NoError(t, err)
	require.JSONEq(t, `{"left": 5}`, string(out))
	kinds := ""
	for e, err := range rt.Journal(t.Context(), job) {
		require.NoError(t, err)
		if e.Effect != nil {
			kinds += string(e.Kind) + " " + e.Effect.Class + " " + e.Effect.Name + ";"
		}
	}
	require.Equal(t, "effect.completed tx bank.transfer;", kinds)
}
