package main

import (
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// grouped formats a ledger with spaces between its groups (1.2): state, Leg1 entries, Leg1
// complete, join taken, arrivals, Leg2 entries.
func grouped(l collation.ActivityLedger) string {
	d := l.String()
	return strings.Join([]string{d[0:1], d[1:3], d[3:4], d[4:5], d[5:7], d[7:15]}, " ")
}

// groupedMessage formats the ledger of a message with spaces between its groups (1.3).
func groupedMessage(d string) string {
	if len(d) != journal.LedgerDigits {
		return ""
	}
	return strings.Join([]string{d[0:3], d[3:4], d[4:5], d[5:6], d[6:7], d[7:15]}, " ")
}

// stateOf returns one word for the state of an instance's ledger.
func stateOf(l collation.ActivityLedger) string {
	switch {
	case l.State() == 1:
		return "trigger"
	case l.Finalized():
		return "finalized"
	case l.Leg1Complete():
		return "waiting"
	case l.Leg1Entries() > 0:
		return "entered"
	}
	return "arrivals"
}

// decoded describes the digits of an instance's ledger, and the instance's other values, in
// words.
func decoded(i *collation.Instance) string {
	l := i.Ledger
	if l.State() == 1 {
		return "trigger"
	}
	var said []string
	switch {
	case l.Finalized():
		said = append(said, "finalized")
	case l.Leg1Complete():
		said = append(said, "Leg1 complete")
	case l.Leg1Entries() == 0:
		said = append(said, "not entered")
	default:
		said = append(said, "entered, its work is not done")
	}
	if n := l.Leg1Entries(); n > 1 {
		said = append(said, fmt.Sprintf("Leg1 entered %d times", n))
	}
	if l.JoinTaken() || l.Arrivals() > 0 {
		arrivals := counted(l.Arrivals(), "arrival")
		if !l.JoinTaken() {
			arrivals += ", none taken"
		}
		said = append(said, arrivals)
	}
	said = append(said, counted(l.Leg2Entries(), "response"))
	if i.Count > 0 {
		said = append(said, fmt.Sprintf("%d of %d elements ended", i.Count-i.Open, i.Count))
	}
	if i.Attempt > 1 {
		said = append(said, fmt.Sprintf("attempt %d", i.Attempt))
	}
	return strings.Join(said, ", ")
}

func counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
