package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

func effect(name string, n int) journal.Effect {
	return journal.Effect{
		Key: sha256.Sum256(fmt.Appendf(nil, "%s %d", name, n)), Name: name, Class: store.ClassGuarded, N: n,
	}
}

// at returns an effect of a class, at a position.
func effectAt(name, class, position string) journal.Effect {
	e := effect(name, 0)
	e.Class, e.Position = class, position
	return e
}

func completed(e journal.Effect, result string) journal.Effect {
	e.Result = []byte(result)
	return e
}

func (b *bench) startEffect(l store.Lease, e journal.Effect) store.EffectRow {
	b.Helper()
	return b.starts(l, e, false)
}

// starts starts an effect that another run has started, or none.
func (b *bench) starts(l store.Lease, e journal.Effect, taken bool) store.EffectRow {
	b.Helper()
	row, was, err := b.s.StartEffect(b.ctx(), l, e)
	require.NoError(b, err)
	require.Equal(b, taken, was)
	return row
}

func (b *bench) finishEffect(l store.Lease, e journal.Effect) store.EffectRow {
	b.Helper()
	return must(b.s.FinishEffect(b.ctx(), l, e, false))(b)
}

// effectsOf lists the effects of a request.
func (b *bench) effectsOf(job journal.JobID, request journal.GUID) []store.EffectRow {
	b.Helper()
	return must(b.s.Effects(b.ctx(), job, request))(b)
}

var _ = test("Effects", "a chain of their own, in the order of their first entries (J8)", func(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	require.Empty(b, b.effectsOf(r.Job, r.GUID))
	want := []store.EffectRow{
		b.startEffect(l, effect("z", 0)), b.startEffect(l, effect("a", 0)), b.startEffect(l, effect("m", 0)),
	}
	for _, i := range []int{2, 0} {
		want[i] = b.finishEffect(l, completed(effect(want[i].Name, 0), `{"of":1}`))
	}
	require.Equal(b, want, b.effectsOf(r.Job, r.GUID))
	require.Equal(b, []bool{false, true, false}, []bool{want[0].Live, want[1].Live, want[2].Live})
	entries := b.chain(r.Job, r.GUID)
	require.Equal(b, int64(len(entries)), b.request(r.Job, "work").Effects.Seq)
	var kinds []journal.Kind
	for _, e := range entries {
		kinds = append(kinds, e.Kind)
	}
	require.Equal(b, append(slices.Repeat([]journal.Kind{journal.KindEffectStarted}, 3),
		slices.Repeat([]journal.Kind{journal.KindEffectCompleted}, 2)...), kinds)
})

var _ = test("Effects", "an effect keeps what is recorded of it, field by field (E6)", func(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	large := `"` + strings.Repeat("x", wire.MaxResult-2) + `"`
	for i, result := range []string{`null`, `{}`, `""`, ``, large} { // an empty result is a result
		e := effectAt("e", store.ClassIdempotent, "2.0.1")
		e.Key, e.N = effect("e", i).Key, i
		want := store.EffectRow{
			Key: e.Key, Name: "e", Class: store.ClassIdempotent, N: i, Position: "2.0.1", State: store.EffectStarted,
			Fence: l.Fence, Holder: "w1", Live: true,
		}
		require.Equal(b, want, b.startEffect(l, e))
		if want.State, want.Live = store.EffectCompleted, false; result != "" {
			want.Result = []byte(result)
		}
		e.Result = want.Result
		require.Equal(b, want, b.finishEffect(l, e))
		require.Equal(b, want, b.effectsOf(r.Job, r.GUID)[i])
	}
	refused := effect("refused", 0)
	refused.Error = &journal.Failure{Class: "business", Message: "declined", Data: []byte(`[1]`), Stack: "s"}
	b.startEffect(l, effect("refused", 0))
	b.finishEffect(l, refused)
	require.Equal(b, refused.Error, b.effectsOf(r.Job, r.GUID)[5].Error)
})

// The session of a run has ended, but its attempt has not, unless its answer was
// accepted.
var _ = test("Effects", "a takeover waits for the attempt's timeout, of its turn (E4)", func(b *bench) {
	for _, turned := range []bool{false, true} {
		r := b.request(b.requested(oneWorker, fmt.Sprint("turned ", turned)), "work")
		l := b.leaseFor(r, "w1", b.session("dies", lasting))
		l.Timeout = hour
		b.startEffect(l, effect("pay", 0))
		b.letDie("dies")
		if turned {
			b.answer(r.Job, "work", failure(journal.ResponseFailedAttempt, "connection reset"))
			b.starts(b.lease(b.request(r.Job, "work"), "w2"), effect("pay", 0), true)
			continue
		}
		b.unleased(r, store.ErrLeased)
		awaited := must(b.lists.Awaited(b.ctx(), []journal.JobID{r.Job}))(b)[r.Job]
		cut := slices.DeleteFunc(awaited, func(x store.Awaited) bool {
			return x.What != store.WaitsEffect
		})
		require.Len(b, cut, 1, "the job says so")
		require.Equal(b, []any{"work", "pay", "w1", store.ClassGuarded, r.GUID},
			[]any{cut[0].Activity, cut[0].Topic, cut[0].Holder, cut[0].Class, cut[0].Request})
		require.Greater(b, cut[0].Due, b.now())
		require.Equal(b, l.Runs, b.request(r.Job, "work").Runs, "to wait is no run (E9)")
		b.finishEffect(l, completed(effect("pay", 0), `1`))
		l = b.lease(r, "w2")
		l.Timeout = lasting // of the next attempt, which passes
		b.startEffect(l, effect("log", 0))
		require.NoError(b, b.s.HandBack(b.ctx(), l))
		b.eventually(func() bool {
			_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w3", b.live().ID())
			return err == nil
		})
		require.Equal(b, "w3", b.starts(b.lease(r, "w3"), effect("log", 0), true).Holder)
	}
})

var _ = test("Effects", "what comes when the row has gone is recorded (J8)", func(b *bench) {
	id := b.requested(twoBranches, "k")
	l := b.lease(b.request(id, "right"), "w")
	b.startEffect(l, effect("pay", 0))
	b.answer(id, "left", failure(journal.ResponseTerminal, "declined"))
	b.is(journal.JobFailed, id)
	b.finishEffect(l, completed(effect("pay", 0), `"paid"`))
	requireOneOf(b, failed(b.s.FinishEffect(b.ctx(), l, completed(effect("other", 0), `1`), false)), store.ErrStale,
		store.ErrJobClosed)
	require.Equal(b, `"paid"`, string(b.effectsOf(id, l.Request)[0].Result))
	require.True(b, b.chain(id, l.Request)[1].Effect.Late)
})

// It takes one recorded result back and confirms another.
var _ = test("Effects", "a result is taken back, or vouched for (3.3)", func(b *bench) {
	r := b.asked()
	pay, ship := effectAt("pay", store.ClassGuarded, "1"), effectAt("ship", store.ClassIdempotent, "2")
	l := b.lease(r, "w")
	for _, e := range []journal.Effect{pay, ship} {
		b.startEffect(l, e)
		b.finishEffect(l, completed(e, `1`))
	}
	for _, a := range []store.Action{{Retry: true, Effect: pay.Key}, {Done: []byte(`1`)}} {
		doubt := failure(journal.ResponseParked, "was it paid?")
		doubt.Error.Class = collation.ClassConfirm
		b.answer(r.Job, "work", doubt)
		st := b.more(r.Job, collation.Need{Effects: []journal.GUID{r.GUID}, Record: []journal.GUID{r.GUID}})
		require.Equal(b, map[journal.GUID]bool{r.GUID: false}, st.Unfinished)
		require.Equal(b, map[journal.GUID][]store.EffectRow{r.GUID: b.effectsOf(r.Job, r.GUID)}, st.Record)
		a.ID, a.Who, a.Reason = b.letters(false)[0].ID, "ann", "looked it up"
		require.NoError(b, b.s.Act(b.ctx(), a))
	}
	after := b.effectsOf(r.Job, r.GUID)
	require.Equal(b, []any{store.EffectNotDone, &journal.Failure{Class: store.FailureVoided, Message: "looked it up"}, false},
		[]any{after[0].State, after[0].Error, after[0].Vouched})
	require.Nil(b, after[0].Result)
	require.Equal(b, []any{store.EffectCompleted, `1`, true},
		[]any{after[1].State, string(after[1].Result), after[1].Vouched})

	l, late := b.lease(b.request(r.Job, "work"), "w"), effect("late", 0)
	b.startEffect(l, late)
	require.True(b, b.more(r.Job, collation.Need{Effects: []journal.GUID{r.GUID}}).Unfinished[r.GUID])
	parked := failure(journal.ResponseParked, "was it paid?")
	parked.Error.Class = collation.ClassParked
	b.answer(r.Job, "work", parked)
	require.Len(b, b.letters(false), 1)
	b.finishEffect(l, completed(late, `1`)) // the late completion releases the request (E4)
	require.Empty(b, b.request(r.Job, "work").Held)
	require.Empty(b, b.letters(false))
	require.ErrorIs(b, b.alter(r.Job, func(p *collation.Plan, _ *collation.State) {
		p.Chain = &collation.ChainWrite{
			Request: r.GUID, Effect: collation.Effect{EffectRow: after[0], Request: r.GUID}, Completed: true,
		}
	}), store.ErrLost, "it has no result any more")
})

// Two requests of a job never have one key by themselves. But a worker's login chooses what it writes.
var _ = test("Effects", "the effects of a request are its own, whatever their keys (J8, S8)", func(b *bench) {
	b.odd = true
	id := b.requested(twoBranches, "k")
	left := b.lease(b.request(id, "left"), "w")
	b.lease(b.request(id, "right"), "w") // its fence is higher
	right := b.lease(b.request(id, "right"), "w")
	for _, name := range []string{"pay", "log"} {
		b.startEffect(left, effect(name, 0))
	}
	b.startEffect(right, effect("pay", 0))
	b.finishEffect(right, completed(effect("pay", 0), `1`))
	require.Len(b, b.effectsOf(id, left.Request), 2)
	require.Equal(b, store.EffectStarted, b.effectsOf(id, left.Request)[0].State)
	require.Equal(b, store.EffectCompleted, b.effectsOf(id, right.Request)[0].State)
	require.Len(b, must(b.s.JobEffects(b.ctx(), id))(b), 3)
})

var _ = test("Effects", "the effects of a job come in the order of their time", func(b *bench) {
	id := b.requested(twoBranches, "k")
	order := []string{"right", "left", "right", "left"}
	leases := map[string]store.Lease{"left": b.lease(b.request(id, "left"), "w"), "right": b.lease(b.request(id, "right"), "w")}
	for i, activity := range order {
		b.tick()
		b.startEffect(leases[activity], effect(fmt.Sprint(i), 0))
	}
	b.finishEffect(leases["left"], completed(effect("1", 0), `1`))
	b.answer(id, "right", journaltest.Success(`1`))
	list := must(b.s.JobEffects(b.ctx(), id))(b)
	require.Len(b, list, len(order))
	for i, f := range list {
		require.Equal(b, []any{fmt.Sprint(i), id, leases[order[i]].Request, order[i]},
			[]any{f.Name, f.Job, f.Request, f.Activity})
		require.NotEmpty(b, f.DAD)
		require.Equal(b, i == 3, f.Live)
	}
	require.Equal(b, `1`, string(list[1].Result))
})

// tick makes what comes later than what came.
func (b *bench) tick() { b.clock.Advance(time.Millisecond) }

var _ = test("Effects", "a key is found in whichever job (E1)", func(b *bench) {
	rows := []store.Lease{}
	for _, key := range []string{"k", "l"} {
		rows = append(rows, b.lease(b.request(b.requested(oneWorker, key), "work"), "w"))
	}
	// not the order of their ids
	slices.SortFunc(rows, func(x, y store.Lease) int { return slices.Compare(y.Job[:], x.Job[:]) })
	for i, l := range rows {
		b.tick()
		b.startEffect(l, effect("of both", 0))
		b.startEffect(l, effect("of one", i))
	}
	find := func(e journal.Effect) []store.JobEffect { return must(b.s.FindEffect(b.ctx(), e.Key))(b) }
	for i, l := range rows {
		found := find(effect("of one", i))
		require.Len(b, found, 1)
		require.Equal(b, []any{l.Job, l.Request, "work", ",0,0", true},
			[]any{found[0].Job, found[0].Request, found[0].Activity, found[0].DAD, found[0].Live})
	}
	both := find(effect("of both", 0))
	require.Len(b, both, 2)
	require.Negative(b, slices.Compare(both[0].Job[:], both[1].Job[:]), "in the order of their ids")
	require.Empty(b, find(effect("of none", 0)))
})

// body returns a body that ends as given, and counts its calls.
func body(calls *int, end store.TxEnd, err error) store.TxCall {
	return func(context.Context, any) (store.TxEnd, error) {
		*calls++
		return end, err
	}
}

func resulting(result string) store.TxEnd { return store.TxEnd{Result: []byte(result)} }

// A refusal is a result, and not done ends a key; nothing runs twice.
var _ = test("Tx", "completed without a start, refused or not done, once (E3, E5)", func(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	calls, ends := 0, []store.TxEnd{
		resulting(`{"n":1}`), resulting(`null`),
		{Result: []byte(`{"code":402}`), Error: &journal.Failure{Class: "business", Message: "declined"}},
		{Error: &journal.Failure{Class: "error", Message: "locked"}, NotDone: true},
	}
	for i, end := range ends {
		e := effectAt(fmt.Sprint(i), store.ClassTx, fmt.Sprint(4+i))
		want := store.EffectRow{
			Key: e.Key, Name: e.Name, Class: store.ClassTx, State: store.EffectCompleted, Result: end.Result,
			Error: end.Error, Fence: l.Fence, Holder: "w1", Position: e.Position,
		}
		if end.NotDone {
			want.State = store.EffectNotDone
		}
		for range 2 {
			require.Equal(b, want, must(b.s.TxEffect(b.ctx(), l, e, body(&calls, end, nil)))(b))
		}
	}
	require.Equal(b, len(ends), calls)
	require.Len(b, b.chain(r.Job, r.GUID), len(ends))
})

// It starts more at once: all get what stands.
var _ = test("Tx", "two at once: one stands (P17)", func(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	require.Len(b, atOnce(4, func(i int) string {
		calls := 0
		row, err := b.s.TxEffect(b.ctx(), l, effectAt("pay", store.ClassTx, ""),
			body(&calls, resulting(string(rune('0'+i))), nil))
		b.check(err)
		return string(row.Result)
	}), 1)
	require.Len(b, b.chain(r.Job, r.GUID), 1)
})

// It is a run that comes back after its job was removed. Whether its body runs again or
// not, its writes are refused.
var _ = test("Tx", "of a removed job: stale, and nothing stands (P29)", func(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	calls := 0
	must(b.s.TxEffect(b.ctx(), l, effectAt("pay", store.ClassTx, ""), body(&calls, resulting("1"), nil)))(b)
	b.finish(r.Job, collation.Micros(1))
	b.expire(100)
	for _, name := range []string{"pay", "book"} {
		require.ErrorIs(b,
			failed(b.s.TxEffect(b.ctx(), l, effectAt(name, store.ClassTx, ""), body(&calls, resulting("2"), nil))),
			store.ErrStale, name)
	}
})
