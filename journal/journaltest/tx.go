package journaltest

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/wire"
)

var txEffects = map[string]func(*bench){
	"completed without a start, once (E3)":                      txOnce,
	"an error of the body leaves no trace (E5)":                 txError,
	"a panic leaves no trace, and goes on (E5)":                 txPanic,
	"the end of the context leaves no trace (E5)":               txContext,
	"a refusal is a result; not done ends a key (E5)":           txRecorded,
	"answered, turned or taken over: stale (J8)":                txStale,
	"a body that lost its request meanwhile is stale (J8)":      txOvertaken,
	"of a removed job: stale, and nothing stands (P29)":         txRemoved,
	"two at once: one stands (P17)":                             txTwo,
	"an empty result is a result (P18)":                         txEmpty,
	"a result over the limit is refused (E6)":                   txLimit,
	"a completion counts the runs anew, the head is bound (J8)": txBound,
	"of another class, or by FinishEffect: refused":             txClass,
}

func txEffect(name string) journal.Effect {
	e := effect(name, 0)
	e.Class = "tx"
	return e
}

// ends is a body that ends so, and counts its calls.
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
	list, err := b.s.Effects(b.ctx(), r.Job, r.GUID)
	require.NoError(b, err)
	require.Empty(b, list)
	require.Empty(b, b.chain(r.Job, r.GUID))
	b.audit(r.Job)
}

func txOnce(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	calls := 0
	for range 2 {
		row, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting(`{"n":1}`), nil))
		require.NoError(b, err)
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
	b.audit(r.Job)
}

func txError(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	calls := 0
	own := errors.New("no such account")
	_, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, store.TxEnd{}, own))
	require.ErrorIs(b, err, own)
	require.ErrorAs(b, err, new(*store.TxError))
	require.Equal(b, 1, calls)
	b.untouched(r)
	_, err = b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting(`1`), nil))
	require.NoError(b, err)
	require.Equal(b, 2, calls, "its outcome is never unknown: it runs again")
}

func txPanic(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	require.PanicsWithValue(b, "broken", func() {
		_, _ = b.s.TxEffect(b.ctx(), l, txEffect("pay"), func(context.Context, any) (store.TxEnd, error) { panic("broken") })
	})
	b.untouched(r)
}

func txContext(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	over := errors.New("the try is over")
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
	r := b.asked(b.committer())
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
			row, err := b.s.TxEffect(b.ctx(), l, txEffect(name), ends(&calls, want.end, nil))
			require.NoError(b, err)
			require.Equal(b, want.state, row.State)
			require.Equal(b, want.end.Error, row.Error)
		}
		entries := b.chain(r.Job, r.GUID)
		require.Equal(b, want.kind, entries[len(entries)-1].Kind)
	}
	require.Equal(b, 2, calls)
	b.audit(r.Job)
}

// stale runs a body under a lease that is none any more.
func (b *bench) stale(l store.Lease, name string) {
	b.Helper()
	calls := 0
	_, err := b.s.TxEffect(b.ctx(), l, txEffect(name), ends(&calls, resulting(`1`), nil))
	require.ErrorIs(b, err, store.ErrStale)
	require.False(b, errors.As(err, new(*store.TxError)))
}

func txStale(b *bench) {
	c := b.committer()
	r := b.asked(c)
	old, l := b.expired(r, effect("other", 0))
	b.stale(old, "taken over")
	stranger := l
	stranger.Holder = "w3"
	b.stale(stranger, "of another holder")
	b.finishEffect(l, completed(effect("other", 0), `1`))
	b.answer(c, r.Job, "work", failure(journal.ResponseFailedTry, "again"))
	b.stale(l, "turned")
	row := b.row(r.Job, journal.MessageRequest, "work")
	l = b.lease(row, "w4")
	b.answer(c, r.Job, "work", success(`1`))
	b.stale(l, "answered")
	require.Len(b, b.chain(r.Job, r.GUID), 2, "the other's")
	b.audit(r.Job)

	id := b.requested(c, fork, "k2")
	l = b.lease(b.row(id, journal.MessageRequest, "right"), "w")
	b.answer(c, id, "left", failure(journal.ResponseTerminal, "declined"))
	require.Equal(b, journal.JobFailed, b.view(id).State)
	b.stale(l, "withdrawn")
	b.audit(id)
}

// txOvertaken: what happens to the request while the body runs is seen after it.
func txOvertaken(b *bench) {
	c := b.committer()
	r := b.asked(c)
	l := b.lease(r, "w1")
	_, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), func(context.Context, any) (store.TxEnd, error) {
		b.answer(c, r.Job, "work", success(`"by another"`))
		return resulting(`1`), nil
	})
	require.ErrorIs(b, err, store.ErrStale)
	b.untouched(r)
}

func txTwo(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	var mu sync.Mutex
	got := map[string]int{}
	together(4, func(i int) {
		calls := 0
		row, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting(string(rune('0'+i))), nil))
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			b.Errorf("%v", err)
		}
		got[string(row.Result)]++
	})
	require.Len(b, got, 1, "all get what stands")
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	b.audit(r.Job)
}

func txEmpty(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	for _, result := range []string{`null`, `{}`, `""`} {
		calls := 0
		for range 2 {
			row, err := b.s.TxEffect(b.ctx(), l, txEffect(result), ends(&calls, resulting(result), nil))
			require.NoError(b, err)
			require.Equal(b, result, string(row.Result))
		}
		require.Equal(b, 1, calls)
	}
	b.audit(r.Job)
}

func txLimit(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	calls := 0
	large := `"` + strings.Repeat("x", wire.MaxResult-1) + `"`
	_, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting(large), nil))
	require.ErrorIs(b, err, store.ErrRejected)
	b.untouched(r)
}

func txBound(b *bench) {
	c := b.committer()
	r := b.asked(c)
	_ = b.lease(r, "w1")
	l := b.lease(r, "w1")
	require.Equal(b, 2, b.row(r.Job, journal.MessageRequest, "work").Runs)
	calls := 0
	_, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting(`1`), nil))
	require.NoError(b, err)
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Zero(b, row.Runs)
	p := b.must(c, response(&row, success(`1`)))
	require.Equal(b, &journal.Bound{Chain: r.GUID, Head: row.Effects}, p.Entry.Bound)
	b.audit(r.Job)
}

func txClass(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	calls := 0
	_, err := b.s.TxEffect(b.ctx(), l, effect("pay", 0), ends(&calls, resulting(`1`), nil))
	require.ErrorIs(b, err, store.ErrRejected)
	e := txEffect("pay")
	e.Result = []byte(`1`)
	_, err = b.s.FinishEffect(b.ctx(), l, e, false)
	require.ErrorIs(b, err, store.ErrRejected)
	require.Zero(b, calls)
	b.untouched(r)
}

// txRemoved is a run that comes back after its job was removed: whether its body
// runs again or not, what it writes is refused.
func txRemoved(b *bench) {
	c := b.committer()
	r := b.asked(c)
	l := b.lease(r, "w1")
	calls := 0
	_, err := b.s.TxEffect(b.ctx(), l, txEffect("pay"), ends(&calls, resulting("1"), nil))
	require.NoError(b, err)
	b.finish(c, r.Job, b.now(c))
	b.expire(100)
	for _, name := range []string{"pay", "book"} {
		_, err := b.s.TxEffect(b.ctx(), l, txEffect(name), ends(&calls, resulting("2"), nil))
		require.ErrorIs(b, err, store.ErrStale, name)
	}
	list, err := b.s.JobEffects(b.ctx(), r.Job)
	require.NoError(b, err)
	require.Empty(b, list)
	require.Empty(b, b.chain(r.Job, r.GUID))
}
