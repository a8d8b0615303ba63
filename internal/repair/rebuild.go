package repair

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// This is how the rows of a job are made from its journal (S11). What entries do not hold, they
// hold the sum of, and the flow gives it again: inputs, and what a hook waits for.

// leftAnswer is why a row with an answer is left.
const leftAnswer = "the answer's text stands nowhere else: restore the row from a backup"

// fixInstance makes an instance anew.
func (x *Case) fixInstance(key collation.InstanceKey) string {
	stored, stands := x.tables.Instances[key]
	rebuilt := x.job.Instances[key]
	if rebuilt == nil {
		x.Drop.Instances = append(x.Drop.Instances, key)
		return ""
	}
	if !stands {
		more, err := x.more(key, rebuilt)
		if err != nil {
			return err.Error()
		}
		stored = collation.Instance{ResultSeq: rebuilt.ResultSeq, Code: rebuilt.Code, More: more}
	} else {
		x.Drop.Instances = append(x.Drop.Instances, key)
	}
	stored.Ledger, stored.Open = rebuilt.Ledger, rebuilt.Open
	w := collation.LedgerWrite{
		Key: key, New: true, After: stored.Ledger, ResultSeq: stored.ResultSeq, Code: stored.Code, More: stored.More,
	}
	if act := x.activity(key); act != nil {
		w.Join = act.Join != ""
	}
	x.Instances = append(x.Instances, w)
	return ""
}

func (x *Case) activity(key collation.InstanceKey) *flow.Activity {
	if x.flow == nil {
		return nil
	}
	act, _ := x.flow.Activity(key.Activity)
	return act
}

// more is what an instance keeps beside its ledger, as its Leg1 wrote it and the entries since
// have moved it.
func (x *Case) more(key collation.InstanceKey, i *replay.Instance) (collation.More, error) {
	if i.Leg1.IsZero() || !i.Ledger.Leg1Complete() || i.Ledger.State() == 1 {
		return collation.More{}, nil // an arrival at a join, or a trigger
	}
	p, err := x.again(key, i.Leg1)
	if err != nil {
		return collation.More{}, err
	}
	more := collation.More{}
	for n := range p.Ledgers {
		if p.Ledgers[n].Key == key {
			more = p.Ledgers[n].More
		}
	}
	if more.Turn > 0 {
		more.Turn, more.Attempt, more.Child = i.Turn, i.Attempt, i.Child
	}
	for n := range more.Count {
		if r := x.job.Passes[collation.InstanceKey{
			Activity: key.Activity + "[" + strconv.Itoa(n) + "]", DAD: key.DAD,
		}]; r != nil {
			more.Size += len(r.Output)
		}
	}
	return more, nil
}

func (x *Case) fixReceipt(g journal.GUID) {
	if _, stored := x.tables.Receipts[g]; stored {
		x.Drop.Receipts = append(x.Drop.Receipts, g)
	}
	if r := x.job.Receipts[g]; r != nil && !r.Gone() {
		x.Receipts = append(x.Receipts,
			collation.ReceiptWrite{GUID: g, New: true, After: r.Ledger, Verdict: r.Verdict, Seq: r.Seq})
	}
}

// fixEffect makes the row of an effect anew, from its chain.
func (x *Case) fixEffect(key journal.Digest) {
	f := collation.Effect{Until: collation.Never}
	for i := range x.tables.Effects {
		if s := &x.tables.Effects[i]; s.Key == key {
			x.Drop.Effects = append(x.Drop.Effects, collation.DroppedEffect{Key: key, State: s.State, Fence: s.Fence})
			f.Vouched = s.Vouched
		}
	}
	r, entries := x.job.Effects[key], x.effects[key]
	if r == nil {
		return
	}
	first, last := entries[0], entries[len(entries)-1]
	f.Request, f.Seq, f.Turn = r.Request, first.Seq, last.Effect.Turn
	f.Key, f.Name, f.Class, f.N, f.Position, f.State = key, r.Name, r.Class, r.N, r.Position,
		collation.EffectState(r.State)
	for _, e := range entries {
		if e.Kind != journal.KindEffectStarted && replay.ResultDigest(e.Effect.Result, e.Effect.Error) == r.Result {
			f.Result, f.Error = e.Effect.Result, e.Effect.Error
		}
	}
	f.Fence, f.Holder = last.Effect.Fence, last.Writer
	if f.State == collation.EffectStarted {
		f.Until = x.inFlight(&f, last)
	}
	x.Effects = append(x.Effects, f)
}

// inFlight is until when the call of a started effect may last, by the timeout of its activity:
// nobody takes it over before (E4).
func (x *Case) inFlight(f *collation.Effect, start *journal.Entry) collation.Micros {
	row := x.job.Rows[f.Request]
	if row == nil {
		return collation.Never
	}
	var timeout time.Duration
	if act := x.activity(collation.InstanceKey{Activity: row.Activity, DAD: row.DAD}); act != nil {
		timeout = act.Timeout
	}
	return x.mode.CallEnds(f.Class, timeout, collation.Micros(start.Time))
}

// fixWait makes a wait anew.
func (x *Case) fixWait(g journal.GUID) string {
	stored, stands := x.tables.Waits[g]
	if stands {
		x.Drop.Waits = append(x.Drop.Waits, collation.CancelledWait{GUID: g, Count: stored.Count})
	}
	r := x.job.Waits[g]
	if r == nil || x.delivered(g, r) {
		return ""
	}
	w := stored
	if !stands {
		w = collation.Wait{GUID: g, Job: x.Stored.ID, Since: collation.Micros(x.main[r.Origin].Time)}
		if r.Request.IsZero() {
			p, err := x.again(collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}, x.leg1Of(r))
			if err != nil {
				return err.Error()
			}
			for i := range p.Waits {
				w.MaxAge = p.Waits[i].MaxAge
			}
		}
	}
	w.Activity, w.DAD, w.Topic, w.Key, w.Repeat, w.Request, w.Origin = r.Activity, r.DAD, r.Topic, r.Key, r.Repeat,
		r.Request, r.Origin
	w.Count = max(w.Count, r.Last, x.numbered(r))
	x.Waits = append(x.Waits, w)
	return ""
}

func (x *Case) leg1Of(w *replay.Wait) journal.GUID {
	if i := x.job.Instances[collation.InstanceKey{Activity: w.Activity, DAD: w.DAD}]; i != nil {
		return i.Leg1
	}
	return journal.GUID{}
}

// deliveries visits the signals on their way to a wait.
func (x *Case) deliveries(w *replay.Wait, visit func(journal.GUID, *journal.Response)) {
	for g, s := range x.tables.Rows {
		if s.Kind != journal.MessageWakeUp || s.Activity != w.Activity || s.DAD != w.DAD {
			continue
		}
		if r, err := journal.DecodeResponse(s.Body); err == nil && r.By == journal.BySignal {
			visit(g, r)
		}
	}
}

// delivered reports whether the signal that ended the wait is on its way.
func (x *Case) delivered(g journal.GUID, w *replay.Wait) (is bool) {
	x.deliveries(w, func(row journal.GUID, r *journal.Response) {
		is = is || row == g || w.Repeat && r.Kind == journal.ResponseTerminal
	})
	return is
}

// numbered is the greatest number of a signal on its way to the wait.
func (x *Case) numbered(w *replay.Wait) (n int) {
	x.deliveries(w, func(_ journal.GUID, r *journal.Response) { n = max(n, r.Number) })
	return n
}

// again does the work of a Leg1 once more, on the results that the journal has, and returns its
// plan: the rows, waits and columns that it wrote.
func (x *Case) again(key collation.InstanceKey, leg1 journal.GUID) (*collation.Plan, error) {
	at, i := x.worked(leg1), x.job.Instances[key]
	if x.flow == nil || at == nil || i == nil {
		return nil, errors.New("its flow is not deployed, or no entry made it: restore the row from a backup")
	}
	j := x.Stored
	j.State, j.Head, j.From = journal.JobOpen, journal.Head{Seq: at.Seq - 1}, nil
	s := &collation.State{
		Job: j, Flow: x.flow, Now: collation.Micros(at.Time),
		Instances: map[collation.InstanceKey]*collation.Instance{key: nil},
		Receipts:  map[journal.GUID]*collation.Receipt{}, Results: map[collation.InstanceKey]*flow.Result{},
		Latest: map[string]*flow.Result{},
		Rows: map[journal.GUID]*collation.Row{leg1: {
			GUID: leg1, Job: j.ID, Kind: journal.MessageLeg1, Activity: key.Activity, DAD: key.DAD,
		}},
	}
	if arrived := i.Ledger.Join(); arrived > 0 {
		s.Instances[key] = &collation.Instance{Ledger: arrived}
	}
	m := &collation.Message{
		Kind: journal.MessageLeg1, Job: j.ID, GUID: leg1, Row: leg1, Activity: key.Activity, DAD: key.DAD,
	}
	for range maxNeeds {
		p, need := collation.Step(s, m, collation.Mode{Private: journal.IsPrivateKey(j.Key)})
		if need == nil {
			return p, nil
		}
		for _, k := range need.Instances {
			s.Instances[k] = nil
		}
		for _, k := range need.Results {
			r, err := x.result(k)
			if err != nil {
				return nil, err
			}
			s.Results[k] = r
		}
		if len(need.Instances)+len(need.Results) == 0 {
			break
		}
	}
	return nil, errors.New("what it was made of is not in the journal: restore the row from a backup")
}

// maxNeeds bounds how often a decision asks for more state.
const maxNeeds = 32

// worked finds the entry that did the work of a Leg1.
func (x *Case) worked(leg1 journal.GUID) *journal.Entry {
	for _, e := range x.main {
		if e.Kind == journal.KindLeg1 && e.GUID == leg1 && slices.Contains(e.Marks, journal.MarkWork) {
			return e
		}
		for i := range e.Dispatched {
			if d := &e.Dispatched[i]; d.GUID == leg1 && d.Folded != 0 {
				return e
			}
		}
	}
	return nil
}

// result is the result at an address, as the entry that recorded it has it; nil: there is none.
func (x *Case) result(key collation.InstanceKey) (*flow.Result, error) {
	r := x.job.Passes[key]
	if i := x.job.Instances[key]; i != nil {
		r = &i.Recorded
	}
	if r == nil || r.ResultSeq == 0 {
		return nil, nil
	}
	e := x.main[r.ResultSeq]
	if e.Response != nil && !e.Response.Ref.IsZero() && e.Result == nil {
		output := x.beside.Payloads[e.Response.Ref].Body
		if output == nil {
			return nil, fmt.Errorf("the outputs of the job are over %d bytes together: restore the row from a backup", replay.MaxPayloads)
		}
		whole, with := *e, *e.Response
		with.Output, with.Ref = output, journal.Digest{}
		whole.Response = &with
		e = &whole
	}
	return collation.ResultAt(e, key), nil
}
