package journaltest

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var doubts = map[string]func(*bench){
	"done completes the unfinished effect, as entries (3.3)":         doubtDone,
	"a retry records it as not done, and names it (E5)":              doubtRetry,
	"several in doubt are listed, and one is named (3.3)":            doubtSeveral,
	"a retry of a completed one takes its result back (3.3)":         doubtVoid,
	"done vouches for a completed one (3.3)":                         doubtVouch,
	"a retry leaves alone what nobody named":                         doubtLeft,
	"a retry of what cannot be read says nothing of other effects":   doubtMisfit,
	"a compensation that was done by hand is completed (3.5)":        doubtUndo,
	"what nothing can be said of is refused, and nothing moves":      doubtRefused,
	"an action is one of three":                                      doubtAction,
	"who is too late changes nothing":                                doubtLate,
	"nothing is said of an effect once its request is answered (J8)": doubtAnswered,
	"nothing is said of effects once the answer is accepted":         doubtAccepted,
}

// doubtful starts effects, ends those that have a result, and parks their request.
func (b *bench) doubtful(c store.Committer, class string, effects ...journal.Effect) collation.Row {
	b.Helper()
	r := b.asked(c)
	l := b.lease(r, "w")
	for _, e := range effects {
		start := e
		start.Result = nil
		b.startEffect(l, start)
		if e.Result != nil {
			b.finishEffect(l, e)
		}
	}
	parked := failure(journal.ResponseParked, "was it paid?")
	parked.Error.Class = class
	b.answer(c, r.Job, "work", parked)
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Equal(b, collation.HeldParked, row.Held)
	return row
}

// judge carries out the action on the only letter, and gives the operator's entry.
func (b *bench) judge(r collation.Row, a store.Action) *journal.Entry {
	b.Helper()
	a.ID, a.Who, a.Reason = b.letters(false)[0].ID, "ann", "looked it up"
	before := len(b.chain(r.Job, journal.MainChain))
	require.NoError(b, b.s.Act(b.ctx(), a))
	after := b.row(r.Job, journal.MessageRequest, "work")
	require.Empty(b, after.Held)
	require.False(b, after.Dead)
	require.Zero(b, after.Runs)
	require.Len(b, b.due(10), 1, "due at once")
	require.Empty(b, b.letters(false))
	entries := b.chain(r.Job, journal.MainChain)
	require.Len(b, entries, before+1, "one entry")
	e := entries[before]
	require.Equal(b, journal.KindOperator, e.Kind)
	require.Equal(b, &journal.Operator{Action: a.Name(), Who: "ann", Reason: "looked it up"}, e.Operator)
	require.Equal(b, r.GUID, e.Updated[0].GUID)
	require.Equal(b, []any{r.Activity, string(r.DAD)}, []any{e.Activity, e.DAD})
	b.audit(r.Job)
	return e
}

// about checks that an entry names an effect and says nothing of its outcome.
func about(b *bench, e *journal.Entry, f journal.Effect, turn int) {
	b.Helper()
	require.Equal(b, &journal.Effect{Key: f.Key, Name: f.Name, Class: f.Class, N: f.N, Position: f.Position, Turn: turn}, e.Effect)
}

// outcome is the last entry of the effects of a request.
func (b *bench) outcome(r collation.Row) *journal.Entry {
	b.Helper()
	entries := b.chain(r.Job, r.GUID)
	require.NotEmpty(b, entries)
	return entries[len(entries)-1]
}

func (b *bench) effectOf(r collation.Row, key journal.Digest) store.EffectRow {
	b.Helper()
	list, err := b.s.Effects(b.ctx(), r.Job, r.GUID)
	require.NoError(b, err)
	for _, f := range list {
		if f.Key == key {
			return f
		}
	}
	require.Fail(b, "the request has no such effect")
	return store.EffectRow{}
}

func doubtDone(b *bench) {
	c := b.committer()
	pay := at("pay", store.ClassGuarded, "1")
	r := b.doubtful(c, collation.ClassParked, pay)
	about(b, b.judge(r, store.Action{Done: []byte(`{"id":4}`)}), pay, 2)
	require.Equal(b, "resolved", b.letters(true)[0].State)
	e := b.outcome(r)
	require.Equal(b, []any{journal.KindEffectCompleted, pay.Key, "1", `{"id":4}`},
		[]any{e.Kind, e.Effect.Key, e.Effect.Position, string(e.Effect.Result)})
	require.Equal(b, 2, e.Effect.Turn)
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Equal(b, int64(2), row.Effects.Seq)
	f := b.startEffect(b.lease(row, "w2"), pay)
	require.Equal(b, []any{store.EffectCompleted, `{"id":4}`, true}, []any{f.State, string(f.Result), f.Vouched})
	b.answer(c, r.Job, "work", success(`1`))
	require.Equal(b, journal.JobCompleted, b.view(r.Job).State)
	b.audit(r.Job)
}

func doubtRetry(b *bench) {
	pay, log := at("pay", store.ClassGuarded, ""), at("log", store.ClassIdempotent, "")
	r := b.doubtful(b.committer(), collation.ClassParked, log, pay)
	about(b, b.judge(r, store.Action{Retry: true}), pay, 2)
	require.Equal(b, "retried", b.letters(true)[0].State)
	f := b.effectOf(r, pay.Key)
	require.Equal(b, store.EffectNotDone, f.State)
	require.Equal(b, &journal.Failure{Class: store.FailureOperator, Message: "looked it up"}, f.Error)
	require.Equal(b, journal.KindEffectFailed, b.outcome(r).Kind)
	require.Equal(b, store.EffectStarted, b.effectOf(r, log.Key).State, "it runs again by itself, under its key (E5)")
}

func doubtSeveral(b *bench) {
	pay, ship := at("pay", store.ClassGuarded, ""), at("ship", store.ClassGuarded, "")
	r := b.doubtful(b.committer(), collation.ClassParked, pay, ship)
	id := b.letters(false)[0].ID
	before := b.row(r.Job, journal.MessageRequest, "work")
	for _, a := range []store.Action{{ID: id, Retry: true, Who: "ann"}, {ID: id, Done: []byte(`1`), Who: "ann"}} {
		err := b.s.Act(b.ctx(), a)
		require.ErrorIs(b, err, store.ErrRejected)
		for _, e := range []journal.Effect{pay, ship} {
			require.ErrorContains(b, err, e.Name+" ("+e.Key.String()+")")
		}
	}
	require.Equal(b, before, b.row(r.Job, journal.MessageRequest, "work"))
	about(b, b.judge(r, store.Action{Done: []byte(`"sent"`), Effect: ship.Key}), ship, 2)
	require.Equal(b, store.EffectStarted, b.effectOf(r, pay.Key).State, "the next run meets it")
	require.Equal(b, `"sent"`, string(b.effectOf(r, ship.Key).Result))
}

func doubtVoid(b *bench) {
	c := b.committer()
	pay, ship := completed(at("pay", store.ClassGuarded, "1"), `1`), completed(at("ship", store.ClassIdempotent, "2"), `2`)
	r := b.doubtful(c, "confirm", pay, ship)
	about(b, b.judge(r, store.Action{Retry: true, Effect: pay.Key}), pay, 2)
	f := b.effectOf(r, pay.Key)
	require.Equal(b, store.EffectNotDone, f.State)
	require.Nil(b, f.Result)
	require.Equal(b, &journal.Failure{Class: store.FailureVoided, Message: "looked it up"}, f.Error)
	e := b.outcome(r)
	require.Equal(b, []any{journal.KindEffectFailed, store.FailureVoided}, []any{e.Kind, e.Effect.Error.Class})
	require.Nil(b, e.Effect.Result)
	require.Equal(b, `2`, string(b.effectOf(r, ship.Key).Result))
	row := b.row(r.Job, journal.MessageRequest, "work")
	l := b.lease(row, "w2")
	require.Equal(b, store.EffectNotDone, b.startEffect(l, at("pay", store.ClassGuarded, "1")).State)
	again, err := b.s.FinishEffect(b.ctx(), l, pay, false)
	require.NoError(b, err)
	require.Equal(b, store.EffectNotDone, again.State, "what was taken back stays so")
	next := effect("pay", 1)
	b.startEffect(l, next)
	b.finishEffect(l, completed(next, `3`))
	b.answer(c, r.Job, "work", success(`1`))
	b.audit(r.Job)
}

func doubtVouch(b *bench) {
	c := b.committer()
	pay, ship := completed(at("pay", store.ClassGuarded, ""), `1`), completed(at("ship", store.ClassIdempotent, ""), `2`)
	r := b.doubtful(c, "confirm", pay, ship)
	id := b.letters(false)[0].ID
	err := b.s.Act(b.ctx(), store.Action{ID: id, Done: []byte(`null`)})
	require.ErrorIs(b, err, store.ErrRejected, "two may be meant")
	require.ErrorContains(b, err, "ship")
	err = b.s.Act(b.ctx(), store.Action{ID: id, Done: []byte(`5`), Effect: pay.Key})
	require.ErrorIs(b, err, store.ErrRejected, "results are written once")
	head := b.row(r.Job, journal.MessageRequest, "work").Effects
	about(b, b.judge(r, store.Action{Done: []byte(`null`), Effect: pay.Key}), pay, 2)
	require.Equal(b, head, b.row(r.Job, journal.MessageRequest, "work").Effects, "its outcome is what it was")
	f := b.effectOf(r, pay.Key)
	require.Equal(b, []any{store.EffectCompleted, `1`, true}, []any{f.State, string(f.Result), f.Vouched})
	require.False(b, b.effectOf(r, ship.Key).Vouched)
	parked := failure(journal.ResponseParked, "was it sent?")
	parked.Error.Class = "confirm"
	b.answer(c, r.Job, "work", parked)
	r = b.row(r.Job, journal.MessageRequest, "work")
	about(b, b.judge(r, store.Action{Done: []byte(`2`)}), ship, 3) // the only one left in doubt
	require.True(b, b.effectOf(r, ship.Key).Vouched)
}

func doubtLeft(b *bench) { leftAlone(b, collation.ClassNondeterminism) }

func doubtMisfit(b *bench) { leftAlone(b, collation.ClassMisfit) }

// leftAlone retries a request that is parked for something else than an unknown
// outcome.
func leftAlone(b *bench, class string) {
	b.Helper()
	c := b.committer()
	pay := completed(at("pay", store.ClassGuarded, ""), `1`)
	ship := at("ship", store.ClassGuarded, "") // begun, and nothing was asked about it
	r := b.doubtful(c, class, pay, ship, at("log", store.ClassIdempotent, ""), undone)
	head := b.row(r.Job, journal.MessageRequest, "work").Effects
	require.Nil(b, b.judge(r, store.Action{Retry: true}).Effect)
	after := b.row(r.Job, journal.MessageRequest, "work")
	require.Equal(b, head, after.Effects)
	require.True(b, after.Undo)
	require.Equal(b, store.EffectCompleted, b.effectOf(r, pay.Key).State)
	require.Equal(b, store.EffectStarted, b.effectOf(r, ship.Key).State, "the letter does not ask about it")
}

func doubtUndo(b *bench) {
	ship := at("ship", store.ClassGuarded, "") // of a branch that has lost
	earlier := at("cancel", store.ClassUndo, "3")
	r := b.doubtful(b.committer(), collation.ClassUndo, ship, earlier, undone)
	about(b, b.judge(r, store.Action{Done: []byte(`null`)}), undone, 2)
	require.Equal(b, store.EffectCompleted, b.effectOf(r, undone.Key).State)
	require.Equal(b, store.EffectStarted, b.effectOf(r, earlier.Key).State, "it runs in its turn")
}

func doubtRefused(b *bench) {
	r := b.doubtful(b.committer(), "confirm", undone, completed(at("refused", store.ClassGuarded, ""), `1`))
	row := b.row(r.Job, journal.MessageRequest, "work")
	before, entries := b.letters(false), len(b.chain(r.Job, r.GUID))
	for name, a := range map[string]store.Action{
		"another's effect":                           {Retry: true, Effect: effect("of none", 0).Key},
		"a compensation that may never have to run":  {Done: []byte(`2`)},
		"a compensation is run by releasing its row": {Retry: true, Effect: undone.Key},
		"several":      {Done: []byte(`1`), Effect: effect("of none", 0).Key},
		"no payload":   {Done: []byte(`{"b":1, "a":2}`)},
		"no JSON":      {Done: []byte(`yes`), Effect: undone.Key},
		"empty":        {Done: []byte{}, Effect: undone.Key},
		"of an answer": {Response: success(`1`), Effect: undone.Key},
	} {
		a.ID = before[0].ID
		require.ErrorIs(b, b.s.Act(b.ctx(), a), store.ErrRejected, name)
	}
	require.Equal(b, row, b.row(r.Job, journal.MessageRequest, "work"))
	require.Equal(b, before, b.letters(false))
	require.Len(b, b.chain(r.Job, r.GUID), entries)
	b.audit(r.Job)
}

func doubtAction(b *bench) {
	d := collation.DeadLetter{Kind: journal.MessageRequest, Reason: "undecodable", Message: "unexpected end of JSON"}
	require.NoError(b, b.s.DeadLetter(b.ctx(), d, nil))
	id := b.letters(false)[0].ID
	for _, a := range []store.Action{
		{},
		{Retry: true, Done: []byte(`1`)},
		{Done: []byte(`1`), Response: success(`1`)},
		{Done: []byte(`1`)}, // there is no row
	} {
		a.ID = id
		require.ErrorIs(b, b.s.Act(b.ctx(), a), store.ErrRejected)
	}
	require.Len(b, b.letters(false), 1)
}

// doubtLate: two operators, and a completion that comes after all.
func doubtLate(b *bench) {
	c := b.committer()
	pay := at("pay", store.ClassGuarded, "")
	r := b.doubtful(c, collation.ClassParked, pay)
	id := b.letters(false)[0].ID
	errs := make([]error, 3)
	together(len(errs), func(i int) {
		switch i {
		case 0:
			errs[i] = b.s.Act(b.ctx(), store.Action{ID: id, Retry: true, Who: "ann"})
		case 1:
			errs[i] = b.s.Act(b.ctx(), store.Action{ID: id, Done: []byte(`"by hand"`), Who: "bob"})
		case 2:
			l := store.Lease{Job: r.Job, Request: r.GUID, Turn: 1, Fence: 1, Holder: "w"}
			_, errs[i] = b.s.FinishEffect(b.ctx(), l, completed(pay, `"after all"`), false)
		}
	})
	require.NoError(b, errs[2])
	for _, err := range errs[:2] {
		if err != nil {
			requireOneOf(b, err, store.ErrStale)
		}
	}
	require.False(b, errs[0] == nil && errs[1] == nil, "one of them was first")
	f := b.effectOf(r, pay.Key)
	switch {
	case errs[0] == nil:
		require.Equal(b, store.EffectNotDone, f.State)
	case errs[1] == nil:
		require.Equal(b, `"by hand"`, string(f.Result))
	default:
		require.Equal(b, `"after all"`, string(f.Result))
	}
	require.Len(b, b.chain(r.Job, r.GUID), 2, "one outcome")
	require.Empty(b, b.letters(false))
	b.audit(r.Job)
}

// doubtAccepted: the entry of the answer has bound the head of the effects (J8);
// what an operator said of one after it would stand behind that.
func doubtAccepted(b *bench) {
	b.mode.Stepwise = true
	c := b.committer()
	r := b.asked(c)
	e := effect("pay", 0)
	b.startEffect(b.lease(r, "w"), e)
	r = b.row(r.Job, journal.MessageRequest, "work")
	m := response(&r, success(`1`))
	_, err := b.once(c, m)
	require.NoError(b, err)
	l, err := b.load(c, m)
	require.NoError(b, err)
	st := l.States[r.Job]
	p := collation.Hold(st, m, b.mode, errors.New("refused for good"))
	require.NoError(b, c.Commit(b.ctx(), []store.Chained{store.Chain(&st.Job, p)}))
	a := store.Action{ID: b.letters(false)[0].ID, Effect: e.Key, Who: "ann", Reason: "looked it up"}
	for _, says := range []func(*store.Action){
		func(a *store.Action) { a.Done = []byte(`2`) },
		func(a *store.Action) { a.Retry = true },
	} {
		says := func(a store.Action) store.Action { says(&a); return a }(a)
		require.ErrorIs(b, b.s.Act(b.ctx(), says), store.ErrStale)
	}
	require.NoError(b, b.s.Act(b.ctx(), store.Action{ID: a.ID, Retry: true, Who: "ann"}), "it goes on")
	for range 3 {
		_, err := b.once(c, m)
		require.NoError(b, err)
	}
	require.Equal(b, journal.JobCompleted, b.view(r.Job).State)
	b.audit(r.Job)
}

// doubtAnswered: the within of a parked request passes, and its letter is open until
// that is done. What was said of an effect then would stand behind the head that the
// answer binds.
func doubtAnswered(b *bench) {
	b.mode.Stepwise = true
	c := b.committer()
	id := b.start(b.deploy(hasty), "k")
	b.run(c, id)
	r := b.row(id, journal.MessageRequest, "work")
	pay := at("pay", store.ClassGuarded, "")
	b.startEffect(b.lease(r, "w"), pay)
	parked := failure(journal.ResponseParked, "was it paid?")
	parked.Error.Class = collation.ClassParked
	b.answer(c, id, "work", parked)
	b.overdue(1)
	letter := b.letters(false)[0].ID
	entries := len(b.chain(id, r.GUID))
	refused := func() {
		b.Helper()
		for _, a := range []store.Action{{Retry: true, Effect: pay.Key}, {Done: []byte(`1`), Effect: pay.Key}, {Done: []byte(`1`)}} {
			a.ID, a.Who = letter, "ann"
			require.ErrorIs(b, b.s.Act(b.ctx(), a), store.ErrStale)
		}
		require.Len(b, b.chain(id, r.GUID), entries)
	}
	refused()
	answer := b.row(id, journal.MessageAnswer, "work")
	for range 3 { // entry, step 1, step 2, which closes the job
		_, err := b.once(c, message(&answer))
		require.NoError(b, err)
		refused()
	}
	require.True(b, b.view(id).State.Closed())
	b.run(c, id)
	require.True(b, b.view(id).Ended)
	b.audit(id)
}
