package collation_test

import (
	"fmt"
	"maps"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

// world is one job with all its rows and its published messages: the smallest thing that can
// drive Step.
type world struct {
	state   *collation.State
	mode    collation.Mode
	names   map[journal.GUID]string
	queue   []collation.Message // engine messages, in the order of publication
	asked   []collation.Row     // requests, as a worker gets them
	entries []*journal.Entry
	plans   []*collation.Plan
	shelf   map[collation.InstanceKey]*collation.Instance // as they were when the transaction began
	blank   bool                                          // the next transaction begins with no instance
	// unfinished says that effects of the requests have a start and no end.
	unfinished bool
	outside
}

func newWorld(f *flow.Flow, key string, input []byte, mode collation.Mode) *world {
	return newWorldAt(f, key, input, mode, 0)
}

// newWorldAt is newWorld with a delayed start.
func newWorldAt(f *flow.Flow, key string, input []byte, mode collation.Mode, delay collation.Micros) *world {
	w := &world{mode: mode, names: map[journal.GUID]string{}, shelf: map[collation.InstanceKey]*collation.Instance{}}
	ref := collation.RefOf(f)
	now := collation.Micros(1_000_000_000)
	p := collation.Incept(collation.Inception{
		Space: "test", Key: key, Generation: 1, Flow: ref, Trigger: f.Trigger().Name,
		Input: input, Now: now, At: now + delay, Publish: true,
	}, mode)
	w.state = &collation.State{
		Job: collation.Job{
			ID: p.Job, Space: "test", Key: key, Generation: 1, Flow: ref, State: journal.JobOpen, Started: now,
		},
		Flow: f, Now: now,
		Instances: map[collation.InstanceKey]*collation.Instance{}, Receipts: map[journal.GUID]*collation.Receipt{},
		Rows: map[journal.GUID]*collation.Row{}, Waits: map[journal.GUID]*collation.Wait{},
		Results: map[collation.InstanceKey]*flow.Result{},
	}
	w.commit(p)
	return w
}

// commit applies a plan and publishes its rows.
func (w *world) commit(p *collation.Plan) {
	w.plans = append(w.plans, p)
	w.state.Apply(p)
	if p.Entry == nil {
		return
	}
	w.entries = append(w.entries, p.Entry)
	for i := range p.Insert {
		w.publish(&p.Insert[i])
	}
	for i := range p.Update {
		if r := &p.Update[i]; r.PublishedAt == w.state.Now && r.Kind == journal.MessageRequest {
			w.asked = append(w.asked, *r) // a held element
		}
	}
	w.registered(p)
}

func (w *world) publish(r *collation.Row) {
	w.names[r.GUID] = fmt.Sprintf("%s %s%s", r.Kind, r.Activity, r.DAD)
	if r.Job != w.state.Job.ID {
		w.sent = append(w.sent, *r)
		return
	}
	if r.Publication == 0 {
		return // a timer, or a held element
	}
	if r.Kind == journal.MessageRequest {
		w.asked = append(w.asked, *r)
		return
	}
	w.queue = append(w.queue, *journaltest.Message(r))
}

// step decides one message, and loads what it asks for.
func (w *world) step(m *collation.Message) *collation.Plan {
	for {
		x, err := journaltest.Carrying(w.state, m)
		if err != nil {
			panic(err) // a row was written here
		}
		p, need := collation.Step(w.state, &x, w.mode)
		if need == nil {
			m.Response = x.Response // its next steps do not read the row again
			return p
		}
		w.load(need)
	}
}

func (w *world) load(n *collation.Need) {
	for _, k := range n.Instances {
		w.state.Instances[k] = w.shelf[k]
	}
	if n.AllRows {
		w.state.AllRows = true
		maps.Copy(w.state.Instances, w.shelf)
	}
	for _, k := range n.Rows {
		known(w.state.Rows, k.GUID)
	}
	for _, g := range n.Waits {
		known(w.state.Waits, g)
	}
	for _, request := range n.Effects {
		w.state.Unfinished = map[journal.GUID]bool{request: w.unfinished}
	}
	for _, k := range n.Results {
		w.state.Results[k] = w.stored(k)
	}
	w.loadMore(n)
}

// known says of what is not loaded that there is none.
func known[K comparable, V any](of map[K]*V, k K) {
	if of[k] == nil {
		of[k] = nil
	}
}

// stored reads a result like the store: through the instance's entry, as it was when the transaction
// began.
func (w *world) stored(k collation.InstanceKey) *flow.Result {
	i := w.shelf[k]
	if i == nil || i.ResultSeq == 0 {
		return nil
	}
	return collation.ResultAt(w.entries[i.ResultSeq-1], k)
}

// handle carries a message to its end, like an engine.
func (w *world) handle(m collation.Message) []*collation.Plan {
	var plans []*collation.Plan
	w.forget()
	for {
		p := w.step(&m)
		plans = append(plans, p)
		w.commit(p)
		if p.Done {
			return plans
		}
		m.Entered = true
		w.forget()
	}
}

// shelve stores the instances.
func (w *world) shelve() { maps.Copy(w.shelf, w.state.Instances) }

// settle handles the engine's messages until none is left.
func (w *world) settle() {
	for len(w.queue) > 0 {
		m := w.queue[0]
		w.queue = w.queue[1:]
		w.handle(m)
	}
}

// forget drops what only a transaction knows; the next one reads it again. Every other time that is
// all instances, whatever the first load was to bring: then one for which a decision does not ask
// is missing (J2).
func (w *world) forget() {
	if w.shelve(); w.blank {
		clear(w.state.Instances)
		w.state.AllRows = false
	}
	w.blank = !w.blank
	clear(w.state.Results)
	clear(w.state.Latest)
	w.state.Close = nil
	for _, r := range w.state.Receipts {
		if r != nil && !r.Ledger.Complete() && r.Seq > 0 {
			r.Response = w.entries[r.Seq-1].Response
		}
	}
}

// due finds the request that waits for an answer of the activity.
func (w *world) due(activity string, element int) *collation.Row {
	var first *collation.Row
	for _, r := range w.state.Rows {
		if r == nil || r.Activity != activity || r.Topic == "" || r.Element != element || r.Kind == journal.MessageCycle {
			continue
		}
		if first == nil || r.Origin < first.Origin {
			first = r
		}
	}
	return first
}

// describe prints a plan for a person.
func (w *world) describe(p *collation.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", p.Outcome)
	if p.Done {
		b.WriteString(", done")
	}
	b.WriteByte('\n')
	for _, x := range p.Signals {
		fmt.Fprintf(&b, "  recorded %s\n", x.State)
	}
	e := p.Entry
	if e == nil {
		for _, g := range p.Delete {
			fmt.Fprintf(&b, "  - %s\n", w.names[g])
		}
		return b.String()
	}
	fmt.Fprintf(&b, "  entry %d %s %v\n", e.Seq, e.Kind, e.Marks)
	if e.Writer != "" || e.Build != "" {
		fmt.Fprintf(&b, "  by %s, build %s\n", e.Writer, e.Build)
	}
	for _, l := range p.Ledgers {
		if l.Before != l.After {
			fmt.Fprintf(&b, "  %s%s %s → %s\n", l.Key.Activity, l.Key.DAD, l.Before, l.After)
		}
	}
	if e.Receipts() {
		before, after := "new", "gone"
		if r := p.Receipt; r != nil {
			if !r.New {
				before = r.Before.String()
			}
			if !r.Gone {
				after = string(r.Verdict)
			}
		}
		fmt.Fprintf(&b, "  receipt %s → %s %s\n", before, collation.GUIDLedger(e.Receipt), after)
	}
	if s := e.Semaphore; s != nil {
		fmt.Fprintf(&b, "  semaphore %d → %d\n", p.Semaphore.Before, *s)
	}
	describeResult(&b, e)
	describeFunction(&b, p)
	w.describeRows(&b, p)
	if c := e.Close; c != nil {
		fmt.Fprintf(&b, "  close %s %d output %s error %v\n", c.State, c.Code, c.Output, failureText(c.Error))
	}
	if e.Trouble != nil {
		fmt.Fprintf(&b, "  trouble %s: %s\n", e.Trouble.Reason, e.Trouble.Message)
	}
	return b.String()
}

func failureText(f *journal.Failure) string {
	if f == nil {
		return "none"
	}
	return f.Class + ": " + f.Message
}

func (w *world) describeRows(b *strings.Builder, p *collation.Plan) {
	e := p.Entry
	for _, d := range e.Dispatched {
		note := ""
		if d.Folded != 0 {
			note = " (folded)"
		}
		if d.At != 0 {
			note += fmt.Sprintf(" at +%dms", (collation.Micros(d.At)-w.state.Now)/1000)
		}
		if d.Job != (journal.JobID{}) {
			note += " of another job"
		}
		fmt.Fprintf(b, "  + %s %s%s %s%s\n", d.Kind, d.Activity, d.DAD, d.Topic, note)
	}
	for _, u := range e.Updated {
		next := "never"
		if u.NextAt != 0 {
			next = fmt.Sprintf("+%dms", (collation.Micros(u.NextAt)-w.state.Now)/1000)
		}
		fmt.Fprintf(b, "  ~ %s turn %d attempt %d next %s held %q\n", u.Kind, u.Turn, u.Attempt, next, u.Held)
	}
	if x := e.Bound; x != nil {
		fmt.Fprintf(b, "  binds %d entries about effects of %s\n", x.Head.Seq, w.names[x.Chain])
	}
	if !e.Ended.IsZero() {
		fmt.Fprintf(b, "  - %s\n", w.names[e.Ended])
	}
	for _, g := range e.Cancelled {
		fmt.Fprintf(b, "  cancelled %s\n", w.names[g])
	}
	for _, g := range e.CancelledByClose {
		fmt.Fprintf(b, "  cancelled by close %s\n", w.names[g])
	}
	for _, d := range e.Undelivered {
		fmt.Fprintf(b, "  undelivered signal %d of %s%s, ends its wait: %t\n", d.Number, d.Activity, d.DAD, d.Ends)
	}
	if e.Abandoned > 0 {
		fmt.Fprintf(b, "  abandoned %d\n", e.Abandoned)
	}
	for _, d := range p.Dead {
		fmt.Fprintf(b, "  dead letter %s: %s\n", d.Reason, d.Message)
	}
	for _, g := range p.Resolve {
		fmt.Fprintf(b, "  ends the dead letters of %s\n", w.names[g])
	}
}
