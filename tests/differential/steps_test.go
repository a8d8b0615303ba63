package differential

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/journal"
)

// upTo draws 0 to n.
func (w *twin) upTo(label string, n int) int { return soak.Evenly(w.T, label, n) }

// chance is true in so many of a hundred draws; it shrinks to false.
func (w *twin) chance(label string, percent int) bool { return w.upTo(label, 99) >= 100-percent }

func pick[T any](w *twin, label string, of ...T) T { return of[w.upTo(label, len(of)-1)] }

// recent draws one of a list, mostly a late one; false where there is none.
func recent[T any](w *twin, label string, of []T) (v T, ok bool) {
	if len(of) == 0 {
		return v, false
	}
	if n := 5; len(of) > n && w.chance("recent", 70) {
		of = of[len(of)-n:]
	}
	return of[w.upTo(label, len(of)-1)], true
}

// The flows: their jobs have every kind of row, wait and instance. The input is {"n": …}; the jobs
// of kid are children.
var flows = []string{`
flow: kid
version: "1"
expire: 1h
output: {got: "${ work.output }"}
activities:
  start: {type: trigger}
  work: {type: worker, topic: t.kid, input: {n: "${ start.output }"}}
transitions:
  start: [work]
`, `
flow: work
version: "1"
expire: 1m
output: {n: "${ start.output.n }"}
activities:
  start: {type: trigger}
  pivot: {type: hook, input: {v: 1}}
  work: {type: worker, topic: t.work, input: {n: "${ start.output.n }"}, retry: {attempts: 3, backoff: 1s, jitter: 0}}
  fun: {type: worker, topic: t.fun, within: 2m, timeout: 10s, input: {n: "${ start.output.n }"}}
  each: {type: worker, topic: t.each, each: "[1, 2, 3]", parallel: 2, each_errors: collect}
  any: {type: hook, input: {v: 1}, join: any}
  again: {type: cycle, to: pivot, max: 3, input: {v: 2}}
transitions:
  start: [pivot]
  pivot: [work, fun, each]
  work: [any, {to: again, on: error}]
  fun: [any]
  each: [{to: any, when: "false"}]
  any: [again]
`, `
flow: wait
version: "1"
activities:
  start: {type: trigger}
  nap: {type: hook, sleep: 30s}
  bell: {type: hook, signal: bell, key: a, sleep: 1m, expires: 1h}
  ring: {type: hook, signal: bell, key: b, repeat: true}
  tell: {type: signal, topic: bell, key: a, payload: told}
  call: {type: signal, topic: bell, key: b, mode: all, code: 202, payload: 1}
  kid: {type: await, flow: kid, input: {n: 1}, retry: {attempts: 2, backoff: 1s}}
  fixed: {type: await, flow: kid, id: fixed, await: false, input: {n: 2}}
  none: {type: await, flow: nobody, input: {n: 2}, within: 2m}
  fun: {type: worker, topic: t.fun, input: {n: "${ start.output.n }"}}
  stop: {type: interrupt, code: 418, reason: drawn}
  others: {type: interrupt, target: fixed, descend: true}
transitions:
  start: [nap, bell, ring, kid, fixed, fun]
  nap: [tell, call]
  kid: [{to: none, on: error}]
  bell: [others]
  fun: [{to: stop, on: error}]
`}

func (w *twin) deploy(f *flow.Flow, err error) {
	require.NoError(w, err)
	w.flows[f.Name()+" "+f.Version()] = f
	_, err = both(w, "deploy "+f.Name(), func(s store.Store) (store.Deployed, error) {
		return s.Deploy(w.ctx, store.Deployment{Ref: collation.RefOf(f), Canonical: f.Canonical()})
	})
	require.NoError(w, err)
}

const second = time.Second

var errDrawn = errors.New("drawn")

// driven drives both.
func (w *twin) driven() journaltest.Driven { return journaltest.Driven{Store: w} }

// rows are the rows of all jobs.
func (w *twin) rows() (out []collation.Row) {
	for id := range w.memory.AuditJobs(w.ctx, nil) {
		v, err := w.memory.Job(w.ctx, id)
		require.NoError(w, err)
		out = append(out, slices.DeleteFunc(v.Rows, func(r collation.Row) bool { return r.Job != id })...)
	}
	return out
}

// work does what an engine and its workers do: it takes a due row and carries it on.
func (w *twin) work() {
	due, _, err := w.memory.Due(w.ctx, store.MaxSweep)
	require.NoError(w, err)
	if len(due) == 0 {
		w.advance(pick[time.Duration](w, "until", 1, 30, 90, 3600) * second)
		return
	}
	d := pick(w, "due", due...)
	switch row := w.memory.Peek(d.Job, d.GUID, journal.GUID{}).Row; {
	case row.Kind == journal.MessageSignal:
		_, _ = w.driven().Deliver(w.ctx, []collation.RowKey{{Job: d.Job, GUID: d.GUID}}, w.mode)
	case row.Kind == journal.MessageStart && row.Activity == "": // the job has not begun
		w.begin(row)
	default:
		w.carry(w.message(row))
	}
}

// begin begins or refuses the child of an order.
func (w *twin) begin(row *collation.Row) {
	order, err := row.Order()
	require.NoError(w, err)
	f := w.flows[order.Flow+" 1"]
	if f == nil || order.Fault != "" || w.chance("refuse", 5) {
		var reply *collation.Row
		if order.Heard() {
			reply = new(order.Outcome(row.Job, failed("not_found"), collation.Micros(w.clock), w.mode))
		}
		_ = w.driven().Refuse(w.ctx, row, reply)
		return
	}
	_ = w.driven().Spawn(w.ctx, row, request(f, order.Key, string(order.Input)), w.mode)
}

func request(f *flow.Flow, key, input string) store.Start {
	return store.Start{
		Flow: collation.RefOf(f), Active: true, Trigger: f.Trigger().Name, Key: key, Input: []byte(input),
	}
}

// message is what comes for a row: of a request, a worker's response.
func (w *twin) message(r *collation.Row) *collation.Message {
	if r.Kind != journal.MessageRequest {
		return journaltest.Message(r)
	}
	row := *r
	row.Turn += w.upTo("turn", 20) / 20
	return journaltest.Response(&row, w.response(r))
}

// carry takes messages through transactions, as an engine does, until they are done or left.
func (w *twin) carry(ms ...*collation.Message) {
	w.messages = append(w.messages, ms...)
	for range 20 {
		plans, err := w.driven().Handle(w.ctx, w.decide, ms...)
		if err != nil || w.chance("leave it", 10) || !slices.ContainsFunc(plans, func(p *collation.Plan) bool {
			return p != nil && !p.Done
		}) {
			return
		}
		for _, m := range ms {
			m.Entered = m.Kind == journal.MessageLeg1
		}
	}
}

// decide is an engine's decision, also that on a message that it cannot handle.
func (w *twin) decide(st *collation.State, m *collation.Message) (*collation.Plan, *collation.Need) {
	st.Flow = w.flowOf(st)
	switch w.upTo("trouble", 80) {
	case 79:
		return collation.Hold(st, m, w.mode, collation.HeldStuck, errDrawn), nil
	case 80:
		return collation.Quarantine(st, m, w.mode, errDrawn), nil
	}
	p, need := collation.Step(st, m, w.mode)
	if need == nil {
		w.spoil(p)
	}
	return p, need
}

func (w *twin) flowOf(st *collation.State) *flow.Flow {
	return w.flows[st.Job.Flow.Name+" "+st.Job.Flow.Version]
}

func failed(class string) *journal.Response {
	return &journal.Response{
		Kind: journal.ResponseTerminal, Code: collation.CodeInternal, Error: &journal.Failure{Class: class, Message: "drawn"},
	}
}

func (w *twin) response(r *collation.Row) *journal.Response {
	out := journaltest.Success(fmt.Sprintf(`{"v":%d}`, w.upTo("v", 2)))
	switch w.upTo("response", 9) {
	case 4:
		out = failed("error")
		out.Kind, out.RetryAfter = journal.ResponseFailedAttempt, pick[int64](w, "retry after", 0, 90_000_000)
	case 5:
		out = failed(pick(w, "class", "fatal", "doubt", "confirm", "nondeterminism"))
		out.Kind = pick(w, "kind", journal.ResponseTerminal, journal.ResponseParked)
	case 6:
		body := fmt.Appendf(nil, `"payload %d"`, w.upTo("payload", 2))
		out.Output, out.Ref = nil, sha256.Sum256(body)
		if w.chance("stored", 80) {
			_ = w.driven().PutPayload(w.ctx, r.Job, out.Ref, body)
		}
	case 7, 8, 9:
		return &journal.Response{Kind: journal.ResponseSuspended, Code: collation.CodeOK, Pauses: w.pauses()}
	}
	return out
}

// pauses are what a function waits for next.
func (w *twin) pauses() (out []journal.Pause) {
	for i, p := range []journal.Pause{
		{PauseRef: journal.PauseRef{Kind: journal.PauseSleep, Name: "nap"}, For: 30_000_000},
		{PauseRef: journal.PauseRef{Kind: journal.PauseSignal, Name: "go"}, Topic: "bell", Key: "a", For: 60_000_000},
		{PauseRef: journal.PauseRef{Kind: journal.PauseSignal, Name: "gone"}, Topic: "bell", Key: "b"},
		{PauseRef: journal.PauseRef{Kind: journal.PauseChild, Name: "kid"}, Flow: "kid", Input: []byte(`{"n":1}`)},
		{PauseRef: journal.PauseRef{Kind: journal.PauseChild, Name: "none"}, Flow: "nobody", Key: "fixed", Input: []byte(`1`)},
	} {
		if p.Position = fmt.Sprint(i + 1); w.chance(p.Name, 50) || i == 4 && out == nil {
			out = append(out, p)
		}
	}
	return out
}

// again carries messages that were handled before, or left.
func (w *twin) again() {
	var ms []*collation.Message
	for range 1 + w.upTo("messages", 3) {
		m, ok := recent(w, "message", w.messages)
		if ok && !slices.ContainsFunc(ms, func(x *collation.Message) bool { return x.GUID == m.GUID }) {
			m = new(*m)
			m.Entered, m.Alone = false, w.chance("alone", 20)
			ms = append(ms, m)
		}
	}
	w.carry(ms...)
}

// start starts jobs.
func (w *twin) start() {
	var list []store.Start
	for range 1 + w.upTo("more", 5)/4 {
		f, key := w.flows[pick(w, "flow", "work 1", "wait 1")], pick(w, "key", "k0", "k1", "k2", "k3", "k4", "fixed")
		list = append(list, request(f, key, fmt.Sprintf(`{"n":%d}`, w.upTo("n", 1))))
	}
	_, _ = w.driven().Start(w.ctx, list, w.mode)
}

func (w *twin) signal() { _, _ = w.driven().Signal(w.ctx, w.drawSignal(), w.mode) }

// operate is an operator's call.
func (w *twin) operate() {
	list, err := w.letters(w.memory)
	require.NoError(w, err)
	x, _ := recent(w, "letter", list)
	a := pick(w, "action", []store.Action{
		{Retry: true},
		{Retry: true},
		{Done: []byte(`1`)},
		{Done: []byte(`null`)},
		{Response: journaltest.Success(`"by hand"`)},
		{Response: failed("fatal")},
	}...)
	a.ID, a.Who, a.Reason = x.ID, "ann", "drawn"
	if e, ok := recent(w, "of effect", w.effects); ok && a.Response == nil && w.chance("named", 50) {
		a.Effect = e.Key
	}
	_ = w.driven().Act(w.ctx, a)
}

// late ends what is past its time.
func (w *twin) late() {
	_, _ = w.driven().TurnOverdue(w.ctx, store.MaxSweep)
	_, _ = w.driven().ExpireSignals(w.ctx, store.MaxSweep)
}

func (w *twin) expire() {
	for id := range w.memory.AuditJobs(w.ctx, nil) {
		w.written[id] = true
	}
	for more := true; more; {
		more, _ = both(w, "expire", func(s store.Store) (bool, error) { return s.Expire(w.ctx, store.MaxSweep) })
	}
}

// effect is one call about an effect of a request; some are of no lawful worker.
func (w *twin) effect() {
	r, ok := w.request()
	if !ok {
		return
	}
	l := w.leaseOf(&r)
	if old, ok := recent(w, "lease", w.leases); ok && w.chance("of a lease", 40) {
		l = old
	}
	e := w.drawEffect(&r)
	e.Turn, e.Fence = l.Turn, l.Fence
	notDone := w.chance("not done", 25)
	if notDone || w.chance("error", 20) {
		e.Result, e.Error = nil, failed("declined").Error
	}
	if w.chance("start", 50) {
		e.Result, e.Error = nil, nil
		_, _, _ = w.driven().StartEffect(w.ctx, l, e)
		return
	}
	_, _ = w.driven().FinishEffect(w.ctx, l, e, notDone)
}
