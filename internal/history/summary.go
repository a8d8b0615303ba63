package history

import (
	"math"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Activity is the history of one instance of an activity, or of one element of its list.
type Activity struct {
	Activity, Address string
	Element           int   // -1 for none
	Last              Event // the latest event, which gives the state
	Attempts          int   // 0: none, or not counted
	Input             *Value
	Output            *Value           // of Last
	Error             *journal.Failure // of Last
	// Waited is how long it waited, for a worker in all its attempts or for something
	// else; Ran is how long its attempts took together.
	Waited, Ran time.Duration
}

// Activities groups the events of a job by activity, in the order in which they began.
func Activities(events []Event) []Activity {
	all, _ := Some(events, "", math.MaxInt)
	return all
}

// Some is Activities of those that began first, at most as many as that; left counts the others.
// only, if not "", is the one activity that is wanted.
func Some(events []Event, only string, most int) (all []Activity, left int) {
	at := map[place]int{}
	for i := range events {
		ev := &events[i]
		if ev.Activity == "" || ev.Kind == KindEffect || ev.Kind == KindOperator || ev.Kind == KindLate ||
			only != "" && ev.Activity != only {
			continue
		}
		of := place{collation.InstanceKey{Activity: ev.Activity, DAD: collation.DAD(ev.Address)}, ev.Element}
		n, known := at[of]
		if !known && len(all) < most {
			n = len(all)
			all = append(all, Activity{Activity: ev.Activity, Address: ev.Address, Element: ev.Element})
		} else if !known {
			n = none
			left++
		}
		if !known {
			at[of] = n
		}
		if n != none {
			all[n].add(ev)
		}
	}
	return all, left
}

func (a *Activity) add(ev *Event) {
	a.Last, a.Output, a.Error = *ev, ev.Output, ev.Error
	a.Attempts = max(a.Attempts, ev.Attempt)
	a.Waited += ev.Waited
	a.Ran += ev.Ran
	if ev.Input != nil {
		a.Input = ev.Input
	}
}
