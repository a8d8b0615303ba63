package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/examples/orders"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/observer"
)

// flowAddr is where order.yaml expects the payment service; the demo's own has a
// free port, and takes a copy of the flow.
const flowAddr = "http://127.0.0.1:7780"

// maxOrderLine bounds a line of the file of orders.
const maxOrderLine = 1 << 20

// perform is the whole demo.
func perform(ctx context.Context, o options, streams cli.Streams) (err error) {
	lines, err := readOrders(o.orders)
	if err != nil {
		return err
	}
	dir, remove, err := place(o)
	if err != nil {
		return err
	}
	s := &stack{opts: o, dir: dir, log: filepath.Join(dir, "log"), counted: map[string]int64{}}
	defer func() {
		err = errors.Join(err, s.stop())
		if err == nil && remove {
			err = os.RemoveAll(dir)
			return
		}
		fmt.Fprintf(streams.Out, "Data and logs: %s\n", dir)
	}()
	if err := os.MkdirAll(s.log, 0o755); err != nil {
		return err
	}
	say := teller{w: streams.Out, terminal: cli.Terminal(streams.Out), begun: time.Now()}
	if err := s.start(ctx, &say); err != nil {
		return err
	}
	rt, err := quipu.Open(ctx, quipu.Config{Postgres: s.dev.Postgres, Space: s.dev.Space, NoMigrate: true})
	if err != nil {
		return err
	}
	defer rt.Close()
	return s.play(ctx, rt, lines, &say)
}

// start brings everything up and deploys the flow.
func (s *stack) start(ctx context.Context, say *teller) error {
	say.step("Starting Postgres and NATS")
	if err := s.startServers(ctx); err != nil {
		return err
	}
	say.step("Starting the payment service and two workers")
	if err := s.startPaysvc(ctx); err != nil {
		return err
	}
	text, err := os.ReadFile(s.opts.flow)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, "order.yaml")
	text = []byte(strings.ReplaceAll(string(text), flowAddr, s.paysvc))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	if _, err := s.quipu(ctx, nil, "deploy", path); err != nil {
		return err
	}
	for n := range s.workers {
		if err := s.startWorker(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// play runs the orders, with the kill in the middle, and checks them.
func (s *stack) play(ctx context.Context, rt *quipu.Runtime, lines []orders.Line, say *teller) error {
	file, err := os.Open(s.opts.orders)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	say.step(fmt.Sprintf("Starting %d orders", len(lines)))
	begun := time.Now()
	if _, err := s.quipu(ctx, file, "start", "-"); err != nil {
		return err
	}
	ended, err := s.until(ctx, rt, len(lines)*s.opts.killAt/100, len(lines), say)
	if err != nil {
		return err
	}
	victim := s.workers[1]
	if err := s.count(ctx, victim); err != nil {
		return err
	}
	if err := victim.kill(); err != nil {
		return err
	}
	say.step(fmt.Sprintf("Killed %s (pid %d) with SIGKILL: %d orders had ended, %d had not; starting it again",
		victim.name, victim.pid(), ended, len(lines)-ended))
	if err := s.startWorker(ctx, 1); err != nil {
		return err
	}
	if _, err := s.until(ctx, rt, len(lines), len(lines), say); err != nil {
		return err
	}
	r := &report{orders: len(lines), killedAt: ended, took: time.Since(begun)}
	say.step("All orders have ended; draining the workers")
	for _, w := range s.workers {
		if err := s.count(ctx, w); err != nil {
			return err
		}
		if err := w.stop(); err != nil {
			return err
		}
	}
	r.redelivered, r.resent = s.total(observer.MetricRedelivered), s.total(observer.MetricResent)
	say.step("Verifying the journal")
	if err := s.verify(ctx, r); err != nil {
		return err
	}
	say.step("Checking every order and every charge")
	if err := s.check(ctx, rt, lines, r); err != nil {
		return err
	}
	r.print(say)
	return r.err()
}

// until waits until so many orders have ended, and shows how many.
func (s *stack) until(ctx context.Context, rt *quipu.Runtime, want, all int, say *teller) (int, error) {
	tick := time.NewTicker(2 * pollEvery)
	defer tick.Stop()
	for {
		counts, err := below.Of(rt).Counts(ctx)
		if err != nil {
			return 0, err
		}
		ended := 0
		for state, n := range counts {
			if state.Closed() {
				ended += int(n)
			}
		}
		say.progress(ended, all)
		if n := counts[journal.JobQuarantined]; n > 0 {
			return ended, fmt.Errorf("%d orders are quarantined: their ledgers are against the laws", n)
		}
		if ended >= want {
			return ended, nil
		}
		select {
		case <-ctx.Done():
			return ended, fmt.Errorf("%w: %d of %d orders have ended", context.Cause(ctx), ended, all)
		case <-tick.C:
		}
		for _, w := range s.workers {
			if !w.running() {
				return ended, fmt.Errorf("%s ended: %s, see %s", w.name, w.state, w.log)
			}
		}
	}
}

func readOrders(path string) ([]orders.Line, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var lines []orders.Line
	s := bufio.NewScanner(f)
	s.Buffer(nil, maxOrderLine)
	for s.Scan() {
		var l orders.Line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, len(lines)+1, err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s: no orders", path)
	}
	return lines, nil
}
