package explain

import (
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// maxOutput bounds the output that a sentence shows, in bytes.
const maxOutput = 200

// ended explains how a job ended; false if it has not.
func (e *explainer) ended() bool {
	switch e.v.State {
	case journal.JobQuarantined:
		e.quarantined()
	case journal.JobExpired:
		e.add(nil, KindExpired, fmt.Sprintf("the job (generation %d) ended at %s and was removed after its time: only its key, its generation and its head are kept",
			e.v.Generation, e.clock(e.v.Closed)))
	case journal.JobCompleted, journal.JobFailed, journal.JobInterrupted:
		if !e.v.Ended {
			e.add(nil, KindTasks, "its completion tasks (output, answer to its parent, expiry) are not done: the message that closed it comes again and does them")
		}
		e.closed()
	default:
		return false
	}
	return true
}

func (e *explainer) quarantined() {
	why := "its stored state is against the laws"
	if l := e.Last; l != nil && l.Trouble != nil {
		why = fmt.Sprintf("%s (entry %d)", l.Trouble.Message, l.Seq)
	}
	e.add(nil, KindQuarantined, "the job is quarantined: ", why, "; its messages are taken and nothing of it goes on").
		do("", "quipu fsck "+e.v.ID.String(), "journal-verify --job "+e.v.ID.String())
}

// closed says how the job ended, by whom, and with what.
func (e *explainer) closed() {
	text := ""
	if e.v.State != journal.JobCompleted {
		text = e.failed()
	} else {
		text = fmt.Sprintf("the job completed with code %d after %s%s", e.v.Code, span(micros(e.v.Closed-e.v.Started)), e.closer())
		if len(e.v.Output) > 0 {
			text += "; its output is " + cut(string(e.v.Output), maxOutput)
		}
	}
	r := e.add(nil, KindClosed, text)
	if e.v.Ended && e.v.State != journal.JobCompleted && e.v.Next.IsZero() && e.v.Flow.Name != flow.UndoName {
		e.cure(r)
	}
	r.note(e.untaken())
	if l := e.Last; l != nil && l.Abandoned > 0 {
		r.note(were(l.Abandoned, "open obligation") + " abandoned")
	}
	r.note(e.compensated())
	if e.v.ExpiresAt != collation.Never {
		r.note("it is removed " + e.in(e.v.ExpiresAt))
	}
	if !e.v.Next.IsZero() {
		r.note("job " + e.v.Next.String() + " of the same key goes on with it")
	}
}

// closer names the message that closed the job.
func (e *explainer) closer() string {
	switch l := e.Last; {
	case l == nil:
		return ""
	case l.Kind == journal.KindInterrupt:
		return ", by an interrupt that was sent to it"
	case l.Activity == "":
		return ""
	default:
		return ", by " + e.named(l.Activity, collation.DAD(l.DAD))
	}
}

func were(n int, one string) string {
	if n == 1 {
		return "1 " + one + " was"
	}
	return counted(n, one) + " were"
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
