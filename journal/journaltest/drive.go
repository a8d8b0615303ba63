package journaltest

import (
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// Message returns the message of a row.
func Message(r *collation.Row) *collation.Message {
	m := &collation.Message{
		Kind: r.Kind, Job: r.Job, GUID: r.GUID, Row: r.GUID, Activity: r.Activity, DAD: r.DAD, Turn: r.Turn,
	}
	if r.Kind == journal.MessageAnswer {
		m.GUID = r.Answers()
	}
	return m
}

// Response returns a worker's response to the current turn of a request.
func Response(r *collation.Row, with *journal.Response) *collation.Message {
	return &collation.Message{
		Kind: journal.MessageResponse, Job: r.Job, GUID: collation.ResponseGUID(r.GUID, r.Turn), Row: r.GUID,
		Activity: r.Activity, DAD: r.DAD, Turn: r.Turn, Response: with,
	}
}

func success(output string) *journal.Response {
	return &journal.Response{Kind: journal.ResponseTerminal, Code: collation.CodeOK, Output: []byte(output)}
}

func failure(kind journal.ResponseKind, text string) *journal.Response {
	return &journal.Response{
		Kind: kind, Code: collation.CodeInternal, Error: &journal.Failure{Class: "error", Message: text},
	}
}

func (b *bench) handler(c store.Committer) Handler {
	flows := func(r journal.FlowRef) *flow.Flow { return b.flows[r.Name+" "+r.Version] }
	return Handler{C: c, Flow: flows, Mode: b.mode}
}

// load opens a transaction for messages, waiting for their jobs.
func (b *bench) load(c store.Committer, ms ...*collation.Message) (*store.Loaded, error) {
	return b.handler(c).Load(b.ctx(), ms...)
}

// decide plans a message, chains its entry and applies the plan to the state.
func (b *bench) decide(c store.Committer, st *collation.State, m *collation.Message) (store.Chained, error) {
	p, err := b.handler(c).Plan(b.ctx(), st, m)
	if err != nil {
		return store.Chained{}, err
	}
	ch := store.Chain(&st.Job, p)
	st.Apply(p)
	return ch, nil
}

func (b *bench) handle(c store.Committer, m *collation.Message) (*collation.Plan, error) {
	return b.handler(c).Handle(b.ctx(), m)
}

func (b *bench) once(c store.Committer, m *collation.Message) (*collation.Plan, error) {
	return b.handler(c).Once(b.ctx(), m)
}

// must is handle for a message that must succeed.
func (b *bench) must(m *collation.Message) *collation.Plan {
	b.Helper()
	p := got(b.handle(b.c, m))(b)
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
				b.must(Message(&r))
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
	b.must(Response(&r, with))
	b.run(id)
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
	st := b.locked(b.c, WantOf(Message(&r))).States[r.Job]
	p, row := handmade(st, Message(&r)), *st.Rows[r.GUID]
	row.Rev++
	change(&row, st.Now)
	p.Update = []collation.Row{row}
	p.Entry.Updated = []journal.Updated{{
		GUID: row.GUID, Kind: row.Kind, Turn: row.Turn, Attempt: row.Attempt, NextAt: int64(row.NextAt), Held: row.Held,
	}}
	require.NoError(b, b.commit(store.Chain(&st.Job, p)))
}
