package journaltest

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

var effects = map[string]func(*bench){
	"started, completed, in order, on a chain of their own (J8)":   effectChain,
	"an empty result is a result (E6)":                             effectEmpty,
	"a takeover waits for the attempt's timeout, of its turn (E4)": effectTimeout,
	"when the timeout has passed, one run takes over (E4)":         effectTimeoutPasses,
	"a completion after the end is late (J8)":                      effectLate,
	"a result or payload of the limit is stored (E6)":              effectLimits,
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
	row := got(b.s.FinishEffect(b.ctx(), l, e, false))(b)
	return row
}

func effectChain(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	none := got(b.s.Effects(b.ctx(), r.Job, r.GUID))(b)
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
	list := got(b.s.Effects(b.ctx(), r.Job, r.GUID))(b)
	require.Len(b, list, 3)
	for i, state := range []store.EffectState{store.EffectCompleted, store.EffectStarted, store.EffectCompleted} {
		require.Equal(b, names[i], list[i].Name, "in the order of their first entry")
		require.Equal(b, state, list[i].State)
	}
	require.True(b, list[1].Live)
	require.Equal(b, int64(5), b.request(r.Job, "work").Effects.Seq)
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

func effectEmpty(b *bench) {
	r := b.asked()
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
}

// effectTimeout: the session of a run has ended, but its attempt has not.
func effectTimeout(b *bench) {
	for _, turned := range []bool{false, true} {
		id := b.requested(one, fmt.Sprint("turned ", turned))
		r := b.request(id, "work")
		l := b.leaseFor(r, "w1", b.session("dies", b.span()))
		l.Timeout = hour
		b.startEffect(l, effect("pay", 0))
		b.startEffect(l, effect("ship", 0))
		b.letDie("dies")
		b.finishEffect(l, completed(effect("ship", 0), `1`))
		turn := 1
		if turned { // the attempt has ended: its answer was accepted
			b.answer(id, "work", failure(journal.ResponseFailedAttempt, "connection reset"))
			turn = 2
		}
		next, err := b.s.Lease(b.ctx(), r.Job, r.GUID, turn, "w2", b.live().ID())
		if turned {
			require.NoError(b, err)
			_, taken, err := b.s.StartEffect(b.ctx(), next, effect("pay", 0))
			require.NoError(b, err)
			require.True(b, taken)
			continue
		}
		require.ErrorIs(b, err, store.ErrLeased)
		require.Zero(b, b.request(id, "work").Runs, "to wait is no run (E9)")
		b.finishEffect(l, completed(effect("pay", 0), `1`))
		b.lease(r, "w2")
	}
}

// effectTimeoutPasses: after the attempt exactly one run takes the effect over.
func effectTimeoutPasses(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	l.Timeout = b.span()
	b.startEffect(l, effect("pay", 0))
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	var next store.Lease
	b.eventually(func() bool {
		var err error
		next, err = b.s.Lease(b.ctx(), r.Job, r.GUID, 1, "w2", b.live().ID())
		return err == nil
	})
	row, taken, err := b.s.StartEffect(b.ctx(), next, effect("pay", 0))
	require.NoError(b, err)
	require.True(b, taken)
	require.Equal(b, "w2", row.Holder)
}

func effectLate(b *bench) {
	id := b.requested(fork, "k")
	l := b.lease(b.request(id, "right"), "w")
	b.startEffect(l, effect("pay", 0))
	b.answer(id, "left", failure(journal.ResponseTerminal, "declined"))
	require.Equal(b, journal.JobFailed, b.view(id).State)
	row := b.finishEffect(l, completed(effect("pay", 0), `"paid"`))
	require.Equal(b, store.EffectCompleted, row.State)
	_, err := b.s.FinishEffect(b.ctx(), l, completed(effect("other", 0), `1`), false)
	requireOneOf(b, err, store.ErrStale, store.ErrJobClosed)
	entries := b.chain(id, l.Request)
	require.Len(b, entries, 2)
	require.True(b, entries[1].Effect.Late)
	list := got(b.s.Effects(b.ctx(), id, l.Request))(b)
	require.Equal(b, `"paid"`, string(list[0].Result))
}

func effectLimits(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	b.startEffect(l, effect("pay", 0))
	large := []byte(`"` + strings.Repeat("x", wire.MaxResult-2) + `"`)
	require.Len(b, b.finishEffect(l, completed(effect("pay", 0), string(large))).Result, wire.MaxResult)
	require.NoError(b, b.s.PutPayload(b.ctx(), r.Job, sha256.Sum256(large), large))
	require.ErrorIs(b, b.s.PutPayload(b.ctx(), journal.JobID{1}, sha256.Sum256([]byte(`1`)), []byte(`1`)), store.ErrNotFound)
}
