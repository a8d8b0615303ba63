package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// saysInstance describes the digits of an instance's ledger, and its other values, in words (1.2).
func saysInstance(i *collation.Instance) string {
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

// saysMessage says what the digits of a message's ledger mean (1.3).
func saysMessage(l collation.GUIDLedger) string {
	switch {
	case l == 0:
		return "stale: it changed nothing"
	case l.Step3():
		return "it closed the job, and the completion tasks are done"
	case l.Closed():
		return "it closed the job; the completion tasks are to come"
	case l.Step2():
		return "step 2 done: what follows was dispatched"
	case l.Step1():
		return "step 1 done: the result is recorded"
	}
	return "accepted"
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// instanceGroups are the groups of an activity's ledger (1.2): its text is cut at these places.
var instanceGroups = []struct {
	from, to int
	means    func(l collation.ActivityLedger) string
}{
	{0, 1, func(l collation.ActivityLedger) string {
		return [...]string{"state: active", "state: trigger", "state: finalized"}[min(l.State(), 2)]
	}},
	{1, 3, func(l collation.ActivityLedger) string { return fmt.Sprint("Leg1 entries: ", l.Leg1Entries()) }},
	{3, 4, func(l collation.ActivityLedger) string {
		return choose(l.Leg1Complete(), "Leg1 complete", "Leg1 not complete")
	}},
	{4, 5, func(l collation.ActivityLedger) string {
		return choose(l.JoinTaken(), "join: an arrival was taken", "join: none taken")
	}},
	{5, 7, func(l collation.ActivityLedger) string { return fmt.Sprint("arrivals: ", l.Arrivals()) }},
	{7, 15, func(l collation.ActivityLedger) string {
		return fmt.Sprint("Leg2 messages accepted: ", l.Leg2Entries())
	}},
}

func choose(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// MessageDigits are the groups of a message's ledger with what they mean (1.3).
func MessageDigits(l journal.Ledger) []view.Digits {
	g, text := collation.GUIDLedger(l), l.String()
	return []view.Digits{
		{Text: text[0:3], Means: "not used"},
		{Text: text[3:4], Means: choose(g.Closed(), "it closed the job", "it did not close the job")},
		{Text: text[4:5], Means: choose(g.Step1(), "step 1: its result is recorded", "step 1 is not done")},
		{Text: text[5:6], Means: choose(g.Step2(), "step 2: what follows was dispatched", "step 2 is not done")},
		{Text: text[6:7], Means: choose(g.Step3(), "step 3: the completion tasks are done", "no step 3")},
		{Text: text[7:15], Means: fmt.Sprint("its number among the accepted Leg2 messages: ", g.Ordinal())},
	}
}

// ledgers finds the entry that last changed each group of digits of each activity's ledger. One entry
// is one transaction.
type ledgers map[collation.InstanceKey]*stamped

// stamped is a ledger, with the entry that set each of its groups.
type stamped struct {
	text string
	set  [6]*view.Stamp // as many as instanceGroups
}

const noDigits = "000000000000000"

func (l ledgers) add(e *journal.Entry, writer string) {
	stamp := &view.Stamp{Entry: e.Seq, Time: moment(e.Time), Writer: writer}
	for _, m := range e.Moves() {
		key, text := instanceKey(m.Activity, m.DAD), m.After.String()
		x := l[key]
		if x == nil {
			x = &stamped{text: noDigits}
			l[key] = x
		}
		for n, g := range instanceGroups {
			if x.text[g.from:g.to] != text[g.from:g.to] {
				x.set[n] = stamp
			}
		}
		x.text = text
	}
}

// digits are the groups of an activity's ledger, each with the entry that set it.
func (l ledgers) digits(a *view.Activity) []view.Digits {
	ledger, text := collation.ActivityLedger(a.Ledger), a.Ledger.String()
	out := make([]view.Digits, len(instanceGroups))
	x := l[instanceKey(a.Activity, a.Address)]
	for n, g := range instanceGroups {
		if out[n] = (view.Digits{Text: text[g.from:g.to], Means: g.means(ledger)}); x != nil {
			out[n].Set = x.set[n]
		}
	}
	return out
}

// moment is the time of microseconds since 1970.
func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
