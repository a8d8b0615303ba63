package replaytest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// universe is a space: jobs, and what is on its way to them.
type universe struct {
	o     Options
	now   collation.Micros
	jobs  map[journal.JobID]*world
	born  []*world
	keys  map[string]journal.JobID
	flows map[string]*flow.Flow
	inbox []letter
	kept  []*collation.Signal
	fresh int // ids from outside
}

// letter is a message on its way, or a row whose message belongs to no job that
// is there: a signal, the start of a child. at is when it is due.
type letter struct {
	m   collation.Message
	row *collation.Row
	at  collation.Micros
}

func newUniverse(o Options) *universe {
	u := &universe{
		o: o, now: 1_700_000_000_000_000, jobs: make(map[journal.JobID]*world),
		keys: make(map[string]journal.JobID), flows: make(map[string]*flow.Flow),
	}
	for _, f := range append(slices.Clone(o.Others), o.Flow) {
		u.flows[f.Name()] = f
	}
	in := collation.Inception{Key: o.Key, Input: []byte(`{"n":1}`)}
	switch {
	case o.Input != "":
		in.Input = []byte(o.Input)
	case o.Every:
		in.Input = []byte(`{"list":["a","b","c"],"n":1,"none":[]}`)
	}
	u.begin(o.Flow, in)
	if o.Every {
		u.begin(u.flows["patient"], collation.Inception{Key: victim, Input: []byte(`{}`)})
	}
	return u
}

// begin begins a job.
func (u *universe) begin(f *flow.Flow, in collation.Inception) *world {
	in.Space, in.Generation, in.Trigger, in.Now, in.Publish = "test", 1, f.Trigger().Name, u.now, true
	in.Flow = journal.FlowRef{Name: f.Name(), Version: f.Version(), Digest: journal.Digest(f.Digest())}
	p := collation.Incept(in, u.o.Mode)
	if in.Order != nil { // a row that stands is no new one: here it is sent again
		p.Insert, p.Update = p.Update, nil
	}
	w := newWorld(u, f, p.Job, in)
	u.jobs[p.Job], u.keys[in.Key] = w, p.Job
	u.born = append(u.born, w)
	w.commit(p)
	return w
}

// order puts what is due first, in the order in which it came, then what is due
// next.
func (u *universe) order() {
	slices.SortStableFunc(u.inbox, func(a, b letter) int { return cmp.Compare(max(a.at, u.now), max(b.at, u.now)) })
}

// turn handles one letter, once, or loses, repeats or delays it.
func (u *universe) turn(i int) {
	l := u.inbox[i]
	u.inbox = slices.Delete(u.inbox, i, i+1)
	u.now = max(u.now, l.at) + 1000
	w := u.jobs[l.m.Job]
	switch {
	case l.row != nil && l.row.Kind == journal.MessageSignal:
		s, err := collation.SignalOf(l.row)
		if err != nil {
			panic(err)
		}
		u.signal(s)
	case l.row != nil:
		u.spawn(l.row)
	case w != nil:
		w.turn(l.m)
	}
	if u.o.Trouble && u.o.Every {
		u.meddle()
	}
}

// route puts out the message of a row, of whichever job.
func (u *universe) route(r *collation.Row) {
	row := *r
	switch w := u.jobs[row.Job]; {
	case row.Kind == journal.MessageSignal, row.Kind == journal.MessageStart && w == nil:
		u.inbox = append(u.inbox, letter{m: collation.Message{Job: row.Job}, row: &row, at: row.NextAt})
	case w == nil: // an interrupt of a child that was refused
	case row.Held == "":
		w.state.Rows[row.GUID] = &row
		w.publish(&row)
	}
}

// spawn begins the child that a row orders, or refuses it, as an engine does.
func (u *universe) spawn(row *collation.Row) {
	o, err := row.Order()
	if err != nil {
		panic(err)
	}
	parent := u.jobs[o.Parent.Job]
	if !row.Sender.IsZero() {
		if parent.state.Rows[row.GUID] == nil {
			return // taken back
		}
		parent.state.Rows[row.GUID] = nil
	}
	answer := func(r collation.Row) { u.route(&r) }
	f := u.flows[o.Flow]
	if o.Flow == flow.UndoName {
		f = built(flow.Undo(o.Version))
	}
	switch _, taken := u.keys[o.Key]; {
	case f == nil:
		answer(o.Refusal(row.Job, 404, "not_found", "no such flow", u.now, u.o.Mode))
		return
	case taken:
		answer(o.Refusal(row.Job, 409, "conflict", "the key is taken", u.now, u.o.Mode))
		return
	case u.o.Trouble && o.Flow != flow.UndoName && u.o.Choose(8) == 0:
		answer(o.Refusal(row.Job, 400, "input", "refused", u.now, u.o.Mode))
		return
	}
	u.begin(f, collation.Inception{Key: o.Key, Input: o.Input, Trace: o.Trace, Order: row, Parent: &o.Parent})
	if !o.Parent.Awaited && o.Parent.Turn > 0 {
		answer(o.Outcome(row.Job, &journal.Response{
			Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: fmt.Appendf(nil, `{"id":%q}`, o.Key),
		}, u.now, u.o.Mode))
	}
}

// waits are the open waits, in the order in which signals reach them.
func (u *universe) waits() []*collation.Wait {
	var out []*collation.Wait
	for _, w := range u.born {
		for _, x := range w.state.Waits {
			if x != nil {
				out = append(out, x)
			}
		}
	}
	slices.SortFunc(out, func(a, b *collation.Wait) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), bytes.Compare(a.GUID[:], b.GUID[:]))
	})
	return out
}

// signal delivers, as a store does: to the oldest wait that takes it, or to all;
// otherwise it is kept.
func (u *universe) signal(s *collation.Signal) {
	reached := false
	for _, x := range u.waits() {
		if x.Topic != s.Topic || x.Key != s.Key || !x.Takes(s, u.now) {
			continue
		}
		w := u.jobs[x.Job]
		row, ends := x.Deliver(s, u.now, u.o.Mode)
		if next := *x; ends {
			w.state.Waits[x.GUID] = nil
		} else {
			next.Count++
			w.state.Waits[x.GUID] = &next
		}
		u.route(&row)
		if reached = true; !s.All {
			return
		}
	}
	if !reached && !s.All {
		u.kept = append(u.kept, s)
	}
}

// registered lets kept signals meet a wait that was registered.
func (u *universe) registered(x *collation.Wait) {
	kept := u.kept
	u.kept = nil
	for _, s := range kept {
		if s.Topic == x.Topic && s.Key == x.Key {
			u.signal(s)
		} else {
			u.kept = append(u.kept, s)
		}
	}
}

// send sends a signal from outside.
func (u *universe) send(topic, key string, code int, all bool) {
	u.fresh++
	u.signal(&collation.Signal{
		GUID: collation.SignalGUID("test", topic, key, fmt.Sprint(u.fresh)), Topic: topic, Key: key, Code: code,
		Payload: fmt.Appendf(nil, `{"signal":%d}`, u.fresh), All: all, Sent: u.now,
	})
}

// codes are those of signals from outside.
var codes = []int{200, 202, 200, 202, 409}

// wake sends a signal to a wait that nothing else would end. It reports whether
// there is one.
func (u *universe) wake() bool {
	waits := u.waits()
	if len(waits) == 0 {
		return false
	}
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
	u.send(x.Topic, x.Key, code, false)
	return true
}

// meddle lets somebody outside send a signal, or interrupt a job.
func (u *universe) meddle() {
	switch choice := u.o.Choose(90); {
	case choice >= 84:
		u.send(topics[u.o.Choose(len(topics))], keys[u.o.Choose(len(keys))], codes[u.o.Choose(len(codes))], choice > 87)
	case choice == 83:
		w := u.born[u.o.Choose(len(u.born))]
		o := &collation.InterruptOrder{
			Code: 410, Reason: "no longer needed", Throw: u.o.Choose(4) > 0, Descend: u.o.Choose(2) > 0, From: "ann",
		}
		u.fresh++
		id := w.state.Job.ID
		row, err := o.Row(collation.AskedInterruptGUID(fmt.Sprint(u.fresh), id), id, u.now)
		if err != nil {
			panic(err)
		}
		u.route(&row)
	}
}
