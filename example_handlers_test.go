package quipu_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
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

// A handler whose whole body is one Tx effect.
func ExampleHandleTx() {
	ctx := context.Background()
	reg := workers.New()
	quipu.HandleTx(reg, "bank.transfer", func(ctx context.Context, tx quipu.EffectTx, in Transfer) (left int, err error) {
		err = tx.QueryRow(ctx, "insert into moves values ($1, $2) returning 10 - amount", in.From, in.Amount).Scan(&left)
		return left, err
	})
	rt, dsn, end := example(transferFlow, reg)
	defer end()
	conn, err := pgx.Connect(ctx, dsn)
	must(err)
	defer func() { must(conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, "create table moves (name text, amount int)")
	must(err)

	job, err := rt.Start(ctx, "transfer", "first", Transfer{From: "ann", Amount: 7})
	must(err)
	out, err := rt.Wait(ctx, job)
	must(err)
	var moves int
	must(conn.QueryRow(ctx, "select count(*) from moves").Scan(&moves))
	fmt.Println(string(out), moves)
	// Output: {"left":3} 1
}

// A handler in a unit test, on a transaction that the test looks at and rolls back. The test also
// finds misuse of a transaction.
func ExampleWithTx() {
	ctx := context.Background()
	servers := &exampleT{}
	defer servers.end()
	conn, err := pgx.Connect(ctx, devtest.Postgres(servers))
	must(err)
	defer func() { must(conn.Close(ctx)) }()
	var tx quipu.Tx // any transaction of pgx
	tx, err = conn.Begin(ctx)
	must(err)
	defer func() { must(tx.Rollback(ctx)) }()
	_, err = tx.Exec(ctx, "create table accounts as select * from (values ('ann', 10), ('bob', 0)) as v (name, balance)")
	must(err)

	for range 2 {
		fmt.Println(transfer(quipu.WithTx(ctx, tx), Transfer{From: "ann", To: "bob", Amount: 7}))
	}
	var kept quipu.EffectTx
	_, err = quipu.DoTx(quipu.WithTx(ctx, tx), "ends", func(ctx context.Context, tx quipu.EffectTx) (int, error) {
		kept = tx
		_, err := tx.Exec(ctx, "delete from accounts")
		must(err)
		_, err = tx.Exec(ctx, "commit")
		return 0, err
	})
	fmt.Println("a body ends its own transaction:", errors.Is(err, quipu.ErrEffectTx))
	_, err = kept.Exec(ctx, "select 1")
	fmt.Println("its handle is used after it:", errors.Is(err, quipu.ErrEffectTx))
	var accounts int
	must(tx.QueryRow(ctx, "select count(*) from accounts").Scan(&accounts))
	fmt.Println("what it deleted is there:", accounts)
	_, err = transfer(ctx, Transfer{From: "ann", To: "bob", Amount: 1})
	fmt.Println("nothing to write in:", errors.Is(err, quipu.ErrNoTx))
	// Output:
	// 3 <nil>
	// 0 error 402: no funds
	// a body ends its own transaction: true
	// its handle is used after it: true
	// what it deleted is there: 2
	// nothing to write in: true
}

// placed writes an order and starts its job, in any transaction that its caller has.
func placed(ctx context.Context, rt *quipu.Runtime, tx quipu.Transaction, order string) (quipu.Job, error) {
	if _, err := tx.Exec(ctx, "insert into orders values ($1)", order); err != nil {
		return quipu.Job{}, err
	}
	return rt.StartTx(ctx, tx, "approval", order, nil)
}

// One function writes and starts, for a program's own transaction and for the body of an effect.
func ExampleTransaction() {
	ctx := context.Background()
	reg := workers.New()
	var rt *quipu.Runtime
	workers.Handle(reg, "shop.order", func(ctx context.Context, order string) (string, error) {
		job, err := quipu.DoTx(ctx, "place", func(ctx context.Context, tx quipu.EffectTx) (quipu.Job, error) {
			return placed(ctx, rt, tx, order)
		})
		return job.Key, err
	})
	rt, dsn, end := example(approval, reg)
	defer end()
	conn, err := pgx.Connect(ctx, dsn)
	must(err)
	defer func() { must(conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, "create table orders (id text primary key)")
	must(err)

	must(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := placed(ctx, rt, tx, "order-1")
		return err
	}))
	key, err := quipu.CallAs[string](ctx, rt, "shop.order", "request-7", "order-2")
	fmt.Println(key, err)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := placed(ctx, rt, tx, "order-3")
		return errors.Join(err, errors.New("out of stock")) // the job never was
	})
	fmt.Println(err)
	page, err := rt.Jobs(ctx, quipu.JobFilter{Flow: "approval"})
	must(err)
	for _, j := range page.Jobs {
		fmt.Println(j.Key)
	}
	// Output:
	// order-2 <nil>
	// out of stock
	// order-2
	// order-1
}
