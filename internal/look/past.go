package look

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// view is a job as its entries tell it: what the tables held at the entry At, as far as it is in
// the journal.
func (r *Reading) view(job *collation.Job, was *replay.Job, dead []store.DeadView) *store.JobView {
	v := &store.JobView{
		JobSummary: store.JobSummary{Job: *job}, Next: was.Next, Ended: was.ClosedAt > 0 && was.TasksAt > 0,
	}
	v.State, v.Semaphore, v.Head, v.Started = was.State, was.Semaphore, was.At, collation.Micros(was.Started)
	v.Closed = collation.Micros(was.Ended)
	for _, e := range r.Entries {
		if e.Close != nil && e.Chain.IsZero() {
			v.Code, v.Error = cmp.Or(e.Close.Code, v.Code), cmp.Or(e.Close.Error, v.Error)
			if e.Close.Output != nil {
				v.Output = e.Close.Output
			}
		}
	}
	v.Instances = Instances(was)
	held := map[journal.GUID]bool{}
	for guid, row := range was.Rows {
		v.Rows = append(v.Rows, r.row(guid, row))
		held[guid] = row.Held != ""
	}
	slices.SortFunc(v.Rows, func(a, b collation.Row) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), bytes.Compare(a.GUID[:], b.GUID[:]))
	})
	for guid, w := range was.Waits {
		v.Waits = append(v.Waits, collation.Wait{
			GUID: guid, Job: job.ID, Activity: w.Activity, DAD: w.DAD, Topic: w.Topic, Key: w.Key, Repeat: w.Repeat,
			Count: w.Passed,
			Since: r.time(w.Origin), Origin: w.Origin, Request: w.Request,
		})
	}
	slices.SortFunc(v.Waits, func(a, b collation.Wait) int { return cmp.Compare(a.Origin, b.Origin) })
	for i := range dead {
		if d := dead[i]; d.At <= collation.Micros(r.At.Time) {
			if held[d.Letter.Row] {
				d.State = collation.LetterOpen
			}
			v.Dead = append(v.Dead, d)
		}
	}
	return v
}

// Instances are the instances of a job as its entries tell them, the outer ones first.
func Instances(was *replay.Job) []store.InstanceView {
	keys := slices.SortedFunc(maps.Keys(was.Instances), func(a, b collation.InstanceKey) int {
		return cmp.Or(cmp.Compare(a.DAD.Depth(), b.DAD.Depth()), cmp.Compare(a.Activity, b.Activity),
			a.DAD.Compare(b.DAD))
	})
	out := make([]store.InstanceView, len(keys))
	for n, key := range keys {
		i := was.Instances[key]
		out[n] = store.InstanceView{Key: key, Instance: collation.Instance{
			Ledger: i.Ledger, ResultSeq: i.ResultSeq, Code: i.Code,
			More: collation.More{
				Leg1: i.Leg1, Open: i.Open, Count: i.Count, Turn: i.Turn, Attempt: i.Attempt, Child: i.Child,
			},
		}}
	}
	return out
}

// row is a dispatch row as entries tell it. Only a function that is asleep has no due time, so
// that it is known by that; what was due counts as sent.
func (r *Reading) row(guid journal.GUID, x *replay.Row) collation.Row {
	row := collation.Row{
		GUID:     guid,
		Job:      r.At.Job,
		Kind:     x.Kind,
		Activity: x.Activity,
		DAD:      x.DAD,
		Topic:    x.Topic,
		Request:  collation.Request{Element: x.Element, Turn: x.Turn, Attempt: x.Attempt},
		NextAt:   collation.Micros(x.NextAt),
		Held:     x.Held,
		Dead:     x.Held != "",
		Origin:   x.Origin,
	}
	if row.NextAt <= collation.Micros(r.At.Time) && x.Held == "" && !x.Asleep() {
		row.Publication, row.TurnSent, row.PublishedAt = 1, row.Turn, max(r.time(x.Origin), row.NextAt)
		row.NextAt = collation.Micros(r.At.Time)
	}
	return row
}

// time is when an entry of the main chain was written.
func (r *Reading) time(seq int64) collation.Micros {
	if seq < 1 || seq > int64(len(r.Entries)) {
		return collation.Never
	}
	return collation.Micros(r.Entries[seq-1].Time) // the main chain comes first, from 1
}
