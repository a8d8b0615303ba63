package explain

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// State says how far an activity is.
type State string

// The states of an activity, at its latest address.
const (
	StateNotReached State = "not reached"
	StateSkipped    State = "skipped"   // its transitions were decided against it
	StateRunning    State = "running"   // dispatched, or its work is being done
	StateWaiting    State = "waiting"   // for a response, a signal, a timer, a child, arrivals
	StateStuck      State = "stuck"     // waits for a person
	StateDone       State = "done"      // ended with success
	StateFailed     State = "failed"    // ended with an error
	StateAbandoned  State = "abandoned" // open when its job was closed
)

// ended says that the activity has decided its transitions.
func (s State) ended() bool { return s == StateDone || s == StateFailed }

// Standing is the state of one activity, by its latest instance, that of the last pass.
type Standing struct {
	Activity *flow.Activity
	State    State
	// Code is the code of its result, 0 for none.
	Code int
	// Instances counts the instances of all passes.
	Instances int
	// Passes counts the passes of a pivot or a repeating hook.
	Passes int
	// Ended is how many of Elements have ended, under `each`.
	Ended, Elements int
	// Arrived counts the arrivals of a join.
	Arrived int
	// Suspended counts its suspended durable functions (E12).
	Suspended int
}

// Survey gives the state of each activity, in the order of Activity.Index; nil without
// Job.Flow.
func Survey(j *Job) []Standing {
	if j.Flow == nil {
		return nil
	}
	e := &explainer{Job: j, v: j.View}
	e.gather()
	latest := make([]*spot, len(j.Flow.Activities()))
	all := make([]Standing, len(latest))
	for i, a := range j.Flow.Activities() {
		all[i] = Standing{Activity: a, State: StateNotReached}
	}
	for _, s := range e.spots { // in the order of their addresses
		if s.act != nil {
			latest[s.act.Index] = s
			all[s.act.Index].Instances++
		}
	}
	for i := range all { // parents come before their children
		if s := latest[i]; s != nil {
			e.stand(&all[i], s)
		} else if skipped(all, all[i].Activity) {
			all[i].State = StateSkipped
		}
	}
	return all
}

// stand derives the state from the ledger of an instance.
func (e *explainer) stand(st *Standing, s *spot) {
	a, l := st.Activity, s.inst.Ledger
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
		st.State = StateRunning
	case l.Finalized() || l.State() == 1 || l.Leg1Complete() && passesOn(a):
		st.State = StateDone
		if st.Code != 0 && st.Code != collation.CodeOK {
			st.State = StateFailed
		}
		if a.Pivot && len(s.rows) > 0 {
			st.State = StateRunning
		}
	case e.v.State.Closed() && l.Leg1Entries() > 0:
		st.State = StateAbandoned
	case e.isStuck(s):
		st.State = StateStuck
	case l.Leg1Complete():
		st.State = StateWaiting
	case l.Leg1Entries() > 0 || len(s.rows) > 0 || l.JoinTaken() && l.Arrivals() == len(a.In):
		st.State = StateRunning
	case a.Join != "" && l.Arrivals() == len(a.In):
		st.State = StateSkipped
	case e.v.State.Closed():
		st.State = StateNotReached
	default:
		st.State = StateWaiting
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
func skipped(all []Standing, a *flow.Activity) bool {
	if a.Join != "" || len(a.In) == 0 {
		return false
	}
	from := all[a.In[0].From.Index].State
	return from.ended() || from == StateSkipped
}

// detail adds counts and codes to the state of an activity.
func (st *Standing) detail() string {
	a, text := st.Activity, ""
	say := func(format string, args ...any) { text += ", " + fmt.Sprintf(format, args...) }
	if st.State == StateFailed {
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
	if a.Join != "" && st.State != StateNotReached {
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
