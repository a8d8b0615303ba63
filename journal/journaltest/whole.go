package journaltest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// scenario is a job of a flow with every kind of activity, from its start to its
// end: what Step decides, carried by the store.
type scenario struct {
	flows   []string // the first one's job is started
	input   string
	answers map[string][]string // outputs of workers, by activity, in their order
	signals []collation.Signal  // sent one after the other, when nothing else is to be done
	want    string              // output of the job
	digits  map[string]string   // ledgers of its instances
}

var scenarios = map[string]scenario{
	"await (1.11)": {
		flows: []string{`
flow: parent
version: "1"
output: {r: "${ child.output }", id: "${ free.output.id }"}
activities:
  start: {type: trigger}
  child: {type: await, flow: invoice, input: {total: "${ start.output.total }"}}
  free: {type: await, flow: invoice, id: free, await: false, input: {total: 0}}
transitions:
  start: [child, free]
`, `
flow: invoice
version: "1"
output: "${ bill.output }"
activities:
  start: {type: trigger}
  bill: {type: worker, topic: bill, input: {of: "${ start.output.total }"}}
transitions:
  start: [bill]
`},
		input: `{"total":5}`, answers: map[string][]string{"bill": {`{"paid":5}`, `{"paid":5}`}},
		want:   `{"id":"free","r":{"paid":5}}`,
		digits: map[string]string{"start,0": "101100000000001", "child,0,0": "201100000000001", "free,0,0": "201100000000001"},
	},
	"each, two at a time (1.11)": {
		flows: []string{`
flow: items
version: "1"
output: "${ items.output }"
activities:
  start: {type: trigger}
  items: {type: worker, topic: stock, each: start.output.lines, parallel: 2, input: {line: "${ item }", n: "${ index }"}}
transitions:
  start: [items]
`},
		input: `{"lines":["a","b","c","d","e"]}`, answers: map[string][]string{"items": {`0`, `1`, `2`, `3`, `4`}},
		want:   `[0,1,2,3,4]`,
		digits: map[string]string{"start,0": "101100000000001", "items,0,0": "201100000000005"},
	},
	"cycle (1.11)": {
		flows: []string{`
flow: poll
version: "1"
output: {n: "${ look.output.n }", at: "${ pivot.output.at }"}
activities:
  start: {type: trigger}
  pivot: {type: hook, input: {at: 0}}
  look: {type: worker, topic: look, input: {at: "${ pivot.output.at }"}}
  again: {type: cycle, to: pivot, input: {at: "${ look.output.n }"}}
transitions:
  start: [pivot]
  pivot: [look]
  look: [{to: again, when: "look.output.n < 4"}]
`},
		input: `{}`, answers: map[string][]string{"look": {`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`}},
		want: `{"at":3,"n":4}`,
		digits: map[string]string{
			"start,0": "101100000000001", "pivot,0,0": "001100000000004",
			"look,0,0,0": "201100000000001", "look,0,1,0": "201100000000001",
			"look,0,2,0": "201100000000001", "look,0,3,0": "201100000000001",
			"again,0^4": "001100000000000", "again,0,1,0,0": "001100000000000", "again,0,2,0,0": "001100000000000",
		},
	},
	"joins, one arrival of three skipped (1.10)": {
		flows: []string{`
flow: quotes
version: "1"
output: {sum: "${ sum.output }", no: "${ b.skipped }", any: "${ fast.output }"}
activities:
  start: {type: trigger}
  a: {type: worker, topic: a}
  b: {type: worker, topic: b}
  c: {type: worker, topic: c}
  sum: {type: worker, topic: sum, input: {a: "${ a.output }", b: "${ b.output }", c: "${ c.output }"}}
  fast: {type: worker, topic: fast, join: any}
transitions:
  start: [a, {to: b, when: "false"}, c]
  a: [sum, fast]
  b: [sum]
  c: [sum, fast]
`},
		input: `{}`, answers: map[string][]string{"a": {`1`}, "c": {`3`}, "sum": {`4`}, "fast": {`"f"`}},
		want: `{"any":"f","no":true,"sum":4}`,
		digits: map[string]string{
			"start,0": "101100000000001", "a,0,0": "201100000000001", "c,0,0": "201100000000001",
			"sum,0,0": "201110300000001", "fast,0,0": "201110200000001",
		},
	},
	"signals to a repeating hook and to one that passes (C12)": {
		flows: []string{`
flow: feed
version: "1"
output: {last: "${ seen.output }", by: "${ feed.by }", end: "${ once.output }"}
activities:
  start: {type: trigger}
  feed: {type: hook, signal: feed, key: "${ job.id }", repeat: true, sleep: 1h, output: "${ signal.payload.n }"}
  seen: {type: worker, topic: seen, input: {n: "${ feed.output }"}}
  tell: {type: signal, topic: inner, key: k, payload: "told"}
  once: {type: hook, signal: inner, key: k}
transitions:
  start: [feed, tell, once]
  feed: [seen]
`},
		input: `{}`, answers: map[string][]string{"seen": {`1`, `2`, `3`}},
		signals: []collation.Signal{
			{Topic: "feed", Code: collation.CodePass, Payload: []byte(`{"n":1}`)},
			{Topic: "feed", Code: collation.CodePass, Payload: []byte(`{"n":2}`)},
			{Topic: "feed", Code: collation.CodeOK, Payload: []byte(`{"n":3}`)},
		},
		want: `{"by":"signal","end":"told","last":3}`,
		digits: map[string]string{
			"start,0": "101100000000001", "feed,0,0": "201100000000003", "once,0,0": "201100000000001", "tell,0,0": "201100000000000",
			"seen,0,0,0": "201100000000001", "seen,0,1,0": "201100000000001", "seen,0,2,0": "201100000000001",
		},
	},
}

// wholes are the scenarios in every mode: the same digits and outputs (C11).
func wholes() map[string]func(*bench) {
	modes := map[string]collation.Mode{"": {}, ", stepwise": {Stepwise: true}, ", folded": {Fold: true}}
	out := map[string]func(*bench){
		"an interrupt descends to a child that has begun (1.11)": wholeDescend,
	}
	all := map[string]func(*bench){"a durable function waits for everything (E12, E13)": wholeFunction}
	for name, s := range scenarios {
		all[name] = s.run
	}
	for name, run := range all {
		for suffix, mode := range modes {
			out[name+suffix] = func(b *bench) {
				b.mode.Stepwise, b.mode.Fold = mode.Stepwise, mode.Fold
				run(b)
			}
		}
	}
	return out
}

func (s *scenario) run(b *bench) {
	b.mode.Resend = 0
	c := b.committer()
	for _, src := range s.flows {
		b.deploy(src)
	}
	f := b.deploy(s.flows[0])
	out, err := b.s.Start(b.ctx(), []store.Start{request(f, "k", s.input)}, b.mode)
	require.NoError(b, err)
	id := out[0].Job
	answers := map[string][]string{}
	for activity, list := range s.answers {
		answers[activity] = list
	}
	b.settle(c, answers)
	for i, x := range s.signals {
		x.Key = "k"
		x.GUID = collation.SignalGUID(b.space(), x.Topic, x.Key, fmt.Sprint(i))
		require.Equal(b, store.SignalConsumed, b.tell(&x).State)
		b.settle(c, answers)
	}
	v := b.view(id)
	require.Equal(b, journal.JobCompleted, v.State, "%+v", v.Error)
	require.True(b, v.Ended)
	require.JSONEq(b, s.want, string(v.Output))
	digits := map[string]string{}
	for _, i := range v.Instances {
		digits[i.Key.Activity+string(i.Key.DAD)] = i.Ledger.String()
	}
	require.Equal(b, s.digits, digits)
	require.Empty(b, v.Rows)
	require.Empty(b, v.Waits)
	require.Empty(b, b.due(10))
	for id, err := range b.s.AuditJobs(b.ctx(), nil) {
		require.NoError(b, err)
		b.audit(id)
	}
}

// settle is a small engine: it handles what is due until nothing is. Workers
// answer what they are given, and then nothing.
func (b *bench) settle(c store.Committer, answers map[string][]string) {
	b.Helper()
	for range 1000 {
		var due []store.Claim
		for _, d := range b.due(100) {
			due = append(due, store.Claim{Row: d, Send: true})
		}
		out, err := b.s.Claim(b.ctx(), due)
		require.NoError(b, err)
		moved := false
		for i := range out {
			did, err := b.settleOne(c, &out[i].Row, answers)
			require.NoError(b, err, "%s to %s", out[i].Row.Kind, out[i].Row.Activity)
			moved = moved || did
		}
		if !moved {
			return
		}
	}
	require.Fail(b, "there is always something due")
}

func (b *bench) settleOne(c store.Committer, r *collation.Row, answers map[string][]string) (bool, error) {
	m := message(r)
	switch r.Kind {
	case journal.MessageSignal:
		b.deliver(keyOf(r))
		return true, nil
	case journal.MessageStart:
		order, err := b.s.Order(b.ctx(), r.Job)
		if err == nil {
			return true, b.begin(order)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
	case journal.MessageRequest:
		if waits := b.functions[r.Topic]; waits != nil {
			m = response(r, b.dream(r, waits))
			break
		}
		list := answers[r.Activity]
		if len(list) == 0 {
			return false, nil
		}
		next := 0
		if r.Body != nil && len(list) > r.Element { // elements come in any order
			next = r.Element
		}
		m = response(r, success(list[next]))
		if r.Element == 0 && !b.hasElements(r) {
			answers[r.Activity] = list[1:]
		}
	}
	_, err := b.handle(c, m)
	return true, err
}

// hasElements reports whether the request is one of a list.
func (b *bench) hasElements(r *collation.Row) bool {
	f := b.flows[b.view(r.Job).Flow.Name+" 1"]
	act, known := f.Activity(r.Activity)
	return known && act.HasEach
}

// begin begins the child of an order, as the engine does.
func (b *bench) begin(row *collation.Row) error {
	order, err := row.Order()
	if err != nil {
		return err
	}
	f := b.flows[order.Flow+" 1"]
	if f == nil {
		reply := order.Refusal(row.Job, 404, "not_found", "no such flow", 1, b.mode)
		return b.s.Refuse(b.ctx(), row, &reply)
	}
	var reply *collation.Row
	if !order.Parent.Awaited {
		r := order.Outcome(row.Job, success(`{"id":"`+order.Key+`"}`), 1, b.mode)
		reply = &r
	}
	return b.s.Spawn(b.ctx(), row, b.spawning(f, row), reply, b.mode)
}

// wholeDescend interrupts a parent whose child waits for a worker.
func wholeDescend(b *bench) {
	b.mode.Resend = 0
	c := b.committer()
	id := b.start(b.deploy(`
flow: parent
version: "1"
activities:
  start: {type: trigger}
  child: {type: await, flow: one, input: {n: 1}}
transitions:
  start: [child]
`), "k")
	b.deploy(one)
	b.settle(c, nil)
	key := collation.InstanceKey{Activity: "child", DAD: ",0,0"}
	child := b.row(b.instance(c, id, key).Child, journal.MessageRequest, "work")
	o := collation.InterruptOrder{Code: 499, Reason: "stop", Throw: true, Descend: true}
	row, err := o.Row(collation.AskedInterruptGUID("x", id), id, 1)
	require.NoError(b, err)
	_, _, err = b.s.Interrupt(b.ctx(), row, b.mode)
	require.NoError(b, err)
	b.settle(c, nil)
	for _, job := range []journal.JobID{id, child.Job} {
		v := b.view(job)
		require.Equal(b, journal.JobInterrupted, v.State)
		require.Equal(b, 499, v.Code)
		require.Empty(b, v.Rows)
		b.audit(job)
	}
}
