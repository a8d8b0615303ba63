package explain

import (
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// nobody names what an open job needs and no living process provides: an engine, or a
// handler for the topic of a request. Each topic is named once.
func (e *explainer) nobody() {
	if e.Processes == nil || e.v.State != journal.JobOpen {
		return
	}
	engine := func(p store.ProcessView) bool { return p.Engine }
	if !slices.ContainsFunc(e.Processes, engine) {
		e.add(nil, KindNobody, "no engine is alive: the job does not go on before a process with the role engine runs").Commands = listProcesses
	}
	var told []string
	for _, s := range e.spots {
		for _, r := range s.requests {
			if !asks(r) || slices.Contains(told, r.Topic) || e.serves(r.Topic) {
				continue
			}
			told = append(told, r.Topic)
			e.add(s, KindNobody, s.name(), " needs a handler of ", r.Topic,
				", and no process that is alive has one (a worker in another language is not seen here)").Commands = listProcesses
		}
	}
}

var listProcesses = []string{"quipu processes"}

// asks says that the request waits for any worker.
func asks(r *collation.Row) bool {
	return r.Kind == journal.MessageRequest && r.Held == "" && r.Holder == "" && r.NextAt != collation.Never
}

func (e *explainer) serves(topic string) bool {
	return slices.ContainsFunc(e.Processes, func(p store.ProcessView) bool { return slices.Contains(p.Topics, topic) })
}
