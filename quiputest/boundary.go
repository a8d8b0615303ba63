package quiputest

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/wire"
	"github.com/quipu-journal/quipu/workers"
)

// point is where in the run of a handler a process may die.
type point string

// The points, in the order of a run. %s is the effect, the kind of response, or the
// receiver.
const (
	pointDelivered point = "when its request came, before it ran"
	pointStarting  point = "before the start of effect %s was recorded"
	pointStarted   point = "after the start of effect %s was recorded, before its body ran"
	pointUndoing   point = "before %s was registered"
	pointUndone    point = "after %s was registered"
	pointApplied   point = "after %s"
	pointEnded     point = "after the body of effect %s ran, before that was recorded"
	pointRecorded  point = "after the end of effect %s was recorded"
	pointAnswering point = "before its response (%s) was sent"
	pointAnswered  point = "after its response (%s) was sent, before its request was acked"
)

// boundary is a place between two steps of which one is durable without the other.
type boundary struct {
	place
	id       journal.GUID // the request, in this run
	position string       // of the effect, in a durable function
	stands   string       // what the durable function waits for, or woke from
	chance   bool         // runs may not come by, though they take the same way
}

// place names a boundary in every run of a scenario. Ids do not: those of children
// follow from what came last.
type place struct {
	request string
	turn    int // of deliveries, and of responses that end nothing
	point   point
	what    string // the effect's name, the kind of response, or the receiver
	nth     int    // of those that are called the same in a request
}

// at is another boundary of the same effect or response.
func (b boundary) at(p point) boundary {
	b.point = p
	return b
}

func (b *boundary) text() string {
	turn := ""
	if b.turn > 1 {
		turn = fmt.Sprintf(", turn %d", b.turn)
	}
	nth := ""
	if b.nth > 0 {
		nth = fmt.Sprintf(" (number %d of that name)", b.nth+1)
	}
	return b.request + turn + ": " + strings.Replace(string(b.point), "%s", b.what, 1) + nth
}

// requested notes that the request of a delivery has come, and gives the boundary.
func (c *crash) requested(w *World, d transport.Delivery) (b boundary, ok bool) {
	q, err := wire.Decode[wire.Request](d.Message().Body)
	if err != nil || d.Err() != nil {
		return b, false
	}
	job, err := journal.ParseJobID(q.Job)
	if err != nil {
		return b, false
	}
	id := journal.GUID(d.Message().Header.GUID)
	c.mu.Lock()
	_, known := c.requests[id]
	c.mu.Unlock()
	if !known {
		name := fmt.Sprintf("job %q, %s", w.nameOf(job), instance(q.Activity, q.DAD, q.Element))
		c.mu.Lock()
		c.requests[id] = name
		c.mu.Unlock()
	}
	b = c.boundary(id, q.Turn, pointDelivered, "", "")
	c.mu.Lock()
	defer c.mu.Unlock()
	b.stands = c.stands[id]
	return b, true
}

// instance is where a request stands in its job.
func instance(activity, dad string, element int) string {
	if element > 0 {
		return fmt.Sprintf("%s at %s[%d]", activity, dad, element)
	}
	return activity + " at " + dad
}

// boundary is one of a request that has come. What is called the same there is told
// apart by key.
func (c *crash) boundary(request journal.GUID, turn int, p point, what, key string) boundary {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := boundary{id: request, place: place{request: c.requests[request], turn: turn, point: p, what: what}}
	group := b.request + "\x00" + what
	if c.keys[group] == nil {
		c.keys[group] = map[string]int{}
	}
	nth, known := c.keys[group][key]
	if !known {
		nth = len(c.keys[group])
		c.keys[group][key] = nth
	}
	b.nth = nth
	return b
}

// answering is the boundary at which a worker sends its response.
func (c *crash) answering(msgs []transport.Message) (b boundary, ok bool) {
	if len(msgs) != 1 {
		return b, false
	}
	h, err := wire.Decode[wire.Hint](msgs[0].Body)
	if err != nil || h.Response == nil {
		return b, false
	}
	request, err := journal.ParseGUID(h.Row)
	if err != nil {
		return b, false
	}
	turn := h.Turn
	if h.Response.Kind == journal.ResponseTerminal {
		turn = 0 // there is one
	}
	b = c.boundary(request, turn, pointAnswering, string(h.Response.Kind), "")
	if b.stands = standing(h.Response); b.stands != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stands[request] = b.stands
	}
	return b, true
}

// standing is what a function waits for that has suspended, "" for another response.
func standing(r *wire.Response) string {
	var b strings.Builder
	for i := range r.Pauses {
		fmt.Fprintf(&b, "%s %q ", r.Pauses[i].Kind, r.Pauses[i].Name)
	}
	return b.String()
}

// within is a boundary of an effect.
func (c *crash) within(l *store.Lease, e *journal.Effect, p point) boundary {
	what := fmt.Sprintf("%q", e.Name)
	if e.Position != "" {
		what += " (call " + e.Position + ")"
	}
	b := c.boundary(l.Request, 0, p, what, e.Key.String())
	b.position = e.Position
	return b
}

// applied is the boundary after a receiver was asked for something by a handler.
func (c *crash) applied(ctx context.Context, receiver, key string) (b boundary, ok bool) {
	call := workers.Info(ctx)
	request, err := journal.ParseGUID(call.Request)
	if err != nil {
		return b, false
	}
	return c.boundary(request, 0, pointApplied, "receiver "+receiver+" was asked", key), true
}

// nameOf is how a job is called in every run: by its key, unless that is derived
// from its id, as a child's is to which no key was given.
func (w *World) nameOf(id journal.JobID) string {
	v, err := w.tables.Job(context.Background(), id)
	if err != nil {
		return id.String()
	}
	given, derived := strings.CutSuffix(v.Key, "-"+hex.EncodeToString(id[:6]))
	if v.Parent == nil || !derived {
		return v.Key
	}
	parent, err := w.tables.Job(context.Background(), v.Parent.Job)
	if err != nil {
		return v.Key
	}
	name := w.nameOf(parent.ID) + strings.TrimPrefix(given, parent.Key) + " at " + v.Parent.DAD
	if v.Parent.Turn > 1 {
		name += fmt.Sprintf(" turn %d", v.Parent.Turn)
	}
	if p := w.pauseOf(v); p.Name != "" {
		name += " " + p.Name
	}
	return name
}

// pauseOf is the pause of a durable function that the job was started for, zero for
// another job.
func (w *World) pauseOf(v *store.JobView) journal.PauseRef {
	for _, e := range w.entries(v.Parent.Job) {
		if e.Response == nil || e.Response.Kind != journal.ResponseSuspended {
			continue
		}
		for i := range e.Response.Pauses {
			p := &e.Response.Pauses[i].PauseRef
			if p.Kind == journal.PauseChild && collation.NamedChild(v.Parent.Leg1, *p) == v.ID {
				return *p
			}
		}
	}
	return journal.PauseRef{}
}

// shortened keeps a key readable.
func shortened(key string) string {
	if len(key) > 24 {
		return fmt.Sprintf("%.12q…", key)
	}
	return fmt.Sprintf("%q", key)
}
