package replaytest

import (
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// Choose returns a number from 0 to n − 1; the source of all that is random.
type Choose func(n int) int

// Options say which journal to make.
type Options struct {
	Key        string // default "job"
	Mode       collation.Mode
	Choose     Choose // default: always 0
	Activities int    // workers in the tree; their order and parents are chosen
	// Chain makes the tree a single path, and every worker succeed at once
	// unless chosen otherwise.
	Chain bool
	// Trouble lets workers fail, be parked, and messages come twice or alone.
	Trouble bool
	// Effects lets workers record effects.
	Effects bool
	// Steps stops after that many plans; 0 goes on until nothing is left to do.
	Steps int
	// Respond, if set, gives the response instead of choice; nil: choose.
	Respond func(activity string, turn int) *journal.Response
}

// Honest makes the journal of one job as the protocol writes it.
func Honest(o Options) *Journal {
	if o.Key == "" {
		o.Key = "job"
	}
	if o.Choose == nil {
		o.Choose = func(int) int { return 0 }
	}
	w := newWorld(o)
	for n := 0; len(w.inbox) > 0 && (o.Steps == 0 || n < o.Steps); n++ {
		w.turn(w.o.Choose(len(w.inbox)))
	}
	return w.journal()
}

// Tree builds the flow of Honest.
func Tree(o Options) *flow.Flow {
	b := flow.New("tree").Version("1").Trigger("t")
	names := []string{"t"}
	for i := range o.Activities {
		name := fmt.Sprintf("w%d", i+1)
		retry := flow.Retry{Attempts: 1 + o.Choose(3), Backoff: 1e9, Factor: 2, Max: 60e9}
		if o.Trouble && o.Choose(8) == 0 {
			b.Worker(name, "work", retry, flow.Input(map[string]string{"x": "${ t.output.missing }"}))
		} else {
			b.Worker(name, "work", retry)
		}
		parent := names[o.Choose(len(names))]
		if o.Chain {
			parent = names[len(names)-1]
		}
		if o.Trouble && o.Choose(4) == 0 && parent != "t" {
			b.Transition(parent, name, flow.OnError())
		} else {
			b.Transition(parent, name)
		}
		names = append(names, name)
	}
	f, err := b.Build()
	if err != nil {
		panic(err) // the tree is valid by construction
	}
	return f
}

// world is one job with all its rows, and the messages on their way to it.
type world struct {
	o       Options
	state   *collation.State
	inbox   []collation.Message
	entries []*journal.Entry
	main    []journal.Record
	order   []journal.GUID // chains of effects
	chains  map[journal.GUID][]journal.Record
	effects []replay.StoredEffect
	late    []lateEffect
}

type lateEffect struct {
	request journal.GUID
	effect  journal.Effect
	at      int
}

func newWorld(o Options) *world {
	f := Tree(o)
	w := &world{o: o, chains: make(map[journal.GUID][]journal.Record)}
	ref := journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
	now := collation.Micros(1_700_000_000_000_000)
	p := collation.Incept(collation.Inception{
		Space: "test", Key: o.Key, Generation: 1, Flow: ref, Trigger: "t", Input: []byte(`{"n":1}`), Now: now, Publish: true,
	}, o.Mode)
	w.state = &collation.State{
		Job: collation.Job{
			ID: p.Job, Space: "test", Key: o.Key, Generation: 1, Flow: ref, State: journal.JobOpen, Started: now,
		},
		Flow: f, Now: now, AllRows: true,
		Instances: map[collation.InstanceKey]*collation.Instance{},
		Receipts:  map[journal.GUID]*collation.Receipt{},
		Rows:      map[journal.GUID]*collation.Row{},
		Results:   map[collation.InstanceKey]*flow.Result{},
	}
	w.commit(p)
	return w
}

// turn handles one message, once, or loses, repeats or delays it.
func (w *world) turn(i int) {
	m := w.inbox[i]
	w.inbox = append(w.inbox[:i], w.inbox[i+1:]...)
	w.state.Now += 1000
	w.forget()
	if w.o.Trouble && w.o.Choose(12) == 0 {
		twin := m
		twin.Entered = false
		w.inbox = append(w.inbox, twin)
	}
	m.Alone = w.o.Trouble && w.o.Choose(6) == 0
	p := w.step(&m)
	w.commit(p)
	if !p.Done {
		m.Entered = true
		w.inbox = append(w.inbox, m)
	}
	w.finishLate()
}

func (w *world) step(m *collation.Message) *collation.Plan {
	for {
		p, need := collation.Step(w.state, m, w.o.Mode)
		if need == nil {
			return p
		}
		for _, k := range need.Instances {
			w.state.Instances[k] = nil
		}
		for _, request := range need.Effects {
			w.state.Unfinished = map[journal.GUID]bool{request: true}
		}
		for _, k := range need.Results {
			w.state.Results[k] = nil
			if i := w.state.Instances[k]; i != nil && i.ResultSeq > 0 {
				w.state.Results[k] = collation.ResultOf(w.entries[i.ResultSeq-1])
			}
		}
	}
}

// forget drops what only a transaction knows.
func (w *world) forget() {
	clear(w.state.Results)
	for _, r := range w.state.Receipts {
		if r != nil && !r.Ledger.Complete() && r.Seq > 0 {
			r.Response = w.entries[r.Seq-1].Response
		}
	}
}

// commit chains the plan's entry, applies it, and puts out its messages.
func (w *world) commit(p *collation.Plan) {
	if p.Entry == nil {
		return
	}
	w.entries = append(w.entries, p.Entry)
	w.main = append(w.main, w.chained(w.main, p.Entry))
	w.state.Apply(p)
	w.state.Job.Head.Hash = w.main[len(w.main)-1].Hash
	for i := range p.Insert {
		w.publish(&p.Insert[i])
	}
	for i := range p.Update {
		if row := &p.Update[i]; row.Kind == journal.MessageRequest && w.state.Rows[row.GUID] != nil {
			w.again(row)
		}
	}
}

// again asks for a request's next turn; one that is held is retried by an
// operator first.
func (w *world) again(row *collation.Row) {
	if row.Held != "" {
		w.operate(*row)
		return
	}
	w.publish(row)
}

// operate is an operator's retry, as a store writes it (E10).
func (w *world) operate(row collation.Row) {
	row.Held, row.Dead = "", false
	j := &w.state.Job
	e := &journal.Entry{
		Space: j.Space, Job: j.ID, Generation: j.Generation, Seq: j.Head.Seq + 1, Kind: journal.KindOperator,
		GUID: collation.OperatorGUID(row.GUID, "retry", row.Turn), Activity: row.Activity, DAD: string(row.DAD),
		Operator: &journal.Operator{Action: "retry", Who: "ann", Reason: "looked into it"},
		Updated:  []journal.Updated{{GUID: row.GUID, Kind: row.Kind, Turn: row.Turn, Try: row.Try, NextAt: int64(w.state.Now)}},
		Time:     int64(w.state.Now),
	}
	w.commit(&collation.Plan{
		Job: j.ID, Entry: e, Update: []collation.Row{row},
		Semaphore: journal.SemaphoreMove{Before: j.Semaphore, After: j.Semaphore},
	})
}

func (w *world) chained(chain []journal.Record, e *journal.Entry) journal.Record {
	previous := journal.Genesis(e.Space, e.Job, e.Generation, e.Chain)
	if n := len(chain); n > 0 {
		previous = chain[n-1].Hash
	}
	body := journal.Encode(e)
	return journal.Record{Job: e.Job, Chain: e.Chain, Seq: e.Seq, Body: body, Hash: journal.Next(previous, body)}
}
