package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// space names what is wrong with the space and keeps every open job from going on.
func (e *explainer) space() {
	if e.v.State != journal.JobOpen {
		return
	}
	for i := range e.Wrong {
		f := &e.Wrong[i]
		if f.Queue != "" || !f.Stops && f.Kind != health.KindSilent {
			continue
		}
		by, long := "", ""
		if len(f.Processes) > 0 && f.Kind != health.KindSilent && f.Kind != health.KindEngine {
			by = " (" + named(f.Processes) + ")"
		}
		if f.For > 0 {
			long = ", for " + span(f.For)
		}
		e.add(nil, KindSpace, f.Text, by, long).do("", f.Command)
	}
}

// maxNamed is how many processes a sentence names.
const maxNamed = 3

// named names the processes that tell something.
func named(processes []string) string {
	if more := len(processes) - maxNamed; more > 0 {
		return fmt.Sprintf("as %s and %d more say", strings.Join(processes[:maxNamed], ", "), more)
	}
	if len(processes) == 1 {
		return "as " + processes[0] + " says"
	}
	return "as " + strings.Join(processes, ", ") + " say"
}

// nobody names what an open job needs and nobody provides: a handler for the topic of a request. Each
// topic is named once.
func (e *explainer) nobody() {
	if e.Processes == nil || e.v.State != journal.JobOpen {
		return
	}
	var told []string
	for _, s := range e.spots {
		for _, r := range s.requests {
			if !asks(r) || slices.Contains(told, r.Topic) || e.serves(r.Topic) {
				continue
			}
			elsewhere, seen := e.elsewhere(r.Topic)
			if elsewhere {
				continue
			}
			told = append(told, r.Topic)
			x := e.add(s, KindNobody, s.name(), " needs a handler of ", r.Topic, ", and no process that is alive has one").
				do("run a worker that has one; these are served", "quipu top --once")
			if r.Attempt == 1 && r.Lost() == 0 { // otherwise somebody had one
				x.do("if the topic is a slip, deploy a version of the flow without it, and end this job", e.interrupt())
			}
			if !seen {
				x.note("a worker in another language is not seen here")
			}
		}
	}
}

// asks says that the request waits for any worker.
func asks(r *collation.Row) bool {
	return r.Kind == journal.MessageRequest && r.Held == "" && r.Holder == "" && r.NextAt != collation.Never
}

func (e *explainer) elsewhere(topic string) (is, seen bool) {
	if e.Elsewhere == nil {
		return false, false
	}
	return e.Elsewhere(topic)
}

// outside says of requests that were sent who may have them where no living process does: NATS still holds
// for some seconds what a process that was killed has asked it for.
func (e *explainer) outside(topic string) string {
	if e.Processes == nil || e.serves(topic) || !e.served(topic) {
		return ""
	}
	return "no process that is alive has a handler of " + topic +
		": a worker in another language takes its requests, or one that has just ended did"
}

// heard says what becomes of a request if the process that has it has ended: once that one has missed a
// renewal of its session, since when nothing was heard of it.
func (e *explainer) heard(holder string) string {
	name, _, _ := strings.Cut(holder, "#") // of a process, with a random part and the number of the run
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		name = name[:at]
	}
	seen := collation.Never
	for i := range e.Processes {
		p := &e.Processes[i]
		switch {
		case p.Name != name:
		case e.Now-p.Renewed <= collation.Micros(p.Lease.Microseconds())/2:
			seen = e.Now
		default:
			seen = max(seen, p.Renewed)
		}
	}
	switch {
	case e.Processes == nil || seen == e.Now:
		return "another process gets it when that one is no longer heard of"
	case seen == collation.Never:
		return "that process is not heard of any more, and another one gets it"
	}
	return fmt.Sprintf("that process was last heard of %s, and another one gets it if it has ended", e.ago(seen))
}

// served says that somebody takes the requests of a topic, as far as that can be seen.
func (e *explainer) served(topic string) bool {
	is, _ := e.elsewhere(topic)
	return is || e.serves(topic)
}

func (e *explainer) serves(topic string) bool {
	return slices.ContainsFunc(e.Processes, func(p store.ProcessView) bool { return slices.Contains(p.Topics, topic) })
}
