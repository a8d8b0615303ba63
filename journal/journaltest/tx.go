package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var txEffects = cases{
	"completed without a start, once (E3)":                 txOnce,
	"a body without a result leaves no trace (E5)":         txFails,
	"a refusal is a result; not done ends a key (E5)":      txRecorded,
	"a body that lost its request meanwhile is stale (J8)": txOvertaken,
	"of a removed job: stale, and nothing stands (P29)":    txRemoved,
	"two at once: one stands (P17)":                        txTwo,
}

// body returns a body that ends as given, and counts its calls.
func body(calls *int, end store.TxEnd, err error) store.TxCall {
	return func(context.Context, any) (store.TxEnd, error) {
		*calls++
		return end, err
	}
}

func resulting(result string) store.TxEnd { return store.TxEnd{Result: []byte(result)} }

func txOnce(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	calls := 0
	for i, result := range []string{`{"n":1}`, `null`} {
		e := at(result, store.ClassTx, fmt.Sprint(4+i))
		for range 2 {
			require.Equal(b, store.EffectRow{
				Key: e.Key, Name: result, Class: store.ClassTx, State: store.EffectCompleted, Result: []byte(result), Fence: l.Fence, Holder: "w1", Position: e.Position,
			}, got(b.s.TxEffect(b.ctx(), l, e, body(&calls, resulting(result), nil)))(b))
		}
	}
	require.Equal(b, 2, calls)
	require.Len(b, b.chain(r.Job, r.GUID), 2)
}

func txFails(b *bench) {
	r := b.asked()
	l, pay := b.lease(r, "w1"), at("pay", store.ClassTx, "")
	own, over := errors.New("no such account"), errors.New("the attempt is over")
	ctx, cancel := context.WithCancelCause(b.ctx())
	for want, call := range map[error]store.TxCall{
		own:  func(context.Context, any) (store.TxEnd, error) { return store.TxEnd{}, own },
		over: func(context.Context, any) (store.TxEnd, error) { cancel(over); return resulting(`1`), nil },
	} {
		with := b.ctx()
		if want == over {
			with = ctx
		}
		_, err := b.s.TxEffect(with, l, pay, call)
		require.ErrorIs(b, err, want)
		require.ErrorAs(b, err, new(*store.TxError))
	}
	require.PanicsWithValue(b, "broken", func() {
		_, _ = b.s.TxEffect(b.ctx(), l, pay, func(context.Context, any) (store.TxEnd, error) { panic("broken") })
	})
	require.Empty(b, b.effectsOf(r.Job, r.GUID))
	require.Empty(b, b.chain(r.Job, r.GUID))
	calls := 0
	got(b.s.TxEffect(b.ctx(), l, pay, body(&calls, resulting(`1`), nil)))(b)
	require.Equal(b, 1, calls, "its outcome is never unknown: it runs again")
}

func txRecorded(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	refusal := store.TxEnd{Result: []byte(`{"code":402}`), Error: &journal.Failure{Class: "business", Message: "declined"}}
	notDone := store.TxEnd{Error: &journal.Failure{Class: "error", Message: "locked"}, NotDone: true}
	calls := 0
	for state, end := range map[store.EffectState]store.TxEnd{store.EffectCompleted: refusal, store.EffectNotDone: notDone} {
		for range 2 {
			row := got(b.s.TxEffect(b.ctx(), l, at(string(state), store.ClassTx, ""), body(&calls, end, nil)))(b)
			require.Equal(b, []any{state, end.Error}, []any{row.State, row.Error})
		}
	}
	require.Equal(b, 2, calls)
}

// txOvertaken: the effect sees at its end what happened to the request while the body ran.
func txOvertaken(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	_, err := b.s.TxEffect(b.ctx(), l, at("pay", store.ClassTx, ""), func(context.Context, any) (store.TxEnd, error) {
		b.answer(r.Job, "work", success(`"by another"`))
		return resulting(`1`), nil
	})
	require.ErrorIs(b, err, store.ErrStale)
	require.Empty(b, b.effectsOf(r.Job, r.GUID))
}

// txTwo starts more at once: all get what stands.
func txTwo(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	var mu sync.Mutex
	results := map[string]int{}
	together(4, func(i int) {
		calls := 0
		row, err := b.s.TxEffect(b.ctx(), l, at("pay", store.ClassTx, ""), body(&calls, resulting(string(rune('0'+i))), nil))
		b.check(err)
		mu.Lock()
		defer mu.Unlock()
		results[string(row.Result)]++
	})
	require.Len(b, results, 1)
	require.Len(b, b.chain(r.Job, r.GUID), 1)
}

// txRemoved is a run that comes back after its job was removed. Whether its body runs again or
// not, its writes are refused.
func txRemoved(b *bench) {
	r := b.asked()
	l := b.lease(r, "w1")
	calls := 0
	got(b.s.TxEffect(b.ctx(), l, at("pay", store.ClassTx, ""), body(&calls, resulting("1"), nil)))(b)
	b.finish(r.Job, collation.Micros(1))
	b.expire(100)
	for _, name := range []string{"pay", "book"} {
		_, err := b.s.TxEffect(b.ctx(), l, at(name, store.ClassTx, ""), body(&calls, resulting("2"), nil))
		require.ErrorIs(b, err, store.ErrStale, name)
	}
}
