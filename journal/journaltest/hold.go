package journaltest

import (
	"context"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

var holds = map[string]func(*bench){
	"the first start of a run takes its lease (E9)":        holdStart,
	"so does a pure effect, and one of class tx (E9)":      holdOthers,
	"a lease whose answer was lost is the run's own (E9)":  holdLost,
	"a heartbeat that meets such a lease extends it (E9)":  holdBeat,
	"who finds another's lease begins nothing (J8)":        holdOther,
	"many first runs at once: one begins (P17)":            holdMany,
	"a recorded outcome takes no lease":                    holdNone,
	"what was begun before is taken over (E4)":             holdTakeover,
	"a long body and a heartbeat meet in either order":     holdBody,
	"without a time a start has its row until that is due": holdDue,
}

// fresh is what a run that was not leased writes with.
func fresh(r collation.Row, holder string) store.Lease {
	return store.Lease{Job: r.Job, Request: r.GUID, Generation: 1, Turn: r.Turn, Fence: r.Fence, Holder: holder, TTL: hour}
}

func pure(name string) journal.Effect {
	e := effect(name, 0)
	e.Class = store.ClassPure
	return e
}

// held checks that the run has the row, under a lease of its own.
func (b *bench) held(r collation.Row, holder string, runs int) collation.Row {
	b.Helper()
	row := b.row(r.Job, journal.MessageRequest, "work")
	require.Equal(b, []any{holder, r.Fence + 1, runs}, []any{row.Holder, row.Fence, row.Runs})
	require.Greater(b, row.LeaseUntil, row.PublishedAt)
	require.GreaterOrEqual(b, row.NextAt+1000, row.LeaseUntil, "nobody else is asked as long as it lasts (P21)")
	_, err := b.s.Lease(b.ctx(), r.Job, r.GUID, r.Turn, "another", hour)
	require.ErrorIs(b, err, store.ErrLeased)
	b.audit(r.Job)
	return row
}

func holdStart(b *bench) {
	r := b.asked(b.committer())
	row := b.startEffect(fresh(r, "w1"), effect("pay", 0))
	require.Equal(b, []any{r.Fence + 1, "w1", true}, []any{row.Fence, row.Holder, row.Live})
	b.held(r, "w1", 1)
	require.Equal(b, r.Fence+1, b.chain(r.Job, r.GUID)[0].Effect.Fence)
	l := fresh(r, "w1")
	l.Fence, l.TTL = row.Fence, 0
	b.startEffect(l, effect("ship", 0))
	b.finishEffect(l, completed(effect("pay", 0), `1`))
	b.held(r, "w1", 0)
}

func holdOthers(b *bench) {
	c := b.committer()
	id := b.requested(c, fork, "k")
	r := b.row(id, journal.MessageRequest, "left")
	row := b.finishEffect(fresh(r, "w1"), completed(pure("sum"), `1`))
	require.Equal(b, []any{r.Fence + 1, "w1"}, []any{row.Fence, row.Holder})
	tx := b.row(id, journal.MessageRequest, "right")
	calls := 0
	row, err := b.s.TxEffect(b.ctx(), fresh(tx, "w2"), txEffect("rows"), ends(&calls, resulting(`1`), nil))
	require.NoError(b, err)
	require.Equal(b, []any{tx.Fence + 1, "w2"}, []any{row.Fence, row.Holder})
	for activity, holder := range map[string]string{"left": "w1", "right": "w2"} {
		row := b.row(id, journal.MessageRequest, activity)
		require.Equal(b, []any{holder, int64(1), 0}, []any{row.Holder, row.Fence, row.Runs}, "the runs count anew (E9)")
		_, err := b.s.Lease(b.ctx(), id, row.GUID, 1, "another", hour)
		require.ErrorIs(b, err, store.ErrLeased)
	}
	b.audit(id)
}

func holdLost(b *bench) {
	r := b.asked(b.committer())
	l := fresh(r, "w1")
	first := b.startEffect(l, effect("pay", 0))
	require.Equal(b, first, b.startEffect(l, effect("pay", 0)), "a repetition finds its own start")
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	other := b.startEffect(l, effect("ship", 0))
	require.Equal(b, first.Fence, other.Fence, "it is taken once")
	done := b.finishEffect(l, completed(effect("pay", 0), `1`))
	require.Equal(b, first.Fence, done.Fence)
	require.False(b, b.chain(r.Job, r.GUID)[2].Effect.Late)
	b.held(r, "w1", 0)
}

func holdBeat(b *bench) {
	r := b.asked(b.committer())
	l := fresh(r, "w1")
	row := b.startEffect(l, effect("pay", 0))
	before := b.held(r, "w1", 1)
	beaten, err := b.s.Heartbeat(b.ctx(), l, 2*hour)
	require.NoError(b, err)
	require.Equal(b, row.Fence, beaten.Fence)
	require.Zero(b, beaten.TTL, "it knows of its lease now")
	require.Greater(b, b.held(r, "w1", 1).LeaseUntil, before.LeaseUntil)
	stranger := fresh(r, "w2")
	_, err = b.s.Heartbeat(b.ctx(), stranger, hour)
	require.ErrorIs(b, err, store.ErrStale)
	l.TTL = 0
	_, err = b.s.Heartbeat(b.ctx(), l, hour)
	require.ErrorIs(b, err, store.ErrStale, "a run that knows of its lease names its fence")
}

func holdOther(b *bench) {
	r := b.asked(b.committer())
	b.lease(r, "w1")
	l := fresh(r, "w2")
	_, _, err := b.s.StartEffect(b.ctx(), l, effect("pay", 0))
	require.ErrorIs(b, err, store.ErrStale)
	_, err = b.s.FinishEffect(b.ctx(), l, completed(pure("sum"), `1`), false)
	require.ErrorIs(b, err, store.ErrStale)
	calls := 0
	_, err = b.s.TxEffect(b.ctx(), l, txEffect("rows"), ends(&calls, resulting(`1`), nil))
	require.ErrorIs(b, err, store.ErrStale)
	b.untouched(r)
	b.held(r, "w1", 1)
}

func holdMany(b *bench) {
	r := b.asked(b.committer())
	var mu sync.Mutex
	began := 0
	together(8, func(i int) {
		_, _, err := b.s.StartEffect(b.ctx(), fresh(r, fmt.Sprint("w", i)), effect("pay", 0))
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			began++
		} else {
			requireOneOf(b, err, store.ErrStale, store.ErrLeased)
		}
	})
	require.Equal(b, 1, began)
	require.Len(b, b.chain(r.Job, r.GUID), 1)
	require.Equal(b, 1, b.row(r.Job, journal.MessageRequest, "work").Runs)
	b.audit(r.Job)
}

func holdNone(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	b.finishEffect(l, completed(pure("sum"), `1`))
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	r = b.row(r.Job, journal.MessageRequest, "work")
	row := b.startEffect(fresh(r, "w2"), pure("sum"))
	require.Equal(b, store.EffectCompleted, row.State)
	require.Equal(b, r, b.row(r.Job, journal.MessageRequest, "work"), "nothing is written")
}

func holdTakeover(b *bench) {
	r := b.asked(b.committer())
	l := b.lease(r, "w1")
	b.startEffect(l, effect("pay", 0))
	require.NoError(b, b.s.HandBack(b.ctx(), l))
	r = b.row(r.Job, journal.MessageRequest, "work")
	row, taken, err := b.s.StartEffect(b.ctx(), fresh(r, "w2"), effect("pay", 0))
	require.NoError(b, err)
	require.True(b, taken, "its holder has gone")
	require.Equal(b, []any{l.Fence + 1, "w2"}, []any{row.Fence, row.Holder})
	b.held(r, "w2", 1)
	require.Len(b, b.chain(r.Job, r.GUID), 1)
}

// holdBody: the body of a Tx effect lasts, and the run heartbeats by itself.
func holdBody(b *bench) {
	c := b.committer()
	id := b.requested(c, fork, "k")
	r := b.row(id, journal.MessageRequest, "left")
	l := fresh(r, "w1")
	var beaten store.Lease
	row, err := b.s.TxEffect(b.ctx(), l, txEffect("rows"), func(ctx context.Context, _ any) (end store.TxEnd, err error) {
		beaten, err = b.s.Heartbeat(ctx, l, hour)
		return resulting(`1`), err
	})
	require.NoError(b, err)
	require.Equal(b, beaten.Fence, row.Fence)
	r = b.row(id, journal.MessageRequest, "right")
	l = fresh(r, "w2")
	calls := 0
	row, err = b.s.TxEffect(b.ctx(), l, txEffect("more"), ends(&calls, resulting(`1`), nil))
	require.NoError(b, err)
	beaten, err = b.s.Heartbeat(b.ctx(), l, hour)
	require.NoError(b, err)
	require.Equal(b, row.Fence, beaten.Fence)
	b.audit(id)
}

func holdDue(b *bench) {
	r := b.asked(b.committer())
	l := fresh(r, "w1")
	l.TTL = 0
	row := b.startEffect(l, effect("pay", 0))
	require.Equal(b, r.Fence, row.Fence)
	after := b.row(r.Job, journal.MessageRequest, "work")
	require.Equal(b, []any{"w1", r.NextAt, r.NextAt}, []any{after.Holder, after.LeaseUntil, after.NextAt})
}
