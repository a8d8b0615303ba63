package explain

import (
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/journal"
)

// busy names the engines that have been deciding on one message of the job for long.
func (e *explainer) busy() {
	if e.v.State != journal.JobOpen {
		return
	}
	for i := range e.Wrong {
		f := &e.Wrong[i]
		if f.Kind != health.KindBusy || f.Job != e.v.ID {
			continue
		}
		var s *spot
		what := "a message of this job"
		if r := e.rows[f.Message]; r != nil && r.Job == e.v.ID {
			s = e.by[collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}]
			what = fmt.Sprintf("the %s message of %s", r.Kind, s.name())
		}
		e.add(s, KindBusy, fmt.Sprintf("an engine of process %s has been busy with %s for %s, and other work waits behind it; "+
			"a decision that takes too long is stopped, and after a few attempts the message waits for a person", strings.Join(f.Processes, ", "), what, span(f.For)))
	}
}
