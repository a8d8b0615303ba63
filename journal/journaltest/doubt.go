package journaltest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var doubts = map[string]func(*bench){
	"a result is taken back, or vouched for (3.3)": doubtVoid,
	"who is too late changes nothing":              doubtLate,
}

// doubtful starts effects, ends those that have a result, and parks their request.
func (b *bench) doubtful(class string, effects ...journal.Effect) collation.Row {
	b.Helper()
	r := b.asked()
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
	b.answer(r.Job, "work", parked)
	row := b.request(r.Job, "work")
	require.Equal(b, collation.HeldParked, row.Held)
	return row
}

func (b *bench) effectOf(r collation.Row, key journal.Digest) store.EffectRow {
	b.Helper()
	list := got(b.s.Effects(b.ctx(), r.Job, r.GUID))(b)
	i := slices.IndexFunc(list, func(f store.EffectRow) bool { return f.Key == key })
	require.GreaterOrEqual(b, i, 0, "the request has such an effect")
	return list[i]
}

// doubtVoid removes one recorded result and confirms another.
func doubtVoid(b *bench) {
	pay, ship := completed(at("pay", store.ClassGuarded, "1"), `1`), completed(at("ship", store.ClassIdempotent, "2"), `2`)
	r := b.doubtful("confirm", pay, ship)
	act := func(a store.Action) {
		b.Helper()
		a.ID, a.Who, a.Reason = b.letters(false)[0].ID, "ann", "looked it up"
		require.NoError(b, b.s.Act(b.ctx(), a))
		require.Empty(b, b.letters(false))
		require.Len(b, b.due(10), 1, "due at once")
	}
	act(store.Action{Retry: true, Effect: pay.Key})
	f := b.effectOf(r, pay.Key)
	require.Equal(b, store.EffectNotDone, f.State)
	require.Nil(b, f.Result)
	require.Equal(b, &journal.Failure{Class: store.FailureVoided, Message: "looked it up"}, f.Error)
	require.Equal(b, `2`, string(b.effectOf(r, ship.Key).Result))
	l := b.lease(b.request(r.Job, "work"), "w2")
	require.Equal(b, store.EffectNotDone, b.finishEffect(l, pay).State, "what was taken back stays so")

	parked := failure(journal.ResponseParked, "was it sent?")
	parked.Error.Class = "confirm"
	b.answer(r.Job, "work", parked)
	head := b.request(r.Job, "work").Effects
	act(store.Action{Done: []byte(`2`)})
	require.Equal(b, head, b.request(r.Job, "work").Effects, "its outcome is what it was")
	f = b.effectOf(r, ship.Key)
	require.Equal(b, []any{store.EffectCompleted, `2`, true}, []any{f.State, string(f.Result), f.Vouched})
}

// doubtLate: two operators decide, and a late completion comes.
func doubtLate(b *bench) {
	pay := at("pay", store.ClassGuarded, "")
	r := b.doubtful(collation.ClassParked, pay)
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
}
