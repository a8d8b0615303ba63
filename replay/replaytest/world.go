package replaytest

import (
	"errors"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// world is one job with all its rows.
type world struct {
	u       *universe
	state   *collation.State
	entries []*journal.Entry
	main    []journal.Record
	order   []journal.GUID // chains of effects
	chains  map[journal.GUID][]journal.Record
	effects []replay.StoredEffect
	late    []lateEffect
	acted   map[journal.GUID]int // what an operator did, by row
	asked   map[journal.GUID]int // the turn in which a request went out last
	woken   map[journal.GUID]collation.ResolvedWait
	// functions are those of requests that suspend.
	functions map[journal.GUID]*function
	handled   map[journal.GUID]bool // messages that left a receipt
}

type lateEffect struct {
	request journal.GUID
	effect  journal.Effect
	at      int
}

func newWorld(u *universe, f *flow.Flow, id journal.JobID, in collation.Inception) *world {
	return &world{
		u: u, chains: make(map[journal.GUID][]journal.Record), acted: make(map[journal.GUID]int),
		asked: make(map[journal.GUID]int), woken: make(map[journal.GUID]collation.ResolvedWait),
		functions: make(map[journal.GUID]*function), handled: make(map[journal.GUID]bool),
		state: &collation.State{
			Job: collation.Job{
				ID: id, Space: in.Space, Key: in.Key, Generation: in.Generation, Flow: in.Flow,
				State: journal.JobOpen, Started: in.Now, Parent: in.Parent, Trace: in.Trace,
			},
			Flow: f, Now: in.Now, AllRows: true,
			Instances: map[collation.InstanceKey]*collation.Instance{},
			Receipts:  map[journal.GUID]*collation.Receipt{},
			Rows:      map[journal.GUID]*collation.Row{},
			Waits:     map[journal.GUID]*collation.Wait{},
			Results:   map[collation.InstanceKey]*flow.Result{},
		},
	}
}

// turn handles a message, once, or again.
func (w *world) turn(m collation.Message) {
	o := &w.u.o
	w.state.Now = w.u.now
	w.forget()
	if o.Trouble && o.Choose(12) == 0 {
		twin := m
		twin.Entered = false
		w.u.inbox = append(w.u.inbox, letter{m: twin})
	}
	m.Alone = o.Trouble && o.Choose(6) == 0
	p := w.step(&m)
	if o.Trouble && !m.Entered && o.Choose(50) == 0 {
		p = collation.Hold(w.state, &m, o.Mode, errRefused)
	}
	w.commit(p)
	if !p.Done || p.Outcome == collation.Later {
		m.Entered = p.Outcome != collation.Later
		w.u.inbox = append(w.u.inbox, letter{m: m})
	}
	w.finishLate()
}

func (w *world) step(m *collation.Message) *collation.Plan {
	for {
		p, need := collation.Step(w.state, m, w.u.o.Mode)
		if need == nil {
			return p
		}
		w.load(need)
	}
}

// load reads what a decision misses, as a store does.
func (w *world) load(need *collation.Need) {
	for _, k := range need.Instances {
		w.state.Instances[k] = nil
	}
	for _, request := range need.Effects {
		w.state.Unfinished = map[journal.GUID]bool{request: true}
	}
	for _, k := range need.Results {
		w.state.Results[k] = w.result(k)
	}
	for _, name := range need.Latest {
		var last collation.InstanceKey
		for k, i := range w.state.Instances {
			if k.Activity == name && i != nil && (w.state.Instances[last] == nil || i.ResultSeq > w.state.Instances[last].ResultSeq) {
				last = k
			}
		}
		w.state.Latest[name] = w.result(last)
	}
	for _, key := range need.Keys {
		w.state.Keys[key] = w.u.keys[key]
	}
	for i := 0; i < len(w.entries) && need.Close && w.state.Close == nil; i++ {
		w.state.Close = w.entries[i].Close
	}
}

func (w *world) result(k collation.InstanceKey) *flow.Result {
	if i := w.state.Instances[k]; i != nil && i.ResultSeq > 0 {
		e := w.entries[i.ResultSeq-1]
		r := collation.ResultAt(e, k)
		if x := e.Response; x != nil && !x.Ref.IsZero() && e.Result == nil {
			r.Output = w.u.o.Payloads[x.Ref]
		}
		return r
	}
	return nil
}

// forget drops what only a transaction knows.
func (w *world) forget() {
	clear(w.state.Results)
	w.state.Latest, w.state.Keys, w.state.Close = map[string]*flow.Result{}, map[string]journal.JobID{}, nil
	for _, r := range w.state.Receipts {
		if r != nil && !r.Ledger.Complete() && r.Seq > 0 {
			r.Response = w.entries[r.Seq-1].Response
		}
	}
}

// commit chains the plan's entry, applies it, and puts out its messages.
func (w *world) commit(p *collation.Plan) {
	if p.Entry == nil {
		w.state.Apply(p)
		return
	}
	w.entries = append(w.entries, p.Entry)
	w.handled[p.Entry.GUID] = w.handled[p.Entry.GUID] || p.Entry.Receipts()
	w.main = append(w.main, w.chained(w.main, p.Entry))
	w.state.Apply(p)
	w.state.Job.Head.Hash = w.main[len(w.main)-1].Hash
	for i := range p.Insert {
		row := &p.Insert[i]
		if row.Job != w.state.Job.ID && row.Sender.IsZero() {
			delete(w.state.Rows, row.GUID) // none of this job's
		}
		w.u.route(row)
	}
	for i := range p.Update {
		if row := &p.Update[i]; w.state.Rows[row.GUID] != nil {
			w.again(row)
		}
	}
	for i := range p.Waits {
		w.u.registered(&p.Waits[i])
	}
	if p.ResolvedWait != nil {
		w.woken[p.ResolvedWait.GUID] = *p.ResolvedWait
	}
}

// errRefused is why a store refuses a plan for good (C10).
var errRefused = errors.New("refused")

// again asks for a request's next turn, unless it sleeps, or sends one that was
// held; what a person holds is retried by an operator.
func (w *world) again(row *collation.Row) {
	switch {
	case row.Held != "" && !w.u.o.silent:
		w.operate(*row)
	case row.Kind == journal.MessageRequest && row.NextAt != collation.Never && w.asked[row.GUID] != row.Turn:
		w.publish(row)
	}
}

// operate is an operator's retry; now and then he takes back what an effect of the
// request is recorded to have done.
func (w *world) operate(row collation.Row) {
	w.acts(row, "retry", w.doubted(&row))
}

// acts is an operator's action on a row, as a store writes it (E10): it is
// released; of an effect that is named, a retry takes the result back and done gives
// it one.
func (w *world) acts(row collation.Row, action string, x *journal.Effect) {
	row.Held, row.Dead, row.NextAt = "", false, w.state.Now
	if row.Kind == journal.MessageInterrupt {
		row.Runs++
	}
	delete(w.asked, row.GUID)
	j := &w.state.Job
	e := &journal.Entry{
		Space: j.Space, Job: j.ID, Generation: j.Generation, Seq: j.Head.Seq + 1, Kind: journal.KindOperator,
		GUID: collation.OperatorGUID(row.GUID, action, w.acted[row.GUID]), Activity: row.Activity, DAD: string(row.DAD),
		Operator: &journal.Operator{Action: action, Who: "ann", Reason: "looked into it"},
		Updated:  []journal.Updated{{GUID: row.GUID, Kind: row.Kind, Turn: row.Turn, Attempt: row.Attempt, NextAt: int64(w.state.Now)}},
		Time:     int64(w.state.Now),
	}
	w.acted[row.GUID]++
	if x != nil {
		named := *x
		named.Fence, named.Result, named.Error, e.Effect = 0, nil, nil, &named
		w.judge(row.GUID, action, *x)
		row.Effects = w.state.Rows[row.GUID].Effects
	}
	w.commit(&collation.Plan{
		Job: j.ID, Entry: e, Update: []collation.Row{row},
		Semaphore: journal.SemaphoreMove{Before: j.Semaphore, After: j.Semaphore},
	})
	if row.Kind != journal.MessageRequest {
		w.publish(&row)
	}
}

// judge records what an operator says of an effect: a retry takes back a result,
// or says that a start came to nothing, done gives a start its result.
func (w *world) judge(request journal.GUID, action string, x journal.Effect) {
	i := slices.IndexFunc(w.effects, func(s replay.StoredEffect) bool { return s.Key == x.Key })
	if i < 0 {
		panic("there is no such effect")
	}
	started := w.effects[i].State == replay.EffectStarted
	switch {
	case action == "retry" && started:
		x.Error = &journal.Failure{Class: "operator", Message: "looked into it"}
		w.record(request, journal.KindEffectFailed, x)
	case action == "retry":
		x.Error = &journal.Failure{Class: replay.ClassVoided, Message: "the provider has no record of it"}
		w.record(request, journal.KindEffectFailed, x)
	case started:
		w.record(request, journal.KindEffectCompleted, x)
	}
}

func (w *world) chained(chain []journal.Record, e *journal.Entry) journal.Record {
	previous := journal.Genesis(e.Space, e.Job, e.Generation, e.Chain)
	if n := len(chain); n > 0 {
		previous = chain[n-1].Hash
	}
	body := journal.Encode(e)
	return journal.Record{Job: e.Job, Chain: e.Chain, Seq: e.Seq, Body: body, Hash: journal.Next(previous, body)}
}

// stored takes down the tables of the job.
func (w *world) stored() *replay.Stored {
	job := &w.state.Job
	out := &replay.Stored{
		State: job.State, Semaphore: job.Semaphore, Flow: job.Flow, Effects: w.effects, ResolvedWaits: w.woken,
		Instances: map[collation.InstanceKey]collation.ActivityLedger{},
		Open:      map[collation.InstanceKey]int{},
		Receipts:  map[journal.GUID]replay.StoredReceipt{},
		Rows:      map[journal.GUID]collation.Row{},
		Waits:     map[journal.GUID]collation.Wait{},
	}
	for k, i := range w.state.Instances {
		if i == nil || i.Ledger == 0 { // only where a result stands
			continue
		}
		out.Instances[k] = i.Ledger
		if i.Open > 0 {
			out.Open[k] = i.Open
		}
	}
	for g, r := range w.state.Receipts {
		if r != nil {
			out.Receipts[g] = replay.StoredReceipt{Ledger: r.Ledger, Verdict: r.Verdict}
		}
	}
	for g, r := range w.state.Rows {
		if r != nil && r.Job == job.ID {
			out.Rows[g] = *r
		}
	}
	for g, x := range w.state.Waits {
		if x != nil {
			out.Waits[g] = *x
		}
	}
	return out
}
