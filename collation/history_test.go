package collation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
)

// Scenarios of rules 6.5 as histories of the pure core. Those that need failing processes are
// in tests/e2e.

var stepwise = collation.Mode{Resend: 1e6, Stepwise: true}

// chain is start → a → b.
func chain(t *testing.T) *flow.Flow {
	t.Helper()
	f, err := flow.New("chain").Version("1").Trigger("start").
		Worker("a", "topic.a").Worker("b", "topic.b", flow.Input(map[string]any{"from": "${ a.output.x }"})).
		Transition("start", "a").Transition("a", "b").
		Output(map[string]any{"x": "${ a.output.x }"}).Build()
	require.NoError(t, err)
	return f
}

func ok(output string) *journal.Response {
	return &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(output)}
}

// next handles the next engine message.
func (w *world) next() []*collation.Plan {
	m := w.queue[0]
	w.queue = w.queue[1:]
	return w.handle(m)
}

// commitOnce commits one plan of the message, like a process that dies right after.
func (w *world) commitOnce(m collation.Message) *collation.Plan {
	w.forget()
	p := w.step(&m)
	w.commit(p)
	return p
}

func atLeg2(t *testing.T, mode collation.Mode) (*world, *collation.Row) {
	w := newWorld(chain(t), "k", []byte(`{}`), mode)
	for len(w.asked) == 0 {
		w.next()
	}
	return w, &w.asked[0]
}

// P1: a crash between step 2, which closes, and step 3. The receipt goes before the job's
// state, so completion still runs, once (C5).
func TestP1CrashBeforeStep3(t *testing.T) {
	t.Parallel()
	w, a := atLeg2(t, stepwise)
	w.handle(respond(a, ok(`{"x":1}`)))
	for len(w.asked) < 2 {
		w.next()
	}
	m := respond(&w.asked[1], ok(`{}`))
	for range 3 { // entry, step 1, step 2
		require.False(t, w.commitOnce(m).Done)
	}
	require.Equal(t, journal.JobCompleted, w.state.Job.State)
	again := w.handle(m)
	require.Len(t, again, 1)
	require.Equal(t, []journal.Mark{journal.MarkTasks}, again[0].Entry.Marks)
	require.Equal(t, `{"x":1}`, string(again[0].Entry.Close.Output))
	require.Equal(t, collation.Settled, w.handle(m)[0].Outcome)
}

// P2: a crash between step 1 and step 2. The redelivered message takes its address from its own
// ordinal, and the child gets the recorded input (C6, C7).
func TestP2CrashBeforeStep2(t *testing.T) {
	t.Parallel()
	w, a := atLeg2(t, stepwise)
	m := respond(a, ok(`{"x":1}`))
	w.commitOnce(m)
	w.commitOnce(m)
	before := w.state.Instances[collation.InstanceKey{Activity: "a", DAD: ",0,0"}].Ledger
	w.handle(respond(a, ok(`{"x":2}`))) // its payload is no longer read
	after := w.state.Instances[collation.InstanceKey{Activity: "a", DAD: ",0,0"}].Ledger
	require.Equal(t, before.Leg2Entries(), after.Leg2Entries(), "a redelivery is no entry")
	for len(w.asked) < 2 {
		w.next()
	}
	require.Equal(t, collation.DAD(",0,0,0"), w.asked[1].DAD)
	require.Equal(t, `{"from":1}`, string(w.asked[1].Body))
}

// P4: the same Leg1 message delivered 10, 20, 100 times changes nothing (C4).
func TestP4RedeliveredLeg1(t *testing.T) {
	t.Parallel()
	w := newWorld(chain(t), "k", []byte(`{}`), collation.Mode{Resend: 1e6})
	w.next()
	m := w.queue[0]
	w.next()
	digits := w.digits()
	for n := range 100 {
		m.Alone = n >= collation.AloneFrom
		require.Equal(t, collation.Unlicensed, w.handle(m)[0].Outcome)
	}
	require.Equal(t, digits, w.digits())
}

// P5: a worker runs a request twice. One answer is accepted (C8).
func TestP5TwoAnswers(t *testing.T) {
	t.Parallel()
	for _, mode := range []collation.Mode{{Resend: 1e6}, {Resend: 1e6, Fold: true}, stepwise} {
		w, a := atLeg2(t, mode)
		w.handle(respond(a, ok(`{"x":1}`)))
		require.Equal(t, collation.Unlicensed, w.handle(respond(a, ok(`{"x":2}`)))[0].Outcome)
		require.Equal(t, int64(1), w.state.Job.Semaphore)
		for len(w.queue) > 0 {
			w.next()
		}
		require.Len(t, w.asked, 2, "the next step was asked once")
		require.Equal(t, `{"from":1}`, string(w.asked[1].Body))
	}
}

// C4: at 90 Leg1 entries the instance is stuck. Its row is held with a dead letter in the same
// plan, and further deliveries are acked without a write.
func TestC4StuckLeg1(t *testing.T) {
	t.Parallel()
	w := newWorld(chain(t), "k", []byte(`{}`), collation.Mode{Resend: 1e6})
	w.next()
	m := w.queue[0]
	m.Alone = true
	for range 90 {
		require.Equal(t, collation.Handled, w.commitOnce(m).Outcome)
	}
	p := w.commitOnce(m)
	require.Equal(t, collation.Stuck, p.Outcome)
	require.Len(t, p.Dead, 1)
	require.Equal(t, collation.HeldStuck, w.state.Rows[m.Row].Held)
	require.Equal(t, collation.HeldBack, w.commitOnce(m).Outcome)
	require.Equal(t, journal.JobOpen, w.state.Job.State)
}

// J1: a response with a row, before its Leg1 is complete, has no lawful history: the job is
// quarantined, and nothing is repaired.
func TestJ1Quarantine(t *testing.T) {
	t.Parallel()
	w, a := atLeg2(t, collation.Mode{Resend: 1e6})
	key := collation.InstanceKey{Activity: "a", DAD: ",0,0"}
	w.state.Instances[key] = &collation.Instance{Ledger: 1_000_000_000_000}
	p := w.commitOnce(respond(a, ok(`{}`)))
	require.Equal(t, collation.Quarantined, p.Outcome)
	require.Equal(t, journal.KindQuarantine, p.Entry.Kind)
	require.Equal(t, journal.JobQuarantined, w.state.Job.State)
	require.Nil(t, w.commitOnce(respond(a, ok(`{}`))).Entry, "its messages are acked, nothing is written")
}

// E10, C16: a parked response is pending: it holds the request's row for a person, and the
// activity stays open.
func TestE10ParkedResponse(t *testing.T) {
	t.Parallel()
	for _, mode := range []collation.Mode{{Resend: 1e6}, stepwise} {
		w, a := atLeg2(t, mode)
		w.handle(respond(a, &journal.Response{
			Kind: journal.ResponseParked, Code: 500, Error: &journal.Failure{Class: "effect", Message: "unknown"},
		}))
		row := w.state.Rows[a.GUID]
		require.Equal(t, collation.HeldParked, row.Held)
		require.True(t, row.Dead)
		require.Equal(t, collation.Never, row.NextAt)
		require.Equal(t, 2, row.Turn)
		require.Equal(t, 1, row.Attempt, "a park is no failed attempt")
		answered := *row
		w.handle(respond(&answered, ok(`{"x":3}`)))
		require.Nil(t, w.state.Rows[a.GUID])
		require.Equal(t, []journal.GUID{a.GUID}, w.resolve())
	}
}

// E4: the effect's late completion was recorded while the parked response was on its way.
// Nothing would ever unpark the row, so it is not parked: the request is sent again and finds
// the result.
func TestE4ParkedTooLate(t *testing.T) {
	t.Parallel()
	for _, unfinished := range []bool{true, false} {
		w, a := atLeg2(t, collation.Mode{Resend: 1e6})
		w.unfinished = unfinished
		w.state.Rows[a.GUID].Effects = journal.Head{Seq: 2, Hash: journal.Digest{1}}
		w.handle(respond(a, &journal.Response{
			Kind: journal.ResponseParked, Code: 500, Error: &journal.Failure{Class: collation.ClassParked, Message: "unknown"},
		}))
		row := w.state.Rows[a.GUID]
		require.Equal(t, 2, row.Turn)
		require.Equal(t, unfinished, row.Held == collation.HeldParked)
		require.Equal(t, unfinished, row.NextAt == collation.Never)
	}
}

// J8: the answer of a person, or of `within`, finds the row turned already. Like any answer, it
// binds the effects that were recorded before it.
func TestJ8AnswerBindsTheHead(t *testing.T) {
	t.Parallel()
	for _, mode := range []collation.Mode{{Resend: 1e6}, stepwise} {
		w, a := atLeg2(t, mode)
		head := journal.Head{Seq: 2, Hash: journal.Digest{1}}
		row := w.state.Rows[a.GUID]
		row.Kind, row.Effects = journal.MessageAnswer, head
		m := message(row)
		m.Response = ok(`{"x":1}`)
		var bound []*journal.Bound
		for _, p := range w.handle(m) {
			if p.Entry.Bound != nil {
				bound = append(bound, p.Entry.Bound)
			}
		}
		require.Equal(t, []*journal.Bound{{Chain: a.GUID, Head: head}}, bound, "once, in the entry that accepts it")
	}
}

// resolve lists the rows whose dead letters a plan ended.
func (w *world) resolve() []journal.GUID {
	var out []journal.GUID
	for _, p := range w.plans {
		out = append(out, p.Resolve...)
	}
	return out
}

// Step 1 changes where a result is. Step 2 in the same transaction must not trust an earlier
// load that found no result: it would fail the activity in spite of a successful response.
func TestStep2DoesNotBelieveAnOldLoad(t *testing.T) {
	t.Parallel()
	w, a := atLeg2(t, stepwise)
	m := respond(a, ok(`{"x":1}`))
	w.commitOnce(m)
	key := collation.InstanceKey{Activity: "a", DAD: ",0,0"}
	w.state.Results[key] = nil // loaded before step 1: there was none
	w.commit(w.step(&m))
	w.commit(w.step(&m))
	require.Equal(t, journal.JobOpen, w.state.Job.State)
	require.Equal(t, int64(1), w.state.Job.Semaphore)
	require.Equal(t, 200, w.state.Instances[key].Code)
}
