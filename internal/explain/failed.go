package explain

import (
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// maxGenerations bounds the generations of a child that are looked up.
const maxGenerations = 64

// failed says that the job failed or was interrupted, by whom, and why.
func (e *explainer) failed() string {
	how := "failed"
	if e.v.State == journal.JobInterrupted {
		how = "was interrupted"
	}
	text := fmt.Sprintf("the job %s with code %d after %s", how, e.v.Code, span(micros(e.v.Closed-e.v.Started)))
	if e.outputFailed() {
		return text + ": every activity has ended, and then the output of the flow failed: " +
			e.said(strings.TrimPrefix(e.v.Error.Message, outputPlace), "")
	}
	text += e.closer() + e.attempts()
	if id := e.failedChild(); !id.IsZero() {
		text += e.byChild(id)
	}
	if f := e.v.Error; f != nil {
		text += ": " + e.said(f.Message, e.frame()) + e.limit(f.Class)
	}
	return text
}

// untaken says that an error ended the job because no transition takes it; "" if that is not so.
func (e *explainer) untaken() string {
	l := e.Last
	if e.v.State != journal.JobFailed || l == nil || l.Activity == "" || e.outputFailed() ||
		l.Trouble != nil && l.Trouble.Reason == collation.ReasonExpression {
		return ""
	}
	return "no transition of " + e.v.Flow.Name + " takes this error (on: error)"
}

// attempts says how many attempts failed, if there was more than one.
func (e *explainer) attempts() string {
	l := e.Last
	if l == nil || l.Response == nil || l.Result != nil {
		return ""
	}
	n := l.Response.Attempt
	if s := e.by[collation.InstanceKey{Activity: l.Activity, DAD: collation.DAD(l.DAD)}]; s != nil &&
		!l.Response.Child.IsZero() {
		n = s.inst.Attempt
	}
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" after %d attempts", n)
}

// said is the first line of an error's message, bounded, with the frame that it came from if
// there is one, and where the rest is.
func (e *explainer) said(text, frame string) string {
	first, _, _ := strings.Cut(text, "\n")
	first = cut(first, maxOutput)
	if first == text && frame == "" {
		return text
	}
	if first != text {
		first = strings.TrimSuffix(first, "…") + "…"
	}
	if frame != "" {
		first += ", at " + cut(frame, maxOutput)
	}
	return first + " (quipu log " + word(e.v.Key) + " --raw shows all)"
}

// frame is where the error that closed the job came from, if its stack was recorded.
func (e *explainer) frame() string {
	if l := e.Last; l != nil && l.Response != nil && l.Response.Error != nil {
		return Frame(l.Response.Error.Stack)
	}
	return ""
}

// failedChild is the child whose failure closed the job; zero if something else did.
func (e *explainer) failedChild() journal.JobID {
	if e.v.State != journal.JobFailed {
		return journal.JobID{}
	}
	if l := e.Last; l != nil && l.Response != nil && !l.Response.Child.IsZero() {
		return l.Response.Child
	}
	return e.Child
}

// PassedOn returns the child whose failure closed a job by way of its function: the last of the
// outcomes whose error is in the message that closed the job, as a workers.ChildError spells it.
// Zero says that there is none. outcomes are entries with the outcomes of children, in their
// order.
func PassedOn(closed *journal.Failure, outcomes []*journal.Entry) (child journal.JobID) {
	for _, e := range outcomes {
		x := e.Response
		if x == nil || x.Error == nil || x.Request.IsZero() || closed == nil {
			continue
		}
		if strings.Contains(closed.Message, fmt.Sprintf("ended with error %d (%s): %s", x.Code, x.Error.Class, x.Error.Message)) {
			child = x.Child
		}
	}
	return child
}

// latest is the last generation of a job's key that find finds; nil if the job is not known.
func latest(find func(journal.JobID) *store.JobSummary, id journal.JobID) *store.JobSummary {
	if find == nil {
		return nil
	}
	j := find(id)
	for range maxGenerations {
		if j == nil {
			return nil
		}
		next := find(collation.NewJobID(j.Space, j.Key, j.Generation+1))
		if next == nil {
			break
		}
		j = next
	}
	return j
}

// byChild names the child in a sentence about the await that it failed.
func (e *explainer) byChild(id journal.JobID) string {
	how := "failed"
	if e.Find != nil {
		switch j := e.Find(id); {
		case j == nil:
			return ", whose child (" + e.planned(id) + ") has not begun"
		case j.State == journal.JobInterrupted:
			how = "was interrupted"
		}
	}
	text := fmt.Sprintf(", whose child (job %s) %s", e.jobName(id), how)
	switch j := latest(e.Find, id); {
	case j == nil || j.ID == id:
	case j.State == journal.JobFailed:
		text += " and was resumed, and failed again"
	default:
		text += fmt.Sprintf(" and was resumed, and is %s now", j.State)
	}
	return text
}

// limit names the time that was over, and the topic of an activity that nobody answered.
func (e *explainer) limit(class string) string {
	if e.Last == nil || e.Flow == nil {
		return ""
	}
	a, ok := e.Flow.Activity(e.Last.Activity)
	switch {
	case !ok:
	case class == "timeout" && a.Timeout > 0:
		return " (" + Timeout(a) + ")"
	case class == "within" && a.Within > 0 && a.Topic != "":
		return fmt.Sprintf(" (%s has %s, its within; its topic is %s)", a.Name, span(a.Within), a.Topic)
	}
	return ""
}

// Timeout says how long an attempt of an activity may take.
func Timeout(a *flow.Activity) string {
	return fmt.Sprintf("an attempt of %s has %s: its timeout", a.Name, span(a.Timeout))
}

// expressionFailed says that an expression failed the job: it gives the same from the same
// results, so doing the activity again alone does not help.
func (e *explainer) expressionFailed() bool {
	f := e.v.Error
	return f != nil && e.v.State == journal.JobFailed && f.Class == collation.ReasonExpression &&
		e.failedChild().IsZero()
}

// outputFailed says that all activities ended without closing the job, and that the output of
// the flow failed then.
func (e *explainer) outputFailed() bool {
	return e.expressionFailed() && strings.HasPrefix(e.v.Error.Message, outputPlace)
}

// outputPlace begins the message about the output of a flow; that of an activity names it.
const outputPlace = "output: "

// planned names a child that has not begun by the key and the flow that it was to have, as far as
// they do not depend on results.
func (e *explainer) planned(id journal.JobID) string {
	a := e.lastActivity()
	if a == nil || a.Type != flow.TypeAwait {
		return "job " + id.String()
	}
	c, err := a.Child(&still{e})
	switch {
	case c.Flow == "":
		return "job " + id.String()
	case err != nil:
		return "job " + id.String() + " of flow " + c.Flow
	case c.ID == "":
		c.ID = collation.ChildKey(e.v.Key, a.Name, id)
	}
	return fmt.Sprintf("job %q of flow %s", c.ID, c.Flow)
}

// still is what expressions see that need no result.
type still struct{ *explainer }

// Result implements flow.Scope.
func (*still) Result(string) (none flow.Result, known bool) { return none, false }

// Job implements flow.Scope.
func (s *still) Job() flow.JobInfo {
	return flow.JobInfo{ID: s.v.Key, Flow: s.v.Flow.Name, Version: s.v.Flow.Version, StartedMicros: int64(s.v.Started)}
}

// Budget implements flow.Scope.
func (*still) Budget() *flow.Budget { return flow.NewBudget(nil) }
