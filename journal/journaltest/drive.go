package journaltest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
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

func (b *bench) want(m *collation.Message) store.Want {
	return store.Want{
		Job: m.Job, Receipt: m.GUID, Row: m.Row,
		Instances: []collation.InstanceKey{{Activity: m.Activity, DAD: m.DAD}},
	}
}

// load opens a transaction for messages, waiting for their jobs.
func (b *bench) load(c store.Committer, ms ...*collation.Message) (*store.Loaded, error) {
	wants := make([]store.Want, len(ms))
	for i, m := range ms {
		wants[i] = b.want(m)
	}
	l, err := c.Load(b.ctx(), wants, true)
	if err != nil {
		return nil, err
	}
	for _, st := range l.States {
		st.Flow = b.flows[st.Job.Flow.Name+" "+st.Job.Flow.Version]
	}
	return l, nil
}

// plan steps a message against its loaded state, and loads what that lacks.
func (b *bench) plan(c store.Committer, st *collation.State, m *collation.Message) (*collation.Plan, error) {
	if row := st.Rows[m.Row]; row != nil && m.Response == nil {
		var err error
		if m.Response, err = Carried(row); err != nil {
			return nil, err
		}
	}
	for range 10 {
		p, need := collation.Step(st, m, b.mode)
		if need == nil {
			return p, nil
		}
		if err := c.More(b.ctx(), map[journal.JobID]*collation.Need{m.Job: need}); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("ten loads did not satisfy Step")
}

// Carried returns the response in the body of a row, nil for kinds without one.
func Carried(row *collation.Row) (*journal.Response, error) {
	switch row.Kind {
	case journal.MessageAnswer, journal.MessageWakeUp, journal.MessageOutcome, journal.MessageCycle:
		return journal.DecodeResponse(row.Body)
	}
	return nil, nil
}

// decide plans a message, chains its entry and applies the plan to the state.
func (b *bench) decide(c store.Committer, st *collation.State, m *collation.Message) (store.Chained, error) {
	p, err := b.plan(c, st, m)
	if err != nil {
		return store.Chained{}, err
	}
	ch := store.Chain(&st.Job, p)
	st.Apply(p)
	return ch, nil
}

// handle handles one message as the engine does: after a lost test-and-set it decides again. It
// returns the last plan.
func (b *bench) handle(c store.Committer, m *collation.Message) (*collation.Plan, error) {
	for range 100 {
		p, err := b.once(c, m)
		switch {
		case errors.Is(err, store.ErrLost):
		case err != nil:
			return nil, err
		case p.Done:
			return p, nil
		default:
			m.Entered = m.Kind == journal.MessageLeg1
		}
	}
	return nil, fmt.Errorf("message %s came to no end", m.GUID)
}

// once decides and commits one plan of a message.
func (b *bench) once(c store.Committer, m *collation.Message) (*collation.Plan, error) {
	l, err := b.load(c, m)
	if err != nil {
		return nil, err
	}
	if l.States[m.Job] == nil {
		return nil, errors.Join(fmt.Errorf("job %s was not loaded", m.Job), c.Rollback(b.ctx()))
	}
	ch, err := b.decide(c, l.States[m.Job], m)
	if err != nil {
		return nil, errors.Join(err, c.Rollback(b.ctx()))
	}
	return ch.Plan, c.Commit(b.ctx(), []store.Chained{ch})
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
	st := b.locked(b.c, b.want(Message(&r))).States[r.Job]
	p, row := handmade(st, Message(&r)), *st.Rows[r.GUID]
	row.Rev++
	change(&row, st.Now)
	p.Update = []collation.Row{row}
	p.Entry.Updated = []journal.Updated{{
		GUID: row.GUID, Kind: row.Kind, Turn: row.Turn, Attempt: row.Attempt, NextAt: int64(row.NextAt), Held: row.Held,
	}}
	require.NoError(b, b.commit(store.Chain(&st.Job, p)))
}
