package replaytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// universe is a space: a store with jobs, what is on its way to them, and the workers.
type universe struct {
	o       Options
	store   *memstore.Store
	driven  journaltest.Driven // the same, and what it commits is published
	session int64              // of the workers
	now     collation.Micros
	born    []journal.JobID
	active  map[string]*flow.Flow
	flows   map[journal.FlowRef]*flow.Flow
	inbox   []letter
	fresh   int // ids from outside
	commits int

	asked     map[journal.GUID]int  // the turn in which a request went out last
	handled   map[journal.GUID]bool // messages that left a receipt
	functions map[journal.GUID]*function
	late      []lateEffect
}

// letter is a message on its way, or a row whose message belongs to no job that
// is there: a signal, the start of a child. at is when it is due.
type letter struct {
	m   collation.Message
	row *collation.Row
	at  collation.Micros
}

// tap is the store, which tells the universe of each plan that is committed.
type tap struct {
	*memstore.Store
	committed func(*collation.Plan)
}

func (t *tap) Committer(ctx context.Context, patient bool) (store.Committer, error) {
	c, err := t.Store.Committer(ctx, patient)
	return &tapped{c, t}, err
}

type tapped struct {
	store.Committer
	tap *tap
}

func (t *tapped) Commit(ctx context.Context, plans []store.Chained) error {
	err := t.Committer.Commit(ctx, plans)
	for i := 0; i < len(plans) && err == nil; i++ {
		t.tap.committed(plans[i].Plan)
	}
	return err
}

var ctx = context.Background()

// must is for what cannot fail here.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func newUniverse(o Options) *universe {
	u := &universe{
		o: o, now: 1_700_000_000_000_000, active: make(map[string]*flow.Flow),
		flows: make(map[journal.FlowRef]*flow.Flow),
		asked: make(map[journal.GUID]int), handled: make(map[journal.GUID]bool),
		functions: make(map[journal.GUID]*function),
	}
	u.store = memstore.New(memstore.Config{Space: "test", Now: func() int64 { return int64(u.now) }})
	u.driven = journaltest.Driven{Store: &tap{u.store, u.committed}}
	session, err := u.store.OpenSession(ctx, store.Process{Name: "worker"})
	must(err)
	u.session = session.ID()
	for _, f := range o.Others {
		u.deploy(f)
	}
	input := `{"n":1}`
	switch {
	case o.Input != "":
		input = o.Input
	case o.Every:
		input = `{"list":["a","b","c"],"n":1,"none":[]}`
	}
	u.begin(o.Flow, o.Key, input)
	if o.Every {
		u.begin(u.active["patient"], victim, `{}`)
	}
	return u
}

func (u *universe) deploy(f *flow.Flow) journal.FlowRef {
	ref := collation.RefOf(f)
	if u.flows[ref] == nil {
		_, err := u.store.Deploy(ctx, store.Deployment{Ref: ref, Canonical: f.Canonical(), Activate: true})
		must(err)
		u.active[ref.Name], u.flows[ref] = f, f
	}
	return ref
}

// begin begins a job.
func (u *universe) begin(f *flow.Flow, key, input string) {
	started, err := u.driven.Start(ctx, []store.Start{{
		Flow: u.deploy(f), Trigger: f.Trigger().Name, Key: key, Input: []byte(input),
	}}, u.o.Mode)
	must(err)
	for digest, body := range u.o.Payloads {
		must(u.driven.PutPayload(ctx, started[0].Job, digest, body))
	}
}

// order puts what is due first, in the order in which it came, then what is due
// next.
func (u *universe) order() {
	slices.SortStableFunc(u.inbox, func(a, b letter) int { return cmp.Compare(max(a.at, u.now), max(b.at, u.now)) })
}

// turn handles one letter.
func (u *universe) turn(i int) {
	l := u.inbox[i]
	u.inbox = slices.Delete(u.inbox, i, i+1)
	u.now = max(u.now, l.at) + 1000
	switch {
	case l.row == nil:
		u.step(l.m)
	case l.row.Kind == journal.MessageSignal:
		u.deliver(l.row.Job, l.row.GUID)
	default:
		u.spawn(l.row)
	}
	if u.o.Trouble && u.o.Every {
		u.meddle()
	}
}

// errRefused is why a store refuses a plan for good (C10).
var errRefused = errors.New("refused")

// step handles a message, once, or again.
func (u *universe) step(m collation.Message) {
	o := &u.o
	if o.Trouble && o.Choose(12) == 0 {
		twin := m
		twin.Entered = false
		u.inbox = append(u.inbox, letter{m: twin})
	}
	m.Alone = o.Trouble && o.Choose(6) == 0
	plans, err := u.driven.Handle(ctx,
		func(st *collation.State, m *collation.Message) (*collation.Plan, *collation.Need) {
			st.Flow = u.flows[st.Job.Flow]
			refused := 50
			if m.Kind == journal.MessageInterrupt { // one that the journal mentions may be stale (W12)
				refused = 2
			}
			p, need := collation.Step(st, m, o.Mode)
			if need == nil && o.Trouble && !m.Entered && o.Choose(refused) == 0 {
				p = collation.Hold(st, m, o.Mode, collation.HeldStuck, errRefused)
			}
			return p, need
		}, &m)
	must(err)
	p := plans[0] // nil: an interrupt of a child that was refused
	if p != nil && (!p.Done || p.Outcome == collation.Later) {
		m.Entered = p.Outcome != collation.Later
		u.inbox = append(u.inbox, letter{m: m})
	}
	u.finishLate()
}

// committed puts out the messages of a plan.
func (u *universe) committed(p *collation.Plan) {
	u.commits++
	if e := p.Entry; e != nil {
		u.handled[e.GUID] = u.handled[e.GUID] || e.Receipts()
		if e.Kind == journal.KindCreated {
			u.born = append(u.born, p.Job)
		}
	}
	for i := range p.Insert {
		u.publish(&p.Insert[i])
	}
	for i := range p.Update {
		u.again(&p.Update[i])
	}
	if len(p.Waits) > 0 {
		u.meet()
	}
}

// publish puts out the message of a row that is not held; a request is answered by a worker at
// once, so that its answer is on its way.
func (u *universe) publish(r *collation.Row) {
	if r.Held != "" {
		return
	}
	l := letter{m: *journaltest.Message(r)}
	if r.Publication == 0 {
		l.at = r.NextAt
	}
	switch {
	case r.Kind == journal.MessageSignal,
		r.Kind == journal.MessageStart && u.store.Peek(r.Job, r.GUID, r.GUID).State == "":
		row := *r
		l.row = &row
	case r.Kind == journal.MessageRequest:
		u.asked[r.GUID] = r.Turn
		if u.o.silent {
			return
		}
		u.work(r)
		l.m = *journaltest.Response(r, u.respond(r))
	}
	u.inbox = append(u.inbox, l)
	if r.Kind == journal.MessageRequest && r.WithinAt != collation.Never && u.o.Trouble && u.o.Choose(3) == 0 {
		u.overdue(r)
	}
}

// again puts out a row that was changed, unless its function sleeps; what a person holds is
// retried by an operator.
func (u *universe) again(r *collation.Row) {
	switch {
	case r.Kind == journal.MessageSignal: // it is kept
	case r.Held != "":
		if !u.o.silent {
			u.act(r, collation.Action{Retry: true, Effect: u.doubted(r)})
		}
	case r.Kind == journal.MessageStart,
		r.Kind == journal.MessageRequest && r.NextAt != collation.Never && u.asked[r.GUID] != r.Turn:
		u.publish(r)
	}
}

// act is an operator's action on a row (E10).
func (u *universe) act(r *collation.Row, a collation.Action) {
	delete(u.asked, r.GUID)
	letters, err := u.store.DeadLetters(ctx, store.DeadFilter{Jobs: []journal.JobID{r.Job}, Limit: store.MaxPage})
	must(err)
	i := slices.IndexFunc(letters, func(d store.DeadView) bool { return d.Letter.Row == r.GUID })
	a.ID, a.Who, a.Reason = letters[i].ID, "ann", "looked into it"
	want := store.Want{Job: r.Job, Row: r.GUID, Letter: a.ID}
	must(u.driven.Decide(ctx, want, func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
		return collation.Act(l.States[r.Job], l.Letters[a.ID], &a, u.o.Mode)
	}))
	u.turned(r)
}

// turned puts out a row that is, or has become, none of a worker.
func (u *universe) turned(r *collation.Row) {
	if row := u.store.Peek(r.Job, r.GUID, r.GUID).Row; row.Kind != journal.MessageRequest {
		u.publish(row)
	}
}

// overdue lets the time of a request pass (E9).
func (u *universe) overdue(r *collation.Row) {
	u.now = max(u.now, r.WithinAt)
	must(u.driven.Decide(ctx, store.Want{Job: r.Job, Row: r.GUID},
		func(l *store.Loaded) (*collation.Plan, *collation.Need, error) {
			return collation.Overdue(l.States[r.Job], r.GUID, u.o.Mode), nil, nil
		}))
	u.turned(r)
}

// spawn begins the child that a row orders, or refuses it, as an engine does.
func (u *universe) spawn(row *collation.Row) {
	o, err := row.Order()
	must(err)
	f := u.active[o.Flow]
	if o.Flow == flow.UndoName {
		f = built(flow.Undo(o.Version))
	}
	switch {
	case f == nil:
		u.end(row, o.Refusal(row.Job, 404, "not_found", "no such flow", u.now, u.o.Mode))
		return
	case u.o.Trouble && o.Flow != flow.UndoName && u.o.Choose(8) == 0:
		u.end(row, o.Refusal(row.Job, 400, "input", "refused", u.now, u.o.Mode))
		return
	}
	start := store.Start{Flow: u.deploy(f), Trigger: f.Trigger().Name, Key: o.Key, Input: o.Input, Trace: o.Trace}
	err = u.driven.Spawn(ctx, row, start, u.o.Mode)
	if _, taken := errors.AsType[*store.AlreadyStartedError](err); taken {
		u.end(row, o.Refusal(row.Job, 409, "conflict", "the key is taken", u.now, u.o.Mode))
	} else if !errors.Is(err, store.ErrStale) { // taken back
		must(err)
	}
}

// end ends the row of a child's start with what its parent gets.
func (u *universe) end(row *collation.Row, reply collation.Row) {
	if err := u.driven.Refuse(ctx, row, &reply); !errors.Is(err, store.ErrStale) { // taken back
		must(err)
	}
}

// deliver delivers the signal of a row.
func (u *universe) deliver(box journal.JobID, signal journal.GUID) {
	_, err := u.driven.Deliver(ctx, []collation.RowKey{{Job: box, GUID: signal}}, u.o.Mode)
	must(err)
}

// meet delivers kept signals that are due because a wait was registered.
func (u *universe) meet() {
	rows, _, err := u.store.Due(ctx, store.MaxSweep)
	must(err)
	for _, r := range rows {
		if r.Kind == journal.MessageSignal {
			u.deliver(r.Job, r.GUID)
		}
	}
}

// send sends a signal from outside.
func (u *universe) send(topic, key string, code int, payload string, all bool) {
	u.fresh++
	_, err := u.driven.Signal(ctx, &collation.Signal{
		GUID: collation.SignalGUID("test", topic, key, fmt.Sprint(u.fresh)), Topic: topic, Key: key, Code: code,
		Payload: []byte(payload), All: all,
	}, u.o.Mode)
	must(err)
}

// interrupt interrupts a job from outside.
func (u *universe) interrupt(id journal.JobID, o *collation.InterruptOrder) {
	u.fresh++
	row, err := o.Row(collation.AskedInterruptGUID(fmt.Sprint(u.fresh), id), id, u.now)
	must(err)
	_, err = u.driven.Interrupt(ctx, row, u.o.Mode)
	must(err)
}

// codes are those of signals from outside.
var codes = []int{200, 202, 200, 202, 409}

// wake sends a signal to a wait that nothing else would end. It reports whether
// there is one.
func (u *universe) wake() bool {
	var waits []collation.Wait
	for _, id := range u.born {
		v, err := u.store.Job(ctx, id)
		must(err)
		waits = append(waits, v.Waits...)
	}
	if len(waits) == 0 {
		return false
	}
	slices.SortStableFunc(waits, func(a, b collation.Wait) int { return cmp.Compare(a.Since, b.Since) })
	x := waits[u.o.Choose(len(waits))]
	code := 0
	if u.o.Signal != nil {
		code = u.o.Signal(x.Activity, x.Count+1)
	}
	if code == 0 {
		code = codes[u.o.Choose(2)]
		if u.o.Trouble {
			code = codes[u.o.Choose(len(codes))]
		}
	}
	u.now += 1000
	u.send(x.Topic, x.Key, code, fmt.Sprintf(`{"signal":%d}`, u.fresh+1), false)
	return true
}

// meddle lets somebody outside send a signal, or interrupt a job.
func (u *universe) meddle() {
	switch choice := u.o.Choose(90); {
	case choice >= 84:
		u.send(topics[u.o.Choose(len(topics))], keys[u.o.Choose(len(keys))], codes[u.o.Choose(len(codes))],
			fmt.Sprintf(`{"signal":%d}`, u.fresh+1), choice > 87)
	case choice == 83:
		u.interrupt(u.born[u.o.Choose(len(u.born))], &collation.InterruptOrder{
			Code: 410, Reason: "no longer needed", Throw: u.o.Choose(4) > 0, Descend: u.o.Choose(2) > 0, From: "ann",
		})
	}
}

// compiled are the flows of all journals.
var compiled = replay.NewFlows("")

// journal takes down what is stored of a job now.
func (u *universe) journal(id journal.JobID) *Journal {
	out := &Journal{}
	must(u.store.Audit(ctx, id, func(s *store.Stored, entries iter.Seq2[journal.Record, error]) (err error) {
		out.Audited = s
		out.Header, out.Stored = s.Replay()
		for r := range entries {
			out.Records = append(out.Records, r)
		}
		out.Attachments, err = replay.ReadAttachments(s.Attachments)
		return err
	}))
	out.Attachments.Whole, out.Attachments.Flows = true, compiled
	return out
}
