package inspect

import (
	"cmp"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/view"
)

// activities adds to the instances of a job what the events tell of them, and of the elements of their
// lists. They are in the order in which they began; those of which nothing is told come last.
func (f *fold) activities(job *view.Job, events []view.Event) []view.Activity {
	instances := make(map[collation.InstanceKey]*view.Activity, len(job.Activities))
	for i := range job.Activities {
		a := &job.Activities[i]
		if a.Ledger != 0 {
			a.Digits = f.ledgers.digits(a)
		}
		instances[instanceKey(a.Activity, a.Address)] = a
	}
	all := make([]view.Activity, 0, len(job.Activities))
	at := map[place]int{}
	for i := range events {
		ev := &events[i]
		if ev.Activity == "" || ev.Kind == view.KindEffect || ev.Kind == view.KindOperator || ev.Kind == view.KindLate {
			continue
		}
		of := placeOf(ev)
		n, known := at[of]
		if !known {
			n = len(all)
			at[of], all = n, append(all, begun(ev, instances[of.key]))
		}
		happened(&all[n], ev)
	}
	for i := range job.Activities {
		a := &job.Activities[i]
		if _, told := at[place{instanceKey(a.Activity, a.Address), none}]; !told {
			all = append(all, *a)
		}
	}
	f.elementStates(job, all)
	return all
}

// ByUrgency compares activities for a person who looks for what is wrong: those that failed come first, then
// those that wait for a person, and what is under way before what has ended.
func ByUrgency(a, b *view.Activity) int { return cmp.Compare(urgency(a), urgency(b)) }

func urgency(a *view.Activity) int {
	switch {
	case a.State == view.Failed || a.Last == view.KindFailed:
		return 0
	case a.State == view.Stuck:
		return 1
	case a.Last == view.KindAttempt: // it failed, and is tried again
		return 2
	case a.State == view.Running, a.State == view.Waiting:
		return 3
	case a.State == view.Abandoned:
		return 4
	}
	return 5
}

func placeOf(ev *view.Event) place {
	p := place{instanceKey(ev.Activity, ev.Address), none}
	if ev.Element != nil {
		p.element = *ev.Element
	}
	return p
}

// begun is the activity of which an event is the first to tell: an instance, or an element of its list.
func begun(ev *view.Event, of *view.Activity) view.Activity {
	if of != nil && ev.Element == nil {
		return *of
	}
	return view.Activity{Activity: ev.Activity, Address: ev.Address, Pass: ev.Pass, Element: ev.Element}
}

// happened adds an event.
func happened(a *view.Activity, ev *view.Event) {
	a.Last, a.Text, a.Output, a.Error = ev.Kind, ev.Text, ev.Output, ev.Error
	a.Attempts = max(a.Attempts, ev.Attempt)
	a.Waited += ev.Waited
	a.Ran += ev.Ran
	a.Due = ev.Due
	if ev.Code != 0 && a.Element != nil {
		a.Code = ev.Code
	}
	if ev.Input != nil {
		a.Input = ev.Input
	}
	if !ev.Job.IsZero() && ev.Kind != view.KindOther { // a job that it interrupts is no child
		a.Child = ev.Job
	}
}

// elementStates says how far the elements of lists are.
func (f *fold) elementStates(job *view.Job, all []view.Activity) {
	open := map[place]*view.Message{}
	for i := range job.Messages {
		if m := &job.Messages[i]; m.Element != nil {
			open[place{instanceKey(m.Activity, m.Address), *m.Element}] = m
		}
	}
	for i := range all {
		a := &all[i]
		if a.Element == nil {
			continue
		}
		m := open[place{instanceKey(a.Activity, a.Address), *a.Element}]
		switch {
		case a.Last == view.KindDone:
			a.State = view.Done
		case a.Last == view.KindFailed:
			a.State = view.Failed
		case job.State.Closed():
			a.State = view.Abandoned
		case m != nil && (m.Held == view.HeldParked || m.Held == view.HeldStuck):
			a.State = view.Stuck
		case m != nil && m.Holder != "":
			a.State = view.Running
		default:
			a.State = view.Waiting
		}
	}
}
