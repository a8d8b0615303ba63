package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/examples/orders"
	"github.com/quipu-journal/quipu/journal"
)

func TestDocumented(t *testing.T) { clitest.Documented(t, newCommand(cli.Streams{})) }

func TestUsage(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "x"), nil, 0o644))
	order := filepath.Join(t.TempDir(), "o.jsonl")
	require.NoError(t, os.WriteFile(order, []byte("{\"key\":\"k\"}\n{\n"), 0o644))
	for said, args := range map[string][]string{
		"--kill-at 0":  {"--kill-at", "0"},
		"--count 0":    {"gen", "--count", "0"},
		"not empty":    {"--data", full, "--orders", "../../examples/orders/orders.jsonl"},
		"unknown flag": {"--odd"},
	} {
		r := clitest.Do(t, run, nil, "", args...)
		require.Equal(t, cli.CodeUsage, r.Code, r.Err)
		require.Contains(t, r.Err, said)
	}
	r := clitest.Do(t, run, nil, "", "--orders", order)
	require.Equal(t, cli.CodeFailed, r.Code)
	require.Contains(t, r.Err, order+":2:")
	r = clitest.Do(t, run, nil, "", "--bin", t.TempDir(), "--data", filepath.Join(t.TempDir(), "d"), "--orders", "../../examples/orders/orders.jsonl")
	require.Equal(t, cli.CodeFailed, r.Code)
	require.Contains(t, r.Err, "are the binaries built?")
}

func TestGen(t *testing.T) {
	t.Parallel()
	r := clitest.Do(t, run, nil, "", "gen", "--count", "3")
	require.Zero(t, r.Code)
	require.Equal(t, 3, strings.Count(r.Out, "\n"))
}

// TestEveryNumberMustFit: each thing that can be wrong makes the demo fail.
func TestEveryNumberMustFit(t *testing.T) {
	t.Parallel()
	line := orders.Line{Key: "o1", Input: orders.Order{
		Currency: "EUR", Tax: "0", Shipping: "0", Card: "tok_visa_1",
		Lines: []orders.Item{{SKU: "sweet-mint", Price: "0.1", Quantity: "1"}, {SKU: "sweet-anise", Price: "0.2", Quantity: "1"}},
	}}
	good := charge{Order: "o1", Currency: "EUR", Amount: "0.3"}
	check := func(do func(r *report)) *report {
		r := &report{orders: 1, jobs: 1, charged: 1, expected: map[orders.Outcome]int{orders.Shipped: 1}, counts: map[string]count{
			"charges": {Applied: 1}, "reservations": {Applied: 1}, "shipments": {Applied: 1},
		}}
		do(r)
		return r
	}
	fits := check(func(r *report) {
		r.charge(&line, orders.Shipped, []charge{good})
		r.books()
		r.charge(&line, orders.Failed, nil)
	})
	require.NoError(t, fits.err())
	for said, do := range map[string]func(r *report){
		"charged 0 times":         func(r *report) { r.charge(&line, orders.Shipped, nil) },
		"charged 2 times":         func(r *report) { r.charge(&line, orders.Refunded, []charge{good, good}) },
		"expected not at all":     func(r *report) { r.charge(&line, orders.Failed, []charge{good}) },
		"charged 0.31 EUR":        func(r *report) { r.charge(&line, orders.Shipped, []charge{{Currency: "EUR", Amount: "0.31"}}) },
		"charged 0.3 USD":         func(r *report) { r.charge(&line, orders.Shipped, []charge{{Currency: "USD", Amount: "0.3"}}) },
		"2 charges applied":       func(r *report) { r.counts["charges"] = count{Applied: 2}; r.books() },
		"1 refunds applied":       func(r *report) { r.counts["refunds"] = count{Applied: 1}; r.books() },
		"no JSON":                 func(r *report) { r.verified([]byte("oops")) },
		"journal of o1: violated": func(r *report) { r.verified([]byte(`{"key":"o1","result":"violated"}`)) },
		"2 open obligations":      func(r *report) { r.verified([]byte(`{"key":"o1","result":"proved","open_count":2}`)) },
		"2 orders were verified":  func(r *report) { r.verified([]byte(`{"key":"o1","result":"proved","counts":{"entries":9}}`)) },
	} {
		r := check(do)
		require.ErrorContains(t, r.err(), said)
		require.Equal(t, cli.CodeFailed, cli.Code(r.err()))
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	require.Equal(t, orders.Shipped, outcome(journal.JobCompleted, 200, []byte(`{"status":"shipped"}`)))
	require.Equal(t, orders.Failed, outcome(journal.JobFailed, 402, nil))
	require.Equal(t, orders.Failed, outcome(journal.JobFailed, 402, []byte("null")))
	for _, o := range []orders.Outcome{
		outcome(journal.JobFailed, 500, nil), outcome(journal.JobOpen, 0, nil), outcome(journal.JobCompleted, 200, []byte("no")),
		outcome(journal.JobCompleted, 200, []byte("{}")),
	} {
		require.NotContains(t, orders.Outcomes, o)
	}
}

// TestReport: the table names every number, and only a run that fits says so.
func TestReport(t *testing.T) {
	t.Parallel()
	r := &report{orders: 2, jobs: 2, found: map[orders.Outcome]int{orders.Shipped: 2}, expected: map[orders.Outcome]int{orders.Shipped: 2}, charged: 2, entries: 21, took: time.Second}
	var b bytes.Buffer
	r.print(&teller{w: &b, begun: time.Now()})
	for _, said := range []string{"orders ", "  shipped ", "  refunded ", "charges requested ", "charges applied ", "messages redelivered ", "entries verified ", "seconds ", "Every number fits"} {
		require.Contains(t, b.String(), said)
	}
	b.Reset()
	for range maxFaults + 2 {
		r.fault("odd")
	}
	r.print(&teller{w: &b, begun: time.Now()})
	require.NotContains(t, b.String(), "Every number fits")
	require.ErrorContains(t, r.err(), "and 2 more")
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var plain, bar bytes.Buffer
	without, with := teller{w: &plain, begun: time.Now()}, teller{w: &bar, begun: time.Now(), terminal: true}
	for n := range 101 {
		without.progress(n, 100)
		with.progress(n, 100)
	}
	require.Equal(t, 10, strings.Count(plain.String(), "\n"))
	require.Zero(t, strings.Count(bar.String(), "\n"))
	require.Contains(t, bar.String(), "100 of 100")
}

// TestCountersAreSummed: over workers and attributes, by whole names.
func TestCountersAreSummed(t *testing.T) {
	t.Parallel()
	s := &stack{counted: map[string]int64{"quipu.redeliveries": 1, "quipu.redeliveries{topic=http}": 2, "quipu.redeliveries.other": 4}}
	require.EqualValues(t, 3, s.total("quipu.redeliveries"))
	var c count
	require.NoError(t, json.Unmarshal([]byte(`{"requests":3,"applied":1,"refused":0,"repeated":1,"faults":1}`), &c))
	require.Equal(t, count{Requests: 3, Applied: 1, Repeated: 1, Faults: 1}, c)
}

// TestChildren: output is watched and logged, an end in order is waited for, a
// kill is one.
func TestChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said := make(chan string, 1)
	c, err := startChild("one", "/bin/sh", dir, []string{"WORD=hello"}, func(line string) { said <- line }, "-c", `trap 'exit 0' TERM; echo $WORD; while :; do sleep 0.05; done`)
	require.NoError(t, err)
	require.Equal(t, "hello\n", <-said)
	require.True(t, c.running())
	require.NoError(t, c.stop())
	require.False(t, c.running())
	text, err := os.ReadFile(filepath.Join(dir, "one.log"))
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(text))

	k, err := startChild("two", "/bin/sh", dir, nil, nil, "-c", "while :; do sleep 0.05; done")
	require.NoError(t, err)
	require.NoError(t, k.kill())
	require.Equal(t, "signal: killed", k.state.String())

	bad, err := startChild("three", "/bin/sh", dir, nil, nil, "-c", "exit 3")
	require.NoError(t, err)
	<-bad.exited
	require.ErrorContains(t, bad.stop(), "exit status 3")
	_, err = startChild("four", filepath.Join(dir, "none"), dir, nil, nil)
	require.ErrorContains(t, err, "are the binaries built?")
}
