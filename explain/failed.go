package explain

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// maxGenerations bounds the generations of a child that are looked up.
const maxGenerations = 64

// failedChild is the child whose failure closed the job; zero if something else did.
func (e *explainer) failedChild() journal.JobID {
	if l := e.Last; l != nil && l.Response != nil && e.v.State == journal.JobFailed {
		return l.Response.Child
	}
	return journal.JobID{}
}

// latest is the last generation of a job's key that exists; nil if the job is not known.
func (e *explainer) latest(id journal.JobID) *store.JobSummary {
	if e.Find == nil {
		return nil
	}
	j := e.Find(id)
	for range maxGenerations {
		if j == nil {
			return nil
		}
		next := e.Find(collation.NewJobID(j.Space, j.Key, j.Generation+1))
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
		if j := e.Find(id); j != nil && j.State == journal.JobInterrupted {
			how = "was interrupted"
		}
	}
	text := fmt.Sprintf(", whose child (job %s) %s", e.jobName(id), how)
	if j := e.latest(id); j != nil && j.Generation > 1 {
		text += fmt.Sprintf(" and was resumed, and is %s now", j.State)
	}
	return text
}

// childrenFirst are the commands for children that must complete before the job can be
// resumed: the one that failed it, and those that it still waited for.
func (e *explainer) childrenFirst() (commands []string) {
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
		name, resumes := id.String(), true
		if e.Find != nil {
			j := e.latest(id)
			if j == nil || j.State == journal.JobCompleted {
				continue
			}
			name, resumes = j.Key, j.State == journal.JobFailed || j.State == journal.JobInterrupted
		}
		commands = append(commands, "quipu why "+word(name))
		if resumes {
			commands = append(commands, "quipu resume "+word(name))
		}
	}
	return commands
}
