package quiputest

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// point is a point in the run of a handler at which its process may die.
type point string

// The points, in the order of a run. %s is the effect, the kind of response, or the receiver.
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

// boundary is a place between two steps of which only the first one has happened.
type boundary struct {
	place
	id       journal.GUID // of the request, in this run
	position string       // of the effect, in a durable function
	stands   string       // what the durable function waits for, or woke from
	chance   bool         // a run that takes the same way may still miss it
}

// place identifies a boundary in every run of a scenario. Ids cannot: those of children depend on
// the order of events.
type place struct {
	request string
	turn    int // of deliveries, and of responses that are not terminal
	point   point
	what    string // the effect's name, the kind of response, or the receiver
	nth     int    // among those with the same name in a request
}

// at returns another boundary of the same effect or response.
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

// requested records that the request of a delivery has come, and returns the boundary.
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

// instance names the place of a request in its job.
func instance(activity, dad string, element int) string {
	if element > 0 {
		return fmt.Sprintf("%s at %s[%d]", activity, dad, element)
	}
	return activity + " at " + dad
}

// boundary makes a boundary of a request that has come. key tells boundaries of the same name
// apart.
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

// answering returns the boundary at which a worker sends its response.
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
		turn = 0 // there is only one
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

// within returns a boundary of an effect.
func (c *crash) within(l *store.Lease, e *journal.Effect, p point) boundary {
	what := fmt.Sprintf("%q", e.Name)
	if e.Position != "" {
		what += " (call " + e.Position + ")"
	}
	b := c.boundary(l.Request, 0, p, what, e.Key.String())
	b.position = e.Position
	return b
}

// applied returns the boundary after a handler's request to a receiver.
func (c *crash) applied(ctx context.Context, receiver, key string) (b boundary, ok bool) {
	call := workers.Info(ctx)
	request, err := journal.ParseGUID(call.Request)
	if err != nil {
		return b, false
	}
	return c.boundary(request, 0, pointApplied, "receiver "+receiver+" was asked", key), true
}

// nameOf returns the name of a job in every run. It is the key, unless the key follows from the
// job's id, as for a child without a key of its own.
func (w *World) nameOf(id journal.JobID) string {
	v, err := w.store.Job(context.Background(), id)
	if err != nil {
		return id.String()
	}
	given, derived := strings.CutSuffix(v.Key, "-"+hex.EncodeToString(id[:6]))
	if v.Parent == nil || !derived {
		return v.Key
	}
	parent, err := w.store.Job(context.Background(), v.Parent.Job)
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

// pauseOf returns the pause of a durable function that started the job, zero for any other job.
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

// shortened cuts a key to a readable length.
func shortened(key string) string {
	if len(key) > 24 {
		return fmt.Sprintf("%.12q…", key)
	}
	return fmt.Sprintf("%q", key)
}
