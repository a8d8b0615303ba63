package explain

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// Classes of errors, beside those of package collation, that ask for a cure of their own.
const (
	classInput   = "input"   // an input that does not fit the type of its handler
	classPanic   = "panic"   // of a handler
	classTimeout = "timeout" // of an attempt
	classWithin  = "within"  // of an activity
	classCycle   = "cycle"   // a loop went round too often
	classExpired = "expired" // what a child did is not known any more
)

// do adds commands that a person can give, and what has to be so first; "": nothing.
func (r *reason) do(first string, commands ...string) *reason {
	for _, c := range commands {
		r.remedies = append(r.remedies, view.Remedy{First: first, Command: c})
	}
	return r
}

// note adds what else is so, unless it is empty. What a person can do comes before it.
func (r *reason) note(text string) {
	if text != "" {
		r.notes = append(r.notes, text)
	}
}

// cure adds what goes on with a job that failed or was interrupted. Each was tried: what would fail the
// same way is not named.
func (e *explainer) cure(r *reason) {
	resume := "quipu resume " + word(e.v.Key)
	class := ""
	if e.v.State == journal.JobFailed && e.v.Error != nil && e.failedChild().IsZero() {
		class = e.v.Error.Class
	}
	if a := e.lastActivity(); a != nil && e.v.State == journal.JobInterrupted && e.Last.Kind != journal.KindInterrupt {
		var before []string // the flow of the job ended it, and does so again after the same results
		for _, t := range a.In {
			before = append(before, t.From.Name)
		}
		e.makeAgain(r, e.repeatable(before))
		e.anew(r)
		return
	}
	switch class {
	case collation.ReasonExpression:
		e.makeAgain(r, e.makers())
		e.anew(r)
	case classInput:
		e.anew(r)
		e.makeAgain(r, e.inputMakers())
		r.do("let the handler "+e.of()+"take this input", resume)
	case classExpired:
		e.anew(r)
	case classCycle:
		if a := e.lastActivity(); a != nil {
			r.do("let what goes round end the loop", resume+" --from "+word(a.Name))
		}
		e.anew(r)
	default:
		first := e.mend(class)
		e.childrenFirst(r)
		switch {
		case first == "" && len(r.remedies) > 0:
			first = "when that has completed"
		case e.v.State == journal.JobInterrupted:
			first = "to go on with it after all"
		}
		r.do(first, resume)
		if class == classTimeout || class == classWithin {
			r.note("a longer time helps new jobs: the job keeps version " + e.v.Flow.Version + " of its flow")
		}
	}
}

// mend says what has to be so before a resume does not fail again; "" for nothing.
func (e *explainer) mend(class string) string {
	if e.v.State != journal.JobFailed {
		return ""
	}
	if id := e.failedChild(); !id.IsZero() {
		switch j := latest(e.Find, id); {
		case j == nil && e.Find != nil: // a resume begins another
			return "mend what failed"
		case j != nil && j.State == journal.JobCompleted:
			return ""
		}
		return "when that has completed"
	}
	a := e.lastActivity()
	switch {
	case class == classPanic:
		return "mend the handler " + e.of() + "that panics"
	case class == classTimeout && a != nil && a.Timeout > 0:
		return fmt.Sprintf("let the handler %send within %s", e.of(), span(a.Timeout))
	case class == classWithin && a != nil && a.Topic != "" && a.Type == flow.TypeWorker && e.served(a.Topic):
		return fmt.Sprintf("let the handler of %s answer within %s", a.Topic, span(a.Within))
	case class == classWithin && a != nil && a.Topic != "" && a.Type == flow.TypeWorker:
		return fmt.Sprintf("run a worker of %s that answers within %s", a.Topic, span(a.Within))
	}
	return "mend what failed"
}

// of names the topic of the handler that failed the job, with a space behind it.
func (e *explainer) of() string {
	if a := e.lastActivity(); a != nil && a.Topic != "" {
		return "of " + a.Topic + " "
	}
	return ""
}

// lastActivity is the activity that closed the job; nil if it is not known.
func (e *explainer) lastActivity() *flow.Activity {
	if e.Last == nil || e.Flow == nil {
		return nil
	}
	a, _ := e.Flow.Activity(e.Last.Activity)
	return a
}

// makeAgain adds that activities run again whose results made a job fail.
func (e *explainer) makeAgain(r *reason, names []string) {
	for _, name := range names {
		r.do("if "+name+" gives another result now", "quipu resume "+word(e.v.Key)+" --from "+word(name))
	}
}

// anew adds that another version of the flow helps a new job: this one keeps its own.
func (e *explainer) anew(r *reason) {
	fits := "deploy a version of flow " + e.v.Flow.Name + " that fits"
	switch {
	case e.v.Parent != nil:
		r.remedies = append(r.remedies, view.Remedy{First: fits + ", and start again what started this job"})
	case e.Flow != nil && e.Flow.Identity() == flow.Strict:
		r.remedies = append(r.remedies, view.Remedy{First: fits + ", and start a job with another input"})
	default:
		key, done := AgainKey(e.v.Space, e.v.Key, e.Find)
		start := fmt.Sprintf("quipu start %s %s ", word(e.v.Flow.Name), word(key))
		r.do(fits, start+"--input-of "+word(e.v.Key))
		r.note("if the input was wrong: " + start + "--input with the right one")
		if done != "" {
			r.note("job " + done + " has completed since")
		}
	}
	r.note("the job keeps version " + e.v.Flow.Version + " of its flow")
}

// maxAgain bounds the keys that are looked up for a job that is to do what this one did not.
const maxAgain = 9

// AgainKey is a key for a job that does what the one with this key did not: one that no job has, as far as
// find can look it up. done is the last of the jobs with such a key, if it has completed.
func AgainKey(space, key string, find func(journal.JobID) *store.JobSummary) (again, done string) {
	again = key + "-again"
	for n := 2; n <= maxAgain; n++ {
		j := latest(find, collation.NewJobID(space, again, 1))
		if j == nil {
			break
		}
		if done = ""; j.State == journal.JobCompleted {
			done = j.Key
		}
		again = fmt.Sprintf("%s-again-%d", key, n)
	}
	return again, done
}

// childrenFirst adds the children that must complete before the job can be resumed: the one that failed
// it, and those that it still waited for.
func (e *explainer) childrenFirst(r *reason) {
	told := map[journal.JobID]bool{{}: true}
	ids := []journal.JobID{e.failedChild()}
	for _, s := range e.spots {
		ids = append(ids, s.inst.Child)
	}
	for _, id := range ids {
		if told[id] || len(told) > maxPauses {
			continue
		}
		told[id] = true
		name := id.String()
		if e.Find != nil {
			j := latest(e.Find, id)
			if j == nil || j.State == journal.JobCompleted {
				continue
			}
			name = j.Key
		}
		r.do("", "quipu why "+word(name))
	}
}

// expression finds the expression in a message, and mentioned what may be an activity in it.
var (
	expression = regexp.MustCompile(`(?s)^[\w :]+: \$\{ (.*?) \}: `)
	mentioned  = regexp.MustCompile(`(?:^|[^.\w])(\w+)\.`)
)

// makers are the activities that the failed expression names, as far as
// they ran and can be done again: a job that has completed is never started again.
func (e *explainer) makers() []string {
	found := expression.FindStringSubmatch(e.v.Error.Message)
	if found == nil || e.Flow == nil {
		return nil
	}
	var names []string
	for _, m := range mentioned.FindAllStringSubmatch(found[1], -1) {
		names = append(names, m[1])
	}
	return e.repeatable(names)
}

// inputMakers are the activities whose results are in the input of the one that failed the job.
func (e *explainer) inputMakers() []string {
	if a := e.lastActivity(); a != nil {
		return e.repeatable(a.InputNeeds())
	}
	return nil
}

// repeatable are those of the activities that ran and can be done again, each once.
func (e *explainer) repeatable(activities []string) (names []string) {
	for _, name := range activities {
		a, ok := e.Flow.Activity(name)
		ran := func(s *spot) bool { return s.act == a }
		if ok && a != e.Flow.Trigger() && a.Type != flow.TypeAwait && slices.ContainsFunc(e.spots, ran) &&
			!slices.Contains(names, a.Name) && len(names) < maxPauses {
			names = append(names, a.Name)
		}
	}
	return names
}
