package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
)

func failure(kind journal.ResponseKind, text string) *journal.Response {
	return &journal.Response{
		Kind: kind, Code: collation.CodeInternal, Error: &journal.Failure{Class: "error", Message: text},
	}
}

func (b *bench) flowOf(st *collation.State) *flow.Flow {
	return b.flows[st.Job.Flow.Name+" "+st.Job.Flow.Version]
}

// step decides a message on the flow of its job.
func (b *bench) step(st *collation.State, m *collation.Message) (*collation.Plan, *collation.Need) {
	st.Flow = b.flowOf(st)
	return collation.Step(st, m, b.mode)
}

// altering is step, after which the plan is altered.
func (b *bench) altering(alter func(*collation.Plan)) journaltest.Step {
	return func(st *collation.State, m *collation.Message) (*collation.Plan, *collation.Need) {
		p, need := b.step(st, m)
		if need == nil {
			alter(p)
		}
		return p, need
	}
}

// once decides and commits one plan of a message.
func (b *bench) once(m *collation.Message) (*collation.Plan, error) {
	plans, err := b.s.Handle(b.ctx(), b.step, m)
	return plans[0], err
}

// attempt decides and commits one plan of a message, and does not decide again.
func (b *bench) attempt(m *collation.Message, step journaltest.Step) error {
	return b.s.Attempt(b.ctx(), b.c, step, m)
}

// handle handles a message to its end, as an engine does, one plan in a commit. It returns the last
// plan.
func (b *bench) handle(m *collation.Message) (*collation.Plan, error) {
	for range 100 {
		if p, err := b.once(m); err != nil || p.Done {
			return p, err
		}
		m.Entered = m.Kind == journal.MessageLeg1
	}
	return nil, fmt.Errorf("message %s came to no end", m.GUID)
}

// must is handle for a message that must succeed.
func (b *bench) must(m *collation.Message) *collation.Plan {
	b.Helper()
	p := must(b.handle(m))(b)
	require.Equal(b, collation.Handled, p.Outcome, "%s to %s", m.Kind, m.Activity)
	return p
}

// run handles the engine's rows of a job until at most requests are left.
func (b *bench) run(id journal.JobID) {
	b.Helper()
	for range 1000 {
		idle := true
		for _, r := range b.view(id).Rows {
			if r.Kind != journal.MessageRequest && r.Held == "" {
				b.must(journaltest.Message(&r))
				idle = false
				break
			}
		}
		if idle {
			return
		}
	}
	require.Fail(b, "the job's rows do not end")
}

// requested starts a job of the flow and runs it to its requests.
func (b *bench) requested(src, key string) journal.JobID {
	b.Helper()
	id := b.start(b.deploy(src), key)
	b.run(id)
	return id
}

// answer handles a worker's response to the request of an activity, and then runs.
func (b *bench) answer(id journal.JobID, activity string, with *journal.Response) {
	b.Helper()
	r := b.request(id, activity)
	b.must(journaltest.Response(&r, with))
	b.run(id)
}

// born chains the plan of an inception.
func born(p *collation.Plan) store.Chained {
	return store.Chain(&collation.Job{ID: p.Job, Space: p.Entry.Space, Generation: p.Entry.Generation}, p)
}

// handmade returns a plan that only extends the chain; cases add to it.
func handmade(st *collation.State, m *collation.Message) *collation.Plan {
	return &collation.Plan{
		Job: st.Job.ID, Message: m.GUID, Outcome: collation.Handled, Done: true,
		Semaphore: journal.SemaphoreMove{Before: st.Job.Semaphore, After: st.Job.Semaphore},
		Entry: &journal.Entry{
			Space: st.Job.Space, Job: st.Job.ID, Generation: st.Job.Generation, Seq: st.Job.Head.Seq + 1,
			Kind: journal.KindOperator, GUID: m.GUID, Activity: m.Activity, DAD: string(m.DAD), Time: int64(st.Now),
			Operator: &journal.Operator{Action: "suite", Who: "suite"},
		},
	}
}

// rewrite replaces one row of a job by hand; the rest of the row is as it is stored now.
func (b *bench) rewrite(r collation.Row, change func(*collation.Row, collation.Micros)) {
	b.Helper()
	st := b.locked(b.c, journaltest.WantOf(journaltest.Message(&r))).States[r.Job]
	p, row := handmade(st, journaltest.Message(&r)), *st.Rows[r.GUID]
	row.Rev++
	change(&row, st.Now)
	p.Update = []collation.Row{row}
	p.Entry.Updated = []journal.Updated{{
		GUID: row.GUID, Kind: row.Kind, Turn: row.Turn, Attempt: row.Attempt, NextAt: int64(row.NextAt), Held: row.Held,
	}}
	require.NoError(b, b.commit(store.Chain(&st.Job, p)))
}

// change adds to a handmade plan.
type change func(p *collation.Plan, st *collation.State)

// alter commits a handmade plan to a job.
func (b *bench) alter(id journal.JobID, changes ...change) error {
	return b.series(id, all(changes...))
}

// altered is alter, which must succeed.
func (b *bench) altered(id journal.JobID, changes ...change) {
	b.Helper()
	require.NoError(b, b.alter(id, changes...))
}

// quarantine takes a job out of service.
func (b *bench) quarantine(id journal.JobID) {
	b.Helper()
	st := b.locked(b.c, store.Want{Job: id}).States[id]
	p := collation.Quarantine(st, &collation.Message{Job: id}, b.mode, errors.New("a digit is wrong"))
	require.NoError(b, b.commit(store.Chain(&st.Job, p)))
}

// more loads only what a need of a job names.
func (b *bench) more(id journal.JobID, need collation.Need) *collation.State {
	b.Helper()
	l := b.locked(b.c, store.Want{Job: id})
	require.NoError(b, b.c.More(b.ctx(), map[journal.JobID]*collation.Need{id: &need}))
	require.NoError(b, b.c.Rollback(b.ctx()))
	return l.States[id]
}

// stored reads a row of any job or mailbox with the help of an existing job; nil if there is
// none.
func (b *bench) stored(helper journal.JobID, k collation.RowKey) *collation.Row {
	b.Helper()
	rows := b.more(helper, collation.Need{Rows: []collation.RowKey{k}}).Rows
	require.Contains(b, rows, k.GUID)
	return rows[k.GUID]
}

func keyOf(r *collation.Row) collation.RowKey { return collation.RowKey{Job: r.Job, GUID: r.GUID} }

// guid returns the n-th GUID for cases.
func guid(n int) journal.GUID {
	return journal.GUID{6: 0x80, 8: 0x80, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
}

func (b *bench) space() string {
	b.Helper()
	return must(b.s.Space(b.ctx()))(b)
}

// waits adds a wait of the activity `work`, which the entry names.
func waits(w collation.Wait) change {
	return func(p *collation.Plan, st *collation.State) {
		if w.Since == 0 {
			w.Since = st.Now
		}
		w.Job, w.Activity, w.DAD, w.Origin = st.Job.ID, "work", ",0,0", p.Entry.Seq
		p.Waits = append(p.Waits, w)
		p.Entry.Waits = append(p.Entry.Waits, journal.Wait{GUID: w.GUID, Topic: w.Topic, Key: w.Key, Repeat: w.Repeat})
	}
}

// cancelsWait adds the cancel of a wait.
func cancelsWait(g journal.GUID, count int) change {
	return func(p *collation.Plan, _ *collation.State) {
		p.CancelWaits = append(p.CancelWaits, collation.CancelledWait{GUID: g, Count: count})
		p.Entry.Cancelled = append(p.Entry.Cancelled, g)
	}
}

// inserts adds a row of another job or of a mailbox.
func inserts(r collation.Row) change {
	return func(p *collation.Plan, _ *collation.State) {
		r.Origin = p.Entry.Seq
		p.Insert = append(p.Insert, r)
		p.Entry.Dispatched = append(p.Entry.Dispatched, journal.Dispatched{
			GUID: r.GUID, Kind: r.Kind, Activity: r.Activity, DAD: string(r.DAD), Topic: r.Topic, Job: r.Job,
		})
	}
}

// cancelsStart adds the cancel of a child's start.
func cancelsStart(k collation.RowKey) change {
	return func(p *collation.Plan, _ *collation.State) {
		p.CancelStarts = append(p.CancelStarts, k)
		p.Entry.CancelledByClose = append(p.Entry.CancelledByClose, k.GUID)
	}
}

// ledgers adds a write of an instance.
func ledgers(w collation.LedgerWrite) change {
	return func(p *collation.Plan, _ *collation.State) {
		p.Ledgers = append(p.Ledgers, w)
		if w.Before != w.After {
			p.Entry.Joins = append(p.Entry.Joins, journal.LedgerMove{
				Activity: w.Key.Activity, DAD: string(w.Key.DAD), After: journal.Ledger(w.After),
			})
		}
	}
}

// all joins changes to one.
func all(changes ...change) change {
	return func(p *collation.Plan, st *collation.State) {
		for _, add := range changes {
			add(p, st)
		}
	}
}

// signal returns a signal from outside, under the caller's key.
func (b *bench) signal(topic, key, caller string) *collation.Signal {
	b.Helper()
	return &collation.Signal{
		GUID: collation.SignalGUID(b.space(), topic, key, caller), Topic: topic, Key: key, Code: collation.CodeOK,
		Payload: json.RawMessage(strconv.Quote(caller)), Who: "ann",
	}
}

// sent inserts the row of a signal, as a signal activity does, and returns its key.
func (b *bench) sent(by journal.JobID, s *collation.Signal) collation.RowKey {
	b.Helper()
	var k collation.RowKey
	b.altered(by, func(p *collation.Plan, st *collation.State) {
		if s.Sent == 0 {
			s.Sent = st.Now
		}
		row := must(s.Row(b.space()))(b)
		k = keyOf(&row)
		inserts(row)(p, st)
	})
	return k
}

// tell sends a signal from outside to the store.
func (b *bench) tell(s *collation.Signal) store.Signalled {
	b.Helper()
	return must(b.s.Signal(b.ctx(), s, b.mode))(b)
}

// deliver delivers signals to their waits.
func (b *bench) deliver(keys ...collation.RowKey) []store.Outgoing {
	b.Helper()
	return must(b.s.Deliver(b.ctx(), keys, b.mode))(b)
}

// jobs starts n jobs of flow one and handles nothing, for waits and rows that need a job.
func (b *bench) jobs(n int) []journal.JobID {
	b.Helper()
	f := b.deploy(oneWorker)
	list := make([]store.Start, n)
	for i := range list {
		list[i] = startOf(f, fmt.Sprintf("job-%d of %d", i, n), `{"n":7}`)
	}
	return b.begin(list...)
}

// woken reads the response that a wake-up carries.
func (b *bench) woken(r *collation.Row) *journal.Response {
	b.Helper()
	require.Equal(b, journal.MessageWakeUp, r.Kind)
	x := must(journal.DecodeResponse(r.Body))(b)
	require.Equal(b, journal.BySignal, x.By)
	return x
}
