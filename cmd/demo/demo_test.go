package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/examples/orders"
	"github.com/quipu-journal/quipu/examples/orders/shop"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
)

func TestDocumented(t *testing.T) { clitest.Documented(t, newCommand()) }

func TestUsage(t *testing.T) {
	t.Parallel()
	for said, args := range map[string][]string{
		"--orders 0":   {"--orders", "0"},
		"unknown flag": {"--odd"},
	} {
		r := clitest.Do(t, run, nil, "", args...)
		require.Equal(t, cli.CodeUsage, r.Code, r.Err)
		require.Contains(t, r.Err, said)
	}
}

// TestEveryNumberMustFit: each thing that can be wrong makes the demo fail.
func TestEveryNumberMustFit(t *testing.T) {
	t.Parallel()
	order := orders.Order{
		Currency: "EUR", Tax: "0", Shipping: "0", Card: "tok_visa_1",
		Lines: []orders.Item{{SKU: "sweet-mint", Price: "0.1", Quantity: "1"}, {SKU: "sweet-anise", Price: "0.2", Quantity: "1"}},
	}
	refused := order
	refused.Card = "tok_refused_1"
	lines := []orders.Line{{Key: "o1", Input: order}, {Key: "o2", Input: refused}}
	good := shop.Charge{Order: "o1", Currency: "EUR", Amount: "0.3"}
	// world is what a run that fits finds.
	type world struct {
		verdicts []verdict
		outcomes []orders.Outcome
		charges  []shop.Charge
		counts   map[string]shop.Count
	}
	look := func(change func(w *world)) (string, error) {
		w := world{
			verdicts: []verdict{{Key: "o1", Result: "proved"}, {Key: "o2", Result: "proved"}},
			outcomes: []orders.Outcome{orders.Shipped, orders.Failed},
			charges:  []shop.Charge{good},
			counts:   map[string]shop.Count{"reservations": {Applied: 1}, "shipments": {Applied: 1}},
		}
		change(&w)
		var r report
		for i := range w.verdicts {
			r.verified(&w.verdicts[i])
		}
		r.row("journals verified", r.jobs, len(lines))
		r.compare(lines, w.outcomes, w.charges, w.counts)
		var out strings.Builder
		err := r.print(&out)
		return out.String(), err
	}
	table, err := look(func(*world) {})
	require.NoError(t, err)
	require.Contains(t, table, "Every number fits")
	for said, change := range map[string]func(w *world){
		"o1 is failed, expected shipped":        func(w *world) { w.outcomes[0] = orders.Failed },
		"orders refunded: 1, expected 0":        func(w *world) { w.outcomes[1] = orders.Refunded },
		"o1 was charged 0 times":                func(w *world) { w.charges = nil },
		"o1 was charged 2 times":                func(w *world) { w.charges = append(w.charges, good) },
		"o2 was charged 1 times":                func(w *world) { w.charges[0].Order = "o2" },
		"charges: 2, expected 1":                func(w *world) { w.charges = append(w.charges, shop.Charge{Order: "odd"}) },
		"o1 was charged 0.31 EUR":               func(w *world) { w.charges[0].Amount = "0.31" },
		"o1 was charged 0.3 USD, expected 0.30": func(w *world) { w.charges[0].Currency = "USD" },
		"shipments: 2, expected 1":              func(w *world) { w.counts["shipments"] = shop.Count{Applied: 2} },
		"refunds: 1, expected 0":                func(w *world) { w.counts["refunds"] = shop.Count{Applied: 1} },
		"journal of o1: violated":               func(w *world) { w.verdicts[0].Result = "violated" },
		"2 open obligations":                    func(w *world) { w.verdicts[1].Open = 2 },
		"journals verified: 1, expected 2":      func(w *world) { w.verdicts = w.verdicts[:1] },
	} {
		table, err := look(change)
		require.ErrorContains(t, err, said)
		require.NotContains(t, table, "Every number fits")
	}
}

// TestReport: the table marks what does not fit, and the error says how much that is.
func TestReport(t *testing.T) {
	t.Parallel()
	var r report
	r.row("right", 1, 1)
	r.row("wrong", 1, 2)
	for range maxFaults {
		r.fault("odd")
	}
	var out bytes.Buffer
	err := r.print(&out)
	require.ErrorContains(t, err, "21 faults")
	require.Equal(t, maxFaults, strings.Count(err.Error(), "\n"))
	require.Regexp(t, `right +1 +1\nwrong +1 +2 +does not fit\n`, out.String())
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	got, err := outcome(output{orders.Shipped}, nil)
	require.NoError(t, err)
	require.Equal(t, orders.Shipped, got)
	got, err = outcome(output{}, &quipu.JobError{State: journal.JobFailed, Code: 402})
	require.NoError(t, err)
	require.Equal(t, orders.Failed, got)
	for _, end := range []error{
		nil, &quipu.JobError{State: journal.JobFailed, Code: 500}, &quipu.JobError{State: journal.JobQuarantined},
	} {
		got, err = outcome(output{}, end)
		require.NoError(t, err)
		require.NotContains(t, orders.Outcomes, got)
	}
	_, err = outcome(output{}, errors.New("away"))
	require.ErrorContains(t, err, "away")
}

// gaps takes what is told and remembers the longest silence.
type gaps struct {
	bytes.Buffer
	last    time.Time
	longest time.Duration
}

func (g *gaps) Write(p []byte) (int, error) {
	g.longest, g.last = max(g.longest, time.Since(g.last)), time.Now()
	return g.Buffer.Write(p)
}

// TestNeverSilent: whatever takes long, and whether or not it counts, is told of again
// before ten seconds have passed, and nothing is after the end.
func TestNeverSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &gaps{last: time.Now()}
		say := tell(out)
		say.step("Starting %s", "Postgres")
		time.Sleep(time.Minute)
		say.step("Running")
		for n := range 100 {
			say.count(n, 100)
			time.Sleep(time.Second)
		}
		say.end()
		said := out.String()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, said, out.String())
		require.Less(t, out.longest, 10*time.Second)
		for _, text := range []string{"[  0.0s] Starting Postgres\n", "[ 30.0s] Starting Postgres: still at it\n", "[ 60.0s] Running\n", "of 100\n"} {
			require.Contains(t, said, text)
		}
	})
}

// TestWorkerThatEnds: one that ends before it is told to ends the demo, which names its
// log; one that is told to does not, but an end with an error is one.
func TestWorkerThatEnds(t *testing.T) {
	t.Parallel()
	start := func(script string) (d *demo, failed chan error) {
		failed = make(chan error, 1)
		d = &demo{options: options{bin: t.TempDir()}, dir: t.TempDir(), fail: func(err error) { failed <- err }}
		syscall.ForkLock.RLock() // a child that has the file, too, would keep it from being run (ETXTBSY)
		err := os.WriteFile(filepath.Join(d.bin, "worker"), []byte("#!/bin/sh\n"+script), 0o755)
		syscall.ForkLock.RUnlock()
		require.NoError(t, err)
		require.NoError(t, d.launch(0, "worker-a"))
		return d, failed
	}
	d, failed := start("exit 3")
	err := devtest.Await(t, "the end of the demo", failed)
	require.ErrorContains(t, err, "worker-a ended: exit status 3")
	require.ErrorContains(t, err, d.dir)
	require.ErrorContains(t, d.stopWorkers(), "exit status 3")

	d, failed = start("while :; do sleep 0.05; done")
	require.NoError(t, d.workers[0].end(syscall.SIGKILL))
	require.ErrorContains(t, d.stopWorkers(), "signal: killed")
	require.Empty(t, failed)

	d.bin = t.TempDir()
	require.ErrorContains(t, d.launch(1, "worker-b"), "are the binaries built?")
}
