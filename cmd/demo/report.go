package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/examples/orders"
)

// maxFaults is how many faults are printed; all are counted.
const maxFaults = 20

// report is what the demo found.
type report struct {
	orders, killedAt    int
	expected, found     map[orders.Outcome]int
	charged             int              // orders that must be charged
	counts              map[string]count // of the payment service, by kind
	redelivered, resent int64
	jobs                int
	entries             int64
	took                time.Duration
	faults              []string
	more                int
}

func (r *report) fault(format string, a ...any) {
	if len(r.faults) == maxFaults {
		r.more++
		return
	}
	r.faults = append(r.faults, fmt.Sprintf(format, a...))
}

// err is nil if every number fits.
func (r *report) err() error {
	if r.jobs != r.orders && len(r.faults) == 0 {
		r.fault("the journals of %d orders were verified, expected %d", r.jobs, r.orders)
	}
	if len(r.faults) == 0 {
		return nil
	}
	lines := strings.Join(r.faults, "\n  ")
	if r.more > 0 {
		lines += fmt.Sprintf("\n  and %d more", r.more)
	}
	return cli.Exitf(cli.CodeFailed, "not every number fits:\n  %s", lines)
}

// print writes the table.
func (r *report) print(say *teller) {
	say.clear()
	fmt.Fprintln(say.w)
	row := func(what string, n any, note string) { fmt.Fprintf(say.w, "%-22s %8v   %s\n", what, n, note) }
	row("orders", r.orders, fmt.Sprintf("a worker was killed when %d had ended", r.killedAt))
	for _, o := range orders.Outcomes {
		row("  "+string(o), r.found[o], fmt.Sprintf("expected %d", r.expected[o]))
	}
	c := r.counts["charges"]
	row("charges requested", c.Requests, fmt.Sprintf("%d answered with 503, %d repeated, %d refused", c.Faults, c.Repeated, c.Refused))
	row("charges applied", c.Applied, fmt.Sprintf("orders charged: %d", r.charged))
	row("messages redelivered", r.redelivered, fmt.Sprintf("%d sent by the sweeper, retries among them", r.resent))
	row("entries verified", r.entries, fmt.Sprintf("in the journals of %d orders", r.jobs))
	row("seconds", fmt.Sprintf("%.1f", r.took.Seconds()), "from the first start to the last end")
	if r.err() == nil {
		fmt.Fprintln(say.w, "\nEvery number fits: nothing was lost, nothing was recorded twice.")
	}
}

// teller tells what happens, with a progress line where there is a terminal.
type teller struct {
	w        io.Writer
	terminal bool
	begun    time.Time
	tenth    int // last tenth that was told without a terminal
}

func (t *teller) step(text string) {
	t.clear()
	fmt.Fprintf(t.w, "[%5.1fs] %s\n", time.Since(t.begun).Seconds(), text)
}

func (t *teller) clear() {
	if t.terminal {
		fmt.Fprint(t.w, "\r\x1b[K")
	}
}

// progress shows how many of all orders have ended.
func (t *teller) progress(done, all int) {
	const width = 40
	if !t.terminal {
		if tenth := 10 * done / all; tenth > t.tenth {
			t.tenth = tenth
			t.step(fmt.Sprintf("%d of %d orders have ended", done, all))
		}
		return
	}
	full := width * done / all
	fmt.Fprintf(t.w, "\r\x1b[K[%5.1fs] %s%s %d of %d", time.Since(t.begun).Seconds(),
		strings.Repeat("█", full), strings.Repeat("░", width-full), done, all)
}
