package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// maxFaults is how many faults are printed.
const maxFaults = 20

// report is what the demo found.
type report struct {
	jobs, entries              int // that were verified
	requests, failed, repeated int // to the shop
	took                       time.Duration
	rows                       []string // of the table
	faults                     []string
}

func (r *report) fault(format string, a ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, a...))
}

// row adds a line to the table. Its numbers must be equal.
func (r *report) row(what string, found, expected int) {
	mark := ""
	if found != expected {
		mark = "   does not fit"
		r.fault("%s: %d, expected %d", what, found, expected)
	}
	r.rows = append(r.rows, fmt.Sprintf("%-20s %9d %9d%s", what, found, expected, mark))
}

// print writes the table. The error has what does not fit.
func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "\n%-20s %9s %9s\n%s\n\n", "", "found", "expected", strings.Join(r.rows, "\n"))
	fmt.Fprintf(w, "The orders took %.1f s and %d journal entries. The shop got %d requests: it answered\n"+
		"%d with 503, and %d were repeated and not applied again.\n", r.took.Seconds(), r.entries, r.requests, r.failed, r.repeated)
	if len(r.faults) == 0 {
		fmt.Fprintln(w, "\nEvery number fits: nothing was lost, nothing was recorded twice.")
		return nil
	}
	first := strings.Join(r.faults[:min(len(r.faults), maxFaults)], "\n  ")
	return fmt.Errorf("%d faults, the first of them:\n  %s", len(r.faults), first)
}
