package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/examples/orders"
	"github.com/quipu-journal/quipu/examples/orders/shop"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/dev"
	"github.com/quipu-journal/quipu/journal"
)

const (
	database = "quipu" // and directories as those of `worker dev`, which shows what was kept
	killAt   = 30      // percentage of the orders that have ended when a worker is killed
)

// demo is what runs, and what was found.
type demo struct {
	options
	report
	dir     string // of data and logs
	say     *teller
	rt      *quipu.Runtime
	env     []string // of the processes: names the servers
	fail    context.CancelCauseFunc
	workers [2]*worker
}

// run starts everything, runs and checks the orders, and stops everything.
func (d *demo) run(ctx context.Context) (err error) {
	ctx, d.fail = context.WithCancelCause(ctx)
	defer d.fail(nil)
	d.say.step("Starting Postgres and NATS")
	nats, err := dev.StartNATS(ctx, filepath.Join(d.dir, "nats"), dev.NATSOptions{})
	if err != nil {
		return err
	}
	defer also(&err, nats.Shutdown)
	postgres, err := dev.StartPostgres(ctx, filepath.Join(d.dir, "postgres"), dev.PostgresOptions{Databases: []string{database}})
	if err != nil {
		return err
	}
	defer also(&err, func() error { return postgres.Stop(dev.StopFast) })
	dsn := postgres.DSN(database)
	d.env = append(os.Environ(), "QUIPU_POSTGRES="+dsn, "QUIPU_NATS="+nats.URL(), "QUIPU_SPACE="+quipu.DefaultSpace)
	d.rt, err = quipu.Open(ctx, quipu.Config{Postgres: dsn, NATS: nats.URL(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer d.rt.Close()
	defer d.say.step("Stopping Postgres and NATS")

	d.say.step("Starting the payment service and two workers")
	services := shop.New()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	go func() { _ = http.Serve(listener, services) }() // until the listener is closed
	if err := d.deploy(ctx, listener.Addr().String()); err != nil {
		return err
	}
	defer also(&err, d.stopWorkers)
	for n, name := range []string{"worker-a", "worker-b"} {
		if err := d.startWorker(ctx, n, name); err != nil {
			return err
		}
	}

	lines := orders.Generate(d.orders)
	outcomes, err := d.runAll(ctx, lines)
	if err != nil {
		return err
	}
	d.say.step("All orders have ended; draining the workers")
	if err := d.stopWorkers(); err != nil {
		return err
	}
	d.say.step("Verifying the journal")
	if err := d.verify(ctx); err != nil {
		return err
	}
	d.say.step("Checking every order and every charge")
	return d.check(ctx, lines, outcomes, services)
}

// also is for what has to be done at the end, and may fail.
func also(err *error, do func() error) { *err = errors.Join(*err, do()) }

// deploy deploys the flow, with the address of the payment service.
func (d *demo) deploy(ctx context.Context, address string) error {
	f, err := flow.Parse("order.yaml", []byte(strings.ReplaceAll(orders.Flow, orders.Address, address)))
	if err != nil {
		return err
	}
	return d.rt.Deploy(ctx, f)
}

// runAll runs all orders at once, kills a worker on the way, and returns how each of them
// ended.
func (d *demo) runAll(ctx context.Context, lines []orders.Line) ([]orders.Outcome, error) {
	d.say.step("Running %d orders", len(lines))
	begun := time.Now()
	outcomes := make([]orders.Outcome, len(lines))
	ended := make(chan error, len(lines))
	for i := range lines {
		go func() {
			var err error
			outcomes[i], err = d.runOne(ctx, &lines[i])
			ended <- err
		}()
	}
	for n := 1; n <= len(lines); n++ {
		if err := <-ended; err != nil {
			return nil, fmt.Errorf("when %d of %d orders had ended: %w", n-1, len(lines), cmp.Or(context.Cause(ctx), err))
		}
		if n == max(1, len(lines)*killAt/100) {
			if err := d.killWorker(ctx, n); err != nil {
				return nil, err
			}
		}
		d.say.count(n, len(lines))
	}
	d.took = time.Since(begun)
	return outcomes, nil
}

// runOne starts the job of an order and waits for its end.
func (d *demo) runOne(ctx context.Context, l *orders.Line) (orders.Outcome, error) {
	job, err := d.rt.Start(ctx, l.Flow, l.Key, l.Input)
	if err != nil {
		return "", err
	}
	return outcome(quipu.WaitAs[output](ctx, d.rt, job, quipu.UntilParked(true)))
}

// output is what the demo reads of a job's output.
type output struct{ Status orders.Outcome }

// outcome is how an order ended, from what its Wait returned. The error is for one that
// has not ended.
func outcome(out output, err error) (orders.Outcome, error) {
	failed, is := errors.AsType[*quipu.JobError](err)
	switch {
	case is && failed.State == journal.JobFailed && failed.Code == http.StatusPaymentRequired:
		return orders.Failed, nil
	case is:
		return orders.Outcome(failed.Error()), nil // which no rule expects
	}
	return out.Status, err
}
