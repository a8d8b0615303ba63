package journaltest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var letters = map[string]func(*bench){
	"a message without a row is a letter alone (T3)":    letterForeign,
	"letters are listed newest first, within the limit": letterList,
	"a parked request is held with a letter (C16)":      letterParked,
	"retry releases the row, as an entry (E10)":         letterRetry,
	"an answer ends the request, as an entry (E10)":     letterAnswer,
	"an error ends the request as failed (E10)":         letterFail,
	"retry of a parked effect records it not done (E5)": letterNotDone,
	"what has ended is stale, what is not is not found": letterEnded,
	"a letter without a row ends by an answer only":     letterAlone,
	"an action is a retry or an answer":                 letterNeither,
	"a message that is no request is retried only":      letterLeg1,
	"a retry lets a stuck Leg1 enter once more (C4)":    letterStuckLeg1,
	"the closer's step 3 can be retried (1.7, E10)":     letterCloser,
}

func (b *bench) letters(all bool) []store.DeadView {
	b.Helper()
	out, err := b.s.DeadLetters(b.ctx(), all, 100)
	require.NoError(b, err)
	return out
}

// parked starts a job and parks its request.
func (b *bench) parked(c store.Committer) collation.Row {
	b.Helper()
	r := b.asked(c)
	b.answer(c, r.Job, "work", failure(journal.ResponseParked, "was it paid?"))
	return b.row(r.Job, journal.MessageRequest, "work")
}

func letterForeign(b *bench) {
	d := collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "undecodable", Message: "unexpected end of JSON"}
	require.NoError(b, b.s.DeadLetter(b.ctx(), d, []byte{0, 0xff, '{'}))
	foreign := collation.DeadLetter{Job: journal.JobID{1}, Kind: journal.MessageResponse, Reason: "foreign", Message: "no such job"}
	require.NoError(b, b.s.DeadLetter(b.ctx(), foreign, nil))
	list := b.letters(false)
	require.Len(b, list, 2)
	require.Equal(b, foreign, list[0].Letter)
	require.Equal(b, d, list[1].Letter)
	require.Empty(b, list[0].Key)
	require.Equal(b, "open", list[0].State)
	require.Positive(b, list[0].At)
}

func letterList(b *bench) {
	for i := range 9 {
		require.NoError(b, b.s.DeadLetter(b.ctx(), collation.DeadLetter{Reason: "undecodable", Message: fmt.Sprint(i)}, nil))
	}
	list, err := b.s.DeadLetters(b.ctx(), true, 4)
	require.NoError(b, err)
	require.Len(b, list, 4)
	for i, l := range list {
		require.Equal(b, fmt.Sprint(8-i), l.Letter.Message)
	}
	require.Len(b, b.letters(true), 9)
}

func letterParked(b *bench) {
	c := b.committer()
	row := b.parked(c)
	require.Equal(b, collation.HeldParked, row.Held)
	require.True(b, row.Dead)
	require.Empty(b, b.due(10))
	list := b.letters(false)
	require.Len(b, list, 1)
	require.Equal(b, "k", list[0].Key)
	require.Equal(b, row.GUID, list[0].Letter.Row)
	require.Equal(b, row.Job, list[0].Letter.Job)
	require.Equal(b, collation.HeldParked, list[0].Letter.Reason)
	require.Equal(b, "was it paid?", list[0].Letter.Message)
	require.Equal(b, list, b.view(row.Job).Dead)
	b.audit(row.Job)
}

// acted finds the one operator's entry of a job.
func (b *bench) acted(id journal.JobID, a store.Action) *journal.Entry {
	b.Helper()
	var found []*journal.Entry
	for _, e := range b.chain(id, journal.MainChain) {
		if e.Kind == journal.KindOperator {
			found = append(found, e)
		}
	}
	require.Len(b, found, 1)
	require.Equal(b, a.Who, found[0].Operator.Who)
	require.Equal(b, a.Reason, found[0].Operator.Reason)
	require.NotEmpty(b, found[0].Operator.Action)
	return found[0]
}

func letterRetry(b *bench) {
	c := b.committer()
	r := b.asked(c)
	for range store.MaxRuns {
		b.lease(r, "w")
	}
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w", hour)
	require.ErrorIs(b, err, store.ErrExhausted)
	a := store.Action{ID: b.letters(false)[0].ID, Retry: true, Who: "ann", Reason: "the handler is mended"}
	require.NoError(b, b.s.Act(b.ctx(), a))
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Empty(b, row.Held)
	require.False(b, row.Dead)
	require.Len(b, b.due(10), 1, "due at once")
	require.Empty(b, b.letters(false))
	require.Equal(b, "retried", b.letters(true)[0].State)
	e := b.acted(r.Job, a)
	require.Len(b, e.Updated, 1)
	require.Equal(b, r.GUID, e.Updated[0].GUID)
	require.Equal(b, 1, b.lease(row, "w").Runs, "the runs are counted anew")
	b.answer(c, r.Job, "work", success(`1`))
	require.Equal(b, journal.JobCompleted, b.view(r.Job).State)
	b.audit(r.Job)
}

func letterAnswer(b *bench) {
	c := b.committer()
	row := b.parked(c)
	a := store.Action{ID: b.letters(false)[0].ID, Response: success(`"by hand"`), Who: "ann", Reason: "looked it up"}
	require.NoError(b, b.s.Act(b.ctx(), a))
	b.acted(row.Job, a)
	require.Len(b, b.due(10), 1)
	b.run(c, row.Job)
	v := b.view(row.Job)
	require.Equal(b, journal.JobCompleted, v.State)
	require.JSONEq(b, `{"got":"by hand"}`, string(v.Output))
	require.Equal(b, "resolved", v.Dead[0].State)
	b.audit(row.Job)
}

func letterFail(b *bench) {
	c := b.committer()
	row := b.parked(c)
	a := store.Action{ID: b.letters(false)[0].ID, Response: failure(journal.ResponseTerminal, "given up"), Who: "ann"}
	require.NoError(b, b.s.Act(b.ctx(), a))
	b.run(c, row.Job)
	v := b.view(row.Job)
	require.Equal(b, journal.JobFailed, v.State)
	require.Equal(b, "given up", v.Error.Message)
	require.Equal(b, "failed", v.Dead[0].State)
	b.audit(row.Job)
}

func letterNotDone(b *bench) {
	c := b.committer()
	r := b.asked(c)
	l := b.lease(r, "w")
	b.startEffect(l, effect("pay", 0))
	b.answer(c, r.Job, "work", failure(journal.ResponseParked, "was it paid?"))
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: b.letters(false)[0].ID, Retry: true, Who: "ann", Reason: "it was not"}))
	list, err := b.s.Effects(b.ctx(), r.Job, r.GUID)
	require.NoError(b, err)
	require.Len(b, list, 1)
	require.Equal(b, store.EffectNotDone, list[0].State)
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Empty(b, row.Held)
	next := b.lease(row, "w")
	b.startEffect(next, effect("pay", 1))
	b.audit(r.Job)
}

func letterEnded(b *bench) {
	require.ErrorIs(b, b.s.Act(b.ctx(), store.Action{ID: 99, Retry: true}), store.ErrNotFound)
	c := b.committer()
	row := b.parked(c)
	id := b.letters(false)[0].ID
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: id, Retry: true, Who: "ann"}))
	require.ErrorIs(b, b.s.Act(b.ctx(), store.Action{ID: id, Retry: true, Who: "bob"}), store.ErrStale)
	require.ErrorIs(b, b.s.Act(b.ctx(), store.Action{ID: id, Response: success(`1`), Who: "bob"}), store.ErrStale)
	b.acted(row.Job, store.Action{Who: "ann"})
}

func letterAlone(b *bench) {
	d := collation.DeadLetter{Kind: journal.MessageLeg1, Reason: "undecodable", Message: "unexpected end of JSON"}
	require.NoError(b, b.s.DeadLetter(b.ctx(), d, []byte{0, 0xff, '{'}))
	id := b.letters(false)[0].ID
	require.ErrorIs(b, b.s.Act(b.ctx(), store.Action{ID: id, Retry: true, Who: "ann"}), store.ErrRejected)
	require.Len(b, b.letters(false), 1)
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: id, Response: success(`1`), Who: "ann"}))
	require.Empty(b, b.letters(false))
	require.Equal(b, "resolved", b.letters(true)[0].State)
}

func letterNeither(b *bench) {
	row := b.parked(b.committer())
	id := b.letters(false)[0].ID
	require.ErrorIs(b, b.s.Act(b.ctx(), store.Action{ID: id, Who: "ann"}), store.ErrRejected)
	both := store.Action{ID: id, Retry: true, Response: success(`1`), Who: "ann"}
	require.ErrorIs(b, b.s.Act(b.ctx(), both), store.ErrRejected)
	require.Equal(b, row, b.row(row.Job, journal.MessageRequest, "work"))
}

// letterLeg1 holds a Leg1 message, whose activity has no request yet.
func letterLeg1(b *bench) {
	c := b.committer()
	id := b.start(b.deploy(one), "k")
	b.must(c, message(&b.view(id).Rows[0]))
	r := b.row(id, journal.MessageLeg1, "work")
	l, err := b.load(c, message(&r))
	require.NoError(b, err)
	st := l.States[id]
	p := collation.Hold(st, message(&r), b.mode, errors.New("refused for good"))
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{store.Chain(&st.Job, p)}))
	held := b.row(id, journal.MessageLeg1, "work")
	require.Equal(b, collation.HeldStuck, held.Held)
	a := store.Action{ID: b.letters(false)[0].ID, Response: success(`1`), Who: "ann"}
	require.ErrorIs(b, b.s.Act(b.ctx(), a), store.ErrRejected)
	require.Equal(b, held, b.row(id, journal.MessageLeg1, "work"))
	a.Response, a.Retry = nil, true
	require.NoError(b, b.s.Act(b.ctx(), a))
	b.run(c, id)
	b.answer(c, id, "work", success(`1`))
	require.Equal(b, journal.JobCompleted, b.view(id).State)
	b.audit(id)
}

func letterStuckLeg1(b *bench) {
	c := b.committer()
	id := b.start(b.deploy(one), "k")
	b.must(c, message(&b.view(id).Rows[0]))
	r := b.row(id, journal.MessageLeg1, "work")
	enter := func() *collation.Plan {
		m := message(&r)
		m.Alone = true // its process dies after the entry
		p, err := b.once(c, m)
		require.NoError(b, err)
		return p
	}
	for range collation.StuckLeg1 {
		require.Equal(b, collation.Handled, enter().Outcome)
	}
	for n := range 2 {
		require.Equal(b, collation.Stuck, enter().Outcome)
		require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: b.letters(false)[0].ID, Retry: true, Who: "ann"}))
		require.Equal(b, collation.Handled, enter().Outcome, "entry %d is the operator's", collation.StuckLeg1+n+1)
	}
	require.Equal(b, collation.Stuck, enter().Outcome)
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: b.letters(false)[0].ID, Retry: true, Who: "ann"}))
	b.run(c, id)
	b.answer(c, id, "work", success(`1`))
	require.Equal(b, journal.JobCompleted, b.view(id).State)
	b.audit(id)
}

func letterCloser(b *bench) {
	b.mode.Stepwise = true
	c := b.committer()
	id := b.requested(c, one, "k")
	r := b.row(id, journal.MessageRequest, "work")
	m := response(&r, success(`1`))
	for range 3 { // entry, step 1, step 2, which closes the job
		_, err := b.once(c, m)
		require.NoError(b, err)
	}
	require.Equal(b, journal.JobCompleted, b.view(id).State)
	require.False(b, b.view(id).Ended)
	l, err := b.load(c, m)
	require.NoError(b, err)
	st := l.States[id]
	p := collation.Hold(st, m, b.mode, errors.New("refused for good"))
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{store.Chain(&st.Job, p)}))
	a := store.Action{ID: b.letters(false)[0].ID, Response: success(`2`), Who: "ann"}
	require.ErrorIs(b, b.s.Act(b.ctx(), a), store.ErrStale, "its answer is recorded already")
	a.Response, a.Retry = nil, true
	require.NoError(b, b.s.Act(b.ctx(), a))
	b.must(c, m)
	require.True(b, b.view(id).Ended)
	require.Empty(b, b.view(id).Rows)
	b.audit(id)
}
