package inspect

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// timeOf is a time of the database; Never is the zero time.
func timeOf(t collation.Micros) time.Time {
	if t == collation.Never {
		return time.Time{}
	}
	return moment(int64(t))
}

// Summarize describes a line of a list.
func Summarize(v *store.JobSummary) view.Summary {
	return view.Summary{
		Key: v.Key, ID: v.ID, Generation: v.Generation, Flow: v.Flow.Name, Version: v.Flow.Version, State: v.State,
		Semaphore: v.Semaphore, Entries: v.Head.Seq, Head: v.Head.Hash, Tags: v.Tags, Started: timeOf(v.Started),
		Closed: timeOf(v.Closed),
	}
}

// Describe describes what the tables have of a job. What an activity's State is, its flow says.
func Describe(v *store.JobView) *view.Job {
	out := &view.Job{
		Summary: Summarize(&v.JobSummary), Ended: v.Ended, Code: v.Code, Output: v.Output,
		Error:   view.FailureOf(v.Error),
		Expires: timeOf(v.ExpiresAt), Trace: v.Trace, ResumedBy: v.Next,
		Activities: make([]view.Activity, 0, len(v.Instances)), Messages: make([]view.Message, 0, len(v.Rows)),
		Waits: make([]view.Wait, 0, len(v.Waits)), DeadLetters: make([]view.DeadLetter, 0, len(v.Dead)),
	}
	if p := v.Parent; p != nil {
		out.Parent = &view.Parent{
			ID: p.Job, Activity: p.Activity, Address: p.DAD, Awaited: p.Awaited, Undoes: p.Turn == 0 && !p.Awaited,
		}
	}
	switch from := v.From; {
	case from == nil:
	case from.Forks():
		out.ForkOf, out.ForkAt = from.Job, from.Fork.At
	default:
		out.Resumes = from.Job
	}
	lists := map[collation.InstanceKey]bool{}
	for i := range v.Instances {
		in := &v.Instances[i]
		lists[in.Key] = in.Count > 0
		out.Activities = append(out.Activities, activityOf(in.Key, &in.Instance))
		if !in.Child.IsZero() {
			out.Children = append(out.Children, view.Child{
				ID: in.Child, Activity: in.Key.Activity, Address: string(in.Key.DAD), Turn: in.Turn,
				Attempt: in.Attempt,
			})
		}
	}
	for i := range v.Rows {
		r := &v.Rows[i]
		out.Messages = append(out.Messages,
			messageOf(r, v.ID, lists[collation.InstanceKey{Activity: r.Activity, DAD: r.DAD}]))
	}
	for i := range v.Waits {
		w := &v.Waits[i]
		out.Waits = append(out.Waits, view.Wait{
			Activity: w.Activity, Address: string(w.DAD), Topic: w.Topic, Key: w.Key, Since: timeOf(w.Since),
			SinceEntry: w.Origin, Repeat: w.Repeat, Signals: w.Count,
		})
	}
	for i := range v.Dead {
		out.DeadLetters = append(out.DeadLetters, LetterOf(&v.Dead[i]))
	}
	return out
}

func activityOf(key collation.InstanceKey, i *collation.Instance) view.Activity {
	out := view.Activity{
		Activity: key.Activity, Address: string(key.DAD), Pass: key.DAD.Pass(), Code: i.Code,
		Ledger: journal.Ledger(i.Ledger),
		Says:   saysInstance(i), Elements: i.Count, Child: i.Child,
	}
	if i.Count > 0 {
		out.Ended = i.Count - i.Open
	}
	return out
}

// messageOf is an open message. listed says that it is one of an element of a list.
func messageOf(r *collation.Row, job journal.JobID, listed bool) view.Message {
	out := view.Message{
		GUID: r.GUID, Kind: r.Kind, Activity: r.Activity, Address: string(r.DAD), Topic: r.Topic, Open: true,
		Turn:    r.Turn,
		Attempt: r.Attempt, Runs: r.Runs, Lost: max(0, r.Lost()), Sends: r.Publication, Sent: timeOf(r.PublishedAt),
		Due: timeOf(r.NextAt), Held: view.Held(r.Held), Holder: r.Holder, Session: r.Session, Since: r.Origin,
		Out: r.Publication > 0 && r.TurnSent == r.Turn && r.Held == "",
	}
	if listed && (r.Kind == journal.MessageRequest || r.Kind == journal.MessageAnswer) {
		out.Element = &r.Element
	}
	if r.Job != job && !r.Job.IsZero() {
		out.ToJob = r.Job
	}
	for i := range r.Pauses {
		p := &r.Pauses[i]
		out.Pauses = append(out.Pauses, view.Awaited{Kind: p.Kind, Name: p.Name, Position: p.Position, Came: p.Came})
	}
	return out
}

// LetterOf describes a dead letter.
func LetterOf(d *store.DeadView) view.DeadLetter {
	l := &d.Letter
	return view.DeadLetter{
		ID: d.ID, Key: d.Key, Job: l.Job, Flow: d.Flow, Topic: d.Topic, State: view.LetterState(d.State), Kind: l.Kind,
		Activity: l.Activity, Address: string(l.DAD), Ledger: journal.Ledger(l.Ledger),
		Reason: view.LetterReason(l.Reason), Message: l.Message,
		At: timeOf(d.At),
	}
}

func effectOf(f *store.JobEffect) view.Effect {
	out := view.Effect{
		Key: f.Key, Name: f.Name, State: view.EffectState(f.State), Class: f.Class, NotDone: f.N,
		Error:   view.FailureOf(f.Error),
		Vouched: f.Vouched, Request: f.Request, Activity: f.Activity, Address: f.DAD, Position: f.Position,
	}
	if f.Result != nil && f.Error == nil {
		out.Result = &view.Value{JSON: f.Result}
	}
	return out
}

// view is a job as the entries tell it: what the tables held at the last of them, as far as it is in the
// journal. now is what they hold now.
func (f *fold) view(now *store.JobView) *store.JobView {
	s := f.state
	v := &store.JobView{JobSummary: store.JobSummary{Job: now.Job}, Ended: s.closedAt > 0 && s.tasksDone, Next: s.next}
	v.State, v.Semaphore, v.Head = s.state, s.semaphore, journal.Head{Seq: s.at.Seq}
	v.Started, v.Closed = collation.Micros(s.started), collation.Micros(s.ended)
	v.Code, v.Error, v.Output = s.code, s.err, s.output
	held := map[journal.GUID]bool{}
	for _, guid := range byOrigin(s.rows, func(r *row) (int64, string) { return r.origin, "" }) {
		r := s.rows[guid]
		held[guid] = r.held != ""
		v.Rows = append(v.Rows, f.row(guid, r))
	}
	for _, guid := range byOrigin(s.waits, func(w *collation.Wait) (int64, string) { return w.Origin, "" }) {
		v.Waits = append(v.Waits, *s.waits[guid])
	}
	v.Instances = s.instanceList()
	for i := range now.Dead {
		if d := now.Dead[i]; d.At <= collation.Micros(s.at.Time) {
			if held[d.Letter.Row] {
				d.State = collation.LetterOpen
			}
			v.Dead = append(v.Dead, d)
		}
	}
	return v
}

// row is a dispatch row as entries tell it. Only a function that is asleep has no due time, so that it
// is known by that; what was due counts as sent.
func (f *fold) row(guid journal.GUID, x *row) collation.Row {
	at := collation.Micros(f.state.at.Time)
	r := collation.Row{
		GUID: guid, Job: f.state.job, Kind: x.kind, Activity: x.key.Activity, DAD: x.key.DAD, Topic: x.topic,
		Request: collation.Request{Element: x.element, Turn: x.turn, Attempt: x.attempt},
		NextAt:  collation.Micros(x.nextAt), Held: x.held, Dead: x.held != "", Origin: x.origin,
	}
	if r.Topic == "" && r.Kind == journal.MessageRequest && f.flow != nil { // of an element
		if a, ok := f.flow.Activity(r.Activity); ok {
			r.Topic = a.Topic
		}
	}
	if r.NextAt <= at && x.held == "" && !x.asleep() {
		r.Publication, r.TurnSent = 1, r.Turn
		r.PublishedAt = max(collation.Micros(f.state.times[x.origin]), r.NextAt)
		r.NextAt = at
	}
	return r
}

// byOrigin are the GUIDs in the order of the entries that made what they name, then by name and GUID.
func byOrigin[V any](all map[journal.GUID]V, of func(V) (int64, string)) []journal.GUID {
	return slices.SortedFunc(maps.Keys(all), func(a, b journal.GUID) int {
		x, m := of(all[a])
		y, n := of(all[b])
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(m, n), bytes.Compare(a[:], b[:]))
	})
}

// instanceList are the instances, the outer ones first.
func (s *state) instanceList() []store.InstanceView {
	keys := slices.SortedFunc(maps.Keys(s.instances), func(a, b collation.InstanceKey) int {
		return cmp.Or(cmp.Compare(a.DAD.Depth(), b.DAD.Depth()), cmp.Compare(a.Activity, b.Activity),
			a.DAD.Compare(b.DAD))
	})
	out := make([]store.InstanceView, len(keys))
	for n, key := range keys {
		out[n] = store.InstanceView{Key: key, Instance: s.instances[key].Instance}
	}
	return out
}

func (s *state) obligationList() (all []view.Obligation) {
	for _, guid := range byOrigin(s.obligations, func(o obligation) (int64, string) {
		return o.since, o.key.Activity
	}) {
		o := s.obligations[guid]
		all = append(all, view.Obligation{Activity: o.key.Activity, Address: string(o.key.DAD), SinceEntry: o.since})
	}
	return all
}

func (s *state) pauseList() (all []view.Pause) {
	for _, guid := range byOrigin(s.pauses, func(p *pause) (int64, string) { return p.since, p.Position + p.Name }) {
		p := s.pauses[guid]
		all = append(all, view.Pause{
			Kind: p.Kind, Name: p.Name, Position: p.Position, Activity: p.key.Activity, Address: string(p.key.DAD),
			Waits: p.named, Due: timeOf(collation.Micros(p.due)), SinceEntry: p.since, CameEntry: p.accepts,
		})
	}
	return all
}

func (s *state) childList() (all []view.Child) {
	for _, guid := range byOrigin(s.children, func(c *child) (int64, string) { return c.origin, c.key.Activity }) {
		c := s.children[guid]
		x := view.Child{
			ID: c.job, Activity: c.key.Activity, Address: string(c.key.DAD), Turn: c.turn,
			Starts: timeOf(collation.Micros(c.at)), SinceEntry: c.origin,
		}
		if i := s.instances[c.key]; i != nil && i.Child == c.job {
			x.Attempt = i.Attempt
		}
		all = append(all, x)
	}
	return all
}
