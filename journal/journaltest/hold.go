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
	"the first start of a run takes its lease (E9)":       holdStart,
	"a heartbeat that meets such a lease extends it (E9)": holdBeat,
	"many first runs at once: one begins (P17)":           holdMany,
	"a long body and a heartbeat meet in either order":    holdBody,
}

// fresh is what a run that was not leased writes with.
func fresh(r collation.Row, holder string) store.Lease {
	return store.Lease{Job: r.Job, Request: r.GUID, Generation: 1, Turn: r.Turn, Fence: r.Fence, Holder: holder, TTL: hour}
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
