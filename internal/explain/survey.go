package explain

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Survey gives the state of each activity, in the order of Activity.Index; nil without
// Job.Flow.
func Survey(j *Job) []view.Standing {
	if j.Flow == nil {
		return nil
	}
	e := &explainer{Job: j, v: j.View}
	e.gather()
	latest := make([]*spot, len(j.Flow.Activities()))
	all := make([]view.Standing, len(latest))
	for i, a := range j.Flow.Activities() {
		all[i] = view.Standing{Activity: a.Name, State: view.NotReached}
	}
	for _, s := range e.spots {
		if s.act == nil {
			continue
		}
		at := s.act.Index
		all[at].Instances++
		if latest[at] == nil || latest[at].DAD.Compare(s.DAD) < 0 {
			latest[at] = s
		}
	}
	for i := range all { // parents come before their children
		if s := latest[i]; s != nil {
			e.stand(&all[i], s)
		} else if skipped(all, j.Flow.Activities()[i]) {
			all[i].State = view.Skipped
		}
	}
	return all
}

// stand derives the state from the ledger of an instance.
func (e *explainer) stand(st *view.Standing, s *spot) {
	a, l := s.act, s.inst.Ledger
	st.Code, st.Arrived = s.inst.Code, l.Arrivals()
	if a.Passes() {
		st.Passes = l.Leg2Entries()
	}
	if st.Elements = s.inst.Count; st.Elements > 0 {
		st.Ended = st.Elements - s.inst.Open
	}
	for _, r := range s.requests {
		if r.Kind == journal.MessageRequest && r.Held == "" && r.Holder == "" && r.NextAt == collation.Never {
			st.Suspended++
		}
	}
	switch {
	case l.State() == 1 && len(s.rows) > 0:
		st.State = view.Running
	case l.Finalized() || l.State() == 1 || l.Leg1Complete() && passesOn(a):
		st.State = view.Done
		if st.Code != 0 && st.Code != collation.CodeOK {
			st.State = view.Failed
		}
		if a.Pivot && len(s.rows) > 0 {
			st.State = view.Running
		}
	case e.v.State.Closed() && l.Leg1Entries() > 0:
		st.State = view.Abandoned
	case e.isStuck(s):
		st.State = view.Stuck
	case l.Leg1Complete():
		st.State = view.Waiting
	case l.Leg1Entries() > 0 || len(s.rows) > 0 || l.JoinTaken() && l.Arrivals() == len(a.In):
		st.State = view.Running
	case a.Join != "" && l.Arrivals() == len(a.In):
		st.State = view.Skipped
	case e.v.State.Closed():
		st.State = view.NotReached
	default:
		st.State = view.Waiting
	}
}

// passesOn reports an activity that is never finalized, and that is done when its Leg1 is
// complete: a pivot, a cycle, an interrupt of its own job.
func passesOn(a *flow.Activity) bool {
	return a.Pivot || a.Type == flow.TypeCycle || a.Type == flow.TypeInterrupt
}

func (e *explainer) isStuck(s *spot) bool {
	rows := append([]*collation.Row{s.timer, s.bound, s.order}, s.rows...)
	rows = append(rows, s.alarms...)
	for _, r := range append(rows, s.requests...) {
		if r != nil && (r.Held == collation.HeldStuck || r.Held == collation.HeldParked) {
			return true
		}
	}
	return false
}

// skipped reports an activity without an instance whose parent has decided against it. It
// is not for joins, which have an instance from their first arrival.
func skipped(all []view.Standing, a *flow.Activity) bool {
	if a.Join != "" || len(a.In) == 0 {
		return false
	}
	from := all[a.In[0].From.Index].State
	return ended(from) || from == view.Skipped
}

// ended reports an activity that has decided its transitions.
func ended(s view.State) bool { return s == view.Done || s == view.Failed }

// detail adds counts and codes to the state of an activity.
func detail(st *view.Standing, a *flow.Activity) string {
	text := ""
	say := func(format string, args ...any) { text += ", " + fmt.Sprintf(format, args...) }
	if st.State == view.Failed {
		say("code %d", st.Code)
	}
	if st.Passes > 0 {
		say("%s", passes(st.Passes))
	} else if st.Instances > 1 {
		say("%s", passes(st.Instances))
	}
	if st.Elements > 0 {
		say("%d/%d elements", st.Ended, st.Elements)
	}
	if st.Suspended == 1 && st.Elements == 0 {
		say("suspended")
	} else if st.Suspended > 0 {
		say("%d suspended", st.Suspended)
	}
	if a.Join != "" && st.State != view.NotReached {
		say("%d/%d arrivals", st.Arrived, len(a.In))
	}
	return text
}

func passes(n int) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}

// States gives the state of each instance that the job has reached.
func States(j *Job) map[collation.InstanceKey]view.State {
	e := &explainer{Job: j, v: j.View}
	e.gather()
	all := make(map[collation.InstanceKey]view.State, len(e.spots))
	for _, s := range e.spots {
		if s.act == nil {
			all[s.InstanceKey] = e.byLedger(s)
			continue
		}
		var st view.Standing
		e.stand(&st, s)
		all[s.InstanceKey] = st.State
	}
	return all
}

// byLedger is the state of an instance whose activity is not known.
func (e *explainer) byLedger(s *spot) view.State {
	switch l := s.inst.Ledger; {
	case l.Finalized() || l.State() == 1:
		if s.inst.Code != 0 && s.inst.Code != collation.CodeOK {
			return view.Failed
		}
		return view.Done
	case e.v.State.Closed():
		return view.Abandoned
	case e.isStuck(s):
		return view.Stuck
	case l.Leg1Complete():
		return view.Waiting
	}
	return view.Running
}
