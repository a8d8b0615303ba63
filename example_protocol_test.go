package quipu_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

// A job waits for somebody's decision, which comes as a signal. The signal may come before the
// job waits or after, and perhaps twice.
func ExampleRuntime_Signal() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	job, err := rt.Start(ctx, "approval", "order-42", nil)
	must(err)
	for range 2 {
		_, err = rt.Signal(ctx, "order.reviewed", "order-42", map[string]any{"ok": true}, quipu.IdempotencyKey("click-17"))
		must(err)
	}
	out, err := rt.Wait(ctx, job)
	must(err)
	fmt.Println(string(out))
	// Output: {"approved":true,"by":"signal"}
}

// History reads what happened in a job from its journal.
func ExampleRuntime_History() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	_, err := rt.Signal(ctx, "order.reviewed", "order-43", map[string]any{"ok": true})
	must(err)
	job, err := rt.Start(ctx, "approval", "order-43", nil)
	must(err)
	_, err = rt.Wait(ctx, job)
	must(err)
	events, err := rt.History(ctx, job)
	must(err)
	for _, ev := range events {
		fmt.Printf("%s: %s\n", cmp.Or(ev.Activity, "job"), ev.Text)
	}
	// Output:
	// job: started: flow approval version 1
	// review: waits for signal order.reviewed, key order-43
	// review: the signal came
	// job: the job completed
}

// SignalAll reaches every hook that waits for the key. The signal is not kept.
func ExampleRuntime_SignalAll() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	sent, err := rt.SignalAll(ctx, "order.reviewed", "nobody-waits", nil)
	must(err)
	fmt.Println(sent.State, sent.Reached)
	// Output: missed 0
}

// An interrupt ends a job from outside. Wait returns the reason.
func ExampleRuntime_Interrupt() {
	ctx := context.Background()
	rt, _, end := example(approval)
	defer end()

	job, err := rt.Start(ctx, "approval", "order-43", nil)
	must(err)
	_, err = rt.Interrupt(ctx, quipu.Job{Key: "order-43"}, quipu.Code(409), quipu.Reason("withdrawn by the customer"), quipu.Descend(true))
	must(err)
	_, err = rt.Wait(ctx, job)
	if ended, ok := errors.AsType[*quipu.JobError](err); ok {
		fmt.Println(ended.State, ended.Code, ended.Cause.Message)
	}
	// Output: interrupted 409 withdrawn by the customer
}

// A job starts together with the row that it is about, or not at all.
func ExampleRuntime_StartTx() {
	ctx := context.Background()
	rt, dsn, end := example(approval)
	defer end()
	conn, err := pgx.Connect(ctx, dsn)
	must(err)
	defer func() { must(conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, "create table orders (id text primary key)")
	must(err)

	var job quipu.Job
	must(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders values ('order-44')"); err != nil {
			return err
		}
		if job, err = rt.StartTx(ctx, tx, "approval", "order-44", nil); err != nil {
			return err
		}
		_, err = rt.SignalTx(ctx, tx, "order.reviewed", "order-44", map[string]any{"ok": false})
		return err
	}))
	out, err := rt.Wait(ctx, job)
	must(err)
	fmt.Println(string(out))
	// Output: {"approved":false,"by":"signal"}
}

const approval = `
flow: approval
version: "1"
output: {approved: "${ review.by == 'signal' && review.output.ok }", by: "${ review.by }"}
activities:
  start:  {type: trigger}
  review: {type: hook, signal: order.reviewed, key: "${ job.id }", sleep: 72h}
transitions: {start: [review]}
`

// example runs a space with the flow and the handlers, if any, until end is called.
func example(source string, reg ...*workers.Registry) (rt *quipu.Runtime, dsn string, end func()) {
	cfg := quipu.Config{}
	for _, r := range reg {
		cfg.Workers = r
	}
	return exampleOf(cfg, source)
}

// exampleOf is example with settings of its own.
func exampleOf(cfg quipu.Config, sources ...string) (rt *quipu.Runtime, dsn string, end func()) {
	t := &exampleT{}
	place := exampleConfig(t)
	cfg.Postgres, cfg.NATS, cfg.Lanes = place.Postgres, place.NATS, place.Lanes
	ctx, stop := context.WithCancel(context.Background())
	rt, err := quipu.Open(ctx, cfg)
	must(err)
	for _, source := range sources {
		must(rt.Deploy(ctx, parsed(source)))
	}
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	return rt, cfg.Postgres, func() {
		stop()
		must(<-done)
		rt.Close()
		t.end()
	}
}

// exampleConfig is a space that is empty, on servers that last until the example ends. It
// has few lanes: each is a consumer of NATS, whose end takes longer than most examples.
func exampleConfig(t *exampleT) quipu.Config {
	late := time.AfterFunc(devtest.Patience, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("an example has not ended within %v", devtest.Patience))
	})
	t.Cleanup(func() { late.Stop() })
	return quipu.Config{Postgres: devtest.Postgres(t), NATS: devtest.NATS(t).URL(), Lanes: 2}
}

func parsed(source string) *flow.Flow {
	f, err := flow.Parse("flow.yaml", []byte(source))
	must(err)
	return f
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// exampleT is what servers for tests need of a test; examples have none.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (*exampleT) Helper()                           {}
func (*exampleT) Context() context.Context          { return context.Background() }
func (t *exampleT) Cleanup(f func())                { t.cleanups = append(t.cleanups, f) }
func (*exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*exampleT) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *exampleT) TempDir() string {
	dir, err := os.MkdirTemp("", "quipu-example-")
	must(err)
	t.Cleanup(func() { must(os.RemoveAll(dir)) })
	return dir
}

func (t *exampleT) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
