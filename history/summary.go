package history

import (
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Activity is what happened at one instance of an activity, or to one element of its
// list.
type Activity struct {
	Activity string
	DAD      collation.DAD
	Element  int   // -1 for none
	Last     Event // which says how it stands
	Attempts int   // 0: it has none, or they are not counted
	Input    *Value
	Output   *Value           // of Last
	Error    *journal.Failure // of Last
	// Waited is how long its attempts waited for a worker, or it for what it waits for,
	// and Ran how long they took, all together.
	Waited, Ran time.Duration
}

// Activities sums the events of a job up, in the order in which its activities began.
func Activities(events []Event) []Activity {
	var all []Activity
	at := map[place]int{}
	for i := range events {
		ev := &events[i]
		if ev.Activity == "" || ev.Kind == KindEffect || ev.Kind == KindOperator || ev.Kind == KindLate {
			continue
		}
		of := place{collation.InstanceKey{Activity: ev.Activity, DAD: ev.DAD}, ev.Element}
		n, known := at[of]
		if !known {
			n = len(all)
			at[of] = n
			all = append(all, Activity{Activity: ev.Activity, DAD: ev.DAD, Element: ev.Element})
		}
		all[n].add(ev)
	}
	return all
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
