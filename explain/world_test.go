package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/explain"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// everything has one activity of each kind.
const everything = `
flow: all
version: "1"
activities:
  start:  {type: trigger}
  charge: {type: worker, topic: pay.charge, retry: {attempts: 5}}
  items:  {type: worker, topic: stock.reserve, each: start.output.lines, parallel: 2}
  nap:    {type: hook, sleep: 2h}
  asked:  {type: hook, signal: order.asked, key: "k", within: 1h}
  review: {type: hook, signal: order.reviewed, key: "k", sleep: 72h}
  feed:   {type: hook, signal: feed.item, key: "k", repeat: true}
  bill:   {type: await, flow: invoice, retry: {attempts: 3}}
  fire:   {type: await, flow: invoice, await: false}
  merge:  {type: worker, topic: pay.merge}
  stop:   {type: interrupt}
  pivot:  {type: hook}
  work:   {type: worker, topic: pay.work}
  again:  {type: cycle, to: pivot}
transitions:
  start:  [charge, items, nap, asked, review, feed, bill, fire, pivot]
  charge: [merge, {to: stop, on: error}]
  items:  [merge]
  nap:    [merge]
  pivot:  [work]
  work:   [again]
`

func parse(t *testing.T, text string) *flow.Flow {
	t.Helper()
	f, err := flow.Parse("f.yaml", []byte(text))
	require.NoError(t, err)
	return f
}

const (
	second = collation.Micros(1e6)
	minute = 60 * second
	hour   = 60 * minute
)

// now is 2026-11-21 12:00:00 UTC.
const now = collation.Micros(1795262400e6)

var (
	self  = collation.NewJobID("shop", "order-42", 1)
	other = collation.NewJobID("shop", "order-42/bill-1", 1)
	leg1  = collation.RequestGUID(self.Start(), 0)
)

// world is a view of an open job that began a minute ago, to be filled in.
type world struct {
	*store.JobView
	job explain.Job
}

func newWorld(t *testing.T, text string) *world {
	t.Helper()
	v := &store.JobView{}
	v.ID, v.Space, v.Key, v.Generation, v.State, v.Semaphore = self, "shop", "order-42", 1, journal.JobOpen, 1
	v.Started, v.Flow.Name = now-minute, "all"
	w := &world{JobView: v, job: explain.Job{View: v, Flow: parse(t, text), Now: now}}
	w.instance("start", ",0", 101100000000001)
	return w
}

func (w *world) instance(name string, dad collation.DAD, l collation.ActivityLedger) *collation.Instance {
	w.Instances = append(w.Instances, store.InstanceView{
		Key: collation.InstanceKey{Activity: name, DAD: dad}, Instance: collation.Instance{Ledger: l},
	})
	return &w.Instances[len(w.Instances)-1].Instance
}

// row adds an open row that was sent 4 s ago and is looked at again in 1 s.
func (w *world) row(kind journal.MessageKind, name string) *collation.Row {
	dad := collation.DAD(",0,0")
	if name == "" {
		dad = collation.RootDAD
	}
	w.Rows = append(w.Rows, collation.Row{
		GUID: collation.RequestGUID(leg1, len(w.Rows)), Job: self, Kind: kind, Activity: name, DAD: dad,
		Publication: 1, PublishedAt: now - 4*second, NextAt: now + second,
	})
	return &w.Rows[len(w.Rows)-1]
}

// request adds the instance and the request of a worker, sent 4 s ago.
func (w *world) request(name, topic string, attempt int) *collation.Row {
	w.instance(name, ",0,0", 1100000000000+collation.ActivityLedger(attempt-1))
	r := w.row(journal.MessageRequest, name)
	r.Topic, r.Turn, r.Attempt, r.TurnSent = topic, attempt, attempt, attempt
	return r
}

// timer adds a wake-up by the clock, or the answer of `within`, with a due time.
func (w *world) timer(kind journal.MessageKind, name string, at collation.Micros) *collation.Row {
	r := w.row(kind, name)
	r.Publication, r.PublishedAt, r.NextAt = 0, collation.Never, at
	r.Body = journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: 200, By: journal.ByTimer})
	if kind == journal.MessageAnswer {
		r.Body = journal.EncodeResponse(&journal.Response{Kind: journal.ResponseTerminal, Code: 408, Error: &journal.Failure{Class: "within", Message: "late"}})
	}
	return r
}

func (w *world) wait(name, topic string) *collation.Wait {
	w.Waits = append(w.Waits, collation.Wait{
		GUID: collation.WakeUpGUID(leg1, journal.BySignal, name), Job: self, Activity: name, DAD: ",0,0",
		Topic: topic, Key: "order 42", Since: now - minute,
	})
	return &w.Waits[len(w.Waits)-1]
}

// waiting adds the instance of a hook or an await that waits.
func (w *world) waiting(name string) *collation.Instance {
	i := w.instance(name, ",0,0", 1100000000000)
	i.Leg1 = leg1
	return i
}

// letter adds an open dead letter, for the row if there is one.
func (w *world) letter(r *collation.Row, reason, message string) {
	d := store.DeadView{ID: int64(7 + len(w.Dead)), At: now - 2*minute, State: "open"}
	d.Letter = collation.DeadLetter{Job: self, Reason: reason, Message: message}
	if r != nil {
		d.Letter.Row, d.Letter.Kind, d.Letter.Activity, d.Letter.DAD = r.GUID, r.Kind, r.Activity, r.DAD
		r.Held, r.Dead = reason, true
	}
	w.Dead = append(w.Dead, d)
}
