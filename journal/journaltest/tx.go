package journaltest

import (
	"context"
	"errors"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var txEffects = map[string]func(*bench){
	"completed without a start, once (E3)":                 txOnce,
	"an error of the body leaves no trace (E5)":            txError,
	"a panic leaves no trace, and goes on (E5)":            txPanic,
	"the end of the context leaves no trace (E5)":          txContext,
	"a refusal is a result; not done ends a key (E5)":      txRecorded,
	"a body that lost its request meanwhile is stale (J8)": txOvertaken,
	"of a removed job: stale, and nothing stands (P29)":    txRemoved,
	"two at once: one stands (P17)":                        txTwo,
	"an empty result is a result (P18)":                    txEmpty,
}

func txEffect(name string) journal.Effect {
	e := effect(name, 0)
	e.Class = "tx"
	return e
}

// ends returns a body that ends as given, and counts its calls.
func ends(calls *int, end store.TxEnd, err error) store.TxCall {
	return func(context.Context, any) (store.TxEnd, error) {
		*calls++
		return end, err
	}
}

func resulting(result string) store.TxEnd { return store.TxEnd{Result: []byte(result)} }

// untouched checks that nothing of an effect is recorded.
func (b *bench) untouched(r collation.Row) {
	b.Helper()
	list := got(b.s.Effects(b.ctx(), r.Job, r.GUID))(b)
	require.Empty(b, list)
	require.Empty(b, b.chain(r.Job, r.GUID))
}

func txOnce(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	calls := 0
	for range 2 {
		row := got(b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting(`{"n":1}`), nil)))(b)
		require.Equal(b, store.EffectRow{
			Key: effect("pay", 0).Key, Name: "pay", Class: "tx", State: store.EffectCompleted,
			Result: []byte(`{"n":1}`), Fence: l.Fence, Holder: "w1",
		}, row)
	}
	require.Equal(b, 1, calls)
	entries := b.chain(r.Job, r.GUID)
	require.Len(b, entries, 1)
	require.Equal(b, journal.KindEffectCompleted, entries[0].Kind)
	require.Equal(b, "tx", entries[0].Effect.Class)
	require.Equal(b, []any{1, l.Fence, false}, []any{entries[0].Effect.Turn, entries[0].Effect.Fence, entries[0].Effect.Late})
}

func txError(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	calls := 0
	own := errors.New("no such account")
	_, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, store.TxEnd{}, own))
	require.ErrorIs(b, err, own)
	require.ErrorAs(b, err, new(*store.TxError))
	require.Equal(b, 1, calls)
	b.untouched(r)
	got(b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting(`1`), nil)))(b)
	require.Equal(b, 2, calls, "its outcome is never unknown: it runs again")
}

func txPanic(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	require.PanicsWithValue(b, "broken", func() {
		_, _ = b.s.TxEffect(b.ctx(), l, txEffect("pay"), func(context.Context, any) (store.TxEnd, error) { panic("broken") })
	})
	b.untouched(r)
}

func txContext(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	over := errors.New("the attempt is over")
	ctx, cancel := context.WithCancelCause(b.ctx())
	_, err := b.s.TxEffect(ctx, l, txEffect("pay"), func(context.Context, any) (store.TxEnd, error) {
		cancel(over)
		return resulting(`1`), nil
	})
	require.ErrorIs(b, err, over)
	require.ErrorAs(b, err, new(*store.TxError))
	b.untouched(r)
}

func txRecorded(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	calls := 0
	refusal := store.TxEnd{Result: []byte(`{"code":402}`), Error: &journal.Failure{Class: "business", Message: "declined"}}
	notDone := store.TxEnd{Error: &journal.Failure{Class: "error", Message: "locked"}, NotDone: true}
	for name, want := range map[string]struct {
		end   store.TxEnd
		state store.EffectState
		kind  journal.Kind
	}{
		"refused":  {refusal, store.EffectCompleted, journal.KindEffectCompleted},
		"not done": {notDone, store.EffectNotDone, journal.KindEffectFailed},
	} {
		for range 2 {
			row := got(b.s.TxEffect(b.ctx(), l, txEffect(name), ends(&calls, want.end, nil)))(b)
			require.Equal(b, want.state, row.State)
			require.Equal(b, want.end.Error, row.Error)
		}
		entries := b.chain(r.Job, r.GUID)
		require.Equal(b, want.kind, entries[len(entries)-1].Kind)
	}
	require.Equal(b, 2, calls)
}

// txOvertaken: the effect sees at its end what happened to the request while the body ran.
func txOvertaken(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	_, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), func(context.Context, any) (store.TxEnd, error) {
		b.answer(r.Job, "work", success(`"by another"`))
		return resulting(`1`), nil
	})
	require.ErrorIs(b, err, store.ErrStale)
	b.untouched(r)
}

func txTwo(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	var mu sync.Mutex
	got := map[string]int{}
	together(4, func(i int) {
		calls := 0
		row, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting(string(rune('0'+i))), nil))
		mu.Lock()
		defer mu.Unlock()
		b.check(err)
		got[string(row.Result)]++
	})
	require.Len(b, got, 1, "all get what stands")
	require.Len(b, b.chain(r.Job, r.GUID), 1)
}

func txEmpty(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	for _, result := range []string{`null`, `{}`, `""`} {
		calls := 0
		for range 2 {
			row := got(b.s.TxEffect(b.ctx(), l, txEffect(result), ends(&calls, resulting(result), nil)))(b)
			require.Equal(b, result, string(row.Result))
		}
		require.Equal(b, 1, calls)
	}
}

// txRemoved is a run that comes back after its job was removed. Whether its body runs again or
// not, its writes are refused.
func txRemoved(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	calls := 0
	got(b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting("1"), nil)))(b)
	b.finish(r.Job, b.now())
	b.expire(100)
	for _, name := range []string{"pay", "book"} {
		_, err := b.s.TxEffect(b.ctx(), l, txEffect(name), ends(&calls, resulting("2"), nil))
		require.ErrorIs(b, err, store.ErrStale, name)
	}
	list := got(b.s.JobEffects(b.ctx(), r.Job))(b)
	require.Empty(b, list)
	require.Empty(b, b.chain(r.Job, r.GUID))
}
