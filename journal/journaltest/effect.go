package journaltest

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

var effects = map[string]func(*bench){
	"started, completed, in order, on a chain of their own (J8)": effectChain,
	"a result is written once (E5)":                              effectOnce,
	"an empty result is a result (E6)":                           effectEmpty,
	"not done ends a key, the next one begins (E5)":              effectNotDone,
	"the same run finds its own start":                           effectOwn,
	"two first runs: one starts it (P17)":                        effectTwo,
	"a start whose lease is out is taken over (E4)":              effectTakeover,
	"a takeover waits for the try's timeout, of its turn (E4)":   effectTimeout,
	"when the timeout has passed, one run takes over (E4)":       effectTimeoutPasses,
	"an older holder's completion is recorded (E4)":              effectOlder,
	"an older holder says nothing of the call of a newer (E5)":   effectOlderNotDone,
	"a completion after the end is late (J8)":                    effectLate,
	"a pure effect needs no start":                               effectNoStart,
	"nothing is recorded without a start (J8)":                   effectUnstarted,
	"a completion counts the runs anew (E9)":                     effectRuns,
	"the ending response binds the head (J8)":                    effectBound,
	"a late completion unparks its request (E4)":                 effectUnparks,
	"a request whose effects have ended is not parked (E4)":      effectEndedFirst,
	"a result or payload over its limit is refused (E6)":         effectLimits,
	"the effects of two requests do not meet (J8)":               effectRequests,
}

func effect(name string, n int) journal.Effect {
	return journal.Effect{
		Key: sha256.Sum256(fmt.Appendf(nil, "%s %d", name, n)), Name: name, Class: "guarded", N: n,
	}
}

func completed(e journal.Effect, result string) journal.Effect {
	e.Result = []byte(result)
	return e
}

func (b *bench) startEffect(l store.Lease, e journal.Effect) store.EffectRow {
	b.Helper()
	row, taken, err := b.s.StartEffect(b.ctx(), l, e)
	require.NoError(b, err)
	require.False(b, taken)
	return row
}

func (b *bench) finishEffect(l store.Lease, e journal.Effect) store.EffectRow {
	b.Helper()
	row, err := b.s.FinishEffect(b.ctx(), l, e, false)
	require.NoError(b, err)
	return row
}

func effectChain(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	none, err := b.s.Effects(b.ctx(), r.Job, r.GUID)
	require.NoError(b, err)
	require.Empty(b, none)
	names := []string{"z", "a", "m"}
	for _, name := range names {
		row := b.startEffect(l, effect(name, 0))
		require.Equal(b, store.EffectRow{
			Key: effect(name, 0).Key, Name: name, Class: "guarded", State: store.EffectStarted,
			Fence: l.Fence, Holder: "w1", Live: true,
		}, row)
	}
	for _, name := range []string{"m", "z"} {
		row := b.finishEffect(l, completed(effect(name, 0), `{"of":"`+name+`"}`))
		require.Equal(b, store.EffectCompleted, row.State)
		require.JSONEq(b, `{"of":"`+name+`"}`, string(row.Result))
		require.False(b, row.Live)
	}
	list, err := b.s.Effects(b.ctx(), r.Job, r.GUID)
	require.NoError(b, err)
	require.Len(b, list, 3)
	for i, state := range []store.EffectState{store.EffectCompleted, store.EffectStarted, store.EffectCompleted} {
		require.Equal(b, names[i], list[i].Name, "in the order of their first entry")
		require.Equal(b, state, list[i].State)
	}
	require.True(b, list[1].Live)
	require.Equal(b, int64(5), b.row(r.Job, journal.MessageRequest, "work").Effects.Seq)
	b.audit(r.Job)
	entries := b.chain(r.Job, r.GUID)
	require.Len(b, entries, 5)
	for i, kind := range []journal.Kind{
		journal.KindEffectStarted, journal.KindEffectStarted, journal.KindEffectStarted,
		journal.KindEffectCompleted, journal.KindEffectCompleted,
	} {
		e := entries[i]
		require.Equal(b, kind, e.Kind)
		require.Equal(b, r.GUID, e.Chain)
		require.Equal(b, 1, e.Effect.Turn)
		require.Equal(b, l.Fence, e.Effect.Fence)
		require.False(b, e.Effect.Late)
		require.Positive(b, e.Time)
	}
	require.JSONEq(b, `{"of":"m"}`, string(entries[3].Effect.Result))
}

func effectOnce(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	b.startEffect(l, effect("pay", 0))
	b.finishEffect(l, completed(effect("pay", 0), `1`))
	head := b.row(r.Job, journal.MessageRequest, "work").Effects
	again, err := b.s.FinishEffect(b.ctx(), l, completed(effect("pay", 0), `2`), false)
	require.NoError(b, err)
	require.Equal(b, `1`, string(again.Result))
	again, err = b.s.FinishEffect(b.ctx(), l, effect("pay", 0), true)
	require.NoError(b, err)
	require.Equal(b, store.EffectCompleted, again.State)
	row := b.startEffect(l, effect("pay", 0))
	require.Equal(b, store.EffectCompleted, row.State, "a finished one is returned as it is")
	require.Equal(b, `1`, string(row.Result))
	require.Equal(b, head, b.row(r.Job, journal.MessageRequest, "work").Effects, "nothing is appended")
	b.audit(r.Job)
}

func effectEmpty(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	for i, result := range []string{`null`, `{}`, `""`, `[]`, ``} {
		e := effect("e", i)
		if e.Result = []byte(result); result == "" {
			e.Result = nil
		}
		b.startEffect(l, effect("e", i))
		b.finishEffect(l, e)
		row := b.startEffect(l, effect("e", i))
		require.Equal(b, store.EffectCompleted, row.State, "%q", result)
		require.Equal(b, result, string(row.Result))
	}
	b.audit(r.Job)
}

func effectNotDone(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	b.startEffect(l, effect("pay", 0))
	e := effect("pay", 0)
	e.Error = &journal.Failure{Class: "error", Message: "connection refused", Data: []byte(`{"port":1}`)}
	row, err := b.s.FinishEffect(b.ctx(), l, e, true)
	require.NoError(b, err)
	require.Equal(b, store.EffectNotDone, row.State)
	require.Equal(b, e.Error, row.Error)
	b.startEffect(l, effect("pay", 1))
	b.finishEffect(l, completed(effect("pay", 1), `"ok"`))
	list, err := b.s.Effects(b.ctx(), r.Job, r.GUID)
	require.NoError(b, err)
	require.Len(b, list, 2)
	require.Equal(b, store.EffectNotDone, list[0].State)
	require.Equal(b, e.Error, list[0].Error)
	require.Equal(b, 1, list[1].N)
	b.audit(r.Job)
	require.Equal(b, journal.KindEffectFailed, b.chain(r.Job, r.GUID)[1].Kind)
}

func effectOwn(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	b.startEffect(l, effect("pay", 0))
	row := b.startEffect(l, effect("pay", 0))
	require.Equal(b, store.EffectStarted, row.State)
	require.Equal(b, l.Fence, row.Fence)
	require.Equal(b, l.Holder, row.Holder)
	require.Len(b, b.chain(r.Job, r.GUID), 1)
}

// effectTwo lets two runs that have no lease yet start the same effect: the
// stored row tells who did.
func effectTwo(b *bench) {
	r := b.asked(b.committer())
	var mu sync.Mutex
	mine := 0
	together(6, func(i int) {
		l := store.Lease{Job: r.Job, Request: r.GUID, Generation: 1, Turn: 1, Holder: fmt.Sprint("w", i)}
		row, taken, err := b.s.StartEffect(b.ctx(), l, effect("pay", 0))
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			requireOneOf(b, err, store.ErrLeased, store.ErrStale)
			return
		}
		if taken {
			b.Errorf("taken from a run that may be alive")
		}
		if row.Holder == l.Holder {
			mine++
		}
	})
	require.Equal(b, 1, mine)
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	list, err := b.s.Effects(b.ctx(), r.Job, r.GUID)
	require.NoError(b, err)
	require.True(b, list[0].Live, "a start has a lease, until its row is due (E4)")
	_, err = b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "another", hour)
	require.ErrorIs(b, err, store.ErrLeased)
	b.audit(r.Job)
}

// expired starts an effect under a lease that runs out, and gives the lease of
// the run that follows it.
func (b *bench) expired(r collation.Row, e journal.Effect) (old, next store.Lease) {
	b.Helper()
	old, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w1", b.span())
	require.NoError(b, err)
	b.startEffect(old, e)
	b.eventually(func() bool {
		next, err = b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w2", hour)
		return err == nil
	})
	return old, next
}

func effectTakeover(b *bench) {
	r := b.asked(b.committer())
	_, l := b.expired(r, effect("pay", 0))
	list, err := b.s.Effects(b.ctx(), r.Job, r.GUID)
	require.NoError(b, err)
	require.Equal(b, "w1", list[0].Holder)
	require.False(b, list[0].Live)
	row, taken, err := b.s.StartEffect(b.ctx(), l, effect("pay", 0))
	require.NoError(b, err)
	require.True(b, taken)
	require.Equal(b, l.Fence, row.Fence)
	require.Equal(b, "w2", row.Holder)
	require.True(b, row.Live)
	row, taken, err = b.s.StartEffect(b.ctx(), l, effect("pay", 0))
	require.NoError(b, err)
	require.False(b, taken, "it is taken once")
	require.Equal(b, "w2", row.Holder)
	b.finishEffect(l, completed(effect("pay", 0), `2`))
	b.audit(r.Job)
}

// effectTimeout: the lease of a run is out, and its try is not over.
func effectTimeout(b *bench) {
	c := b.committer()
	for _, turned := range []bool{false, true} {
		id := b.requested(c, one, fmt.Sprint("turned ", turned))
		r := b.row(id, journal.MessageRequest, "work")
		l, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w1", b.span())
		require.NoError(b, err)
		l.Timeout = hour
		b.startEffect(l, effect("pay", 0))
		b.startEffect(l, effect("ship", 0))
		b.leaseOut(r)
		b.finishEffect(l, completed(effect("ship", 0), `1`))
		turn := 1
		if turned { // the try is over: its answer was accepted
			b.answer(c, id, "work", failure(journal.ResponseFailedTry, "connection reset"))
			turn = 2
		}
		next, err := b.s.Lease(b.ctx(), r.Job, r.GUID, turn, "w2", hour)
		if turned {
			require.NoError(b, err)
			_, taken, err := b.s.StartEffect(b.ctx(), next, effect("pay", 0))
			require.NoError(b, err)
			require.True(b, taken)
			continue
		}
		require.ErrorIs(b, err, store.ErrLeased)
		require.Zero(b, b.row(id, journal.MessageRequest, "work").Runs, "to wait is no run (E9)")
		b.finishEffect(l, completed(effect("pay", 0), `1`))
		b.lease(r, "w2")
	}
}

// leaseOut waits until the lease of a request's first effect is out.
func (b *bench) leaseOut(r collation.Row) {
	b.Helper()
	b.eventually(func() bool {
		list, err := b.s.Effects(b.ctx(), r.Job, r.GUID)
		return err == nil && !list[0].Live
	})
}

// effectTimeoutPasses: then one taker has it.
func effectTimeoutPasses(b *bench) {
	r := b.asked(b.committer())
	l, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w1", b.span())
	require.NoError(b, err)
	l.Timeout = 2 * b.span()
	b.startEffect(l, effect("pay", 0))
	b.leaseOut(r)
	var next store.Lease
	b.eventually(func() bool {
		next, err = b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w2", hour)
		return err == nil
	})
	row, taken, err := b.s.StartEffect(b.ctx(), next, effect("pay", 0))
	require.NoError(b, err)
	require.True(b, taken)
	require.Equal(b, "w2", row.Holder)
	b.audit(r.Job)
}

// effectOlderNotDone: what a run says of its own call is not what the run did that
// took it over. A second key would be a second call (I1).
func effectOlderNotDone(b *bench) {
	r := b.asked(b.committer())
	e := effect("pay", 0)
	e.Class = store.ClassIdempotent
	old, l := b.expired(r, e)
	_, taken, err := b.s.StartEffect(b.ctx(), l, e)
	require.NoError(b, err)
	require.True(b, taken)
	_, err = b.s.FinishEffect(b.ctx(), old, e, true)
	require.ErrorIs(b, err, store.ErrStale)
	row := b.finishEffect(l, completed(e, `"of the newer"`))
	require.Equal(b, store.EffectCompleted, row.State)
	b.audit(r.Job)
}

func effectOlder(b *bench) {
	r := b.asked(b.committer())
	old, l := b.expired(r, effect("pay", 0))
	row := b.finishEffect(old, completed(effect("pay", 0), `"of the older"`))
	require.Equal(b, store.EffectCompleted, row.State)
	row = b.startEffect(l, effect("pay", 0))
	require.Equal(b, `"of the older"`, string(row.Result))
	row = b.finishEffect(l, completed(effect("pay", 0), `"of the newer"`))
	require.Equal(b, `"of the older"`, string(row.Result), "the first recorded one stands (P22)")
	entries := b.chain(r.Job, r.GUID)
	require.True(b, entries[len(entries)-1].Effect.Late)
	b.audit(r.Job)
}

func effectLate(b *bench) {
	c := b.committer()
	id := b.requested(c, fork, "k")
	l := b.lease(b.row(id, journal.MessageRequest, "right"), "w")
	b.startEffect(l, effect("pay", 0))
	b.answer(c, id, "left", failure(journal.ResponseTerminal, "declined"))
	require.Equal(b, journal.JobFailed, b.view(id).State)
	row := b.finishEffect(l, completed(effect("pay", 0), `"paid"`))
	require.Equal(b, store.EffectCompleted, row.State)
	_, err := b.s.FinishEffect(b.ctx(), l, completed(effect("other", 0), `1`), false)
	requireOneOf(b, err, store.ErrStale, store.ErrJobClosed)
	entries := b.chain(id, l.Request)
	require.Len(b, entries, 2)
	require.True(b, entries[1].Effect.Late)
	list, err := b.s.Effects(b.ctx(), id, l.Request)
	require.NoError(b, err)
	require.Equal(b, `"paid"`, string(list[0].Result))
	b.audit(id)
}

func effectNoStart(b *bench) {
	c := b.committer()
	r := b.asked(c)
	l := b.lease(r, "w1")
	e := completed(effect("pure", 0), `1`)
	e.Class = "pure"
	row := b.finishEffect(l, e)
	require.Equal(b, store.EffectCompleted, row.State)
	require.Equal(b, "pure", row.Class)
	b.answer(c, r.Job, "work", success(`1`))
	e = completed(effect("after", 0), `1`)
	e.Class = "pure"
	_, err := b.s.FinishEffect(b.ctx(), l, e, false)
	requireOneOf(b, err, store.ErrStale, store.ErrJobClosed)
	b.audit(r.Job)
}

func effectUnstarted(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	_, err := b.s.FinishEffect(b.ctx(), l, completed(effect("pay", 0), `1`), false)
	require.Error(b, err)
	require.Empty(b, b.chain(r.Job, r.GUID))
}

func effectRuns(b *bench) {
	r := b.asked(b.committer())
	_ = b.lease(r, "w")
	l := b.lease(r, "w")
	require.Equal(b, 2, l.Runs)
	b.startEffect(l, effect("pay", 0))
	require.Equal(b, 2, b.row(r.Job, journal.MessageRequest, "work").Runs)
	b.finishEffect(l, completed(effect("pay", 0), `1`))
	require.Zero(b, b.row(r.Job, journal.MessageRequest, "work").Runs)
	require.Equal(b, 1, b.lease(r, "w").Runs)
}

func effectBound(b *bench) {
	c := b.committer()
	r := b.asked(c)
	l := b.lease(r, "w1")
	b.startEffect(l, effect("pay", 0))
	b.finishEffect(l, completed(effect("pay", 0), `1`))
	head := b.row(r.Job, journal.MessageRequest, "work").Effects
	p := b.must(c, response(&r, success(`1`)))
	require.Equal(b, &journal.Bound{Chain: r.GUID, Head: head}, p.Entry.Bound)
	require.Equal(b, int64(2), head.Seq)
	b.audit(r.Job)
}

// effectEndedFirst: the late completion comes before the parked response is
// handled, so that there is nothing left that would unpark the request.
func effectEndedFirst(b *bench) {
	c := b.committer()
	for _, ended := range []bool{false, true} {
		id := b.requested(c, one, fmt.Sprint("ended ", ended))
		r := b.row(id, journal.MessageRequest, "work")
		l := b.lease(r, "w1")
		b.startEffect(l, effect("pay", 0))
		if ended {
			b.finishEffect(l, completed(effect("pay", 0), `"paid"`))
		}
		parked := failure(journal.ResponseParked, "unknown outcome")
		parked.Error.Class = collation.ClassParked
		b.answer(c, id, "work", parked)
		row := b.row(id, journal.MessageRequest, "work")
		require.Equal(b, ended, row.Held == "")
		require.Equal(b, 2, row.Turn)
		b.audit(id)
	}
}

func effectUnparks(b *bench) {
	c := b.committer()
	r := b.asked(c)
	old, l := b.expired(r, effect("pay", 0))
	_, taken, err := b.s.StartEffect(b.ctx(), l, effect("pay", 0))
	require.NoError(b, err)
	require.True(b, taken)
	b.answer(c, r.Job, "work", failure(journal.ResponseParked, "unknown outcome"))
	require.Equal(b, collation.HeldParked, b.row(r.Job, journal.MessageRequest, "work").Held)
	b.finishEffect(old, completed(effect("pay", 0), `"paid after all"`))
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Empty(b, row.Held)
	require.Len(b, b.due(10), 1, "the request runs again and finds the result")
	next := b.lease(row, "w3")
	require.Equal(b, `"paid after all"`, string(b.startEffect(next, effect("pay", 0)).Result))
	letters, err := b.s.DeadLetters(b.ctx(), false, 10)
	require.NoError(b, err)
	require.Empty(b, letters, "nobody has to decide it any more")
	b.audit(r.Job)
}

func effectLimits(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	b.startEffect(l, effect("pay", 0))
	large := []byte(`"` + strings.Repeat("x", wire.MaxResult-2) + `"`)
	_, err := b.s.FinishEffect(b.ctx(), l, completed(effect("pay", 0), string(large)+" "), false)
	require.ErrorIs(b, err, store.ErrRejected)
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	row := b.finishEffect(l, completed(effect("pay", 0), string(large)))
	require.Len(b, row.Result, wire.MaxResult)
	require.NoError(b, b.s.PutPayload(b.ctx(), r.Job, sha256.Sum256(large), large))
	over := append(large, ' ')
	require.ErrorIs(b, b.s.PutPayload(b.ctx(), r.Job, sha256.Sum256(over), over), store.ErrRejected)
	require.ErrorIs(b, b.s.PutPayload(b.ctx(), r.Job, digest(1), []byte(`1`)), store.ErrRejected, "of another digest")
	require.ErrorIs(b, b.s.PutPayload(b.ctx(), journal.JobID{1}, sha256.Sum256([]byte(`1`)), []byte(`1`)), store.ErrNotFound)
	b.audit(r.Job)
}

func effectRequests(b *bench) {
	c := b.committer()
	id := b.requested(c, fork, "k")
	rows := map[string]store.Lease{}
	for _, activity := range []string{"left", "right"} {
		l := b.lease(b.row(id, journal.MessageRequest, activity), "w")
		b.startEffect(l, effect(activity, 0))
		rows[activity] = l
	}
	for activity, l := range rows {
		list, err := b.s.Effects(b.ctx(), id, l.Request)
		require.NoError(b, err)
		require.Len(b, list, 1)
		require.Equal(b, activity, list[0].Name)
		require.Len(b, b.chain(id, l.Request), 1)
	}
	b.audit(id)
}
